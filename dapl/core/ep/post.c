/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.c - HOT: send, receive, RDMA read and write -> ibv_post_*. Budget: no system call
 * of our own, no allocation, no mutex; at most 60 instructions beyond verbs for a send of
 * one segment (doc/performance.md). What a completion becomes is event.c's job.
 *
 * A DAT_LMR_TRIPLET has the layout of a struct ibv_sge, and an LMR context is an lkey: the
 * consumer's iov is the scatter list. Only lists with empty segments (whose address and
 * context the consumer may leave undefined) are copied without them. */
#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/event/event.h"
#include "dapl/core/dapl.h"
#include "dapl/core/ep/recv_repost.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post.h"
#include "dapl/core/ia/provider.h"

_Static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ibv_sge), "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ibv_sge, addr),
	       "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ibv_sge, length),
	       "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ibv_sge, lkey),
	       "a triplet is an sge");

enum { MAX_SEGMENTS = 256 };	/* more than any device has; bounds the copies below */

/* --- cold: what went wrong ------------------------------------------------------ */

#define COLD __attribute__((noinline, cold))

static COLD DAT_RETURN bad_request_state(struct dapl_ep *ep)
{
	if (!dapl_ep_is_live(ep))
		return BAD_HANDLE(EP);
	/* a UD endpoint refuses connected operations as an unconnected endpoint does */
	return dapl_bad_ep_state(__atomic_load_n(&ep->state, __ATOMIC_RELAXED));
}

/* Enters the endpoint of a post, which needs more than the queue's lock guards. Returns NULL if
 * the endpoint was freed. */
static struct dapl_ep *enter_again(struct dapl_ep *ep)
{
	return dapl_ep_enter((DAT_HANDLE)ep);
}

/* The queue is full. Reaps suppressed successes, which are not dequeued, to make room. */
static COLD bool make_room(struct dapl_ep *posted_to, struct dapl_queue *q)
{
	DAPL_ENTERED struct dapl_ep *ep = enter_again(posted_to);
	struct dapl_evd *evd;
	bool room;

	if (!ep || q != &ep->sq)
		return false;
	dapl_spin_unlock(&q->lock);
	evd = dapl_ep_request_evd(ep);
	if (evd)
		dapl_evd_reap_suppressed(evd);
	dapl_spin_lock(&q->lock);
	room = ep->qp && dapl_queue_used(q) < q->limit;
	if (!room)
		trace(TRC_LVL_DETAIL, TRC_DAPL_EVENT, "ep", ep, NULL, "queue full, %u posted",
		      q->limit);
	return room;
}

static COLD DAT_RETURN post_refused(struct dapl_ep *ep, int err)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "post: %s", strerror(abs(err)));
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* True if the device reported an error but has queued the request all the same: a completion
 * follows. */
static bool stands_anyway(const struct dapl_ep *ep, int err)
{
	return err == -1 && ep->obj.ia->attr.no_late_flush;
}

/* Copies the segments that are not empty; *n becomes their number. */
static COLD struct ibv_sge *copy_nonempty_sges(const DAT_LMR_TRIPLET *iov, int *n, struct ibv_sge *to)
{
	int used = 0;

	for (int i = 0; i < *n && used < MAX_SEGMENTS; i++)
		if (iov[i].segment_length)
			to[used++] = (struct ibv_sge){ iov[i].virtual_address,
				iov[i].segment_length, iov[i].lmr_context };
	*n = used;
	return to;
}

/* RDMA read: cuts the list at the length of the remote segment. */
static COLD struct ibv_sge *trim(const DAT_LMR_TRIPLET *iov, int *n, uint32_t length,
				 struct ibv_sge *to)
{
	int used = 0;

	for (int i = 0; i < *n && length && used < MAX_SEGMENTS; i++) {
		uint32_t len = iov[i].segment_length < length ? iov[i].segment_length : length;

		if (len)
			to[used++] = (struct ibv_sge){ iov[i].virtual_address, len,
				iov[i].lmr_context };
		length -= len;
	}
	*n = used;
	return to;
}

/* Sums the lengths. True if a segment is empty. */
static inline bool sum(const DAT_LMR_TRIPLET *iov, int n, uint64_t *total)
{
	bool empty = false;

	*total = 0;
	for (int i = 0; i < n; i++) {
		*total += iov[i].segment_length;
		empty |= iov[i].segment_length == 0;
	}
	return empty;
}

