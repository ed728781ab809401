/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - connections (conn.c). The caller holds ep->lock, unless it is said
 * that the call takes it. */
#ifndef DAPL_CONN_H
#define DAPL_CONN_H
#include "dapl/core/dapl.h"

/* Delivers a deferred terminal event now, since the completions before it are about to vanish. */
void dapl_ep_deliver_deferred(struct dapl_ep *ep);
/* The parameters that connect and accept share. */
void dapl_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
		      int len);
/* What an endpoint needs before it can be connected or accepted. */
DAT_RETURN dapl_ep_ready(struct dapl_ep *ep);

/* The connection is broken, because of this code unless the device knows better: a failed
 * completion was dequeued, an asynchronous event came. Takes ep->lock. */
void dapl_ep_broken(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		    const char *text);
/* A receive succeeded before the connection was told to be up. Takes ep->lock. True when
 * ESTABLISHED is on its EVD now. */
bool dapl_ep_comm_established(struct dapl_ep *ep);
/* The last outstanding request was dequeued and something waits for that. */
void dapl_ep_drained(struct dapl_ep *ep);
/* Drops the connection: later upcalls for it are ignored. ep->lock held. */
void dapl_ep_drop_conn(struct dapl_ep *ep);
/* ep->lock held, the state is DISCONNECTED: flushes, drops the connection, tells `number`
 * (0: nothing) as soon as what must come before it has been dequeued. */
void dapl_ep_terminate(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* ep->lock held: stops a connect timeout or a drain. */
void dapl_ep_disarm(struct dapl_ep *ep);
/* ep->lock held: an event for the connect EVD, with the private data in ep->pdata. */
void dapl_ep_tell(struct dapl_ep *ep, DAT_EVENT_NUMBER number);
/* What dat_ep_connect, dup_connect and common_connect share. The port in `to` is that of
 * `qual`. */
DAT_RETURN dapl_ep_start_connect(struct dapl_ep *ep, const struct sockaddr *to,
				 DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, int len,
				 const void *data, DAT_QOS qos, DAT_CONNECT_FLAGS flags);

/* Fills dapl_conn_hooks, once, before any other call of this library. */
void dapl_conn_start(void);

#endif
