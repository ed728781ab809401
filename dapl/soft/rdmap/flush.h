/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.h - flushes the requests of a QP. Called with qp->lock held. */
#ifndef SOFT_RDMAP_FLUSH_H
#define SOFT_RDMAP_FLUSH_H
#include <infiniband/verbs.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"

/* Moves the QP to ERR. Request `culprit` (a counter of the send queue) completes with `status`, all others
 * are flushed. With status SUCCESS all are flushed. If the peer is within a write to the memory of this
 * process, the completions are made when it has left. */
void soft_flush_qp(struct soft_qp *qp, uint32_t culprit, enum ibv_wc_status status);

#endif
