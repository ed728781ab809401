/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress_lock.c - see progress_lock.h. */
#include "dapl/soft/obj/progress_lock.h"
#include "common/lock.h"
#include "dapl/soft/obj/device.h"

void soft_progress_lock(struct dapl_device *dev)
{
	__atomic_add_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
	dapl_mutex_lock(&dev->progress_lock);
	__atomic_sub_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
}

void soft_progress_lock_another(struct dapl_device *dev)
{
	__atomic_add_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
	dapl_mutex_lock_another(&dev->progress_lock);
	__atomic_sub_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
}

void soft_progress_unlock(struct dapl_device *dev)
{
	dapl_mutex_unlock(&dev->progress_lock);
}

/* Polling threads give way to threads that wait for the lock. */
bool soft_progress_try(struct dapl_device *dev)
{
	return !__atomic_load_n(&dev->progress_waiters, __ATOMIC_RELAXED) &&
	       dapl_mutex_try(&dev->progress_lock);
}
