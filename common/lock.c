/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.c - what happens to a thread that finds a mutex held, and to one that waits for a condition:
 * it sleeps on a futex. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/lock.h"

enum { MUTEX_SPINS = 64 };	/* looks before a thread sleeps; about as long as a futex call */

/* Returns at once if *word is not `value`, and also after a signal. */
static void futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static bool take_awaited(struct dapl_mutex *mutex)
{
	return __atomic_exchange_n(&mutex->state, MUTEX_AWAITED, __ATOMIC_ACQUIRE) == MUTEX_FREE;
}

/* The caller's exchange may have overwritten MUTEX_AWAITED. So the mutex is taken as awaited here:
 * its release wakes a thread, perhaps without need. */
void dapl_mutex_wait(struct dapl_mutex *mutex)
{
	int err = errno;

	for (int i = 0; i < MUTEX_SPINS; i++) {
		if (__atomic_load_n(&mutex->state, __ATOMIC_RELAXED) == MUTEX_FREE)
			break;
		dapl_pause();
	}
	while (!take_awaited(mutex))
		futex_wait(&mutex->state, MUTEX_AWAITED);
	errno = err;
}

void dapl_mutex_wake(struct dapl_mutex *mutex)
{
	int err = errno;

	futex_wake(&mutex->state, 1);
	errno = err;
}

void dapl_cond_wait(struct dapl_cond *cond, struct dapl_mutex *mutex)
{
	uint32_t before = __atomic_load_n(&cond->wakeups, __ATOMIC_RELAXED);
	int err = errno;

	assert_held(mutex);
	cond->waiters++;
	dapl_mutex_unlock(mutex);
	futex_wait(&cond->wakeups, before);
	dapl_mutex_lock(mutex);
	cond->waiters--;
	errno = err;
}

void dapl_cond_broadcast(struct dapl_cond *cond)
{
	int err = errno;

	if (!cond->waiters)
		return;
	__atomic_add_fetch(&cond->wakeups, 1, __ATOMIC_RELAXED);
	futex_wake(&cond->wakeups, INT_MAX);
	errno = err;
}
