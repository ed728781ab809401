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
#include <arpa/inet.h>
#include <stdlib.h>
#include "dapl/core/dapl.h"
#include "dapl/core/post.h"
#include "dapl/core/provider.h"

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
	/* a connected operation on a UD endpoint is as wrong as one on an unconnected one */
	return dapl_bad_ep_state(__atomic_load_n(&ep->state, __ATOMIC_RELAXED));
}

/* The queue is full, or only of suppressed successes that nobody reaps. */
static COLD bool make_room(struct dapl_ep *ep, struct dapl_queue *q)
{
	struct dapl_evd *evd;
	bool room;

	if (q != &ep->sq)
		return false;
	dapl_spin_unlock(&q->lock);
	evd = dapl_ep_request_evd(ep);
	if (evd)
		dapl_evd_reap_suppressed(evd);
	dapl_spin_lock(&q->lock);
	room = dapl_queue_used(q) < q->limit;
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

/* Refused by a device whose queue it stands in all the same: its completion will tell. */
static bool stands_anyway(const struct dapl_ep *ep, int err)
{
	return err == -1 && ep->obj.ia->attr.no_late_flush;
}

/* Copies the segments that are not empty; *n becomes their number. */
static COLD struct ibv_sge *squeeze(const DAT_LMR_TRIPLET *iov, int *n, struct ibv_sge *to)
{
	int used = 0;

	for (int i = 0; i < *n && used < MAX_SEGMENTS; i++)
		if (iov[i].segment_length)
			to[used++] = (struct ibv_sge){ iov[i].virtual_address,
				iov[i].segment_length, iov[i].lmr_context };
	*n = used;
	return to;
}

/* RDMA read: as much as the remote segment holds, so the list is cut there. */
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

static inline bool may_request(const struct dapl_ep *ep)
{
	return __atomic_load_n(&ep->may_request, __ATOMIC_RELAXED);
}

/* SUPPRESS posts make no completion, but every half a queue one does, so that records
 * come back. */
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

/* What other completion flags than DEFAULT mean for the record and for verbs. */
static __attribute__((noinline)) unsigned flagged(struct dapl_queue *q, struct dapl_dto *dto,
						  DAT_COMPLETION_FLAGS flags)
{
	unsigned to = IBV_SEND_SIGNALED;

	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		dto->flags |= REQ_QUIET;
	if (flags & DAT_COMPLETION_SUPPRESS_FLAG)
		to = suppressed(q, dto);
	else
		q->unsignaled = 0;
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
	dto->seq = q->head;
	dto->op = op;
	dto->flags = dto_flags;
	if (likely(flags == 0)) {
		q->unsignaled = 0;
		*to = IBV_SEND_SIGNALED;
	} else {
		*to = flagged(q, dto, flags);
	}
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
	if (!ep->obj.ia->attr.no_late_flush || ep->is_ud)
		return false;
	pthread_mutex_lock(&ep->lock);
	dapl_spin_lock(&q->lock);
	if (ep->state == DAT_EP_STATE_DISCONNECTED && ep->qp && q->over)
		return true;
	dapl_spin_unlock(&q->lock);
	pthread_mutex_unlock(&ep->lock);
	return false;
}

static COLD DAT_RETURN end_late_post(struct dapl_ep *ep, struct dapl_queue *q, bool posted)
{
	struct dapl_evd *evd = q == &ep->sq ? dapl_ep_request_evd(ep) : dapl_ep_recv_evd(ep);

	dapl_spin_unlock(&q->lock);
	if (posted)
		dapl_ep_flush_late(ep, q);
	dapl_object_get(&evd->obj);
	pthread_mutex_unlock(&ep->lock);
	if (evd->discard)
		dapl_evd_discard(evd);
	dapl_object_put(&evd->obj);
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

/* Any request, on any endpoint, with any flags: wr lacks wr_id and what flags stand for. */
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
	if (!may_request(ep) && !(op == DAT_IB_DTO_SEND_UD && ep->qp)) {
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
	if (ep->obj.ia->attr.overtakes_reads) {
		wr->send_flags |= IBV_SEND_FENCE;
		if (op == DAT_DTO_RDMA_READ)
			wr->send_flags &= ~IBV_SEND_FENCE;
	}
	DAPL_PROBE3(post, ep, op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (err && stands_anyway(ep, err))
		err = 0;
	if (!err)
		commit(ep, &ep->sq, counter, length);
	dapl_spin_unlock(&ep->sq.lock);
	return err ? post_refused(ep, err) : DAT_SUCCESS;
}

/* The same for what nearly all requests are: default flags, nobody else posting, room in
 * the queue. Everything else is handed on, so that nothing need be kept over a call but
 * ibv_post_send. wr->send_flags is ours. */
static inline __attribute__((always_inline))
DAT_RETURN post(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
		DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, int op, unsigned dto_flags,
		unsigned counter)
{
	unsigned is_inline = length - 1 < ep->max_inline ? IBV_SEND_INLINE : 0;	/* not when 0 */
	struct dapl_queue *q = &ep->sq;
	struct ibv_send_wr *bad;
	struct dapl_dto *dto;
	uint32_t head;
	int err;

	if (op == DAT_DTO_RDMA_READ)
		is_inline = 0;
	if (unlikely(flags) || unlikely(!dapl_spin_try(&q->lock)))
		goto otherwise;
	head = q->head;
	if (unlikely(!may_request(ep)) ||
	    unlikely(head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) >= q->limit)) {
		dapl_spin_unlock(&q->lock);
		goto otherwise;
	}
	dto = &q->ring[head & q->mask];
	dto->cookie = cookie;
	dto->ep = ep;
	dto->length = length;
	dto->seq = head;
	dto->op = op;
	dto->flags = dto_flags;
	q->unsignaled = 0;
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	wr->send_flags = is_inline |
		(op == DAT_DTO_RDMA_READ ? (unsigned)IBV_SEND_SIGNALED : ep->signaled);
	DAPL_PROBE3(post, ep, op, length);
	err = ibv_post_send(ep->qp, wr, &bad);
	if (unlikely(err) && !stands_anyway(ep, err)) {
		dapl_spin_unlock(&q->lock);
		return post_refused(ep, err);
	}
	__atomic_store_n(&q->head, q->head + 1, __ATOMIC_RELAXED);
	ep->counters[counter]++;
	ep->counters[counter + 1] += length;
	dapl_spin_unlock(&q->lock);
	return DAT_SUCCESS;

otherwise:
	wr->send_flags = is_inline;
	return dapl_ep_post_request(ep, wr, length, cookie, flags, op, dto_flags, counter);
}

/* A list with empty segments. */
struct gather {
	struct dapl_ep *ep;
	struct ibv_send_wr *wr;
	DAT_COMPLETION_FLAGS flags;
	uint32_t length;
	int op;
	unsigned dto_flags, counter;
};

static COLD DAT_RETURN post_odd_list(const struct gather *g, int n, const DAT_LMR_TRIPLET *iov,
				     DAT_DTO_COOKIE cookie)
{
	struct ibv_sge copy[MAX_SEGMENTS];

	g->wr->sg_list = squeeze(iov, &n, copy);
	g->wr->num_sge = n;
	g->wr->send_flags = g->length - 1 < g->ep->max_inline ? IBV_SEND_INLINE : 0;
	return dapl_ep_post_request(g->ep, g->wr, g->length, cookie, g->flags, g->op, g->dto_flags,
				    g->counter);
}

/* What send and RDMA write share. */
static inline __attribute__((always_inline))
DAT_RETURN post_gather(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, struct ibv_send_wr *wr,
		       uint32_t max, uint64_t room, int op, unsigned dto_flags, unsigned counter)
{
	uint64_t total;
	bool odd;

	if (likely(n == 1) && likely(iov != NULL)) {
		total = iov->segment_length;
		odd = total == 0;
	} else if (n && !iov) {
		return BAD_PARAM(3);
	} else {
		odd = sum(iov, n, &total);
	}
	if (unlikely(total > max || total > room))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	if (unlikely(odd)) {
		struct gather g = { ep, wr, flags, (uint32_t)total, op, dto_flags, counter };

		return post_odd_list(&g, n, iov, cookie);
	}
	wr->sg_list = (struct ibv_sge *)iov;
	wr->num_sge = n;
	return post(ep, wr, (uint32_t)total, cookie, flags, op, dto_flags, counter);
}

/* dat_ep_post_send (spec/calls.md 5). */
DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct ibv_send_wr wr;

	if (unlikely(!ep))
		return BAD_HANDLE(EP);
	if (unlikely((unsigned)n > ep->max_send_iov))
		return BAD_PARAM(2);
	wr.opcode = IBV_WR_SEND;
	return post_gather(ep, n, iov, cookie, flags, &wr, ep->max_message, UINT64_MAX,
			   DAT_DTO_SEND, 0, DCNT_EP_POST_SEND);
}

/* dat_ep_post_send_with_invalidate (DAT 2.0). */
DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct ibv_send_wr wr;

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
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = context;
	return post_gather(ep, n, iov, cookie, flags, &wr, ep->max_message, UINT64_MAX,
			   DAT_DTO_SEND, 0, DCNT_EP_POST_SEND);
}

