/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c - HOT: taking events out of an EVD. One completion becomes one DAT_EVENT. The EVD as an
 * object is in evd.c, waiting in evd_wait.c.
 *
 * Two sources: the ring (connection, request, software, asynchronous events) first, then
 * completions. Ring first is right since a terminal connection event enters the ring of
 * an EVD that also takes the endpoint's completions only when the last of those has been
 * dequeued (conn.c), and ESTABLISHED must overtake receives that came early.
 * See doc/design/event-path.md. */
#include <stdlib.h>
#include <string.h>
#include "dapl/core/base/qp_table.h"
#include "dapl/core/base/srq_records.h"
#include "dapl/core/dapl.h"
#include "dapl/core/event/conn_hooks.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/watermark.h"
#include "dapl/core/ia/provider.h"

/* Bit 2 is what rxe sets for "with invalidate" (the kernel's flag, not the library's);
 * on a connected QP the bit has no other meaning. */
#define WC_INVALIDATED (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

static void inspect(struct dapl_evd *evd, uint32_t from);

static inline bool refill(struct dapl_evd *evd)
{
	int n;

	if (!evd->cq)
		return false;
	n = ibv_poll_cq(evd->cq, DAPL_POLL_BATCH, evd->wc);
	if (n <= 0) {
		evd->wc_head = evd->wc_tail = 0;
		evd->polled_empty++;
		return false;
	}
	evd->wc_head = 0;
	evd->wc_tail = n;
	evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND]++;
	if (unlikely(dapl_flag(&evd->inspect)))
		inspect(evd, 0);
	return true;
}

static inline void dto_event(DAT_EVENT *event, DAT_EVENT_NUMBER number, struct dapl_ep *ep,
			     const struct dapl_dto *req, DAT_DTO_COMPLETION_STATUS status,
			     uint32_t length, int op)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	event->event_number = number;
	dto->ep_handle = (DAT_EP_HANDLE)ep;
	dto->user_cookie = req->cookie;
	dto->status = status;
	dto->transfered_length = length;
	dto->operation = (DAT_DTOS)op;
	dto->rmr_context = 0;
	memset(event->event_extension_data, 0, sizeof event->event_extension_data);
}

static DAT_IB_EXTENSION_EVENT_DATA *extension(DAT_EVENT *event, DAT_IB_EXT_TYPE type, bool ok)
{
	DAT_IB_EXTENSION_EVENT_DATA *ext = (void *)event->event_extension_data;

	event->event_number = (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
	ext->type = type;
	ext->status = ok ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	return ext;
}

static DAT_IB_EXT_TYPE request_extension(int op)
{
	switch (op) {
	case DAT_IB_DTO_FETCH_ADD:	return DAT_IB_FETCH_AND_ADD;
	case DAT_IB_DTO_CMP_SWAP:	return DAT_IB_CMP_AND_SWAP;
	case DAT_IB_DTO_SEND_UD:	return DAT_IB_UD_SEND;
	case DAT_IB_DTO_RECV_UD:	return DAT_IB_UD_RECV;
	default:			return DAT_IB_RDMA_WRITE_IMMED;
	}
}

static void bind_event(DAT_EVENT *event, const struct dapl_dto *req,
		       DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind = &event->event_data.rmr_completion_event_data;

	event->event_number = DAT_RMR_BIND_COMPLETION_EVENT;
	bind->rmr_handle = req->rmr;
	bind->user_cookie = req->cookie;
	bind->status = status;
	memset(event->event_extension_data, 0, sizeof event->event_extension_data);
}

/* Slow path: a request's completion that is not a plain success. Returns false if it makes no
 * event. */
static bool special_request(struct dapl_ep *ep, const struct dapl_dto *req,
			    const struct ibv_wc *wc, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_STATUS status = dapl_dto_status(wc->status);
	bool ok = status == DAT_DTO_SUCCESS;

	ep->sq.failed |= !ok;
	if ((req->flags & REQ_MARKER) || (ok && (req->flags & REQ_SUPPRESS)))
		return false;
	if (req->flags & REQ_BIND)
		bind_event(event, req, status);
	else
		dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req, status,
			  ok ? req->length : 0, req->op);
	if (req->flags & REQ_EXTENSION)
		extension(event, request_extension(req->op), ok);
	return true;
}

