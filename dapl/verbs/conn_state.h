/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_state.h - the states of a connection (conn_state.c), in the table that says which may follow
 * which. conn->lock is held by the caller. */
#ifndef HW_CONN_STATE_H
#define HW_CONN_STATE_H
#include "conn_types.h"

/* The only writer of conn->state after its making. Returns false if the state may not follow: then
 * nothing has changed, and the trace names both. */
bool hw_conn_set_state(struct dapl_conn *conn, enum conn_state next);
/* Traces the first state of a connection. */
void hw_conn_trace_new(struct dapl_conn *conn);
/* The step that the state stands for, for the cause of a failure. */
enum dapl_conn_step hw_conn_step(const struct dapl_conn *conn);
/* No lock needed. */
bool hw_conn_may_follow(enum conn_state state, enum conn_state next);
const char *hw_conn_state_name(enum conn_state state);

#endif