/* --- the request queue ------------------------------------------------------------ */

#define POST_FLAGS (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
		    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* SUPPRESS posts make no completion, except one in every half queue, so that records are given
 * back. */
static unsigned suppressed(struct dapl_queue *q, struct dapl_dto *dto)
{
	dto->flags |= REQ_SUPPRESS;
	if (++q->unsignaled * 2 > q->limit) {
		q->unsignaled = 0;
		return IBV_SEND_SIGNALED;
	}
	dto->flags |= REQ_UNSIGNALED;
	return 0;
}

/* Translates completion flags other than DEFAULT for the record and for verbs. */
static __attribute__((noinline)) unsigned flagged(struct dapl_queue *q, struct dapl_dto *dto,
						  DAT_COMPLETION_FLAGS flags)
{
	unsigned to = IBV_SEND_SIGNALED;

	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		dto->flags |= REQ_NO_NOTIFY;
	if (flags & DAT_COMPLETION_SUPPRESS_FLAG)
		to = suppressed(q, dto);
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		to |= IBV_SEND_SOLICITED;
	if (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
		to |= IBV_SEND_FENCE;
	return to;
}

/* ep->sq.lock held. The record of the next request, and in *to its send flags; NULL when
 * the queue is full. */
static struct dapl_dto *take_record(struct dapl_ep *ep, uint32_t length,
				    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
				    int op, unsigned dto_flags, unsigned *to)
{
	struct dapl_queue *q = &ep->sq;
	struct dapl_dto *dto;

	if (unlikely(dapl_queue_used(q) >= q->limit) && !make_room(ep, q))
		return NULL;
	dto = dapl_queue_next(q);	/* after make_room, which lets others post */
	dto->cookie = cookie;
	dto->ep = ep;
	dto->length = length;
	dto->end = q->head + 1;
	dto->op = op;
	dto->flags = dto_flags;
	*to = likely(flags == 0) ? (unsigned)IBV_SEND_SIGNALED : flagged(q, dto, flags);
	return dto;
}

/* q->lock held. NOT_COUNTED is no counter. */
enum { NOT_COUNTED = DCNT_EP_ALL_COUNTERS };

static void commit(struct dapl_ep *ep, struct dapl_queue *q, unsigned counter, uint32_t length)
{
	dapl_queue_commit(q);
	if (counter != NOT_COUNTED)
		ep->counters[counter]++;
	if (counter < DCNT_EP_POST_CMP_SWAP)
		ep->counters[counter + 1] += length;
}

/* --- posts to a dead queue pair that the device would never complete --- */

/* The endpoint is disconnected, and posts complete without the device. ep->lock is held then,
 * so that the queue has been flushed before and is not emptied yet. */
static COLD bool begin_late_post(struct dapl_ep *ep, struct dapl_queue *q)
{
	if (!ep->obj.ia->attr.no_late_flush || ep->is_ud || !enter_again(ep))
		return false;
	dapl_mutex_lock(&ep->lock);
	dapl_spin_lock(&q->lock);
	if (ep->state == DAT_EP_STATE_DISCONNECTED && ep->qp && q->in_error)
		return true;	/* end_late_post leaves */
	dapl_spin_unlock(&q->lock);
	dapl_mutex_unlock(&ep->lock);
	dapl_object_leave(&ep->obj);
	return false;
}

static COLD DAT_RETURN end_late_post(struct dapl_ep *ep, struct dapl_queue *q, bool posted)
{
	struct dapl_evd *evd = q == &ep->sq ? dapl_ep_request_evd(ep) : dapl_ep_recv_evd(ep);

	dapl_spin_unlock(&q->lock);
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

static COLD DAT_RETURN post_late(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				 DAT_COMPLETION_FLAGS flags, int op, unsigned dto_flags,
				 unsigned counter, DAT_RMR_HANDLE rmr)
{
	struct dapl_dto *dto;
	unsigned to;

	if (!begin_late_post(ep, &ep->sq))
		return bad_request_state(ep);
	dto = take_record(ep, length, cookie, flags, op, dto_flags, &to);
	if (dto) {
		dto->flags &= ~REQ_UNSIGNALED;
		dto->rmr = rmr;
		commit(ep, &ep->sq, counter, length);
	}
	return end_late_post(ep, &ep->sq, dto != NULL);
}

/* Slow path: any request, on any endpoint, with any flags. wr lacks wr_id and the flags. */
__attribute__((noinline))
DAT_RETURN dapl_ep_post_request(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
				DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, int op,
				unsigned dto_flags, unsigned counter)
{
	struct ibv_send_wr *bad;
	struct dapl_dto *dto;
	unsigned to;
	int err;

	if (flags & ~(POST_FLAGS & ~ep->request_flags))
		return op == DAT_DTO_SEND ? BAD_PARAM(5) : BAD_PARAM(6);
	dapl_spin_lock(&ep->sq.lock);
	if (!dapl_ep_may_request(ep) && !(op == DAT_IB_DTO_SEND_UD && ep->qp)) {
		dapl_spin_unlock(&ep->sq.lock);
		return post_late(ep, length, cookie, flags, op, dto_flags, counter, NULL);
	}
	dto = take_record(ep, length, cookie, flags, op, dto_flags, &to);
	if (!dto) {
		dapl_spin_unlock(&ep->sq.lock);
		return NO_RESOURCE(MEMORY);
	}
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	wr->send_flags |= to;
	DAPL_PROBE3(post, ep, op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (err && stands_anyway(ep, err))
		err = 0;
	if (!err)
		commit(ep, &ep->sq, counter, length);
	dapl_spin_unlock(&ep->sq.lock);
	return err ? post_refused(ep, err) : DAT_SUCCESS;
}

/* --- fast path: one segment, default flags, no other thread posting, room in the queue. Other
 * posts go on with the call's own arguments, so that only `ep` is kept over ibv_post_send: first
 * to a second fast path, for SUPPRESS. Counters are raised before the post: they are not read
 * until the lock is free. --- */

/* Returns NULL if another thread posts or q->room is used up; else the record, with q->lock
 * held. */
static inline __attribute__((always_inline))
struct dapl_dto *take_fast_record(struct dapl_ep *ep, struct dapl_queue *q, uint32_t length,
				  DAT_DTO_COOKIE cookie, int op, unsigned counter)
{
	struct dapl_dto *dto;
	uint32_t head;

	if (unlikely(!dapl_spin_try(&q->lock)))
		return NULL;
	head = q->head;
	if (unlikely(head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) >= q->room)) {
		dapl_spin_unlock(&q->lock);
		return NULL;
	}
	dto = &q->ring[head & q->mask];	/* dto->ep is set for good */
	dto->cookie = cookie;
	dto->length = length;
	dto->end = head + 1;
	dto->op = op;
	dto->flags = 0;
	q->head = dto->end;
	ep->counters[counter]++;
	ep->counters[counter + 1] += length;
	return dto;
}

/* q->lock held. Takes back the record that take_fast_record gave. */
static COLD DAT_RETURN post_failed(struct dapl_ep *ep, unsigned counter, int err)
{
	struct dapl_queue *q = counter == DCNT_EP_POST_RECV ? &ep->rq : &ep->sq;
	bool stands = stands_anyway(ep, err);

	if (!stands) {
		q->head--;
		ep->counters[counter]--;
		ep->counters[counter + 1] -= dapl_queue_next(q)->length;
	}
	dapl_spin_unlock(&q->lock);
	return stands ? DAT_SUCCESS : post_refused(ep, err);
}

/* Fast path. wr lacks the fields that are the same for all requests, and its flags. */
static inline __attribute__((always_inline))
DAT_RETURN post_plain(struct dapl_ep *ep, struct ibv_send_wr *wr, struct dapl_dto *dto,
		      const DAT_LMR_TRIPLET *iov, uint32_t length, int op, unsigned send_flags,
		      unsigned counter)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	wr->sg_list = (struct ibv_sge *)iov;
	wr->num_sge = 1;
	wr->send_flags = send_flags;
	DAPL_PROBE3(post, ep, op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (unlikely(err))
		return post_failed(ep, counter, err);
	dapl_spin_unlock(&ep->sq.lock);
	return DAT_SUCCESS;
}

/* The send flags of the two fast paths. */
static inline __attribute__((always_inline))
unsigned plain_flags(struct dapl_ep *ep, struct dapl_dto *dto, bool suppress)
{
	return suppress ? suppressed(&ep->sq, dto) : (unsigned)IBV_SEND_SIGNALED;
}

/* Not one segment, or not the flags of this line? */
static inline __attribute__((always_inline))
bool is_odd(DAT_COUNT n, DAT_COMPLETION_FLAGS flags, bool suppress)
{
	return ((unsigned)n - 1) | (flags ^ (suppress ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
}

/* Not when length is 0. */
static inline unsigned inline_flag(const struct dapl_ep *ep, uint32_t length)
{
	return -(unsigned)(length - 1 < ep->max_inline) & IBV_SEND_INLINE;
}

static COLD DAT_RETURN bad_ep(void)
{
	return BAD_HANDLE(EP);
}

/* --- the requests --- */

/* What send and RDMA write share: any list of segments, `room` bytes at the target. */
static DAT_RETURN post_gather(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			      struct ibv_send_wr *wr, int max_iov, uint64_t room, int op,
			      unsigned dto_flags, unsigned counter)
{
	struct ibv_sge copy[MAX_SEGMENTS];
	uint64_t total;
	bool odd;

	if (n < 0 || n > max_iov)
		return BAD_PARAM(2);
	if (n && !iov)
		return BAD_PARAM(3);
	odd = sum(iov, n, &total);
	if (total > room)
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr->sg_list = odd ? copy_nonempty_sges(iov, &n, copy) : (struct ibv_sge *)iov;
	wr->num_sge = n;
	wr->send_flags = inline_flag(ep, (uint32_t)total);
	return dapl_ep_post_request(ep, wr, (uint32_t)total, cookie, flags, op, dto_flags, counter);
}

static __attribute__((noinline))
DAT_RETURN send_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
		    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return post_gather(ep, n, iov, cookie, flags, &wr, ep->max_send_iov, ep->max_message,
			   DAT_DTO_SEND, 0, DCNT_EP_POST_SEND);
}

static DAT_RETURN send_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

static inline __attribute__((always_inline))
DAT_RETURN send_line(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
		     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, bool suppress)
{
	struct ibv_send_wr wr;
	struct dapl_dto *dto;
	uint32_t length;

	if (unlikely(is_odd(n, flags, suppress)) || unlikely(!iov) ||
	    unlikely((length = iov->segment_length) - 1 >= ep->max_message) ||
	    unlikely(!(dto = take_fast_record(ep, &ep->sq, length, cookie, DAT_DTO_SEND,
					      DCNT_EP_POST_SEND))))
		return (suppress ? send_any : send_suppressed)(ep, n, iov, cookie, flags);
	wr.opcode = IBV_WR_SEND;
	return post_plain(ep, &wr, dto, iov, length, DAT_DTO_SEND,
			  inline_flag(ep, length) | plain_flags(ep, dto, suppress),
			  DCNT_EP_POST_SEND);
}

static __attribute__((noinline))
DAT_RETURN send_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	return send_line(ep, n, iov, cookie, flags, true);
}

/* dat_ep_post_send (doc/spec/calls.md 5). */
DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	return send_line(ep, n, iov, cookie, flags, false);
}

/* dat_ep_post_send_with_invalidate (DAT 2.0). */
DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = context };
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (!invalidate)
		return dapl_ep_post_send(handle, n, iov, cookie, flags);
	if (n < 0 || n > ep->max_send_iov)
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (!ep->obj.ia->attr.send_invalidate)
		return NOT_SUPPORTED;
	return post_gather(ep, n, iov, cookie, flags, &wr, ep->max_send_iov, ep->max_message,
			   DAT_DTO_SEND, 0, DCNT_EP_POST_SEND);
}

