/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.c - HOT: send, receive, RDMA read and write -> ibv_post_*: the fast paths. Budget: no system call of
 * our own, no allocation, no mutex; at most 60 instructions above verbs, the registry included, for a send
 * of one segment (doc/performance.md, test/bench/instructions). post_slow.c and post_recv.c handle all
 * other posts. event/dequeue.c takes completions. */
#include "dapl/core/ep/post.h"
#include "common/compiler.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/mem/lmr.h"

/* --- fast path: one segment, default flags, no other thread posting, room in the queue. Other posts are
 * passed on with the call's own arguments, so that only `ep` is live across ibv_post_send: first to a
 * second fast path, for SUPPRESS, then to the slow path. Counters are raised before the post, because no
 * thread reads them until the lock is free. --- */

/* Returns NULL if q->room is used up, or the length is 0 or above *max; else the record. Called with q->lock
 * held. */
static ALWAYS_INLINE struct dapl_dto *take_fast_record(struct dapl_ep *ep, struct dapl_queue *q, uint32_t length,
						       const uint32_t *max, DAT_DTO_COOKIE cookie,
						       const struct dapl_post_kind *kind)
{
	struct dapl_dto *dto;
	uint32_t head;

	assert_held(&q->lock);
	head = q->head;
	if (unlikely(head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) >= q->room) ||
	    unlikely(length - 1 >= *max))
		return NULL;
	dto = &q->ring[head & q->mask];	/* dto->ep never changes */
	dto->cookie = cookie;
	dto->length = length;
	dto->end = head + 1;
	dto->op = kind->op;
	dto->flags = 0;
	q->head = dto->end;
	ep->counters[kind->counter]++;
	ep->counters[kind->counter + 1] += length;
	return dto;
}

/* Gives back the record of take_fast_record. Called with q->lock held. */
static COLD DAT_RETURN post_failed(struct dapl_ep *ep, unsigned counter, int err)
{
	struct dapl_queue *q = counter == DCNT_EP_POST_RECV ? &ep->rq : &ep->sq;
	bool stands = dapl_post_stands(ep, err);

	assert_held(&q->lock);
	if (!stands) {
		q->head--;
		ep->counters[counter]--;
		ep->counters[counter + 1] -= dapl_queue_next(q)->length;
	}
	dapl_post_unlock(&q->lock);
	return stands ? DAT_SUCCESS : dapl_post_refused(ep, err);
}

/* The end of a post for whose lock threads sleep. */
static COLD DAT_RETURN wake_requester(struct dapl_ep *ep)
{
	dapl_post_lock_wake(&ep->sq.lock);
	return DAT_SUCCESS;
}

static COLD DAT_RETURN wake_receiver(struct dapl_ep *ep)
{
	dapl_post_lock_wake(&ep->rq.lock);
	return DAT_SUCCESS;
}

/* Fast path. wr lacks the fields that are the same for all requests, and its flags. */
static ALWAYS_INLINE DAT_RETURN post_plain(struct dapl_ep *ep, struct ibv_send_wr *wr, struct dapl_dto *dto,
					   const DAT_LMR_TRIPLET *iov, uint32_t length, unsigned send_flags,
					   const struct dapl_post_kind *kind)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	wr->sg_list = (struct ibv_sge *)iov;
	wr->num_sge = 1;
	wr->send_flags = send_flags;
	DAPL_PROBE3(post, ep, kind->op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (unlikely(err))
		return post_failed(ep, kind->counter, err);
	return dapl_post_unlock_only(&ep->sq.lock) ? wake_requester(ep) : DAT_SUCCESS;
}

/* Returns the send flags of the two fast paths. */
static ALWAYS_INLINE unsigned plain_flags(struct dapl_ep *ep, struct dapl_dto *dto, bool suppress)
{
	return suppress ? dapl_post_suppressed(&ep->sq, dto) : (unsigned)IBV_SEND_SIGNALED;
}

/* True if the post has another number of segments than one, or other flags than this fast path takes. */
static ALWAYS_INLINE bool needs_slow_path(DAT_COUNT n, DAT_COMPLETION_FLAGS flags, bool suppress)
{
	return ((unsigned)n - 1) | (flags ^ (suppress ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
}

static COLD DAT_RETURN bad_ep(void)
{
	return BAD_HANDLE(EP);
}

static DAT_RETURN send_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

/* The lock is released apart from the fast path: that may wake a thread, and needs the call's arguments afterwards. */
static COLD DAT_RETURN unlock_and_send(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	dapl_post_unlock(&ep->sq.lock);
	return dapl_send_any(ep, n, iov, cookie, flags);
}

static ALWAYS_INLINE DAT_RETURN send_fast(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					  DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, bool suppress)
{
	struct ibv_send_wr wr;
	struct dapl_dto *dto;
	uint32_t length;

	if (unlikely(needs_slow_path(n, flags, suppress)) || unlikely(!iov) || unlikely(!dapl_post_try(&ep->sq.lock)))
		return (suppress ? dapl_send_any : send_suppressed)(ep, n, iov, cookie, flags);
	length = iov->segment_length;
	dto = take_fast_record(ep, &ep->sq, length, &ep->max_message, cookie, &DAPL_POST_SEND);
	if (unlikely(!dto))
		return unlock_and_send(ep, n, iov, cookie, flags);
	wr.opcode = IBV_WR_SEND;
	return post_plain(ep, &wr, dto, iov, length, inline_flag(ep, length) | plain_flags(ep, dto, suppress),
			  &DAPL_POST_SEND);
}

static NOINLINE DAT_RETURN send_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	return send_fast(ep, n, iov, cookie, flags, true);
}

/* dat_ep_post_send (doc/spec/calls.md 5). */
DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	return send_fast(ep, n, iov, cookie, flags, false);
}