/* RDMA write, with or without immediate data. */
static inline __attribute__((always_inline)) DAT_RETURN write_to(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags, struct ibv_send_wr *wr, int op,
				  unsigned dto_flags, unsigned counter)
{
	if (unlikely((unsigned)n > ep->max_write_iov))
		return BAD_PARAM(2);
	if (unlikely(!remote))
		return BAD_PARAM(5);
	wr->wr.rdma.remote_addr = remote->virtual_address;
	wr->wr.rdma.rkey = remote->rmr_context;
	return post_gather(ep, n, iov, cookie, flags, wr, ep->max_rdma, remote->segment_length, op,
			   dto_flags, counter);
}

/* dat_ep_post_rdma_write: what is transferred is the local total. */
DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct ibv_send_wr wr;

	if (unlikely(!ep))
		return BAD_HANDLE(EP);
	wr.opcode = IBV_WR_RDMA_WRITE;
	return write_to(ep, n, iov, cookie, remote, flags, &wr, DAT_DTO_RDMA_WRITE, 0,
			DCNT_EP_POST_WRITE);
}

DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_send_wr wr;

	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl(immediate);
	return write_to(ep, n, iov, cookie, remote, flags, &wr, DAT_IB_DTO_RDMA_WRITE_IMMED,
			REQ_EXTENSION, DCNT_EP_POST_WRITE_IMM);
}

