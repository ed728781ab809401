/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.c - the slow paths of mutexes and condition variables: a thread that waits sleeps on a futex. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common/lock.h"

/* How often a waiting thread tries to take a mutex, and yields in between, before it sleeps. Locks are held
 * over short system calls, so most waits end within the time that sleeping and waking take. */
enum {
	MUTEX_SPINS = 64,	/* tries between two yields: about as long as a system call */
	MUTEX_YIELDS = 16,
};

/* Returns at once if *word is not `value`, also after a signal, and when `timeout` is over. NULL: no limit. */
static void futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void futex_wake(uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static bool take(struct dapl_mutex *mutex, uint32_t as)
{
	uint32_t free = MUTEX_FREE;

	return __atomic_load_n(&mutex->state, __ATOMIC_RELAXED) == MUTEX_FREE &&
	       __atomic_compare_exchange_n(&mutex->state, &free, as, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static bool take_awaited(struct dapl_mutex *mutex)
{
	return __atomic_exchange_n(&mutex->state, MUTEX_AWAITED, __ATOMIC_ACQUIRE) == MUTEX_FREE;
}

/* `found` is what the caller's exchange has overwritten with MUTEX_HELD. If it was MUTEX_AWAITED, threads
 * may sleep, so the mutex is taken as awaited: its release wakes one of them. A thread that has slept
 * cannot tell whether others still sleep, so it takes the mutex as awaited, too. */
void dapl_mutex_wait(struct dapl_mutex *mutex, uint32_t found)
{
	int err = errno;

	for (int i = 1; i <= MUTEX_SPINS * MUTEX_YIELDS; i++) {
		if (take(mutex, found))
			return;
		if (i % MUTEX_SPINS)
			dapl_pause();
		else
			sched_yield();
	}
	while (!take_awaited(mutex))
		futex_wait(&mutex->state, MUTEX_AWAITED, NULL);
	errno = err;
}

void dapl_mutex_wake(struct dapl_mutex *mutex)
{
	int err = errno;

	futex_wake(&mutex->state, 1);
	errno = err;
}

static void cond_wait(struct dapl_cond *cond, struct dapl_mutex *mutex, const struct timespec *timeout)
{
	uint32_t before = __atomic_load_n(&cond->wakeups, __ATOMIC_RELAXED);
	int err = errno;

	assert_held(mutex);
	cond->waiters++;
	dapl_mutex_unlock(mutex);
	futex_wait(&cond->wakeups, before, timeout);
	dapl_mutex_lock(mutex);
	cond->waiters--;
	errno = err;
}

void dapl_cond_wait(struct dapl_cond *cond, struct dapl_mutex *mutex)
{
	cond_wait(cond, mutex, NULL);
}

void dapl_cond_wait_for(struct dapl_cond *cond, struct dapl_mutex *mutex, uint64_t ns)
{
	struct timespec timeout = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	cond_wait(cond, mutex, &timeout);
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
