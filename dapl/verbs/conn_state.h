/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_state.h - the states of a connection, and which state may follow which (conn_state.c). The caller
 * holds conn->lock. */
#ifndef HW_CONN_STATE_H
#define HW_CONN_STATE_H
#include "conn_types.h"

/* Changes conn->state; nothing else does once the connection is made. Returns false if the state may not
 * follow: then nothing has changed, and the trace names both states. */
bool hw_conn_set_state(struct dapl_conn *conn, enum conn_state next);
/* Traces the first state of a connection. */
void hw_conn_trace_new(struct dapl_conn *conn);
/* The step of the connection in this state, for the cause of a failure. */
enum dapl_conn_step hw_conn_step(const struct dapl_conn *conn);
/* No lock needed. */
bool hw_conn_may_follow(enum conn_state state, enum conn_state next);
const char *hw_conn_state_name(enum conn_state state);

#endif
