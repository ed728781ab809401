/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled.h - operations on the list of completions that an EVD has polled and not handed out (polled.c).
 * The caller holds evd->lock unless a comment says otherwise. Not on the fast path. */
#ifndef DAPL_POLLED_H
#define DAPL_POLLED_H
#include "dapl/core/dapl.h"

static inline struct dapl_dto *dapl_polled_request(const struct ibv_wc *wc)
{
	return (struct dapl_dto *)(uintptr_t)wc->wr_id;
}

static inline bool dapl_polled_makes_event(const struct ibv_wc *wc)
{
	const struct dapl_dto *req = dapl_polled_request(wc);

	return !(req->flags & REQ_MARKER) && !(wc->status == IBV_WC_SUCCESS && (req->flags & REQ_SUPPRESS));
}

/* True if the completion may notify a waiter or a CNO (doc/spec/calls.md, dat_evd_wait 3). */
static inline bool dapl_polled_notifies(const struct dapl_dto *req, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return !(req->flags & REQ_MARKER);
	return !(req->flags & (REQ_NO_NOTIFY | REQ_SUPPRESS | REQ_MARKER));
}

/* Counts SRQ buffers and notification events of the completions in [from, wc_tail). */
void dapl_evd_inspect_polled(struct dapl_evd *evd, uint32_t from);
/* Called when evd->inspect was switched on: counts for the completions that were polled before. */
void dapl_evd_inspect_all(struct dapl_evd *evd);
/* Polls the CQ into wc until it is empty or wc is full. Returns the number of new completions. */
unsigned dapl_evd_fill(struct dapl_evd *evd);
/* Returns the number of events in the ring and among the polled completions. */
unsigned dapl_evd_count(struct dapl_evd *evd);
/* Removes the completions of an endpoint, and empties its queue that completes to the EVD. The QP was reset
 * or destroyed. Called without evd->lock. */
void dapl_evd_purge(struct dapl_evd *evd, const struct dapl_ep *ep, struct dapl_queue *q);
/* Makes sure that destroying `qp` completes nothing to `evd`. The endpoint receives into `evd`, and none of
 * its receives has completed. Called with ep->lock and without evd->lock. */
void dapl_evd_silence(struct dapl_evd *evd, const struct dapl_ep *ep, struct ibv_qp *qp);
/* Retires successful suppressed requests, which are never dequeued. Returns true if it found any. Called
 * without evd->lock. */
bool dapl_evd_reap_suppressed(struct dapl_evd *evd);
/* Polls, and returns true if there is a completion for which `is` returns true. Called without
 * evd->lock. */
bool dapl_evd_contains(struct dapl_evd *evd, bool (*is)(const struct dapl_dto *,
							const struct ibv_wc *, const void *),
		       const void *arg);

#endif
