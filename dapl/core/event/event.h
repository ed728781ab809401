/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.h - taking events out of an EVD (event.c). The caller holds evd->lock unless a comment says
 * otherwise. */
#ifndef DAPL_EVENT_H
#define DAPL_EVENT_H
#include "dapl/core/dapl.h"

enum dapl_take {
	TAKE_EVENT,	/* *event is the event */
	TAKE_EMPTY,
	TAKE_AWAITS,	/* the next completion must wait for ESTABLISHED, which another thread is about to
			 * deliver */
	TAKE_AGAIN,	/* run `after`, then take again */
};

/* Work for an endpoint that needs ep->lock or the lock of an RMR, to be done after evd->lock is released. */
enum dapl_after_what { AFTER_BROKEN = 1, AFTER_DRAINED = 2, AFTER_COMM_ESTABLISHED = 4, AFTER_INVALIDATED = 8 };
struct dapl_after {
	struct dapl_ep *ep;	/* a reference */
	unsigned what;
	enum ibv_wc_status status;	/* AFTER_BROKEN: of the failed completion */
	uint32_t rkey;			/* AFTER_INVALIDATED: of the window that the peer has invalidated */
};

enum dapl_take dapl_event_take(struct dapl_evd *evd, DAT_EVENT *event, struct dapl_after *after);
/* Called with no lock held. */
void dapl_event_after_run(struct dapl_after *after);

/* rxe sets the kernel's flag for "with invalidate", whose bit is IBV_WC_IP_CSUM_OK in the library. On a
 * connected QP that bit has no other meaning. */
#define WC_INVALIDATED (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

/* Reports to connection management from the layers below it. conn/conn.c fills the table when the library starts
 * (dapl_ep_conn_start); before that no call of the consumer's runs. All are slow paths, and are called with no
 * lock held. */
struct dapl_conn_hooks {
	/* The connection is broken: a failed completion was dequeued, or a watermark was passed. The code
	 * is the cause unless the device has another one. Takes ep->lock. */
	void (*broken)(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		       const char *text);
	/* A receive succeeded before the device reported the connection. Takes ep->lock. Returns true if
	 * ESTABLISHED was posted. */
	bool (*comm_established)(struct dapl_ep *ep);
	/* A completion was dequeued of an endpoint whose terminal event waits for its completions
	 * (`deferred`). Takes ep->lock. */
	void (*completed)(struct dapl_ep *ep);
	/* Refuses a connection request that no call can answer any more, because its event is discarded. */
	void (*refuse_request)(DAT_CR_HANDLE cr);
};

extern struct dapl_conn_hooks dapl_conn_hooks;

#endif