static COLD DAT_RETURN post_trimmed_read(struct dapl_ep *ep, struct ibv_send_wr *wr, int n,
					 const DAT_LMR_TRIPLET *iov, uint32_t length,
					 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_sge copy[MAX_SEGMENTS];

	wr->sg_list = trim(iov, &n, length, copy);
	wr->num_sge = n;
	wr->send_flags = 0;
	return dapl_ep_post_request(ep, wr, length, cookie, flags, DAT_DTO_RDMA_READ, 0,
				    DCNT_EP_POST_READ);
}

/* dat_ep_post_rdma_read: what is transferred is the remote length. */
DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct ibv_send_wr wr;
	uint64_t total;
	bool empty;

	if (unlikely(!ep))
		return BAD_HANDLE(EP);
	if (unlikely((unsigned)n > ep->max_read_iov))
		return BAD_PARAM(2);
	if (unlikely(!iov && n))
		return BAD_PARAM(3);
	if (unlikely(!remote))
		return BAD_PARAM(5);
	empty = sum(iov, n, &total);
	if (unlikely(total < remote->segment_length || remote->segment_length > ep->max_rdma))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = remote->virtual_address;
	wr.wr.rdma.rkey = remote->rmr_context;
	if (unlikely(empty || total > remote->segment_length))
		return post_trimmed_read(ep, &wr, n, iov, remote->segment_length, cookie, flags);
	wr.sg_list = (struct ibv_sge *)iov;
	wr.num_sge = n;
	return post(ep, &wr, remote->segment_length, cookie, flags, DAT_DTO_RDMA_READ, 0,
		    DCNT_EP_POST_READ);
}

