/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - the life of a connection (conn.c). */
#ifndef HW_CONN_H
#define HW_CONN_H
#include "conn_types.h"

/* Makes a connection, and adds it to the list of its device. Returns NULL if there is no memory. */
struct dapl_conn *hw_conn_new(struct dapl_device *dev, bool ud, enum conn_state state);
/* Destroys the id, and frees the connection. Called on the service thread, or if there is no id yet. */
void hw_conn_destroy(struct dapl_conn *conn);
/* conn->lock held: takes over what core has given for the connection. */
void hw_conn_adopt(struct dapl_conn *conn, const struct dapl_conn_params *params);
/* conn->lock held: has the failure reported on the service thread. */
void hw_conn_fail_later(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text);
/* Queues the task that makes the upcall noted in conn->late, or ends a released connection. */
void hw_conn_queue_task(struct dapl_conn *conn);
enum dapl_conn_failure hw_conn_failure_of(int err);

/* Operations of dapl/core/device.h. They take conn->lock. */
int hw_conn_disconnect(struct dapl_conn *conn);
void hw_conn_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);
void hw_conn_release(struct dapl_conn *conn);

#endif
