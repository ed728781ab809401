/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - the events of connections (connect.c). */
#ifndef BTL_UDAPL_CONNECT_H
#define BTL_UDAPL_CONNECT_H

#include "udapl.h"

/* Handles an event of module->conn_evd. */
void udapl_conn_event(mca_btl_udapl_module_t *m, const DAT_EVENT *event);
/* Resolves disconnects, starts due retries, frees closed connections, and reports failures. Called
 * by one thread at a time, after all completions were dequeued. */
void udapl_conn_housekeep(mca_btl_udapl_module_t *m);

#endif
