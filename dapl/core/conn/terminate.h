/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* terminate.h - the end of an endpoint's connection, and events on the connect EVD (terminate.c). Called
 * with ep->lock held. */
#ifndef DAPL_TERMINATE_H
#define DAPL_TERMINATE_H
#include "dapl/core/dapl.h"

/* Posts an event to the connect EVD, with the private data in ep->pdata. */
void dapl_ep_post_event(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* Called when the state has become DISCONNECTED: flushes, drops the connection, and posts the event
 * `number` (0: none) as soon as the completions before it were dequeued. */
void dapl_ep_terminate(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* Drops the connection: later upcalls for it are ignored. */
void dapl_ep_drop_conn(struct dapl_ep *ep);
/* From now on the dequeuing side calls the hook `completed` after each completion. Waits until dequeues
 * that did not see the flag have given their records back. */
void dapl_ep_defer_event(struct dapl_ep *ep);
/* Delivers a deferred event if it need not wait any longer. */
void dapl_ep_deliver_event(struct dapl_ep *ep);
/* Delivers a deferred terminal event now, because the completions before it are about to be discarded. */
void dapl_ep_deliver_deferred(struct dapl_ep *ep);

#endif
