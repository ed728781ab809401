/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.h - receive rings, of a QP or of an SRQ. The lock of the QP or of the SRQ guards a ring. */
#ifndef SOFT_OBJ_RQ_H
#define SOFT_OBJ_RQ_H
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "common/bits.h"

struct soft_rwqe {
	uint64_t wr_id;
	uint64_t length;
	uint32_t sges;
	struct ibv_sge sge[];
};

struct soft_rq {			/* receives, of a QP or an SRQ */
	char *ring;
	uint32_t stride, size;		/* bytes of an entry; entries, a power of 2 */
	uint32_t max_sge;		/* segments of an entry */
	uint32_t head, tail;		/* counters that wrap; [head, tail) are posted */
};

static inline struct soft_rwqe *soft_rwqe(const struct soft_rq *rq, uint32_t index)
{
	return (struct soft_rwqe *)(rq->ring + (size_t)(index & (rq->size - 1)) * rq->stride);
}

/* Allocates the ring. Returns an errno value. */
static inline int soft_rq_init(struct soft_rq *rq, uint32_t wr, uint32_t sge)
{
	rq->max_sge = sge ? sge : 1;
	rq->stride = sizeof(struct soft_rwqe) + rq->max_sge * sizeof(struct ibv_sge);
	rq->size = round_up_power_of_two(wr ? wr : 1);
	rq->ring = malloc((size_t)rq->size * rq->stride);
	return rq->ring ? 0 : ENOMEM;
}

static inline void rwqe_copy(struct soft_rwqe *to, const struct soft_rwqe *from)
{
	*to = *from;
	for (uint32_t i = 0; i < from->sges; i++)
		to->sge[i] = from->sge[i];
}

/* DTO-31 */
static inline int rq_post(struct soft_rq *rq, const struct ibv_recv_wr *wr)
{
	struct soft_rwqe *rwqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (rq->tail - rq->head == rq->size)
		return ENOMEM;
	rwqe = soft_rwqe(rq, rq->tail);
	rwqe->wr_id = wr->wr_id;
	rwqe->sges = wr->num_sge;
	rwqe->length = 0;
	for (int i = 0; i < wr->num_sge; i++) {
		rwqe->sge[i] = wr->sg_list[i];
		rwqe->length += wr->sg_list[i].length;
	}
	rq->tail++;
	return 0;
}

#endif
