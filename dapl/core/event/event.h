/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.h - the events of one EVD and the completions it has polled but not handed out
 * (event.c). evd->lock is held by the caller unless said. */
#ifndef DAPL_EVENT_H
#define DAPL_EVENT_H
#include "dapl/core/dapl.h"

enum dapl_take {
	TAKE_EVENT,	/* *event is it */
	TAKE_EMPTY,
	TAKE_HELD,	/* the next completion must wait for ESTABLISHED, which is coming */
	TAKE_AGAIN,	/* run `after`, then take again */
};

/* What must be done for an endpoint once evd->lock is released: ep->lock is needed. */
enum dapl_after_what { AFTER_BROKEN = 1, AFTER_DRAINED = 2, AFTER_COMM_ESTABLISHED = 4 };
struct dapl_after {
	struct dapl_ep *ep;	/* a reference */
	unsigned what;
	enum ibv_wc_status status;	/* AFTER_BROKEN: of the failed completion */
};

enum dapl_take dapl_evd_take(struct dapl_evd *evd, DAT_EVENT *event, struct dapl_after *after);
/* Without any lock. */
void dapl_after_run(struct dapl_after *after);
/* Events that could be taken now (ring and polled completions). */
unsigned dapl_evd_count(struct dapl_evd *evd);
/* evd->inspect was just switched on: counts what is there. */
void dapl_evd_inspect_all(struct dapl_evd *evd);
/* Without evd->lock: polls; is there a completion whose request satisfies `is`? */
bool dapl_evd_holds(struct dapl_evd *evd, bool (*is)(const struct dapl_dto *,
						     const struct ibv_wc *, const void *),
		    const void *arg);

/* Without evd->lock: makes flushed completions of posts that the device will not complete any
 * more, behind those that it made, and notifies. `first`: the device has just made its last
 * completion. */
void dapl_evd_flush_posts(struct dapl_evd *evd, struct dapl_ep *ep, struct dapl_queue *q, bool first);

DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event);

#endif
