/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_slow.c - requests that the fast path of post.c does not take: other lists of segments, other flags,
 * a full queue; posts to a queue pair in ERR; requests of the provider's own (post_slow.h). Receives are in
 * post_recv.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/compiler.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/sge_list.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/flush.h"
#include "dapl/core/event/polled.h"

COLD DAT_RETURN dapl_post_bad_state(struct dapl_ep *ep)
{
	if (!dapl_ep_is_live(ep))
		return BAD_HANDLE(EP);
	/* a UD endpoint refuses connected operations as an unconnected endpoint does */
	return dapl_status_bad_ep_state(__atomic_load_n(&ep->state, __ATOMIC_RELAXED));
}

/* Called when the queue is full. Retires suppressed successes, which are never dequeued, to make room.
 * Releases q->lock meanwhile. */
static COLD bool make_room(struct dapl_ep *posted_to, struct dapl_queue *q)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_post_enter(posted_to);
	struct dapl_evd *evd;
	bool room;

	if (!ep || q != &ep->sq)
		return false;
	evd = dapl_ep_request_evd(ep);
	if (evd)
		dapl_object_get(&evd->obj);	/* dat_ep_modify may replace the EVD; a free waits for this
						 * reference */
	dapl_post_unlock(&q->lock);
	if (evd) {
		dapl_evd_reap_suppressed(evd);
		dapl_object_put(&evd->obj);
	}
	dapl_post_lock(&q->lock);
	room = ep->qp && dapl_queue_used(q) < q->limit;
	if (!room)
		trace(TRC_LVL_DETAIL, TRC_DAPL_EVENT, "ep", ep, NULL, "queue full, %u posted",
		      q->limit);
	return room;
}

COLD DAT_RETURN dapl_post_refused(struct dapl_ep *ep, int err)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "post: %s", strerror(abs(err)));
	if (abs(err) == EMSGSIZE)	/* ETH-5 */
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	if (err == EKEYREJECTED)	/* DTO-15, LMR-16 */
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	if (err == ERANGE)	/* DTO-25 */
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* The device may hold back a request with a fence, and those behind it. Inline data is copied when it is
 * posted, which is before the earlier RDMA reads have brought it. DTO-36, 37, RMR-14, EXT-41, LMR-27, DM-22. */
static void begin_fence(struct dapl_queue *q, const struct dapl_dto *dto)
{
	q->fenced = true;
	q->fence = dto->end;
	q->room = 0;
}

/* Ends the fence if its request has completed. */
static COLD void end_fence(struct dapl_ep *ep)
{
	struct dapl_queue *q = &ep->sq;

	assert_held(&q->lock);
	if ((int32_t)(__atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) - q->fence) < 0)
		return;
	q->fenced = false;
	q->room = dapl_ep_may_request(ep) && !q->in_error ? q->limit : 0;
}

/* Translates completion flags other than DEFAULT for the record and for verbs. */
static NOINLINE unsigned flagged(struct dapl_queue *q, struct dapl_dto *dto, DAT_COMPLETION_FLAGS flags)
{
	unsigned to = IBV_SEND_SIGNALED;

	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		dto->flags |= REQ_NO_NOTIFY;	/* DTO-39 */
	if (flags & DAT_COMPLETION_SUPPRESS_FLAG)
		to = dapl_post_suppressed(q, dto);	/* DTO-38 */
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		to |= IBV_SEND_SOLICITED;	/* DTO-40 */
	if (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) {	/* DTO-28 */
		to |= IBV_SEND_FENCE;
		begin_fence(q, dto);
	}
	return to;
}

struct dapl_dto *dapl_post_take_record(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				       DAT_COMPLETION_FLAGS flags, const struct dapl_post_kind *kind, unsigned *to)
{
	struct dapl_queue *q = &ep->sq;
	struct dapl_dto *dto;

	assert_held(&ep->sq.lock);
	if (unlikely(dapl_queue_used(q) >= q->limit) && !make_room(ep, q))
		return NULL;	/* DTO-13 */
	dto = dapl_queue_next(q);	/* after make_room, during which other threads may post */
	dto->cookie = cookie;
	dto->ep = ep;
	dto->length = length;
	dto->end = q->head + 1;
	dto->op = kind->op;
	dto->flags = kind->flags;
	if (unlikely(q->fenced))
		end_fence(ep);
	*to = likely(flags == 0) ? (unsigned)IBV_SEND_SIGNALED : flagged(q, dto, flags);
	return dto;
}

void dapl_post_commit(struct dapl_ep *ep, struct dapl_queue *q, unsigned counter, uint32_t length)
{
	assert_held(&q->lock);
	dapl_queue_commit(q);
	if (counter != DAPL_NOT_COUNTED)
		ep->counters[counter]++;
	if (counter < DCNT_EP_POST_CMP_SWAP)
		ep->counters[counter + 1] += length;
}

