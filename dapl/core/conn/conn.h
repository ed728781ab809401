/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - reports about an endpoint's connection (conn.c). */
#ifndef DAPL_CONN_H
#define DAPL_CONN_H
#include "dapl/core/dapl.h"

/* The connection is broken, because of this code unless the device knows better: a failed
 * completion was dequeued, an asynchronous event came. Takes ep->lock. */
void dapl_ep_broken(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		    const char *text);
/* A receive succeeded before the connection was told to be up. Takes ep->lock. True when
 * ESTABLISHED is on its EVD now. */
bool dapl_ep_comm_established(struct dapl_ep *ep);
/* Fills dapl_conn_hooks, once, before any other call of this library. */
void dapl_conn_start(void);

#endif
