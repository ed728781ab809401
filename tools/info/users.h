/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* users.h - which programs use a device, and how: endpoints from their control sockets, joined by QP number
 * with the QPs that the kernel reports; and the error counters of devices and ports. */
#ifndef TOOLS_INFO_USERS_H
#define TOOLS_INFO_USERS_H
#include <jansson.h>

/* Adds to each device of devices.h:
 *   "users": "pid", "program", and the members of owner.h; "ia" if the program uses these libraries; of an endpoint
 *   "object", "type", "state", "local", "remote", "carrier", "bytes_sent", "bytes_received", "bytes_read"; "qp" of an
 *   endpoint, or of a QP of the kernel without one
 * to each RDMA device "objects": "pid", "program", the members of owner.h, and numbers of objects in the kernel,
 *   "contexts", "pds", "mrs", "cqs", "qps"
 * and to each RDMA device and each of its ports "errors": counters of the kernel by name. */
void users_add(json_t *devices);
/* Prints the users and errors of a device. `before` is the same device as it was some time ago, for the
 * changes, or NULL. On a screen that is renewed the users with most traffic come first, and each table has at most
 * `rows` rows. */
void users_print(const json_t *device, const json_t *before, int rows);

#endif
