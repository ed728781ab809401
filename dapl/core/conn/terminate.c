/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* terminate.c - ends an endpoint's connection: completes the posts, drops the device's connection, and
 * delivers the terminal event (terminate.h).
 *
 * Terminal events (DISCONNECTED, BROKEN and others) must come after the flushed completions if both go
 * to one EVD. Then ep->terminal keeps the event, ep->deferred makes the dequeuing side call the hook
 * `completed`, and the event is delivered after the last completion. */
#include <string.h>
#include "dapl/core/conn/terminate.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/flush.h"
#include "dapl/core/event/polled.h"

void dapl_ep_post_event(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	bool has_data = number == DAT_CONNECTION_EVENT_ESTABLISHED || number == DAT_CONNECTION_EVENT_PEER_REJECTED;

	assert_held(&ep->lock);
	if (!ep->connect_evd || !number)
		return;
	memset(&event, 0, sizeof event);
	event.event_number = number;
	event.event_data.connect_event_data.ep_handle = (DAT_EP_HANDLE)ep;
	if (has_data && ep->pdata_len > 0) {
		event.event_data.connect_event_data.private_data_size = ep->pdata_len;
		event.event_data.connect_event_data.private_data = ep->pdata;
	}
	/* atomic: other endpoints may change it at the same time */
	__atomic_add_fetch(&ep->connect_evd->counters[DCNT_EVD_CONN_CALLBACK], 1,
			   __ATOMIC_RELAXED);
	dapl_evd_post(ep->connect_evd, &event);
}

/* True if completions of this endpoint that go to its connect EVD are not dequeued yet. CONN-29. */
static bool must_wait(struct dapl_ep *ep)
{
	if (!ep->connect_evd)
		return false;
	return (ep->connect_evd == ep->request_evd && dapl_queue_count(&ep->sq)) ||
	       (ep->connect_evd == ep->recv_evd && dapl_queue_count(&ep->rq));
}

static bool of_this_ep(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	const struct dapl_ep *ep = arg;

	return (dto->flags & REQ_SRQ) && wc->qp_num == ep->qpn;
}

/* Reports that an endpoint on an SRQ has returned its last buffer. Consumers wait for that event before
 * they free the SRQ, and no device reports it. */
static void report_last_buffer(struct dapl_ep *ep)
{
	if (!ep->owes_last_buffer || dapl_evd_contains(dapl_ep_recv_evd(ep), of_this_ep, ep))
		return;
	ep->owes_last_buffer = false;
	dapl_async_post(ep->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
}

void dapl_ep_deliver_event(struct dapl_ep *ep)
{
	DAT_EVENT_NUMBER number = ep->terminal;

	assert_held(&ep->lock);
	if (number && !must_wait(ep)) {
		ep->terminal = 0;
		dapl_ep_post_event(ep, number);
	}
	report_last_buffer(ep);
	if (!ep->terminal && !ep->owes_last_buffer && ep->state == DAT_EP_STATE_DISCONNECTED)
		__atomic_store_n(&ep->deferred, false, __ATOMIC_SEQ_CST);
}

void dapl_ep_deliver_deferred(struct dapl_ep *ep)
{
	DAT_EVENT_NUMBER number = ep->terminal;

	assert_held(&ep->lock);
	__atomic_store_n(&ep->deferred, false, __ATOMIC_SEQ_CST);
	ep->owes_last_buffer = false;
	ep->terminal = 0;
	dapl_ep_post_event(ep, number);
}

void dapl_ep_defer_event(struct dapl_ep *ep)
{
	struct dapl_evd *evds[2] = { dapl_ep_request_evd(ep), dapl_ep_recv_evd(ep) };

	assert_held(&ep->lock);
	__atomic_store_n(&ep->deferred, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		if (evds[i]) {
			dapl_spin_lock(&evds[i]->lock);
			dapl_spin_unlock(&evds[i]->lock);
		}
}

/* Marks the queue as failed, so later posts take the slow path. */
static void end_posting(struct dapl_queue *q)
{
	dapl_post_lock(&q->lock);
	q->in_error = true;
	q->room = 0;
	dapl_post_unlock(&q->lock);
}

/* Moves the QP to ERR: all posts complete. */
static void flush(struct dapl_ep *ep)
{
	bool unsignaled;

	dapl_device_ops.error_qp(ep->qp);
	if (ep->obj.ia->attr.no_late_flush) {
		/* posts that had not completed when error_qp returned. DTO-41 */
		dapl_evd_flush_posts(dapl_ep_request_evd(ep), ep, &ep->sq, true);
		if (!ep->srq)
			dapl_evd_flush_posts(dapl_ep_recv_evd(ep), ep, &ep->rq, true);
		return;
	}
	/* Successful suppressed requests make no completion. A marker that flushes behind them gives their
	 * records back. */
	dapl_post_lock(&ep->sq.lock);
	unsignaled = ep->sq.unsignaled != 0;
	dapl_post_unlock(&ep->sq.lock);
	if (unsignaled)
		dapl_ep_post_marker(ep, true);
}

/* CONN-24, 33 */
void dapl_ep_terminate(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	assert_held(&ep->lock);
	end_posting(&ep->sq);
	end_posting(&ep->rq);
	if (ep->qp)
		flush(ep);
	dapl_ep_drop_conn(ep);
	ep->terminal = number;
	ep->owes_last_buffer = ep->srq != NULL && ep->qp != NULL;
	dapl_ep_defer_event(ep);
	dapl_ep_deliver_event(ep);
}

void dapl_ep_drop_conn(struct dapl_ep *ep)
{
	struct dapl_conn *conn = ep->conn;

	assert_held(&ep->lock);
	if (!conn)
		return;
	ep->conn = NULL;
	dapl_device_ops.disconnect(conn);
	dapl_device_ops.release(conn);
}
