/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wakeup.h - suppresses epoll wake-ups for the socket that a polling thread reads at every poll. */
#ifndef SOFT_WAKEUP_H
#define SOFT_WAKEUP_H

struct dapl_device;

/* Suppresses wake-ups for the socket of dev->progress.busy_conn, if threads poll. Progress lock held. */
void soft_wakeup_begin(struct dapl_device *dev);
/* Ends the suppression, if there is one. Progress lock held. */
void soft_wakeup_end(struct dapl_device *dev);
/* Ends the suppression, if there is one. dev->progress.owner_lock held. */
void soft_wakeup_end_locked(struct dapl_device *dev);

#endif
