/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_lock.c - how a thread waits for a lock that is held over a post (post_lock.h): it spins and yields, and then,
 * where a post can sleep, it sleeps on a futex. */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common/post_lock.h"

enum {
	SPINS = 64,		/* tries between two yields: about as long as a system call */
	YIELDS = 16,		/* before a waiter sleeps */
	BLIND_SLEEP_MS = 1,	/* a sleep without membarrier: a release may not wake the thread */
};

static uint64_t waits, sleeps;	/* atomic */

struct dapl_post_waits dapl_post_lock_waits(void)
{
	return (struct dapl_post_waits){ __atomic_load_n(&waits, __ATOMIC_RELAXED),
		__atomic_load_n(&sleeps, __ATOMIC_RELAXED) };
}

/* Makes all threads of the process execute a barrier. Returns false if the kernel does not offer it, as before Linux
 * 4.14 and in some sandboxes. The first call of a process registers it. */
static bool fence_threads(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return true;
	return errno == EPERM && !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
	       !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static COLD void sleep_for(struct dapl_post_lock *lock)
{
	const struct timespec blind = { .tv_nsec = BLIND_SLEEP_MS * 1000000 };
	bool is_woken;

	__atomic_add_fetch(&sleeps, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
	is_woken = fence_threads();
	while (!dapl_post_set_held(lock))
		syscall(SYS_futex, &lock->held, FUTEX_WAIT_PRIVATE, 1, is_woken ? NULL : &blind, NULL, 0);
	__atomic_sub_fetch(&lock->sleepers, 1, __ATOMIC_RELAXED);
}

void dapl_post_lock_wait(struct dapl_post_lock *lock)
{
	int err = errno;

	__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
	for (unsigned i = 1; __atomic_load_n(&lock->held, __ATOMIC_RELAXED) || !dapl_post_set_held(lock); i++) {
		if (i >= SPINS * YIELDS && __atomic_load_n(&lock->may_sleep, __ATOMIC_RELAXED)) {
			sleep_for(lock);
			break;
		}
		if (i % SPINS)
			dapl_pause();
		else
			sched_yield();
	}
	errno = err;
}

void dapl_post_lock_wake(struct dapl_post_lock *lock)
{
	int err = errno;

	syscall(SYS_futex, &lock->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = err;
}
