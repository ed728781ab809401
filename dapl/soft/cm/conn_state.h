/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_state.h - the states of a connection: their names, and which may follow which. */
#ifndef SOFT_CM_CONN_STATE_H
#define SOFT_CM_CONN_STATE_H
#include <stdbool.h>
#include "dapl/soft/obj/conn.h"

const char *cm_state_name(enum soft_conn_state state);
bool cm_may_follow(enum soft_conn_state from, enum soft_conn_state to);
/* The only writer of conn->state; traces the change. A change that the table does not have is a defect
 * of this library: it is reported, the state stays, and a build that checks locks aborts. Called with
 * the progress lock held, or before the connection is in a list. */
void cm_set_state(struct dapl_conn *conn, enum soft_conn_state state, const char *why);

#endif