/* Returns the error for bad flags, with the number of that argument in the call. */
static DAT_RETURN bad_flags(const struct ibv_send_wr *wr, int op)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return BAD_PARAM(7);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_INV:
		return op == DAT_DTO_SEND ? BAD_PARAM(5) : BAD_PARAM(6);	/* 6: sends of datagrams */
	default:
		return BAD_PARAM(6);
	}
}

/* Slow path: posts any request, on any endpoint, with any flags. In wr->send_flags only IBV_SEND_INLINE
 * counts: the payload goes inline if the endpoint allows it, and no fence holds it back. */
NOINLINE DAT_RETURN dapl_ep_post_request(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
					 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
					 const struct dapl_post_kind *kind)
{
	struct ibv_send_wr *bad;
	struct dapl_dto *dto;
	unsigned to;
	int err;

	if (flags & ~(DAPL_POST_FLAGS & ~READ_ONCE(ep->request_flags)))
		return bad_flags(wr, kind->op);
	dapl_post_lock(&ep->sq.lock);
	if (!dapl_ep_may_request(ep) && !((kind->op == DAT_IB_DTO_SEND_UD || ep->is_raw) && ep->qp)) {
		dapl_post_unlock(&ep->sq.lock);
		return dapl_post_late(ep, length, cookie, flags, kind, NULL);
	}
	dto = dapl_post_take_record(ep, length, cookie, flags, kind, &to);
	if (!dto) {
		dapl_post_unlock(&ep->sq.lock);
		return NO_RESOURCE(MEMORY);
	}
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	wr->send_flags = to | (ep->sq.fenced ? 0 : wr->send_flags & inline_flag(ep, length));
	DAPL_PROBE3(post, ep, kind->op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (err && dapl_post_stands(ep, err))
		err = 0;
	if (!err)
		dapl_post_commit(ep, &ep->sq, kind->counter, length);
	dapl_post_unlock(&ep->sq.lock);
	return err ? dapl_post_refused(ep, err) : DAT_SUCCESS;
}

/* DTO-5, 6, 11, 12, 27 */
DAT_RETURN dapl_post_gather(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags, struct ibv_send_wr *wr, int max_iov, uint64_t room,
			    const struct dapl_post_kind *kind)
{
	struct ibv_sge copy[DAPL_SGE_MAX];
	uint64_t total;
	bool has_empty;

	if (n < 0 || n > max_iov)
		return BAD_PARAM(2);
	if (n && !iov)
		return BAD_PARAM(3);
	has_empty = dapl_sge_sum(iov, n, &total);
	if (total > room || total < READ_ONCE(ep->min_message))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr->sg_list = has_empty ? dapl_sge_nonempty(iov, &n, copy) : (struct ibv_sge *)iov;
	wr->num_sge = n;
	wr->send_flags = IBV_SEND_INLINE;	/* if dapl_ep_post_request() finds that it may */
	return dapl_ep_post_request(ep, wr, (uint32_t)total, cookie, flags, kind);
}

DAT_RETURN dapl_send_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return dapl_post_gather(ep, n, iov, cookie, flags, &wr, READ_ONCE(ep->max_send_iov), READ_ONCE(ep->max_message),
				&DAPL_POST_SEND);
}

/* Returns how many bytes may be written: the endpoint's limit, or the length of the target if that is less.
 * DTO-24. */
static uint64_t write_room(const struct dapl_ep *ep, const DAT_RMR_TRIPLET *remote)
{
	uint32_t max = READ_ONCE(ep->max_rdma);

	return remote->segment_length < max ? remote->segment_length : max;
}

/* RDMA write, with or without immediate data. */
static DAT_RETURN write_to(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			   DAT_COMPLETION_FLAGS flags, struct ibv_send_wr *wr,
			   const struct dapl_post_kind *kind)
{
	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;	/* ETH-7 */
	if (n < 0 || n > READ_ONCE(ep->max_write_iov))
		return BAD_PARAM(2);
	if (!remote)
		return BAD_PARAM(5);
	wr->wr.rdma.remote_addr = remote->virtual_address;
	wr->wr.rdma.rkey = remote->rmr_context;
	return dapl_post_gather(ep, n, iov, cookie, flags, wr, READ_ONCE(ep->max_write_iov), write_room(ep, remote),
				kind);
}

DAT_RETURN dapl_write_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	return write_to(ep, n, iov, cookie, remote, flags, &wr, &DAPL_POST_WRITE);
}

DAT_RETURN dapl_ep_post_send_immed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_UINT32 immediate,
				   DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = immediate };	/* not in network byte order, as for writes */

	return dapl_post_gather(ep, n, iov, cookie, flags, &wr, READ_ONCE(ep->max_send_iov),
				READ_ONCE(ep->max_message), &DAPL_POST_SEND);
}

/* EXT-8 */
DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags)
{
	static const struct dapl_post_kind kind = { DAT_IB_DTO_RDMA_WRITE_IMMED, REQ_EXTENSION,
		DCNT_EP_POST_WRITE_IMM };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = immediate };	/* not in network byte order, because OFA DAPL sends it
						 * so */

	return write_to(ep, n, iov, cookie, remote, flags, &wr, &kind);
}

