/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* terminate.h - the end of an endpoint's connection, and events on the connect EVD (terminate.c).
 * ep->lock is held by the caller. */
#ifndef DAPL_TERMINATE_H
#define DAPL_TERMINATE_H
#include "dapl/core/dapl.h"

/* An event for the connect EVD, with the private data in ep->pdata. */
void dapl_ep_post_event(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* The state is DISCONNECTED: flushes, drops the connection, tells `number` (0: nothing) as soon as
 * what must come before it has been dequeued. */
void dapl_ep_terminate(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* Drops the connection: later upcalls for it are ignored. */
void dapl_ep_drop_conn(struct dapl_ep *ep);
/* From now on the dequeuing side calls the hook `completed` after each completion. A dequeue that
 * looked at the flag before has given its record back once its EVD's lock was free. */
void dapl_conn_defer(struct dapl_ep *ep);
/* Delivers a deferred event if it need not wait any more. */
void dapl_conn_deliver(struct dapl_ep *ep);
/* Delivers a deferred terminal event now, since the completions before it are about to vanish. */
void dapl_ep_deliver_deferred(struct dapl_ep *ep);

#endif
