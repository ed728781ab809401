/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dequeue.c - HOT: dat_evd_dequeue. The fast path takes a completion that is a plain success; event.c takes
 * all other events. doc/performance.md has the budget of instructions (make bench-instructions). */
#include <string.h>
#include "dapl/core/event/calls.h"
#include "common/compiler.h"
#include "dapl/core/event/event.h"

/* An EVD that takes completions returns QUEUE_EMPTY without the error class, as the old providers did,
 * because programs that poll compare the whole value. */
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
 * TAKE_AGAIN: the slow path (dapl_event_take) must handle it. DTO-1. */
static ALWAYS_INLINE enum dapl_take take_plain_completion(struct dapl_evd *evd, DAT_EVENT *event)
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
		/* immediate data of a message or of an RDMA write comes with IBV_WC_WITH_IMM */
		if (unlikely(wc->wc_flags & (IBV_WC_WITH_IMM | WC_INVALIDATED)))
			return TAKE_AGAIN;
		data->operation = DAT_DTO_RECEIVE;	/* one store with the next line */
		data->rmr_context = 0;
		data->transfered_length = wc->byte_len;	/* DTO-3 */
		ep->counters[DCNT_EP_RECV]++;
		ep->counters[DCNT_EP_RECV_DATA] += wc->byte_len;
		dapl_queue_retire(&ep->rq, req);
	} else {
		data->operation = (DAT_DTOS)req->op;
		data->rmr_context = 0;
		data->transfered_length = req->length;	/* DTO-2 */
		dapl_queue_retire(&ep->sq, req);
	}
	data->ep_handle = (DAT_EP_HANDLE)ep;
	data->status = DAT_DTO_SUCCESS;
	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = (DAT_EVD_HANDLE)evd;	/* EVD-18 */
	memset(event->event_extension_data, 0, sizeof event->event_extension_data);	/* EXT-16 */
	evd->wc_head++;
	return TAKE_EVENT;
}

static NOINLINE DAT_RETURN dequeue_slow(struct dapl_evd *evd, DAT_EVENT *event)
{
	struct dapl_after after = { .ep = NULL };
	enum dapl_take took;

	do {
		dapl_spin_lock(&evd->lock);
		if (unlikely(!dapl_evd_is_live(evd))) {	/* it was freed since, or its memory is used
							 * again */
			dapl_spin_unlock(&evd->lock);
			return BAD_HANDLE(EVD_REQUEST);
		}
		if (unlikely(dapl_flag(&evd->waiting))) {
			dapl_spin_unlock(&evd->lock);
			return BAD_STATE(EVD_WAITER);	/* EVD-14 */
		}
		took = dapl_event_take(evd, event, &after);
		evd->counters[took == TAKE_EVENT ? DCNT_EVD_DEQUEUE_FOUND :
			      DCNT_EVD_DEQUEUE_NOT_FOUND]++;
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_event_after_run(&after);
	} while (took == TAKE_AGAIN);
	return took == TAKE_EVENT ? DAT_SUCCESS : empty_poll(evd);
}

/* dat_evd_dequeue (doc/spec/calls.md 4): the oldest event, without blocking.
 * EVD-12, 13, 15, 16, 17. */
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
