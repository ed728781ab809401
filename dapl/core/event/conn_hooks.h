/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_hooks.h - reports to connection management from the layers below it. conn/conn.c fills the table
 * when the library starts (dapl_conn_start); before that no call of the consumer's runs. All are slow
 * paths, and are called with no lock held. */
#ifndef DAPL_CONN_HOOKS_H
#define DAPL_CONN_HOOKS_H
#include "dapl/core/dapl.h"

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
