/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c - shared receive queues: their life, posting, and the list of QPs that wait for a receive. */
#include "dapl/soft/obj/srq.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>

int soft_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	struct soft_srq *new;

	if (!attr->attr.max_wr || attr->attr.max_wr > SOFT_MAX_WR ||
	    attr->attr.max_sge > SOFT_MAX_SGE)
		return EINVAL;
	new = calloc(1, sizeof *new);
	if (!new || soft_rq_init(&new->rq, attr->attr.max_wr, attr->attr.max_sge)) {
		free(new);
		return ENOMEM;
	}
	dapl_spin_init(&new->lock, RANK_SOFT_SRQ);
	new->dev = soft_device(pd->context);
	new->srq.context = pd->context;
	new->srq.pd = pd;
	new->srq.srq_context = attr->srq_context;
	new->limit = attr->attr.srq_limit;
	TAILQ_INIT(&new->waiting);
	attr->attr.max_wr = new->rq.size;
	attr->attr.max_sge = new->rq.max_sge;
	__atomic_add_fetch(&((struct soft_pd *)pd)->refs, 1, __ATOMIC_RELAXED);
	*srq = &new->srq;
	return 0;
}

/* Moves the receives to the ring of `new`, whose ring becomes the old one, for the caller to free. Called with
 * srq->lock held. */
static int swap_rings(struct soft_srq *srq, uint32_t wr, struct soft_rq *new)
{
	char *old = srq->rq.ring;

	assert_held(&srq->lock);
	if (wr < srq->rq.tail - srq->rq.head)
		return EINVAL;
	for (uint32_t i = srq->rq.head; i != srq->rq.tail; i++)
		rwqe_copy(soft_rwqe(new, new->tail++), soft_rwqe(&srq->rq, i));
	/* max_sge stays the same, and soft_qp_create() reads it without the lock: it is not stored again */
	srq->rq.ring = new->ring;
	srq->rq.stride = new->stride;
	srq->rq.size = new->size;
	srq->rq.head = new->head;
	srq->rq.tail = new->tail;
	new->ring = old;
	return 0;
}

int soft_srq_modify(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct soft_srq *srq = soft_srq(ibsrq);
	struct soft_rq new = { 0 };
	int err = 0;

	if (mask & IBV_SRQ_MAX_WR) {
		if (!attr->max_wr || attr->max_wr > SOFT_MAX_WR)
			err = EINVAL;
		else
			err = soft_rq_init(&new, attr->max_wr, srq->rq.max_sge);
	}
	dapl_spin_lock(&srq->lock);
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = swap_rings(srq, attr->max_wr, &new);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		if (attr->srq_limit > srq->rq.size) {
			err = EINVAL;
		} else {
			srq->limit = attr->srq_limit;
			srq_check_limit(srq);
		}
	}
	attr->max_wr = srq->rq.size;
	dapl_spin_unlock(&srq->lock);
	free(new.ring);
	return err;
}

int soft_srq_destroy(struct ibv_srq *ibsrq)
{
	struct soft_srq *srq = soft_srq(ibsrq);

	if (__atomic_load_n(&srq->refs, __ATOMIC_ACQUIRE))
		return EBUSY;
	soft_event_forget(srq->dev, &srq->below_limit, ibsrq);
	__atomic_sub_fetch(&((struct soft_pd *)ibsrq->pd)->refs, 1, __ATOMIC_RELEASE);
	free(srq->rq.ring);
	free(srq);
	return 0;
}

void soft_srq_stop_waiting(struct soft_qp *qp)
{
	assert_held(&qp->lock);
	if (!qp->srq)
		return;
	dapl_spin_lock(&qp->srq->lock);
	if (qp->srq_waiting)
		TAILQ_REMOVE(&qp->srq->waiting, qp, srq_link);
	qp->srq_waiting = false;
	dapl_spin_unlock(&qp->srq->lock);
}