/* Slow path: a receive's completion that carries more than data, or failed. */
static void special_receive(struct dapl_ep *ep, const struct dapl_dto *req,
			    const struct ibv_wc *wc, DAT_EVENT *event)
{
	bool ok = wc->status == IBV_WC_SUCCESS;
	int op = DAT_DTO_RECEIVE;

	dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req, dapl_dto_status(wc->status),
		  ok ? wc->byte_len : 0, op);
	if (ep->is_ud) {
		event->event_data.dto_completion_event_data.operation =
			(DAT_DTOS)DAT_IB_DTO_RECV_UD;
		extension(event, DAT_IB_UD_RECV, ok);
		ep->counters[DCNT_EP_RECV_UD]++;
		ep->counters[DCNT_EP_RECV_UD_DATA] += ok ? wc->byte_len : 0;
		return;
	}
	if (!ok)
		return;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		op = DAT_IB_DTO_RECV_IMMED;
		extension(event, DAT_IB_RDMA_WRITE_IMMED_DATA, true)->val.immed.data =
			wc->imm_data;
		ep->counters[DCNT_EP_RECV_RDMA_IMM]++;
		ep->counters[DCNT_EP_RECV_RDMA_IMM_DATA] += wc->byte_len;
	} else if (wc->wc_flags & IBV_WC_WITH_IMM) {
		op = DAT_IB_DTO_RECV_MSG_IMMED;
		extension(event, DAT_IB_RECV_IMMED_DATA, true)->val.immed.data =
			wc->imm_data;
		ep->counters[DCNT_EP_RECV_IMM]++;
		ep->counters[DCNT_EP_RECV_IMM_DATA] += wc->byte_len;
	} else if (wc->wc_flags & WC_INVALIDATED) {
		op = DAT_DTO_RECEIVE_WITH_INVALIDATE;
		event->event_data.dto_completion_event_data.rmr_context = wc->invalidated_rkey;
	}
	event->event_data.dto_completion_event_data.operation = (DAT_DTOS)op;
}

/* True if the completion may notify a waiter or a CNO (doc/spec/calls.md, dat_evd_wait 3). */
static bool is_notice(const struct dapl_dto *req, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return !(req->flags & REQ_MARKER);
	return !(req->flags & (REQ_NO_NOTIFY | REQ_SUPPRESS | REQ_MARKER));
}

/* Endpoint and queue of a receive completion; NULL for an SRQ buffer whose endpoint is
 * gone. */
static inline struct dapl_ep *receiver(struct dapl_evd *evd, const struct dapl_dto *req,
				       const struct ibv_wc *wc)
{
	if (unlikely(req->flags & REQ_SRQ))
		return dapl_qp_table_find(evd->obj.ia, wc->qp_num);
	return req->ep;
}

/* Gives the receive back to the consumer. */
static inline void retire_receive(struct dapl_evd *evd, struct dapl_ep *ep,
				  struct dapl_dto *req)
{
	if (unlikely(req->flags & REQ_SRQ)) {
		dapl_srq_give_back(req);
		if (ep && dapl_flag(&evd->inspect) && ep->held > 0)
			ep->held--;
	} else {
		dapl_queue_retire(&ep->rq, req);
	}
}

static void note(struct dapl_after *after, struct dapl_ep *ep, unsigned what)
{
	if (!after->ep) {
		after->ep = ep;
		dapl_object_get(&ep->obj);
	}
	after->what |= what;
}

