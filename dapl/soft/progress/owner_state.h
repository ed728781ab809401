/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner_state.h - the progress owner of a device as a state: its names, which owner may follow which, and
 * what holds for each (owner_state.c). owner.h decides when it changes. */
#ifndef SOFT_OWNER_STATE_H
#define SOFT_OWNER_STATE_H
#include <stdbool.h>
#include "dapl/soft/obj/rnic.h"

const char *soft_owner_name(enum progress_owner owner);
bool soft_owner_may_follow(enum progress_owner from, enum progress_owner to);
/* The only writer of dev->progress.owner; traces the change. A change that the table does not have is a defect of
 * this library: it is reported, the owner stays, and a build that checks locks aborts. dev->progress.owner_lock
 * held. */
void soft_owner_set(struct dapl_device *dev, enum progress_owner owner, const char *why);

/* The answer may be outdated unless dev->progress.owner_lock is held. */
static inline bool soft_owner_is(const struct dapl_device *dev, enum progress_owner owner)
{
	return __atomic_load_n(&dev->progress.owner, __ATOMIC_RELAXED) == owner;
}

/* Returns true if polling threads drive progress. */
static inline bool soft_owner_polls(const struct dapl_device *dev)
{
	return soft_owner_is(dev, OWNER_POLLING_THREADS);
}

#endif