/* dat_ep_post_rdma_read_to_rmr (DAT 2.0): the sink is named by an RMR context, as iWARP
 * has it on the wire. Through verbs the sink is a local key: an LMR's rmr_context is one
 * wherever it equals its lmr_context; a memory window is not. */
DAT_RETURN dapl_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	DAT_LMR_TRIPLET sink;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!local)
		return BAD_PARAM(2);
	if (!remote)
		return BAD_PARAM(4);
	if (!dapl_lmr_sink(ep->obj.ia, ep->pz, local, &sink))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_RDMA_WRITE);
	return dapl_ep_post_rdma_read(handle, 1, &sink, cookie, remote, flags);
}

/* --- the receive queue --------------------------------------------------------------- */

static COLD DAT_RETURN no_qp_for_receive(struct dapl_ep *ep)
{
	DAT_RETURN ret;

	pthread_mutex_lock(&ep->lock);
	ret = dapl_ep_need_qp(ep);
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

/* A receive for a queue pair in ERR that gets no device to see it. */
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
			.length = length, .seq = q->head, .op = DAT_DTO_RECEIVE,
			.flags = flags ? REQ_QUIET : 0 };
		commit(ep, q, DCNT_EP_POST_RECV, length);
	}
	return end_late_post(ep, q, room);
}

/* rxe flushes what is on the receive queue when the QP goes to ERR, and not what is posted
 * later, unless it's told again. Elsewhere it's harmless. */
static COLD void flush_again(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->qp && ep->state == DAT_EP_STATE_DISCONNECTED)
		dapl_device_ops.error_qp(ep->qp);
	pthread_mutex_unlock(&ep->lock);
}

/* Any receive. */
static __attribute__((noinline))
DAT_RETURN post_any_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct ibv_recv_wr *bad;
	struct dapl_dto *dto;
	bool over;
	int err;

	dapl_spin_lock(&q->lock);
	over = q->over;
	if (over && ep->obj.ia->attr.no_late_flush) {
		dapl_spin_unlock(&q->lock);
		return post_late_receive(ep, length, cookie, flags);
	}
	if (dapl_queue_used(q) >= q->limit) {
		dapl_spin_unlock(&q->lock);
		return NO_RESOURCE(MEMORY);
	}
	dto = dapl_queue_next(q);
	*dto = (struct dapl_dto){ .cookie = cookie, .ep = ep, .length = length, .seq = q->head,
		.op = DAT_DTO_RECEIVE, .flags = flags ? REQ_QUIET : 0 };
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	err = ibv_post_recv(ep->qp, wr, &bad);
	if (!err)
		commit(ep, q, DCNT_EP_POST_RECV, length);
	dapl_spin_unlock(&q->lock);
	if (over)
		flush_again(ep);
	return err ? post_refused(ep, err) : DAT_SUCCESS;
}

