/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h - receive rings, of a QP or of a shared receive queue, and shared receive queues. What the data path
 * calls is inline. */
#ifndef SOFT_OBJ_SRQ_H
#define SOFT_OBJ_SRQ_H
#include "dapl/soft/soft.h"
#include <errno.h>

static inline uint32_t power_of_2(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* --- receive rings --------------------------------------------------------------- */

/* Allocates the ring. Returns an errno value. */
int soft_rq_init(struct soft_rq *rq, uint32_t wr, uint32_t sge);

static inline void rwqe_copy(struct soft_rwqe *to, const struct soft_rwqe *from)
{
	*to = *from;
	for (uint32_t i = 0; i < from->sges; i++)
		to->sge[i] = from->sge[i];
}

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

/* --- shared receive queues --------------------------------------------------------- */

int soft_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int soft_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_srq_destroy(struct ibv_srq *srq);
int soft_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* The QP does not wait for a receive any more. Called with qp->lock held. */
void soft_srq_stop_waiting(struct soft_qp *qp);

static inline struct soft_srq *soft_srq(struct ibv_srq *srq)
{
	return (struct soft_srq *)srq;
}

/* Called with srq->lock held. Reports one event when the receives fall below the limit. */
static inline void srq_check_limit(struct soft_srq *srq)
{
	if (likely(srq->rq.tail - srq->rq.head >= srq->limit))
		return;
	srq->limit = 0;
	soft_event_post(srq->dev, &srq->below_limit, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->srq);
}

/* Copies a receive into qp->taken. Returns false if there is none, and then lists the QP as waiting. Called
 * with qp->lock held. */
static inline bool srq_take(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	bool taken;

	dapl_spin_lock(&srq->lock);
	taken = srq->rq.head != srq->rq.tail;
	if (taken) {
		rwqe_copy(qp->taken, soft_rwqe(&srq->rq, srq->rq.head++));
		srq_check_limit(srq);
	} else if (!qp->srq_waiting) {
		qp->srq_waiting = true;
		TAILQ_INSERT_TAIL(&srq->waiting, qp, srq_link);
	}
	dapl_spin_unlock(&srq->lock);
	return taken;
}

#endif
