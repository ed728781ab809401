/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - handles reports about an endpoint's connection (conn.c). */
#ifndef DAPL_CONN_H
#define DAPL_CONN_H
#include "dapl/core/dapl.h"

/* The connection is broken: a failed completion was dequeued, or an asynchronous event came. The code is
 * the cause unless the device has another one. Takes ep->lock. */
void dapl_ep_broken(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		    const char *text);
/* A receive succeeded before the device reported the connection. Takes ep->lock. Returns true if
 * ESTABLISHED was posted. */
bool dapl_ep_comm_established(struct dapl_ep *ep);
/* Fills dapl_conn_hooks, once, before any other call of this library. */
void dapl_ep_conn_start(void);

#endif
