/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c - takes events of all kinds out of an EVD, and turns each completion into one DAT_EVENT. The fast
 * path for plain completions is in dequeue.c, waiting in evd_wait.c.
 *
 * Events of the ring come first (connection, request, software, asynchronous events), then completions.
 * This order is right for two reasons. A terminal connection event enters the ring only after the
 * endpoint's completions to this EVD were dequeued (conn/terminate.c). And ESTABLISHED must overtake
 * receives that came early. See doc/design/event-path.md. */
#include <string.h>
#include "common/compiler.h"
#include "dapl/core/base/qp_table.h"
#include "dapl/core/base/srq_records.h"
#include "dapl/core/dapl.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/mem/rmr.h"

struct dapl_conn_hooks dapl_conn_hooks;

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
		dapl_evd_inspect_polled(evd, 0);
	return true;
}

/* DTO-1 */
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
	memset(event->event_extension_data, 0, sizeof event->event_extension_data);	/* EXT-16 */
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

/* RMR-2 */
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

/* Adds the time when the frame of a raw endpoint left (eth_device.h). */
static void raw_departure(const struct ibv_wc *wc, DAT_EVENT *event)
{
	DAT_ETH_FRAME frame = { .time = 0 };

	if (wc->status == IBV_WC_SUCCESS)
		frame.time = (uint64_t)wc->src_qp << 32 | wc->imm_data;
	event->event_number = DAT_ETH_DTO_EVENT;
	memcpy(event->event_extension_data, &frame, sizeof frame);
}

/* Slow path: a request's completion that is not a plain success. Returns false if it makes no
 * event. DTO-18, 19. */
static bool special_request(struct dapl_ep *ep, const struct dapl_dto *req,
			    const struct ibv_wc *wc, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_STATUS status = dapl_status_dto(wc->status);
	bool ok = status == DAT_DTO_SUCCESS;

	if (!ok)
		WRITE_ONCE(ep->sq.failed, true);
	if ((req->flags & REQ_MARKER) || (ok && (req->flags & REQ_SUPPRESS)))
		return false;
	if (req->flags & REQ_BIND)
		bind_event(event, req, status);
	else
		dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req, status,
			  ok ? req->length : 0, req->op);
	if ((req->flags & REQ_EXTENSION) && ep->is_raw)
		raw_departure(wc, event);
	else if (req->flags & REQ_EXTENSION)
		extension(event, request_extension(req->op), ok);
	return true;
}

/* Makes the event of a frame that a raw endpoint has received, or of the notice that its ring has frames.
 * ETH-8. */
static void raw_receive(const struct dapl_ep *ep, const struct dapl_dto *req, const struct ibv_wc *wc,
			DAT_EVENT *event)
{
	bool ok = wc->status == IBV_WC_SUCCESS;

	dto_event(event, req == &ep->eth->ready ? DAT_ETH_READY_EVENT : DAT_ETH_DTO_EVENT, (struct dapl_ep *)ep,
		  req, dapl_status_dto(wc->status), ok ? wc->byte_len : 0, DAT_DTO_RECEIVE);
	if (ok && req != &ep->eth->ready)
		memcpy(event->event_extension_data, &ep->eth->frames[wc->src_qp & ep->eth->frame_mask],
		       sizeof *ep->eth->frames);
}

static void add_after(struct dapl_after *after, struct dapl_ep *ep, unsigned what)
{
	if (!after->ep) {
		after->ep = ep;
		dapl_object_get(&ep->obj);
	}
	after->what |= what;
}

