/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_notify.h - queues events, and notifies the waiter or the CNO (evd_notify.c). */
#ifndef DAPL_EVD_NOTIFY_H
#define DAPL_EVD_NOTIFY_H
#include "dapl/core/dapl.h"

/* Writes to the EVD's wake-up eventfd. */
void dapl_evd_signal(const struct dapl_evd *evd);

/* Called when an endpoint that completes to the EVD is established: notifies if a receive was held back. */
void dapl_evd_release(struct dapl_evd *evd);
/* Returns true if the ring has room for that many more events. */
bool dapl_evd_has_room(struct dapl_evd *evd, unsigned events);
/* Notifies the waiter or the CNO after an event was queued or a flag changed. No lock is held,
 * except perhaps ep->lock. */
void dapl_evd_notify(struct dapl_evd *evd);
/* Queues an event and notifies. Returns false if the EVD is full, without reporting an overflow. */
bool dapl_evd_offer(struct dapl_evd *evd, const DAT_EVENT *event);
/* Queues an event, whose evd_handle it fills in, and notifies the waiter or the CNO. If the EVD is full,
 * the event is lost, the overflow is reported to the IA's asynchronous EVD, and the function returns
 * false. */
bool dapl_evd_post(struct dapl_evd *evd, const DAT_EVENT *event);
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event);

#endif