static inline void after_completion(struct dapl_ep *ep, const struct ibv_wc *wc,
				    struct dapl_after *after)
{
	if (unlikely(__atomic_load_n(&ep->deferred, __ATOMIC_RELAXED)))
		note(after, ep, AFTER_DRAINED);
	if (unlikely(wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)) {
		note(after, ep, AFTER_BROKEN);
		after->status = wc->status;
	}
}

/* True for a receive that came before ESTABLISHED was delivered. */
static bool is_early(struct dapl_ep *ep, struct dapl_after *after)
{
	DAT_EP_STATE state = __atomic_load_n(&ep->state, __ATOMIC_ACQUIRE);

	if (state == DAT_EP_STATE_COMPLETION_PENDING)
		note(after, ep, AFTER_COMM_ESTABLISHED);
	return state == DAT_EP_STATE_COMPLETION_PENDING ||
		state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
		(state == DAT_EP_STATE_CONNECTED && !ep->is_ud);	/* ESTABLISHED is being
									 * delivered */
}

/* ESTABLISHED is either delivered now, or the thread that is about to deliver it wakes this EVD. */
static enum dapl_take hold(struct dapl_evd *evd, const struct dapl_after *after)
{
	if (after->ep)
		return TAKE_AGAIN;
	evd->held_back = true;
	return TAKE_HELD;
}

/* Returns the oldest event of the ring. An empty ring opens the fast path again: an event put
 * before `queued` was set is seen here, and a later `queued` stays set. */
static const DAT_EVENT *next_queued(struct dapl_evd *evd)
{
	const DAT_EVENT *event = ring_peek(&evd->ring);

	if (event || !__atomic_load_n(&evd->queued, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&evd->queued, false, __ATOMIC_ACQ_REL))
		return event;
	event = ring_peek(&evd->ring);
	if (event)
		__atomic_store_n(&evd->queued, true, __ATOMIC_RELEASE);
	return event;
}

enum dapl_take dapl_evd_take(struct dapl_evd *evd, DAT_EVENT *event, struct dapl_after *after)
{
	for (;;) {
		const DAT_EVENT *queued = next_queued(evd);
		struct dapl_dto *req;
		struct dapl_ep *ep;
		struct ibv_wc *wc;
		bool makes_event = true;

		if (unlikely(queued)) {
			*event = *queued;
			ring_drop(&evd->ring);
			break;
		}
		if (evd->wc_head == evd->wc_tail && !refill(evd))
			return TAKE_EMPTY;
		wc = &evd->wc[evd->wc_head];
		req = (struct dapl_dto *)(uintptr_t)wc->wr_id;
		if (req->op != DAT_DTO_RECEIVE) {
			ep = req->ep;
			if (likely(wc->status == IBV_WC_SUCCESS &&
				   !(req->flags & ~(REQ_NO_NOTIFY | REQ_UNSIGNALED))))
				dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req,
					  DAT_DTO_SUCCESS, req->length, req->op);
			else
				makes_event = special_request(ep, req, wc, event);
			if (unlikely(dapl_flag(&evd->inspect)) && is_notice(req, wc))
				evd->notices--;
			dapl_queue_retire(&ep->sq, req);
		} else {
			ep = receiver(evd, req, wc);
			if (unlikely(!ep)) {
				makes_event = false;
			} else if (likely(wc->status == IBV_WC_SUCCESS)) {
				if (unlikely(!__atomic_load_n(&ep->up, __ATOMIC_ACQUIRE)) &&
				    is_early(ep, after))
					return hold(evd, after);
				ep->counters[DCNT_EP_RECV]++;
				ep->counters[DCNT_EP_RECV_DATA] += wc->byte_len;
				if (likely(wc->opcode == IBV_WC_RECV && !ep->is_ud &&
					   !(wc->wc_flags & (IBV_WC_WITH_IMM | WC_INVALIDATED))))
					dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req,
						  DAT_DTO_SUCCESS, wc->byte_len, DAT_DTO_RECEIVE);
				else
					special_receive(ep, req, wc, event);
			} else {
				special_receive(ep, req, wc, event);
			}
			if (unlikely(dapl_flag(&evd->inspect)) && is_notice(req, wc))
				evd->notices--;
			retire_receive(evd, ep, req);
		}
		if (likely(ep != NULL))
			after_completion(ep, wc, after);
		evd->wc_head++;
		if (likely(makes_event))
			break;
		if (after->ep)
			return TAKE_AGAIN;
	}
	event->evd_handle = (DAT_EVD_HANDLE)evd;
	return TAKE_EVENT;
}

