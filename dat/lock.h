/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h - the mutexes of the registry, and its condition: those of libpthread, whose order is checked as that of the
 * providers' locks is (common/lock_rank.h, common/lock_check.h). The registry waits with a timeout, and has no path
 * where a mutex must be cheap. */
#ifndef DAT_LOCK_H
#define DAT_LOCK_H
#include <pthread.h>
#include "common/lock.h"

struct dat_mutex {
	pthread_mutex_t mutex;
	LOCK_RANK_FIELD
};
#define DAT_MUTEX_INIT(r) { .mutex = PTHREAD_MUTEX_INITIALIZER, LOCK_RANK_INIT(r) }

static inline void dat_mutex_take(struct dat_mutex *lock, const char *name, const char *where)
{
	lock_check_order(lock, lock_rank(lock), name, where);
	pthread_mutex_lock(&lock->mutex);
	lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
}

static inline bool dat_mutex_take_free(struct dat_mutex *lock, const char *name, const char *where)
{
	if (pthread_mutex_trylock(&lock->mutex))
		return false;
	lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
	return true;
}

static inline void dat_mutex_release(struct dat_mutex *lock, const char *name, const char *where)
{
	lock_check_release(lock, lock_rank(lock), name, where);
	pthread_mutex_unlock(&lock->mutex);
	(void)name, (void)where;
}

#define dat_mutex_lock(lock) dat_mutex_take(lock, #lock, __func__)
/* Returns false if the mutex is held. */
#define dat_mutex_try(lock) dat_mutex_take_free(lock, #lock, __func__)
#define dat_mutex_unlock(lock) dat_mutex_release(lock, #lock, __func__)

/* Called with the lock held. Returns 0, or ETIMEDOUT; without `until` it waits for as long as it takes. The lock stays
 * on the thread's list meanwhile: the thread takes no other. */
static inline int dat_mutex_wait(struct dat_mutex *lock, pthread_cond_t *cond, const struct timespec *until)
{
	assert_held(lock);
	return until ? pthread_cond_timedwait(cond, &lock->mutex, until) : pthread_cond_wait(cond, &lock->mutex);
}

#endif
