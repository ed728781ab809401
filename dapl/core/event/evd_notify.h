/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_notify.h - events are queued, and the waiter or the CNO is notified (evd_notify.c). */
#ifndef DAPL_EVD_NOTIFY_H
#define DAPL_EVD_NOTIFY_H
#include "dapl/core/dapl.h"

/* Writes to the EVD's wake-up eventfd. */
void dapl_evd_signal(const struct dapl_evd *evd);

/* An endpoint that completes to it is established: a receive that was held back may go. */
void dapl_evd_unhold(struct dapl_evd *evd);
/* True if there is room for that many more events. */
bool dapl_evd_has_room(struct dapl_evd *evd, unsigned events);
/* Notifies the waiter or the CNO after an event was queued or a flag changed. No lock is held,
 * except perhaps ep->lock. */
void dapl_evd_notify(struct dapl_evd *evd);
/* Queues an event and notifies, but a full EVD is no overflow: the caller handles the refusal. */
bool dapl_evd_offer(struct dapl_evd *evd, const DAT_EVENT *event);
/* Queues an event (evd_handle is filled in) and tells the waiter or the CNO. A full EVD
 * loses it and tells the IA's async EVD. */
bool dapl_evd_post(struct dapl_evd *evd, const DAT_EVENT *event);
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event);

#endif
