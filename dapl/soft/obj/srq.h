/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h - shared receive queues. What the data path calls is inline. */
#ifndef SOFT_OBJ_SRQ_H
#define SOFT_OBJ_SRQ_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rq.h"

struct dapl_device;

struct soft_srq {
	struct ibv_srq srq;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	struct soft_rq rq;
	uint32_t limit;			/* armed when not 0 */
	TAILQ_HEAD(, soft_qp) waiting;	/* QPs with a message and no receive */
	unsigned refs;

	struct soft_event below_limit;
};

int soft_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int soft_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_srq_destroy(struct ibv_srq *srq);
/* The QP does not wait for a receive any more. Called with qp->lock held. */
void soft_srq_stop_waiting(struct soft_qp *qp);

static inline struct soft_srq *soft_srq(struct ibv_srq *srq)
{
	return (struct soft_srq *)srq;
}

/* The protection domain of the memory that receives name. */
static inline const struct ibv_pd *soft_receive_pd(const struct soft_qp *qp)
{
	return qp->srq ? qp->srq->srq.pd : qp->qp.pd;
}

/* Called with srq->lock held. Reports one event when the receives fall below the limit. */
static inline void srq_check_limit(struct soft_srq *srq)
{
	assert_held(&srq->lock);
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

	assert_held(&qp->lock);
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
