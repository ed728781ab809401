/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - copies of the messages of a device for a capturing program (core/base/tap.h). */
#ifndef HW_TAP_H
#define HW_TAP_H
#include <infiniband/verbs.h>
#include <stdbool.h>

struct dapl_device;
struct dapl_conn;

/* Begins or ends to record the messages that are posted or completed. No lock is held. */
void hw_tap(struct dapl_device *dev, bool on);
/* conn->lock held: the connection may have messages from now on, which a running capture records. The peer
 * of an accepted connection may send before the last message of the handshake has come. */
void hw_tap_connection(const struct dapl_conn *conn);
/* The device is about to be closed. No call is in it. */
void hw_tap_close(struct dapl_device *dev);

/* The function that polls CQs of a context when no capture runs. */
int (*hw_tap_poll_below(const struct ibv_context *verbs))(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#endif
