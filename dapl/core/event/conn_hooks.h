/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_hooks.h - what the layers below connection management report to it. conn/conn.c fills the
 * table when the library starts (dapl_conn_start); before that no call of the consumer's runs.
 * All are slow paths, and run with no lock held. */
#ifndef DAPL_CONN_HOOKS_H
#define DAPL_CONN_HOOKS_H
#include "dapl/core/dapl.h"

struct dapl_conn_hooks {
	/* The connection is broken, because of this code unless the device knows better: a failed
	 * completion was dequeued, a watermark was passed. Takes ep->lock. */
	void (*broken)(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		       const char *text);
	/* A receive succeeded before the connection was told to be up. Takes ep->lock. True when
	 * ESTABLISHED is on its EVD now. */
	bool (*comm_established)(struct dapl_ep *ep);
	/* A completion was dequeued of an endpoint whose terminal event waits for that (`deferred`).
	 * Takes ep->lock. */
	void (*completed)(struct dapl_ep *ep);
	/* Refuses a request that no call can answer any more, since its event is discarded. */
	void (*refuse_request)(DAT_CR_HANDLE cr);
};

extern struct dapl_conn_hooks dapl_conn_hooks;

#endif
