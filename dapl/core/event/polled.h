/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled.h - the completions that an EVD has polled and not handed out (polled.c), and what is done to
 * them as a list. evd->lock is held by the caller unless said. Not hot. */
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

	return !(req->flags & REQ_MARKER) &&
		!(wc->status == IBV_WC_SUCCESS && (req->flags & REQ_SUPPRESS));
}

/* True if the completion may notify a waiter or a CNO (doc/spec/calls.md, dat_evd_wait 3). */
static inline bool dapl_polled_notifies(const struct dapl_dto *req, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return !(req->flags & REQ_MARKER);
	return !(req->flags & (REQ_NO_NOTIFY | REQ_SUPPRESS | REQ_MARKER));
}

/* Counts watermarks and notification events of the completions in [from, wc_tail). */
void dapl_polled_inspect(struct dapl_evd *evd, uint32_t from);
/* evd->inspect was just switched on: counts what is there. */
void dapl_evd_inspect_all(struct dapl_evd *evd);
/* Polls all there is into wc; grows nothing. Returns how many are new. */
unsigned dapl_evd_fill(struct dapl_evd *evd);
/* Events that could be taken now (ring and polled completions). */
unsigned dapl_evd_count(struct dapl_evd *evd);
/* Without evd->lock: takes every trace of an endpoint's requests out of the polled completions, and
 * empties the queue that completes to it. The QP is reset or gone. */
void dapl_evd_purge(struct dapl_evd *evd, const struct dapl_ep *ep, struct dapl_queue *q);
/* Without evd->lock, with ep->lock: the endpoint receives into `evd` and nothing of it has completed.
 * `qp` of it won't complete anything when it's destroyed. */
void dapl_evd_silence(struct dapl_evd *evd, const struct dapl_ep *ep, struct ibv_qp *qp);
/* Without evd->lock: retires successful suppressed requests, which are never dequeued. Returns true
 * if it found any. */
bool dapl_evd_reap_suppressed(struct dapl_evd *evd);
/* Without evd->lock: polls; is there a completion whose request satisfies `is`? */
bool dapl_evd_holds(struct dapl_evd *evd, bool (*is)(const struct dapl_dto *,
						     const struct ibv_wc *, const void *),
		    const void *arg);

#endif