/* dat_ep_post_send_with_invalidate (DAT 2.0). DTO-34. */
DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = context };
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (invalidate && READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;	/* ETH-7 */
	if (!invalidate)
		return dapl_ep_post_send(handle, n, iov, cookie, flags);
	if (n < 0 || n > READ_ONCE(ep->max_send_iov))
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (!ep->obj.ia->attr.send_invalidate)
		return NOT_SUPPORTED;
	return dapl_post_gather(ep, n, iov, cookie, flags, &wr, READ_ONCE(ep->max_send_iov), READ_ONCE(ep->max_message),
				&DAPL_POST_SEND);
}

static DAT_RETURN write_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);

static COLD DAT_RETURN unlock_and_write(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags)
{
	dapl_post_unlock(&ep->sq.lock);
	return dapl_write_any(ep, n, iov, cookie, remote, flags);
}

static ALWAYS_INLINE DAT_RETURN write_fast(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					   DAT_COMPLETION_FLAGS flags, bool suppress)
{
	struct ibv_send_wr wr;
	struct dapl_dto *dto;
	uint32_t length;

	if (unlikely(needs_slow_path(n, flags, suppress)) || unlikely(!iov) || unlikely(!remote) ||
	    unlikely((length = iov->segment_length) > remote->segment_length) ||
	    unlikely(!dapl_post_try(&ep->sq.lock)))
		return (suppress ? dapl_write_any : write_suppressed)(ep, n, iov, cookie, remote, flags);
	dto = take_fast_record(ep, &ep->sq, length, &ep->max_rdma, cookie, &DAPL_POST_WRITE);
	if (unlikely(!dto))
		return unlock_and_write(ep, n, iov, cookie, remote, flags);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	return post_plain(ep, &wr, dto, iov, length, inline_flag(ep, length) | plain_flags(ep, dto, suppress),
			  &DAPL_POST_WRITE);
}

static NOINLINE DAT_RETURN write_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					    DAT_COMPLETION_FLAGS flags)
{
	return write_fast(ep, n, iov, cookie, remote, flags, true);
}

/* dat_ep_post_rdma_write: transfers the sum of the local segments. DTO-20. */
DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	return write_fast(ep, n, iov, cookie, remote, flags, false);
}

static COLD DAT_RETURN unlock_and_read(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				       DAT_COMPLETION_FLAGS flags)
{
	dapl_post_unlock(&ep->sq.lock);
	return dapl_read_any(ep, n, iov, cookie, remote, flags);
}

/* dat_ep_post_rdma_read: transfers the length of the remote segment. DTO-21. */
DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;
	struct ibv_send_wr wr;
	struct dapl_dto *dto;
	uint32_t length;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	if (unlikely(needs_slow_path(n, flags, false)) || unlikely(!iov) || unlikely(!remote) ||
	    unlikely((length = iov->segment_length) != remote->segment_length) ||
	    unlikely(!dapl_post_try(&ep->sq.lock)))
		return dapl_read_any(ep, n, iov, cookie, remote, flags);
	dto = take_fast_record(ep, &ep->sq, length, &ep->max_rdma, cookie, &DAPL_POST_READ);
	if (unlikely(!dto))
		return unlock_and_read(ep, n, iov, cookie, remote, flags);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	return post_plain(ep, &wr, dto, iov, length, IBV_SEND_SIGNALED, &DAPL_POST_READ);
}

/* dat_ep_post_rdma_read_to_rmr (DAT 2.0): the sink is named by an RMR context, as iWARP names it on the
 * wire. In verbs the sink is named by a local key, so the LMR of the RMR context must be found. DTO-35. */
DAT_RETURN dapl_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_LMR_TRIPLET sink;
	struct dapl_pz *pz;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!local)
		return BAD_PARAM(2);
	if (!remote)
		return BAD_PARAM(4);
	dapl_mutex_lock(&ep->lock);
	pz = ep->pz;
	dapl_mutex_unlock(&ep->lock);
	if (!dapl_lmr_sink(ep->obj.ia, pz, local, &sink))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_RDMA_WRITE);
	return dapl_ep_post_rdma_read(handle, 1, &sink, cookie, remote, flags);
}

static COLD DAT_RETURN unlock_and_receive(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
					  DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	dapl_post_unlock(&ep->rq.lock);
	return dapl_receive_any(ep, n, iov, cookie, flags);
}

/* dat_ep_post_recv (doc/spec/calls.md 5): allowed in any state if there is a PZ. rq.room is 0 if receives
 * must take the slow path. */
DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;
	static const struct dapl_post_kind receive = { DAT_DTO_RECEIVE, 0, DCNT_EP_POST_RECV };
	static const uint32_t no_limit = UINT32_MAX;
	struct ibv_recv_wr wr, *bad;
	struct dapl_dto *dto;
	int err;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	if (unlikely(needs_slow_path(n, flags, false)) || unlikely(!iov) || unlikely(!dapl_post_try(&ep->rq.lock)))
		return dapl_receive_any(ep, n, iov, cookie, flags);
	dto = take_fast_record(ep, &ep->rq, iov->segment_length, &no_limit, cookie, &receive);
	if (unlikely(!dto))
		return unlock_and_receive(ep, n, iov, cookie, flags);
	wr.wr_id = (uintptr_t)dto;
	wr.next = NULL;
	wr.sg_list = (struct ibv_sge *)iov;
	wr.num_sge = 1;
	err = ibv_post_recv(ep->qp, &wr, &bad);
	if (unlikely(err))
		return post_failed(ep, receive.counter, err);
	return dapl_post_unlock_only(&ep->rq.lock) ? wake_receiver(ep) : DAT_SUCCESS;
}