/* What may be written: as much as the endpoint allows, and the target has. */
static uint64_t write_room(const struct dapl_ep *ep, const DAT_RMR_TRIPLET *remote)
{
	return remote->segment_length < ep->max_rdma ? remote->segment_length : ep->max_rdma;
}

/* RDMA write, with or without immediate data. */
static DAT_RETURN write_to(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			   DAT_COMPLETION_FLAGS flags, struct ibv_send_wr *wr, int op,
			   unsigned dto_flags, unsigned counter)
{
	if (n < 0 || n > ep->max_write_iov)
		return BAD_PARAM(2);
	if (!remote)
		return BAD_PARAM(5);
	wr->wr.rdma.remote_addr = remote->virtual_address;
	wr->wr.rdma.rkey = remote->rmr_context;
	return post_gather(ep, n, iov, cookie, flags, wr, ep->max_write_iov,
			   write_room(ep, remote), op, dto_flags, counter);
}

static __attribute__((noinline))
DAT_RETURN write_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
		     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		     DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	return write_to(ep, n, iov, cookie, remote, flags, &wr, DAT_DTO_RDMA_WRITE, 0,
			DCNT_EP_POST_WRITE);
}

static DAT_RETURN write_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);

static inline __attribute__((always_inline))
DAT_RETURN write_line(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
		      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		      DAT_COMPLETION_FLAGS flags, bool suppress)
{
	struct ibv_send_wr wr;
	struct dapl_dto *dto;
	uint32_t length;

	if (unlikely(is_odd(n, flags, suppress)) || unlikely(!iov) || unlikely(!remote) ||
	    unlikely((length = iov->segment_length) - 1 >= ep->max_rdma) ||
	    unlikely(length > remote->segment_length) ||
	    unlikely(!(dto = take_fast_record(ep, &ep->sq, length, cookie, DAT_DTO_RDMA_WRITE,
					      DCNT_EP_POST_WRITE))))
		return (suppress ? write_any : write_suppressed)(ep, n, iov, cookie, remote, flags);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	return post_plain(ep, &wr, dto, iov, length, DAT_DTO_RDMA_WRITE,
			  inline_flag(ep, length) | plain_flags(ep, dto, suppress),
			  DCNT_EP_POST_WRITE);
}