/* Slow path: a receive's completion that carries more than data, or failed. */
static void special_receive(struct dapl_ep *ep, const struct dapl_dto *req,
			    const struct ibv_wc *wc, DAT_EVENT *event, struct dapl_after *after)
{
	bool ok = wc->status == IBV_WC_SUCCESS;
	int op = DAT_DTO_RECEIVE;

	if (ep->is_raw) {
		raw_receive(ep, req, wc, event);
		return;
	}
	dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req, dapl_status_dto(wc->status),
		  ok ? wc->byte_len : 0, op);
	if (ep->is_ud) {
		event->event_data.dto_completion_event_data.operation =
			(DAT_DTOS)DAT_IB_DTO_RECV_UD;
		extension(event, DAT_IB_UD_RECV, ok);	/* EXT-15 */
		ep->counters[DCNT_EP_RECV_UD]++;
		ep->counters[DCNT_EP_RECV_UD_DATA] += ok ? wc->byte_len : 0;
		return;
	}
	if (!ok)
		return;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {	/* EXT-8 */
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
		op = DAT_DTO_RECEIVE_WITH_INVALIDATE;	/* DTO-34 */
		event->event_data.dto_completion_event_data.rmr_context = wc->invalidated_rkey;
		after->rkey = wc->invalidated_rkey;	/* RMR-15 */
		add_after(after, ep, AFTER_INVALIDATED);
	}
	event->event_data.dto_completion_event_data.operation = (DAT_DTOS)op;
}

/* Returns the endpoint of a receive's completion, or NULL for an SRQ buffer whose endpoint was freed.
 * SRQ-14. */
static inline struct dapl_ep *receiver(struct dapl_evd *evd, const struct dapl_dto *req,
				       const struct ibv_wc *wc)
{
	if (unlikely(req->flags & REQ_SRQ))
		return dapl_qp_table_find(evd->obj.ia, wc->qp_num);
	return req->ep;
}

/* Gives the record of the receive back. */
static inline void retire_receive(struct dapl_evd *evd, struct dapl_ep *ep,
				  struct dapl_dto *req)
{
	if (unlikely(req->flags & REQ_SRQ)) {
		dapl_srq_give_back(req);
		if (ep && dapl_flag(&evd->inspect) && ep->srq_polled > 0)
			ep->srq_polled--;
	} else {
		dapl_queue_retire(&ep->rq, req);
	}
}

/* RMR-12, DTO-4, 26, 32 */
static inline void after_completion(struct dapl_ep *ep, const struct ibv_wc *wc,
				    struct dapl_after *after)
{
	if (unlikely(__atomic_load_n(&ep->deferred, __ATOMIC_RELAXED)))
		add_after(after, ep, AFTER_DRAINED);
	if (unlikely(wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)) {
		add_after(after, ep, AFTER_BROKEN);
		after->status = wc->status;
	}
}

/* True for a receive that came before ESTABLISHED was delivered. */
static bool is_early(struct dapl_ep *ep, struct dapl_after *after)
{
	DAT_EP_STATE state = __atomic_load_n(&ep->state, __ATOMIC_ACQUIRE);

	if (state == DAT_EP_STATE_COMPLETION_PENDING)
		add_after(after, ep, AFTER_COMM_ESTABLISHED);
	return state == DAT_EP_STATE_COMPLETION_PENDING || state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
	       (state == DAT_EP_STATE_CONNECTED && !ep->is_ud); /* ESTABLISHED is being
									 * delivered */
}

/* Leaves an early receive in the queue. Either the caller delivers ESTABLISHED now and takes again, or the
 * thread that delivers it notifies this EVD. */
static enum dapl_take hold(struct dapl_evd *evd, const struct dapl_after *after)
{
	if (after->ep)
		return TAKE_AGAIN;
	evd->awaits_established = true;
	return TAKE_AWAITS;
}

/* Returns the oldest event of the ring. If the ring is empty, opens the fast path again. An event that was
 * put before `queued` was cleared is seen by the second look; an event that is put later sets `queued`
 * again. */
static const DAT_EVENT *next_queued(struct dapl_evd *evd)
{
	const DAT_EVENT *event = evq_peek(&evd->evq);

	if (event || !__atomic_load_n(&evd->queued, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&evd->queued, false, __ATOMIC_ACQ_REL))
		return event;
	event = evq_peek(&evd->evq);
	if (event)
		__atomic_store_n(&evd->queued, true, __ATOMIC_RELEASE);
	return event;
}

