/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* half_open.h - bounds half-open connections: sockets that were accepted and have not sent a
 * whole MPA Request. They must not use up the descriptors of the process, which belong to the
 * application. All functions are called with the progress lock of conn->dev or dev held. */
#ifndef DAPL_SOFT_HALF_OPEN_H
#define DAPL_SOFT_HALF_OPEN_H
#include "dapl/soft/tunables.h"

struct dapl_conn;
struct dapl_device;

void soft_half_open_add(struct dapl_conn *conn);
void soft_half_open_remove(struct dapl_conn *conn);
/* `newest` was accepted and added. Returns the connection to close in exchange for it, or NULL. */
struct dapl_conn *soft_half_open_surplus(struct dapl_conn *newest);
/* Returns the connection to close so that its descriptor can be used for another, or NULL. */
struct dapl_conn *soft_half_open_oldest(struct dapl_device *dev);
/* Traces that `conn` is about to be closed in favour of another, and prints a line, one a minute at most. */
void soft_half_open_report(const struct dapl_conn *conn);
/* In a forked child, which must not use the parent's devices. */
void soft_half_open_fork_child(void);

#endif