static __attribute__((noinline))
DAT_RETURN write_suppressed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			    DAT_COMPLETION_FLAGS flags)
{
	return write_line(ep, n, iov, cookie, remote, flags, true);
}

/* dat_ep_post_rdma_write: what is transferred is the local total. */
DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	return write_line(ep, n, iov, cookie, remote, flags, false);
}

DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = immediate };	/* not in network order: as OFA DAPL sends it */

	return write_to(ep, n, iov, cookie, remote, flags, &wr, DAT_IB_DTO_RDMA_WRITE_IMMED,
			REQ_EXTENSION, DCNT_EP_POST_WRITE_IMM);
}

/* As much as the remote segment holds: a longer list is cut there. */
static __attribute__((noinline))
/* DTO-22, 23 */
DAT_RETURN read_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
		    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		    DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_sge copy[MAX_SEGMENTS];
	uint64_t total;
	bool empty;

	if (n < 0 || n > ep->max_read_iov)
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (!remote)
		return BAD_PARAM(5);
	empty = sum(iov, n, &total);
	if (total < remote->segment_length || remote->segment_length > ep->max_rdma)
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	wr.sg_list = empty || total > remote->segment_length ?
		trim(iov, &n, remote->segment_length, copy) : (struct ibv_sge *)iov;
	wr.num_sge = n;
	return dapl_ep_post_request(ep, &wr, remote->segment_length, cookie, flags,
				    DAT_DTO_RDMA_READ, 0, DCNT_EP_POST_READ);
}

