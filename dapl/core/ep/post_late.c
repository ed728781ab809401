/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_late.c - completes posts to a queue pair in ERR without the device (post_late.h). DTO-8, 9,
 * CONN-34. */
#include "dapl/core/ep/post_late.h"
#include "common/compiler.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/flush.h"

/* Returns true if the endpoint is disconnected and posts complete without the device. Then ep->lock and
 * q->lock are held, so the queue was flushed before, and is not emptied meanwhile. */
static COLD bool begin_late_post(struct dapl_ep *ep, struct dapl_queue *q)
{
	if (!dapl_post_enter(ep))
		return false;
	if (ep->obj.ia->attr.no_late_flush && !READ_ONCE(ep->is_ud)) {
		dapl_mutex_lock(&ep->lock);
		dapl_post_lock(&q->lock);
		if (ep->state == DAT_EP_STATE_DISCONNECTED && ep->qp && q->in_error)
			return true;	/* end_late_post leaves */
		dapl_post_unlock(&q->lock);
		dapl_mutex_unlock(&ep->lock);
	}
	dapl_object_leave(&ep->obj);
	return false;
}

static COLD DAT_RETURN end_late_post(struct dapl_ep *ep, struct dapl_queue *q, bool posted)
{
	struct dapl_evd *evd = q == &ep->sq ? dapl_ep_request_evd(ep) : dapl_ep_recv_evd(ep);

	dapl_post_unlock(&q->lock);
	if (posted)
		dapl_evd_flush_posts(evd, ep, q, false);
	dapl_object_get(&evd->obj);
	dapl_mutex_unlock(&ep->lock);
	if (evd->discard)
		dapl_evd_discard(evd);
	dapl_object_put(&evd->obj);
	dapl_object_leave(&ep->obj);
	return posted ? DAT_SUCCESS : NO_RESOURCE(MEMORY);
}

DAT_RETURN dapl_post_late(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			  int op, unsigned dto_flags, unsigned counter, DAT_RMR_HANDLE rmr)
{
	struct dapl_dto *dto;
	unsigned to;

	if (!begin_late_post(ep, &ep->sq))
		return dapl_post_bad_state(ep);
	dto = dapl_post_take_record(ep, length, cookie, flags, op, dto_flags, &to);
	if (dto) {
		dto->flags &= ~REQ_UNSIGNALED;
		dto->rmr = rmr;
		dapl_post_commit(ep, &ep->sq, counter, length);
	}
	return end_late_post(ep, &ep->sq, dto != NULL);
}

DAT_RETURN dapl_post_late_receive(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie, unsigned dto_flags)
{
	struct dapl_queue *q = &ep->rq;
	bool room;

	if (!begin_late_post(ep, q))
		return dapl_post_bad_state(ep);
	room = dapl_queue_used(q) < q->limit;
	if (room) {
		*dapl_queue_next(q) = (struct dapl_dto){ .cookie = cookie, .ep = ep,
			.length = length, .end = q->head + 1, .op = DAT_DTO_RECEIVE,
			.flags = dto_flags };
		dapl_post_commit(ep, q, DCNT_EP_POST_RECV, length);
	}
	return end_late_post(ep, q, room);
}
