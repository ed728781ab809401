/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.h - opens and closes connection management of a device; the operations on a connection that
 * are independent of its side. */
#ifndef SOFT_CM_CM_H
#define SOFT_CM_CM_H

struct dapl_conn;
struct dapl_device;

int soft_cm_open(struct dapl_device *dev);
void soft_cm_close(struct dapl_device *dev);
int soft_cm_disconnect(struct dapl_conn *conn);
void soft_cm_release(struct dapl_conn *conn);

#endif