/* dat_ep_post_rdma_read: what is transferred is the remote length. */
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
	if (unlikely(is_odd(n, flags, false)) || unlikely(!iov) || unlikely(!remote) ||
	    unlikely((length = iov->segment_length) - 1 >= ep->max_rdma) ||
	    unlikely(length != remote->segment_length) ||
	    unlikely(!(dto = take_fast_record(ep, &ep->sq, length, cookie, DAT_DTO_RDMA_READ,
					      DCNT_EP_POST_READ))))
		return read_any(ep, n, iov, cookie, remote, flags);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	return post_plain(ep, &wr, dto, iov, length, DAT_DTO_RDMA_READ, IBV_SEND_SIGNALED,
			  DCNT_EP_POST_READ);
}

/* dat_ep_post_rdma_read_to_rmr (DAT 2.0): the sink is named by an RMR context, as iWARP
 * has it on the wire. Through verbs the sink is a local key: an LMR's rmr_context is one
 * wherever it equals its lmr_context; a memory window is not. */
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

/* --- the receive queue --------------------------------------------------------------- */

static COLD DAT_RETURN no_qp_for_receive(struct dapl_ep *posted_to)
{
	DAPL_ENTERED struct dapl_ep *ep = enter_again(posted_to);
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
	return (flags ? REQ_NO_NOTIFY : 0) | (ep->is_ud ? REQ_EXTENSION : 0);
}

