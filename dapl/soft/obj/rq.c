/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.c - allocates receive rings. */
#include "dapl/soft/obj/rq.h"
#include "common/bits.h"
#include <stdlib.h>

int soft_rq_init(struct soft_rq *rq, uint32_t wr, uint32_t sge)
{
	rq->max_sge = sge ? sge : 1;
	rq->stride = sizeof(struct soft_rwqe) + rq->max_sge * sizeof(struct ibv_sge);
	rq->size = round_up_power_of_two(wr ? wr : 1);
	rq->ring = malloc((size_t)rq->size * rq->stride);
	return rq->ring ? 0 : ENOMEM;
}
