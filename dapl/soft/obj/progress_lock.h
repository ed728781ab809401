/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress_lock.h - the lock under which progress is made, and connections are managed. */
#ifndef SOFT_OBJ_PROGRESS_LOCK_H
#define SOFT_OBJ_PROGRESS_LOCK_H
#include <stdbool.h>
#include "common/lock.h"
#include "dapl/soft/obj/device.h"

void soft_progress_lock(struct dapl_device *dev);
/* The same for a thread that may hold the progress locks of other devices: before a fork all are taken. */
void soft_progress_lock_another(struct dapl_device *dev);

/* Each poll calls the functions from here on, so they are inline. */

static inline void soft_progress_unlock(struct dapl_device *dev)
{
	dapl_mutex_unlock(&dev->progress_lock);
}

/* Takes the progress lock, unless another thread holds it or waits for it: polling threads give way
 * to waiting ones. */
static inline bool soft_progress_try(struct dapl_device *dev)
{
	return !__atomic_load_n(&dev->progress_waiters, __ATOMIC_RELAXED) &&
	       dapl_mutex_try(&dev->progress_lock);
}

#endif