/* Completes a receive for a queue pair in ERR, which the device never gets. */
static COLD DAT_RETURN post_late_receive(struct dapl_ep *ep, uint32_t length,
					 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	bool room;

	if (!begin_late_post(ep, q))
		return bad_request_state(ep);
	room = dapl_queue_used(q) < q->limit;
	if (room) {
		*dapl_queue_next(q) = (struct dapl_dto){ .cookie = cookie, .ep = ep,
			.length = length, .end = q->head + 1, .op = DAT_DTO_RECEIVE,
			.flags = recv_dto_flags(ep, flags) };
		commit(ep, q, DCNT_EP_POST_RECV, length);
	}
	return end_late_post(ep, q, room);
}

/* rxe flushes the receive queue when the QP goes to ERR. Receives that are posted later are
 * flushed only when the QP is moved to ERR again, which is harmless on other devices. */
static COLD void flush_again(struct dapl_ep *posted_to)
{
	DAPL_ENTERED struct dapl_ep *ep = enter_again(posted_to);

	if (!ep)
		return;
	dapl_mutex_lock(&ep->lock);
	if (ep->qp && ep->state == DAT_EP_STATE_DISCONNECTED)
		dapl_device_ops.error_qp(ep->qp);
	dapl_mutex_unlock(&ep->lock);
}

/* q->lock held. ENOSPC: the queue is full. ENOTCONN: the QP has just gone. */
static int put_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct ibv_recv_wr *bad;
	struct dapl_dto *dto;
	int err;

	if (!ep->qp)
		return ENOTCONN;
	if (dapl_queue_used(q) >= q->limit)
		return ENOSPC;
	dto = dapl_queue_next(q);
	*dto = (struct dapl_dto){ .cookie = cookie, .ep = ep, .length = length, .end = q->head + 1,
		.op = DAT_DTO_RECEIVE, .flags = recv_dto_flags(ep, flags) };
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	err = ibv_post_recv(ep->qp, wr, &bad);
	if (!err)
		commit(ep, q, DCNT_EP_POST_RECV, length);
	return err;
}

/* A UD endpoint receives in any state: nothing could be posted again. */
static bool keeps_receives(const struct dapl_ep *ep)
{
	return !ep->is_ud && dapl_ep_is_modifiable(ep);
}

/* Any receive. */
static __attribute__((noinline))
DAT_RETURN post_any_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct dapl_saved_recv *saved = NULL;
	bool in_error, late;
	int err = 0;

	if (keeps_receives(ep) && !(saved = dapl_saved_recv_new(wr)))
		return NO_RESOURCE(MEMORY);
	dapl_spin_lock(&q->lock);
	in_error = q->in_error;
	late = in_error && ep->obj.ia->attr.no_late_flush;
	if (!late)
		err = put_receive(ep, wr, length, cookie, flags);
	if (saved && !late && !err && keeps_receives(ep)) {
		dapl_saved_recv_add(ep, saved);
		saved = NULL;
	}
	dapl_spin_unlock(&q->lock);
	dapl_saved_recv_free(saved);
	if (late)
		return post_late_receive(ep, length, cookie, flags);
	if (in_error)
		flush_again(ep);
	if (err == ENOTCONN)
		return bad_request_state(ep);
	if (err == ENOSPC)
		return NO_RESOURCE(MEMORY);
	return err ? post_refused(ep, err) : DAT_SUCCESS;
}