/* Reads as much as the length of the remote segment: a longer list is cut there. DTO-22, 23. */
DAT_RETURN dapl_read_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			 const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_sge copy[DAPL_SGE_MAX];
	uint64_t total;
	bool empty;

	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;	/* ETH-7 */
	if (n < 0 || n > READ_ONCE(ep->max_read_iov))
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (!remote)
		return BAD_PARAM(5);
	empty = dapl_sge_sum(iov, n, &total);
	if (total < remote->segment_length || remote->segment_length > READ_ONCE(ep->max_rdma))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	wr.sg_list = empty || total > remote->segment_length ?
		dapl_sge_cut(iov, &n, remote->segment_length, copy) : (struct ibv_sge *)iov;
	wr.num_sge = n;
	return dapl_ep_post_request(ep, &wr, remote->segment_length, cookie, flags,
				    &DAPL_POST_READ);
}

/* --- posts to a queue pair in ERR, which complete without the device (DTO-8, 9, CONN-34) ------- */

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
			  const struct dapl_post_kind *kind, DAT_RMR_HANDLE rmr)
{
	struct dapl_dto *dto;
	unsigned to;

	if (!begin_late_post(ep, &ep->sq))
		return dapl_post_bad_state(ep);
	dto = dapl_post_take_record(ep, length, cookie, flags, kind, &to);
	if (dto) {
		dto->flags &= ~REQ_UNSIGNALED;
		dto->rmr = rmr;
		dapl_post_commit(ep, &ep->sq, kind->counter, length);
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

/* --- requests of the provider's own: markers, and the binding of memory windows ---------------- */

int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing)
{
	struct dapl_queue *q = &ep->sq;
	struct ibv_send_wr wr = { .opcode = flushing ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	struct dapl_dto *dto;
	int err = ENOSPC;

	dapl_post_lock(&q->lock);
	if (dapl_queue_used(q) <= q->mask) {
		dto = dapl_queue_next(q);
		*dto = (struct dapl_dto){ .ep = ep, .end = q->head + 1, .op = DAT_DTO_SEND,
			.flags = REQ_MARKER };
		wr.wr_id = (uintptr_t)dto;
		err = ibv_post_send(ep->qp, &wr, &bad);
		if (err && dapl_post_stands(ep, err))
			err = 0;
		if (!err) {
			dapl_queue_commit(q);
			q->markers++;
			q->limit++;
			q->room += q->room != 0;
		}
	}
	dapl_post_unlock(&q->lock);
	return err;
}

/* A window of type 1 is bound and unbound by ibv_bind_mw, one of type 2 by work requests. To unbind an unbound one, a
 * write of no data completes in its turn. */
static int post_window(struct dapl_ep *ep, struct dapl_dto *dto, const struct dapl_bind *bind,
		       unsigned to)
{
	struct ibv_mw_bind type_1 = { .wr_id = (uintptr_t)dto, .send_flags = to,
		.bind_info = bind->info };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)dto, .send_flags = to }, *bad;
	int err;

	if (bind->mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(ep->qp, bind->mw, &type_1);
	if (bind->invalidate) {
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = bind->mw->rkey;
		return ibv_post_send(ep->qp, &wr, &bad);
	}
	if (!bind->info.mr) {	/* neither bound nor to be bound: devices refuse to invalidate it */
		wr.opcode = IBV_WR_RDMA_WRITE;
		return ibv_post_send(ep->qp, &wr, &bad);
	}
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = bind->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(bind->mw->rkey);
	wr.bind_mw.bind_info = bind->info;
	err = ibv_post_send(ep->qp, &wr, &bad);
	if (!err)
		bind->mw->rkey = wr.bind_mw.rkey;
	return err;
}

DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent)
{
	const struct dapl_post_kind kind = { DAT_DTO_BIND_MW, silent ? REQ_MARKER : REQ_BIND, DAPL_NOT_COUNTED };
	unsigned to;
	struct dapl_dto *dto;
	int err;

	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;
	if (flags & ~(DAPL_POST_FLAGS & ~READ_ONCE(ep->request_flags)))
		return BAD_PARAM(8);
	if (silent)
		flags &= DAT_COMPLETION_BARRIER_FENCE_FLAG;
	dapl_post_lock(&ep->sq.lock);
	if (!dapl_ep_may_request(ep)) {	/* RMR-4 */
		dapl_post_unlock(&ep->sq.lock);
		return dapl_post_late(ep, 0, cookie, flags, &kind, rmr);
	}
	dto = dapl_post_take_record(ep, 0, cookie, flags, &kind, &to);
	if (!dto) {
		dapl_post_unlock(&ep->sq.lock);
		return NO_RESOURCE(MEMORY);
	}
	dto->rmr = rmr;
	err = post_window(ep, dto, bind, to);
	if (!err)
		dapl_queue_commit(&ep->sq);
	dapl_post_unlock(&ep->sq.lock);
	return err ? dapl_post_refused(ep, err) : DAT_SUCCESS;
}
