/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.c - see poll.h. A poll that finds the CQ empty drives progress. */
#include "dapl/soft/verbs/poll.h"
#include "common/lock.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/progress.h"

static struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

int soft_cq_poll(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq(ibcq);
	int n = soft_cq_take(cq, entries, wc);

	if (n || entries < 1)
		return n;
	return soft_progress_poll(cq) ? soft_cq_take(cq, entries, wc) : 0;
}

int soft_cq_arm(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_cq *cq = soft_cq(ibcq);

	dapl_spin_lock(&cq->lock);
	__atomic_store_n(&cq->armed, cq->armed | (solicited_only ? SOFT_ARMED_SOLICITED
								 : SOFT_ARMED), __ATOMIC_RELAXED);
	dapl_spin_unlock(&cq->lock);
	soft_owner_sleep(cq->dev);
	return 0;
}