/* Any list: empty segments are left out. */
static __attribute__((noinline))
DAT_RETURN receive_any(struct dapl_ep *ep, int n, const DAT_LMR_TRIPLET *iov,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_sge copy[MAX_SEGMENTS];
	struct ibv_recv_wr wr;
	DAT_RETURN ret;
	uint64_t total;

	if (ep->srq)
		return bad_request_state(ep);
	if (n < 0 || n > ep->max_recv_iov)
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (flags & ~(DAT_COMPLETION_UNSIGNALLED_FLAG & ~ep->recv_flags))
		return BAD_PARAM(5);
	if (!__atomic_load_n(&ep->qp, __ATOMIC_RELAXED) && (ret = no_qp_for_receive(ep)))
		return ret;
	wr.sg_list = sum(iov, n, &total) ? copy_nonempty_sges(iov, &n, copy) : (struct ibv_sge *)iov;
	if (!n && ep->obj.ia->attr.no_empty_receive) {
		copy[n++] = (struct ibv_sge){ .length = 0 };
		wr.sg_list = copy;
	}
	wr.num_sge = n;
	return post_any_receive(ep, &wr, (uint32_t)total, cookie, flags);
}

/* dat_ep_post_recv (doc/spec/calls.md 5): in any state, as long as there is a PZ. Has a fast path
 * like the requests; rq.room is 0 where a receive is no plain one. */
DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = (struct dapl_ep *)handle;
	struct ibv_recv_wr wr, *bad;
	struct dapl_dto *dto;
	int err;

	if (unlikely(!dapl_ep_is_live(ep)))
		return bad_ep();
	if (unlikely(is_odd(n, flags, false)) || unlikely(!iov) || unlikely(!iov->segment_length) ||
	    unlikely(!(dto = take_fast_record(ep, &ep->rq, iov->segment_length, cookie,
					      DAT_DTO_RECEIVE, DCNT_EP_POST_RECV))))
		return receive_any(ep, n, iov, cookie, flags);
	wr.wr_id = (uintptr_t)dto;
	wr.next = NULL;
	wr.sg_list = (struct ibv_sge *)iov;
	wr.num_sge = 1;
	err = ibv_post_recv(ep->qp, &wr, &bad);
	if (unlikely(err))
		return post_failed(ep, DCNT_EP_POST_RECV, err);
	dapl_spin_unlock(&ep->rq.lock);
	return DAT_SUCCESS;
}

/* --- the provider's own ---------------------------------------------------------------- */

int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing)
{
	struct dapl_queue *q = &ep->sq;
	struct ibv_send_wr wr = { .opcode = flushing ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	struct dapl_dto *dto;
	int err = ENOSPC;

	dapl_spin_lock(&q->lock);
	if (dapl_queue_used(q) <= q->mask) {
		dto = dapl_queue_next(q);
		*dto = (struct dapl_dto){ .ep = ep, .end = q->head + 1, .op = DAT_DTO_SEND,
			.flags = REQ_MARKER };
		wr.wr_id = (uintptr_t)dto;
		err = ibv_post_send(ep->qp, &wr, &bad);
		if (err && stands_anyway(ep, err))
			err = 0;
		if (!err) {
			dapl_queue_commit(q);
			q->markers++;
			q->limit++;
			q->room += q->room != 0;
		}
	}
	dapl_spin_unlock(&q->lock);
	return err;
}

/* A window of type 1 has a verb of its own; type 2 binds, and both invalidate, through
 * work requests. */
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
	unsigned to, dto_flags = silent ? REQ_MARKER : REQ_BIND;
	struct dapl_dto *dto;
	int err;

	if (flags & ~(POST_FLAGS & ~ep->request_flags))
		return BAD_PARAM(8);
	dapl_spin_lock(&ep->sq.lock);
	if (!dapl_ep_may_request(ep)) {
		dapl_spin_unlock(&ep->sq.lock);
		return post_late(ep, 0, cookie, flags, DAT_DTO_BIND_MW, dto_flags,
				 NOT_COUNTED, rmr);
	}
	dto = take_record(ep, 0, cookie, flags, DAT_DTO_BIND_MW, dto_flags, &to);
	if (!dto) {
		dapl_spin_unlock(&ep->sq.lock);
		return NO_RESOURCE(MEMORY);
	}
	dto->rmr = rmr;
	err = post_window(ep, dto, bind, to);
	if (!err)
		dapl_queue_commit(&ep->sq);
	dapl_spin_unlock(&ep->sq.lock);
	return err ? post_refused(ep, err) : DAT_SUCCESS;
}