void dapl_after_run(struct dapl_after *after)
{
	struct dapl_ep *ep = after->ep;

	if (after->what & AFTER_COMM_ESTABLISHED)
		dapl_conn_hooks.comm_established(ep);
	if (after->what & AFTER_BROKEN)
		dapl_conn_hooks.broken(ep, DAPL_CODE_COMPLETION, after->status, NULL);
	if (after->what & AFTER_DRAINED)
		dapl_conn_hooks.completed(ep);
	dapl_object_put(&ep->obj);
	after->ep = NULL;
	after->what = 0;
}

/* An EVD that takes completions says QUEUE_EMPTY without the error class, as the old
 * providers did: programs that poll compare the whole value. */
static inline DAT_RETURN queue_empty(const struct dapl_evd *evd)
{
	return evd->flags & (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG) ?
		(DAT_RETURN)DAT_QUEUE_EMPTY : DAT_ERROR(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}

/* No lock held. */
static inline DAT_RETURN empty_poll(const struct dapl_evd *evd)
{
	if (dapl_device_ops.idle)
		dapl_device_ops.idle();
	return queue_empty(evd);
}

/* Takes evd->lock if it is free, no thread waits, completions need no inspection and the ring is
 * empty: one comparison. */
static inline bool pass_gate(struct dapl_evd *evd)
{
	const union {
		struct dapl_spin lock[sizeof(dapl_gate) / sizeof(struct dapl_spin)];
		dapl_gate word;
	} open = { { DAPL_SPIN_INIT(RANK_EVD_QUEUE) } }, held = { { DAPL_SPIN_HELD(RANK_EVD_QUEUE) } };
	dapl_gate found = open.word;

	if (unlikely(!__atomic_compare_exchange_n(&evd->gate, &found, held.word, false,
						  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
		return false;
	lock_check_taken(&evd->lock, RANK_EVD_QUEUE, "&evd->lock", __func__);
	return true;
}

/* Fast path. Takes the next completion if it is a plain success, as most completions are.
 * TAKE_AGAIN: the slow path (dapl_evd_take) must handle it. */
static inline __attribute__((always_inline))
enum dapl_take take_plain_completion(struct dapl_evd *evd, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	struct dapl_dto *req;
	struct dapl_ep *ep;
	struct ibv_wc *wc;
	int n;

	if (likely(evd->wc_head == evd->wc_tail)) {
		if (unlikely(!evd->cq))
			return TAKE_EMPTY;
		n = ibv_poll_cq(evd->cq, DAPL_POLL_BATCH, evd->wc);
		if (n <= 0) {
			evd->polled_empty++;
			return TAKE_EMPTY;
		}
		evd->wc_head = 0;
		evd->wc_tail = n;
		evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND]++;
		wc = evd->wc;
	} else {
		wc = &evd->wc[evd->wc_head];
	}
	req = (struct dapl_dto *)(uintptr_t)wc->wr_id;
	if (unlikely(wc->status != IBV_WC_SUCCESS || (req->flags & REQ_NOT_PLAIN)))
		return TAKE_AGAIN;
	ep = req->ep;
	if (unlikely(!__atomic_load_n(&ep->up, __ATOMIC_ACQUIRE)))
		return TAKE_AGAIN;
	data->user_cookie = req->cookie;
	if (req->op == DAT_DTO_RECEIVE) {
		/* immediate data comes with this flag, of a message or of an RDMA write */
		if (unlikely(wc->wc_flags & (IBV_WC_WITH_IMM | WC_INVALIDATED)))
			return TAKE_AGAIN;
		data->operation = DAT_DTO_RECEIVE;	/* together one store */
		data->rmr_context = 0;
		data->transfered_length = wc->byte_len;
		ep->counters[DCNT_EP_RECV]++;
		ep->counters[DCNT_EP_RECV_DATA] += wc->byte_len;
		dapl_queue_retire(&ep->rq, req);
	} else {
		data->operation = (DAT_DTOS)req->op;
		data->rmr_context = 0;
		data->transfered_length = req->length;
		dapl_queue_retire(&ep->sq, req);
	}
	data->ep_handle = (DAT_EP_HANDLE)ep;
	data->status = DAT_DTO_SUCCESS;
	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = (DAT_EVD_HANDLE)evd;
	memset(event->event_extension_data, 0, sizeof event->event_extension_data);
	evd->wc_head++;
	return TAKE_EVENT;
}

static __attribute__((noinline)) DAT_RETURN dequeue_slow(struct dapl_evd *evd, DAT_EVENT *event)
{
	struct dapl_after after = { .ep = NULL };
	enum dapl_take took;

	do {
		dapl_spin_lock(&evd->lock);
		if (unlikely(!dapl_evd_is_live(evd))) {	/* freed since, or being made again */
			dapl_spin_unlock(&evd->lock);
			return BAD_HANDLE(EVD_REQUEST);
		}
		if (unlikely(dapl_flag(&evd->waiting))) {
			dapl_spin_unlock(&evd->lock);
			return BAD_STATE(EVD_WAITER);
		}
		took = dapl_evd_take(evd, event, &after);
		evd->counters[took == TAKE_EVENT ? DCNT_EVD_DEQUEUE_FOUND :
			      DCNT_EVD_DEQUEUE_NOT_FOUND]++;
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_after_run(&after);
	} while (took == TAKE_AGAIN);
	return took == TAKE_EVENT ? DAT_SUCCESS : empty_poll(evd);
}

/* dat_evd_dequeue (doc/spec/calls.md 4): the oldest event, without blocking. EVD-12, 13. */
DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct dapl_evd *evd = (struct dapl_evd *)handle;
	enum dapl_take took;

	if (unlikely(!dapl_evd_is_live(evd)))
		return BAD_HANDLE(EVD_REQUEST);
	if (unlikely(!event))
		return BAD_PARAM(2);
	if (unlikely(!pass_gate(evd)))
		return dequeue_slow(evd, event);
	took = take_plain_completion(evd, event);
	if (likely(took == TAKE_EVENT)) {
		evd->counters[DCNT_EVD_DEQUEUE_FOUND]++;
		dapl_spin_unlock(&evd->lock);
		return DAT_SUCCESS;
	}
	evd->counters[DCNT_EVD_DEQUEUE_NOT_FOUND] += took == TAKE_EMPTY;
	dapl_spin_unlock(&evd->lock);
	return likely(took == TAKE_EMPTY) ? empty_poll(evd) : dequeue_slow(evd, event);
}

/* --- the polled completions as a list: counting, inspecting, purging. Not hot. --- */

static struct dapl_dto *request_of(const struct ibv_wc *wc)
{
	return (struct dapl_dto *)(uintptr_t)wc->wr_id;
}

static bool makes_event(const struct ibv_wc *wc)
{
	const struct dapl_dto *req = request_of(wc);

	return !(req->flags & REQ_MARKER) &&
		!(wc->status == IBV_WC_SUCCESS && (req->flags & REQ_SUPPRESS));
}

/* Watermarks and notification events of the completions in [from, wc_tail). */
static void inspect(struct dapl_evd *evd, uint32_t from)
{
	for (uint32_t i = from; i < evd->wc_tail; i++) {
		struct ibv_wc *wc = &evd->wc[i];
		struct dapl_dto *req = request_of(wc);

		if (is_notice(req, wc)) {
			evd->notices++;
			evd->fresh_notice = true;
		}
		if (req->flags & REQ_SRQ) {
			struct dapl_ep *ep = dapl_qp_table_find(evd->obj.ia, wc->qp_num);

			if (ep)
				dapl_watermark_took_buffer(ep);
		}
	}
}

/* Keeps the completions in [from, wc_tail) that `keep` wants, in order. */
static unsigned filter(struct dapl_evd *evd, uint32_t from,
		       bool (*keep)(struct dapl_evd *, struct ibv_wc *, const void *),
		       const void *arg)
{
	uint32_t to = from;

	for (; from < evd->wc_tail; from++)
		if (keep(evd, &evd->wc[from], arg))
			evd->wc[to++] = evd->wc[from];
	evd->wc_tail = to;
	return from - to;
}

unsigned dapl_evd_fill(struct dapl_evd *evd)
{
	uint32_t before;
	int n = 1;

	if (!evd->cq)
		return 0;
	if (evd->wc_head) {
		memmove(evd->wc, evd->wc + evd->wc_head,
			(evd->wc_tail - evd->wc_head) * sizeof *evd->wc);
		evd->wc_tail -= evd->wc_head;
		evd->wc_head = 0;
	}
	before = evd->wc_tail;
	while (n > 0 && evd->wc_tail < evd->wc_size) {
		n = ibv_poll_cq(evd->cq, evd->wc_size - evd->wc_tail, evd->wc + evd->wc_tail);
		if (n > 0)
			evd->wc_tail += n;
	}
	if (dapl_flag(&evd->inspect))
		inspect(evd, before);
	return evd->wc_tail - before;
}

unsigned dapl_evd_count(struct dapl_evd *evd)
{
	unsigned n = ring_count(&evd->ring);

	for (uint32_t i = evd->wc_head; i < evd->wc_tail; i++)
		n += makes_event(&evd->wc[i]);
	return n;
}

void dapl_evd_inspect_all(struct dapl_evd *evd)
{
	evd->notices = 0;
	inspect(evd, evd->wc_head);
}

static bool of_another(struct dapl_evd *evd, struct ibv_wc *wc, const void *arg)
{
	const struct dapl_ep *ep = arg;
	struct dapl_dto *req = request_of(wc);

	if (req->flags & REQ_SRQ) {
		if (wc->qp_num != ep->qpn)
			return true;
		dapl_srq_give_back(req);
	} else if (req->ep != ep) {
		return true;
	}
	if (dapl_flag(&evd->inspect) && is_notice(req, wc))
		evd->notices--;
	return false;
}

/* Both locks at once: a post that dapl_evd_flush_posts completes is either purged, or made
 * afterwards. */
void dapl_evd_purge(struct dapl_evd *evd, const struct dapl_ep *ep, struct dapl_queue *q)
{
	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	filter(evd, evd->wc_head, of_another, ep);
	dapl_queue_empty(q);
	dapl_spin_unlock(&evd->lock);
}

/* siw flushes on destroy, too; on other devices a QP that never left INIT makes no completions. */
void dapl_evd_silence(struct dapl_evd *evd, const struct dapl_ep *ep, struct ibv_qp *qp)
{
	if (!ep->obj.ia->attr.no_late_flush)
		return;
	dapl_spin_lock(&evd->lock);
	dapl_device_ops.error_qp(qp);
	dapl_evd_fill(evd);
	filter(evd, evd->wc_head, of_another, ep);
	dapl_spin_unlock(&evd->lock);
}

/* --- flushing what the device does not (no_late_flush) --- */

static bool grow(struct dapl_evd *evd)
{
	struct ibv_wc *wc = realloc(evd->wc, 2 * evd->wc_size * sizeof *wc);

	if (!wc) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, NULL, "no memory to flush to");
		return false;
	}
	evd->wc = wc;
	evd->wc_size *= 2;
	return true;
}