/* What nearly all are, as with post(). */
static inline __attribute__((always_inline))
DAT_RETURN post_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, uint32_t length,
			DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_queue *q = &ep->rq;
	struct ibv_recv_wr *bad;
	struct dapl_dto *dto;
	uint32_t head;
	int err;

	if (unlikely(flags) || unlikely(!dapl_spin_try(&q->lock)))
		return post_any_receive(ep, wr, length, cookie, flags);
	head = q->head;
	if (unlikely(q->over) ||
	    unlikely(head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) >= q->limit)) {
		dapl_spin_unlock(&q->lock);
		return post_any_receive(ep, wr, length, cookie, flags);
	}
	dto = &q->ring[head & q->mask];
	dto->cookie = cookie;
	dto->ep = ep;
	dto->length = length;
	dto->seq = head;
	dto->op = DAT_DTO_RECEIVE;
	dto->flags = 0;
	wr->wr_id = (uintptr_t)dto;
	wr->next = NULL;
	err = ibv_post_recv(ep->qp, wr, &bad);
	if (unlikely(err)) {
		dapl_spin_unlock(&q->lock);
		return post_refused(ep, err);
	}
	__atomic_store_n(&q->head, q->head + 1, __ATOMIC_RELAXED);
	ep->counters[DCNT_EP_POST_RECV]++;
	ep->counters[DCNT_EP_POST_RECV_DATA] += length;
	dapl_spin_unlock(&q->lock);
	return DAT_SUCCESS;
}

static COLD DAT_RETURN post_odd_receive(struct dapl_ep *ep, struct ibv_recv_wr *wr, int n,
					const DAT_LMR_TRIPLET *iov, uint32_t length,
					DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct ibv_sge copy[MAX_SEGMENTS];

	wr->sg_list = squeeze(iov, &n, copy);
	if (!n && ep->obj.ia->attr.no_empty_receive)
		copy[n++] = (struct ibv_sge){ .length = 0 };
	wr->num_sge = n;
	return post_any_receive(ep, wr, length, cookie, flags);
}

/* dat_ep_post_recv (spec/calls.md 5): in any state, as long as there is a PZ. */
DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct ibv_recv_wr wr;
	DAT_RETURN ret;
	uint64_t total;

	if (unlikely(!ep))
		return BAD_HANDLE(EP);
	if (unlikely(ep->srq != NULL))
		return bad_request_state(ep);
	if (unlikely((unsigned)n > ep->max_recv_iov))
		return BAD_PARAM(2);
	if (unlikely(!iov && n))
		return BAD_PARAM(3);
	if (unlikely(flags) && (flags & ~(DAT_COMPLETION_UNSIGNALLED_FLAG & ~ep->recv_flags)))
		return BAD_PARAM(5);
	if (unlikely(!ep->qp) && (ret = no_qp_for_receive(ep)))
		return ret;
	if (likely(n == 1) && likely(iov->segment_length))
		total = iov->segment_length;
	else if (sum(iov, n, &total) || !n)
		return post_odd_receive(ep, &wr, n, iov, (uint32_t)total, cookie, flags);
	wr.sg_list = (struct ibv_sge *)iov;
	wr.num_sge = n;
	return post_receive(ep, &wr, (uint32_t)total, cookie, flags);
}

/* --- the provider's own ---------------------------------------------------------------- */

int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing)
{
	struct dapl_queue *q = &ep->sq;
	struct ibv_send_wr wr = { .opcode = flushing ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = ep->signaled }, *bad;
	struct dapl_dto *dto;
	int err = ENOSPC;

	dapl_spin_lock(&q->lock);
	if (dapl_queue_used(q) <= q->mask) {
		dto = dapl_queue_next(q);
		*dto = (struct dapl_dto){ .ep = ep, .seq = q->head, .op = DAT_DTO_SEND,
			.flags = REQ_MARKER };
		wr.wr_id = (uintptr_t)dto;
		err = ibv_post_send(ep->qp, &wr, &bad);
		if (err && stands_anyway(ep, err))
			err = 0;
		if (!err) {
			dapl_queue_commit(q);
			q->markers++;
			q->limit++;
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
	if (!may_request(ep)) {
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
