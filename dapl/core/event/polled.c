/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled.c - the polled completions as a list: filling, counting, inspecting, removing (polled.h). */
#include <string.h>
#include "dapl/core/base/qp_table.h"
#include "dapl/core/base/srq_records.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/event/watermark.h"

void dapl_evd_inspect_polled(struct dapl_evd *evd, uint32_t from)
{
	assert_held(&evd->lock);
	for (uint32_t i = from; i < evd->wc_tail; i++) {
		struct ibv_wc *wc = &evd->wc[i];
		struct dapl_dto *req = dapl_polled_request(wc);

		if (dapl_polled_notifies(req, wc)) {
			evd->notices++;
			evd->fresh_notice = true;	/* EVD-56 */
		}
		if (req->flags & REQ_SRQ) {
			struct dapl_ep *ep = dapl_qp_table_find(evd->obj.ia, wc->qp_num);

			if (ep)
				dapl_watermark_took_buffer(ep);
		}
	}
}

/* Keeps the completions in [from, wc_tail) for which `keep` returns true, in order. Returns how many are
 * gone. */
static unsigned filter(struct dapl_evd *evd, uint32_t from,
		       bool (*keep)(struct dapl_evd *, struct ibv_wc *, const void *),
		       const void *arg)
{
	uint32_t to = from;

	assert_held(&evd->lock);
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

	assert_held(&evd->lock);
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
		dapl_evd_inspect_polled(evd, before);
	evd->polled_new |= evd->wc_tail != before;
	return evd->wc_tail - before;
}

unsigned dapl_evd_count(struct dapl_evd *evd)
{
	unsigned n = evq_count(&evd->evq);

	assert_held(&evd->lock);
	for (uint32_t i = evd->wc_head; i < evd->wc_tail; i++)
		n += dapl_polled_makes_event(&evd->wc[i]);
	return n;
}

void dapl_evd_inspect_all(struct dapl_evd *evd)
{
	assert_held(&evd->lock);
	evd->notices = 0;
	dapl_evd_inspect_polled(evd, evd->wc_head);
}

/* Keeps the completions of other endpoints than `arg`. Gives the buffers of an SRQ back. */
static bool keep_or_purge(struct dapl_evd *evd, struct ibv_wc *wc, const void *arg)
{
	const struct dapl_ep *ep = arg;
	struct dapl_dto *req = dapl_polled_request(wc);

	if (req->flags & REQ_SRQ) {
		if (wc->qp_num != ep->qpn)
			return true;
		dapl_srq_give_back(req);
	} else if (req->ep != ep) {
		return true;
	}
	if (dapl_flag(&evd->inspect) && dapl_polled_notifies(req, wc))
		evd->notices--;
	return false;
}

/* Holds both locks at once, so a post that dapl_evd_flush_posts completes is either purged here, or was
 * made after this. */
void dapl_evd_purge(struct dapl_evd *evd, const struct dapl_ep *ep, struct dapl_queue *q)
{
	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	filter(evd, evd->wc_head, keep_or_purge, ep);
	dapl_queue_empty(q);
	dapl_spin_unlock(&evd->lock);
}

/* siw flushes when a QP is destroyed, too. On other devices a QP that never left INIT makes no
 * completions. */
void dapl_evd_silence(struct dapl_evd *evd, const struct dapl_ep *ep, struct ibv_qp *qp)
{
	if (!ep->obj.ia->attr.no_late_flush)
		return;
	dapl_spin_lock(&evd->lock);
	dapl_device_ops.error_qp(qp);
	dapl_evd_fill(evd);
	filter(evd, evd->wc_head, keep_or_purge, ep);
	dapl_spin_unlock(&evd->lock);
}

/* Retires a suppressed success or a marker without an event, but only if no completion of its queue must be
 * dequeued before it, because records are given back in order. */
static bool keep_or_retire(struct dapl_evd *evd, struct ibv_wc *wc, const void *arg)
{
	struct dapl_dto *req = dapl_polled_request(wc);

	(void)arg;
	if (dapl_polled_makes_event(wc) || req->op == DAT_DTO_RECEIVE)
		return true;
	for (const struct ibv_wc *w = evd->wc + evd->wc_head; w < wc; w++)
		if (dapl_polled_makes_event(w) && !(dapl_polled_request(w)->flags & REQ_SRQ) &&
		    dapl_polled_request(w)->ep == req->ep && dapl_polled_request(w)->op != DAT_DTO_RECEIVE)
			return true;
	dapl_queue_retire(&req->ep->sq, req);
	return false;
}

bool dapl_evd_reap_suppressed(struct dapl_evd *evd)
{
	bool found;

	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	found = filter(evd, evd->wc_head, keep_or_retire, NULL) > 0;
	dapl_spin_unlock(&evd->lock);
	return found;
}

bool dapl_evd_contains(struct dapl_evd *evd, bool (*is)(const struct dapl_dto *,
							const struct ibv_wc *, const void *),
		       const void *arg)
{
	bool found = false;

	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	for (uint32_t i = evd->wc_head; i < evd->wc_tail && !found; i++)
		found = is(dapl_polled_request(&evd->wc[i]), &evd->wc[i], arg);
	dapl_spin_unlock(&evd->lock);
	return found;
}
