/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_recv.c - receives that the fast path of post.c does not take: other lists of segments, flags, and
 * queue pairs that are missing, in ERR, or may be replaced (calls.h). */
#include <errno.h>
#include "common/compiler.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/recv_repost.h"
#include "dapl/core/ep/sge_list.h"

/* Waits until no other call changes the endpoint, and makes its QP if there is none. */
static COLD DAT_RETURN settle_qp(struct dapl_ep *posted_to)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_post_enter(posted_to);
	DAT_RETURN ret = BAD_HANDLE(EP);

	if (!ep)
		return ret;
	dapl_ep_lock_settled(ep);
	if (dapl_object_is_live(&ep->obj))
		ret = dapl_ep_need_qp(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

static unsigned recv_dto_flags(const struct dapl_ep *ep, DAT_COMPLETION_FLAGS flags)
{
	return (flags ? REQ_NO_NOTIFY : 0) | (READ_ONCE(ep->is_ud) ? REQ_EXTENSION : 0);
}

/* rxe flushes the receive queue when the QP goes to ERR. Receives that are posted later are
 * flushed only when the QP is moved to ERR again, which is harmless on other devices.
 * DTO-9, CONN-34. */
static COLD void flush_again(struct dapl_ep *posted_to)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_post_enter(posted_to);

	if (!ep)
		return;
	dapl_mutex_lock(&ep->lock);
	if (ep->qp && ep->state == DAT_EP_STATE_DISCONNECTED)
		dapl_device_ops.error_qp(ep->qp);
	dapl_mutex_unlock(&ep->lock);
}

/* Posts a receive. Returns 0 or an errno; ENOSPC: the queue is full. Called with q->lock held and ep->qp
 * set. */
static int put_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct ibv_recv_wr *bad;
	struct dapl_dto *dto;
	int err;

	assert_held(&ep->rq.lock);
	if (dapl_queue_used(q) >= q->limit)
		return ENOSPC;	/* DTO-14 */
	dto = dapl_queue_next(q);
	*dto = (struct dapl_dto){ .cookie = cookie, .ep = ep, .length = length, .end = q->head + 1,
		.op = DAT_DTO_RECEIVE, .flags = recv_dto_flags(ep, flags) };
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	err = ibv_post_recv(ep->qp, wr, &bad);
	if (!err)
		dapl_post_commit(ep, q, DCNT_EP_POST_RECV, length);
	return err;
}

/* True if the receive may have to be posted to another QP. The receives of a UD endpoint may complete in
 * any state, so they are not posted again. */
static bool keeps_receives(const struct dapl_ep *ep)
{
	return !READ_ONCE(ep->is_ud) && dapl_ep_is_modifiable(ep);
}

/* Takes q->lock when the endpoint has a QP that no other call is about to replace or to empty, with a
 * copy of the receive in *saved if it may have to be posted again. After an error the lock is not held. */
static DAT_RETURN lock_to_receive(struct dapl_ep *ep, const struct ibv_recv_wr *wr,
				  struct dapl_saved_recv **saved)
{
	bool settled;
	DAT_RETURN ret;

	for (;;) {
		*saved = NULL;
		if (keeps_receives(ep) && !(*saved = dapl_saved_recv_new(wr)))
			return NO_RESOURCE(MEMORY);
		dapl_post_lock(&ep->rq.lock);
		settled = ep->qp && !ep->changing;
		if (settled && (*saved || !keeps_receives(ep)))
			return DAT_SUCCESS;
		dapl_post_unlock(&ep->rq.lock);
		dapl_saved_recv_free(*saved);
		if (!settled && (ret = settle_qp(ep)))
			return ret;
	}
}

static NOINLINE DAT_RETURN post_any_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
					    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct dapl_saved_recv *saved;
	bool in_error, late;
	DAT_RETURN ret;
	int err = 0;

	if ((ret = lock_to_receive(ep, wr, &saved)))
		return ret;
	in_error = q->in_error;
	late = in_error && ep->obj.ia->attr.no_late_flush;
	if (!late)
		err = put_receive(ep, wr, length, cookie, flags);
	if (saved && !late && !err && keeps_receives(ep)) {
		dapl_saved_recv_add(ep, saved);
		saved = NULL;
	}
	dapl_post_unlock(&q->lock);
	dapl_saved_recv_free(saved);
	if (late)
		return dapl_post_late_receive(ep, length, cookie, recv_dto_flags(ep, flags));
	if (in_error)
		flush_again(ep);
	if (err == ENOSPC)
		return NO_RESOURCE(MEMORY);
	return err ? dapl_post_refused(ep, err) : DAT_SUCCESS;
}

/* Leaves out empty segments. */
DAT_RETURN dapl_receive_any(struct dapl_ep *ep, int n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags)
{
	struct ibv_sge copy[DAPL_SGE_MAX];
	struct ibv_recv_wr wr;
	uint64_t total;

	if (READ_ONCE(ep->srq))
		return dapl_post_bad_state(ep);	/* SRQ-6 */
	if (n < 0 || n > READ_ONCE(ep->max_recv_iov))
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (flags & ~(DAT_COMPLETION_UNSIGNALLED_FLAG & ~READ_ONCE(ep->recv_flags)))
		return BAD_PARAM(5);
	wr.sg_list = dapl_sge_sum(iov, n, &total) ? dapl_sge_nonempty(iov, &n, copy) : (struct ibv_sge *)iov;
	if (!n && READ_ONCE(ep->obj.ia)->attr.no_empty_receive) {
		copy[n++] = (struct ibv_sge){ .length = 0 };
		wr.sg_list = copy;
	}
	wr.num_sge = n;
	return post_any_receive(ep, &wr, (uint32_t)total, cookie, flags);
}
