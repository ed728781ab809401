/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - the connection object: life and upcalls. obj/conn.h has its fields. */
#ifndef SOFT_CM_CONN_H
#define SOFT_CM_CONN_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/core/device.h"
#include "dapl/soft/obj/conn.h"

struct soft_qp;

/* Operations of the device (core/device.h). */
void soft_cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);
const char *soft_cm_carrier(struct dapl_conn *conn);
/* What connection management does for the layers below it. */
extern const struct soft_conn_events cm_conn_events;

/* --- progress lock held ---------------------------------------------------------------------- */

/* Adds the socket to the cm epoll set, or changes its events. If that fails, the connection ends
 * soon. */
void cm_watch(struct dapl_conn *conn, uint32_t events);
void cm_unwatch(struct dapl_conn *conn);
/* The step of the handshake that had a deadline is done. */
void cm_leave_handshake(struct dapl_conn *conn);
/* Closes the socket to the peer process that shares memory, if it is open. */
void cm_end_attach(struct dapl_conn *conn);
/* Moves to CLOSED. The lock of the QP is held, too, if there is one. */
void cm_close_socket(struct dapl_conn *conn);
/* Sets conn->local, unless it is known. */
void cm_learn_address(struct dapl_conn *conn);

/* Returns NULL without memory. */
struct dapl_conn *cm_conn_new(struct dapl_device *dev);
/* For a connection that is in no list. */
void cm_conn_free(struct dapl_conn *conn);
/* Nothing but its task refers to the connection any more: closes it and has the task free it. */
void cm_conn_retire(struct dapl_conn *conn);
/* Attaches the QP. Returns 0 or EINVAL if the QP has a connection or is in a wrong state. */
int cm_attach_qp(struct dapl_conn *conn, const struct dapl_conn_params *params);
/* Detaches the QP from its connection, if any. */
void soft_cm_detach(struct soft_qp *qp);
/* The handshake failed. `err` 0: the text says why. */
void cm_fail(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text);
/* Ends an open stream in a disorderly way. */
void cm_end_stream(struct dapl_conn *conn, int err, const char *why);

#endif
