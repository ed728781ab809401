/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress_lock.c - see progress_lock.h. */
#include "dapl/soft/obj/progress_lock.h"

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
