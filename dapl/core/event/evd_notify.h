/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_notify.h - wake-ups and the completion channel of an EVD (evd_notify.c). */
#ifndef DAPL_EVD_NOTIFY_H
#define DAPL_EVD_NOTIFY_H
#include "dapl/core/dapl.h"

/* Writes to the EVD's wake-up eventfd. */
void dapl_evd_signal(const struct dapl_evd *evd);
/* evd->lock held. Takes the CQ's events from the channel; *got: there were some. Returns 0, or
 * the errno for which the channel cannot be read. */
int dapl_evd_take_cq_events(struct dapl_evd *evd, bool *got);
/* The channel cannot be read, for this errno: reports it once and wakes the waiter. No lock
 * held. */
void dapl_evd_lose_channel(struct dapl_evd *evd, int err);

/* Arms the CQ for the CNO, the service thread or a waiter; evd->lock held. */
void dapl_evd_arm(struct dapl_evd *evd);
/* An endpoint that completes to it is established: a receive that was held back may go. */
void dapl_evd_unhold(struct dapl_evd *evd);
/* Called when the channel is readable: takes the CQ's event and notifies the waiter or the CNO.
 * Returns false if the channel cannot be read; then it must no longer be watched. */
bool dapl_evd_cq_event(struct dapl_evd *evd);
/* True if there is room for that many more events. */
bool dapl_evd_has_room(struct dapl_evd *evd, unsigned events);
/* Takes all completions of a discard EVD. They make no events, but act on their endpoints. */
void dapl_evd_discard(struct dapl_evd *evd);
/* Notifies the waiter or the CNO after an event was queued or a flag changed. No lock is held,
 * except perhaps ep->lock. */
void dapl_evd_tell(struct dapl_evd *evd);
/* Queues an event and notifies, but a full EVD is no overflow: the caller handles the refusal. */
bool dapl_evd_offer(struct dapl_evd *evd, const DAT_EVENT *event);
/* Queues an event (evd_handle is filled in) and tells the waiter or the CNO. A full EVD
 * loses it and tells the IA's async EVD. */
bool dapl_evd_post(struct dapl_evd *evd, const DAT_EVENT *event);
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event);

#endif
