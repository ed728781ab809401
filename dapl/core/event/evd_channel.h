/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_channel.h - the completion channel of an EVD (evd_channel.c). */
#ifndef DAPL_EVD_CHANNEL_H
#define DAPL_EVD_CHANNEL_H
#include "dapl/core/dapl.h"

/* True if the channel is lost: completions still arrive in the CQ, but without notification. */
static inline bool dapl_evd_channel_lost(const struct dapl_evd *evd)
{
	return __atomic_load_n(&evd->channel_lost, __ATOMIC_ACQUIRE);
}

/* The service thread begins or stops taking the CQ's events; a second begin does nothing. The caller holds
 * evd->change, or the EVD is not published yet. dapl_evd_watch returns 0 or an errno. */
int dapl_evd_watch(struct dapl_evd *evd);
void dapl_evd_unwatch(struct dapl_evd *evd);
/* Takes the CQ's events from the channel. *got is true if there were any. Returns 0, or the errno with
 * which the channel cannot be read. Called with evd->lock held. */
int dapl_evd_take_cq_events(struct dapl_evd *evd, bool *got);
/* Called with no lock held when reading the channel failed with this errno. Reports it once, and wakes the
 * waiter. */
void dapl_evd_lose_channel(struct dapl_evd *evd, int err);
/* Arms the CQ for the CNO, the service thread or a waiter. Called with evd->lock held. */
void dapl_evd_arm(struct dapl_evd *evd);
/* Called when the channel is readable: takes the CQ's event and notifies the waiter or the CNO. `polling` is a CNO
 * whose waiters poll, so they may have told of the completions before; otherwise NULL.
 * Returns false if the channel cannot be read; then it must no longer be watched. */
bool dapl_evd_cq_event(struct dapl_evd *evd, const struct dapl_cno *polling);
/* Polls the CQ, after arming if `arm` is true. Returns true if completions came that were not told of by this function
 * before, and are worth a trigger. Some of them were polled by a dequeue that left others. Not for EVDs of solicited
 * events, for which it returns false: only the CQ's event tells that one came. */
bool dapl_evd_has_news(struct dapl_evd *evd, bool arm);
/* Takes all completions of a discard EVD. They make no events, but update their endpoints. */
void dapl_evd_discard(struct dapl_evd *evd);

#endif
