/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c - makes the completions of posts that the device does not complete when a queue pair fails
 * (no_late_flush; flush.h). */
#include <stdlib.h>
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/flush.h"
#include "dapl/core/event/polled.h"

static bool grow_polled(struct dapl_evd *evd)
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

/* Moves all completions of the CQ to wc, and grows wc so that it has room for one more. Returns false
 * without memory. */
static bool fill_and_one(struct dapl_evd *evd)
{
	assert_held(&evd->lock);
	do
		dapl_evd_fill(evd);
	while (evd->wc_tail == evd->wc_size && grow_polled(evd));
	return evd->wc_tail < evd->wc_size;
}

/* Returns the position up to which the device has completed the queue. *failed is true if a request before
 * it has failed. Called with evd->lock and q->lock held. */
static uint32_t completed_to(const struct dapl_evd *evd, const struct dapl_ep *ep,
			     const struct dapl_queue *q, bool *failed)
{
	uint32_t to = q->tail;

	assert_held(&q->lock);
	*failed = q->failed;
	for (uint32_t i = evd->wc_head; i < evd->wc_tail; i++) {
		const struct dapl_dto *req = dapl_polled_request(&evd->wc[i]);

		if ((req->flags & REQ_SRQ) || req->ep != ep ||
		    (req->op == DAT_DTO_RECEIVE) != (q == &ep->rq))
			continue;
		to = req->end;
		*failed |= evd->wc[i].status != IBV_WC_SUCCESS;
	}
	return to;
}

/* Makes the completion of one request. An unsignaled request counts as successful if no request before it
 * has failed. */
static void flush_one(struct dapl_evd *evd, const struct dapl_ep *ep, const struct dapl_dto *req,
		      bool *failed)
{
	assert_held(&evd->lock);
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
	dapl_post_lock(&q->lock);
	if (first)
		q->flushed_to = completed_to(evd, ep, q, &failed);
	for (; q->in_error && room && q->flushed_to != q->head; q->flushed_to++) {
		flush_one(evd, ep, &q->ring[q->flushed_to & q->mask], &failed);
		room = evd->wc_tail < evd->wc_size || grow_polled(evd);
	}
	dapl_post_unlock(&q->lock);
	if (dapl_flag(&evd->inspect))
		dapl_evd_inspect_polled(evd, before);
	flushed = evd->wc_tail != before;
	dapl_spin_unlock(&evd->lock);
	if (flushed)
		dapl_evd_notify(evd);
}
