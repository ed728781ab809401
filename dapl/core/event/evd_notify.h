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

#endif