/* Moves all completions of the CQ to wc and makes room for one more. */
static bool fill_and_one(struct dapl_evd *evd)
{
	do
		dapl_evd_fill(evd);
	while (evd->wc_tail == evd->wc_size && grow(evd));
	return evd->wc_tail < evd->wc_size;
}

/* q->lock held too. Returns how far the device has completed; *failed: one of those has failed. */
static uint32_t completed_to(const struct dapl_evd *evd, const struct dapl_ep *ep,
			     const struct dapl_queue *q, bool *failed)
{
	uint32_t to = q->tail;

	*failed = q->failed;
	for (uint32_t i = evd->wc_head; i < evd->wc_tail; i++) {
		const struct dapl_dto *req = request_of(&evd->wc[i]);

		if ((req->flags & REQ_SRQ) || req->ep != ep ||
		    (req->op == DAT_DTO_RECEIVE) != (q == &ep->rq))
			continue;
		to = req->end;
		*failed |= evd->wc[i].status != IBV_WC_SUCCESS;
	}
	return to;
}

/* An unsignalled request counts as successful if no request before it has failed. */
static void flush_one(struct dapl_evd *evd, const struct dapl_ep *ep, const struct dapl_dto *req,
		      bool *failed)
{
	*failed |= !(req->flags & REQ_UNSIGNALED);
	evd->wc[evd->wc_tail++] = (struct ibv_wc){
		.wr_id = (uintptr_t)req, .qp_num = ep->qpn,
		.status = *failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS,
	};
}

