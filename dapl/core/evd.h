/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.h - what evd.c offers to the other object files; the table entries are in
 * provider.h. */
#ifndef DAPL_EVD_H
#define DAPL_EVD_H
#include "dapl/core/dapl.h"

/* Looks at the queue before a waiter sleeps: about a microsecond on real hardware. */
enum { EVD_SPINS = 32 };

/* A consumer's thread is; it holds no lock. Returns what it has to watch for the device meanwhile,
 * where it sleeps for completions; or -1. */
static inline int dapl_about_to_sleep(struct dapl_ia *ia, bool for_data)
{
	return dapl_device_ops.sleep ? dapl_device_ops.sleep(ia->dev, for_data) : -1;
}

/* It's readable. Leaves -1 where it's not to be watched any more. */
static inline void dapl_works_asleep(struct dapl_ia *ia, int *watched)
{
	if (!dapl_device_ops.work(ia->dev))
		*watched = -1;
}

static inline void dapl_sleeps_no_more(struct dapl_ia *ia, int watched)
{
	if (watched >= 0)
		dapl_device_ops.awake(ia->dev);
}

/* Its channel is lost: completions come, but nobody is told. */
static inline bool dapl_evd_deaf(const struct dapl_evd *evd)
{
	return __atomic_load_n(&evd->deaf, __ATOMIC_ACQUIRE);
}

/* The service thread takes the CQ's events from now on (idempotent); or stops that. The
 * caller holds evd->mutex, or nobody else knows the EVD. errno. */
int dapl_evd_watch(struct dapl_evd *evd);
void dapl_evd_unwatch(struct dapl_evd *evd);
/* From now on every completion is looked at when it's polled. */
void dapl_evd_inspect(struct dapl_evd *evd);

/* An endpoint, perhaps of another open of the adapter, posts connection events to it: its
 * memory stays until dropped, even if its IA closes. */
void dapl_evd_hold(struct dapl_evd *evd);
void dapl_evd_drop(struct dapl_evd *evd);

#endif
