/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h - the locks of endpoints and modules: Open MPI's mutexes, which cost nothing unless MPI runs with threads,
 * under the checks of the libraries' locks: their order is that of common/lock_rank.h, and functions that need one
 * assert that it is held (common/lock_check.h). The checks do not depend on threads. */
#ifndef BTL_UDAPL_LOCK_H
#define BTL_UDAPL_LOCK_H

#include "common/lock.h"	/* before Open MPI's headers, which define again what config.h defines */
#include "opal_config.h"
#include "opal/class/opal_free_list.h"	/* the mutex, whose header differs between versions of Open MPI */

struct udapl_mutex {
	opal_mutex_t mutex;
	LOCK_RANK_FIELD
};

static inline void udapl_mutex_init(struct udapl_mutex *lock, enum lock_rank rank)
{
	OBJ_CONSTRUCT(&lock->mutex, opal_mutex_t);
	lock_rank_set(lock, rank);
}

static inline void udapl_mutex_fini(struct udapl_mutex *lock)
{
	OBJ_DESTRUCT(&lock->mutex);
}

static inline void udapl_mutex_take(struct udapl_mutex *lock, const char *name, const char *where)
{
	lock_check_order(lock, lock_rank(lock), name, where);
	OPAL_THREAD_LOCK(&lock->mutex);
	lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
}

static inline void udapl_mutex_release(struct udapl_mutex *lock, const char *name, const char *where)
{
	lock_check_release(lock, lock_rank(lock), name, where);
	OPAL_THREAD_UNLOCK(&lock->mutex);
	(void)name, (void)where;
}

#define udapl_mutex_lock(lock) udapl_mutex_take(lock, #lock, __func__)
#define udapl_mutex_unlock(lock) udapl_mutex_release(lock, #lock, __func__)

#endif