/* Makes the event of a request's completion. Returns false if the completion makes none. */
static inline bool take_request(struct dapl_evd *evd, struct dapl_dto *req, const struct ibv_wc *wc,
				DAT_EVENT *event)
{
	bool makes_event = true;

	if (likely(wc->status == IBV_WC_SUCCESS && !(req->flags & ~(REQ_NO_NOTIFY | REQ_UNSIGNALED))))
		dto_event(event, DAT_DTO_COMPLETION_EVENT, req->ep, req, DAT_DTO_SUCCESS, req->length,
			  req->op);
	else
		makes_event = special_request(req->ep, req, wc, event);
	if (unlikely(dapl_flag(&evd->inspect)) && dapl_polled_notifies(req, wc))
		evd->notices--;
	dapl_queue_retire(&req->ep->sq, req);
	return makes_event;
}

static inline void receive_event(struct dapl_ep *ep, const struct dapl_dto *req, const struct ibv_wc *wc,
				 DAT_EVENT *event, struct dapl_after *after)
{
	if (likely(wc->status == IBV_WC_SUCCESS)) {
		ep->counters[DCNT_EP_RECV]++;
		ep->counters[DCNT_EP_RECV_DATA] += wc->byte_len;
		if (likely(wc->opcode == IBV_WC_RECV && !ep->is_ud &&
			   !(wc->wc_flags & (IBV_WC_WITH_IMM | WC_INVALIDATED)))) {
			dto_event(event, DAT_DTO_COMPLETION_EVENT, ep, req, DAT_DTO_SUCCESS, wc->byte_len,
				  DAT_DTO_RECEIVE);
			return;
		}
	}
	special_receive(ep, req, wc, event, after);
}

/* Makes the event of a receive's completion. Returns false if `ep` is NULL: the endpoint of the SRQ buffer
 * was freed, so there is no event. */
static inline bool take_receive(struct dapl_evd *evd, struct dapl_ep *ep, struct dapl_dto *req,
				const struct ibv_wc *wc, DAT_EVENT *event, struct dapl_after *after)
{
	if (likely(ep != NULL))
		receive_event(ep, req, wc, event, after);
	if (unlikely(dapl_flag(&evd->inspect)) && dapl_polled_notifies(req, wc))
		evd->notices--;
	retire_receive(evd, ep, req);
	return ep != NULL;
}

enum dapl_take dapl_event_take(struct dapl_evd *evd, DAT_EVENT *event, struct dapl_after *after)
{
	bool makes_event = false;

	assert_held(&evd->lock);
	while (!makes_event) {
		const DAT_EVENT *queued = next_queued(evd);
		struct dapl_dto *req;
		struct dapl_ep *ep;
		struct ibv_wc *wc;

		if (unlikely(queued)) {
			*event = *queued;
			evq_drop(&evd->evq);
			break;
		}
		if (evd->wc_head == evd->wc_tail && !refill(evd))
			return TAKE_EMPTY;
		wc = &evd->wc[evd->wc_head];
		req = dapl_polled_request(wc);
		if (req->op != DAT_DTO_RECEIVE) {
			ep = req->ep;
			makes_event = take_request(evd, req, wc, event);
		} else {
			ep = receiver(evd, req, wc);
			if (ep && wc->status == IBV_WC_SUCCESS &&
			    unlikely(!__atomic_load_n(&ep->up, __ATOMIC_ACQUIRE)) && is_early(ep, after))
				return hold(evd, after);
			makes_event = take_receive(evd, ep, req, wc, event, after);
		}
		if (likely(ep != NULL))
			after_completion(ep, wc, after);
		evd->wc_head++;
		if (unlikely(!makes_event) && after->ep)
			return TAKE_AGAIN;
	}
	event->evd_handle = (DAT_EVD_HANDLE)evd;	/* EVD-18 */
	return TAKE_EVENT;
}

void dapl_event_after_run(struct dapl_after *after)
{
	struct dapl_ep *ep = after->ep;

	if (after->what & AFTER_COMM_ESTABLISHED)
		dapl_conn_hooks.comm_established(ep);
	if (after->what & AFTER_BROKEN)
		dapl_conn_hooks.broken(ep, DAPL_CODE_COMPLETION, after->status, NULL);
	if (after->what & AFTER_INVALIDATED)
		dapl_rmr_invalidated(ep->obj.ia, after->rkey);
	if (after->what & AFTER_DRAINED)
		dapl_conn_hooks.completed(ep);
	dapl_object_put(&ep->obj);
	after->ep = NULL;
	after->what = 0;
}