void dapl_evd_flush_posts(struct dapl_evd *evd, struct dapl_ep *ep, struct dapl_queue *q, bool first)
{
	bool room, flushed, failed = !first;
	uint32_t before;

	dapl_spin_lock(&evd->lock);
	room = fill_and_one(evd);
	before = evd->wc_tail;
	dapl_spin_lock(&q->lock);
	if (first)
		q->flushed_to = completed_to(evd, ep, q, &failed);
	for (; q->in_error && room && q->flushed_to != q->head; q->flushed_to++) {
		flush_one(evd, ep, &q->ring[q->flushed_to & q->mask], &failed);
		room = evd->wc_tail < evd->wc_size || grow(evd);
	}
	dapl_spin_unlock(&q->lock);
	if (dapl_flag(&evd->inspect))
		inspect(evd, before);
	flushed = evd->wc_tail != before;
	dapl_spin_unlock(&evd->lock);
	if (flushed)
		dapl_evd_tell(evd);
}

/* A suppressed success or a marker is retired without an event, but only if no completion of its
 * queue is still to be dequeued before it, since records are given back in order. */
static bool not_suppressed(struct dapl_evd *evd, struct ibv_wc *wc, const void *arg)
{
	struct dapl_dto *req = request_of(wc);

	(void)arg;
	if (makes_event(wc) || req->op == DAT_DTO_RECEIVE)
		return true;
	for (const struct ibv_wc *w = evd->wc + evd->wc_head; w < wc; w++)
		if (makes_event(w) && !(request_of(w)->flags & REQ_SRQ) &&
		    request_of(w)->ep == req->ep && request_of(w)->op != DAT_DTO_RECEIVE)
			return true;
	dapl_queue_retire(&req->ep->sq, req);
	return false;
}

bool dapl_evd_reap_suppressed(struct dapl_evd *evd)
{
	bool found;

	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	found = filter(evd, evd->wc_head, not_suppressed, NULL) > 0;
	dapl_spin_unlock(&evd->lock);
	return found;
}

bool dapl_evd_holds(struct dapl_evd *evd, bool (*is)(const struct dapl_dto *,
						     const struct ibv_wc *, const void *),
		    const void *arg)
{
	bool found = false;

	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	for (uint32_t i = evd->wc_head; i < evd->wc_tail && !found; i++)
		found = is(request_of(&evd->wc[i]), &evd->wc[i], arg);
	dapl_spin_unlock(&evd->lock);
	return found;
}
