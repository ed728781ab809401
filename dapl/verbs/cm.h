/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.h - the channel of connection events of a device, and its listeners (cm.c). No lock is held. */
#ifndef HW_CM_H
#define HW_CM_H
#include "dapl/core/device.h"

/* Starts to handle events. Returns 0 or an errno. */
int hw_cm_start(struct dapl_device *dev);
/* Ends the handling of events, and destroys the connections that are left. Waits for the service thread, so
 * it is not called there. */
void hw_cm_stop(struct dapl_device *dev);
/* Service thread: the queue pair has received before the connection was established (IBV_EVENT_COMM_EST). */
void hw_cm_notify(struct dapl_device *dev, struct ibv_qp *qp);

/* Operations of dapl/core/device.h. `port` in host byte order; 0: a free one is chosen and stored. Returns an errno. */
int hw_cm_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port, bool ud,
		 int backlog, void *sp, struct dapl_listener **listener);
/* No upcall of the listener runs or comes when it returns. */
void hw_cm_unlisten(struct dapl_listener *listener);

#endif
