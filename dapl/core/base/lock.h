/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h - the short spin lock of the data path. Held for a few dozen instructions,
 * never over a system call other than a doorbell; where a holder was preempted the
 * waiter yields. Longer critical sections use a pthread mutex. */
#ifndef DAPL_LOCK_H
#define DAPL_LOCK_H
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/trace.h"	/* likely, unlikely */

struct dapl_spin {
	uint8_t held;
};

static inline void dapl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Out of line: the callers are hot, this is not. */
static __attribute__((noinline, cold, unused)) void dapl_spin_wait(struct dapl_spin *lock)
{
	for (unsigned i = 1;; i++) {
		if (!__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
			return;
		if (i % 128)
			dapl_pause();
		else
			sched_yield();
	}
}

static inline void dapl_spin_lock(struct dapl_spin *lock)
{
	if (unlikely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		dapl_spin_wait(lock);
}

/* Returns false if the lock is held. */
static inline bool dapl_spin_try(struct dapl_spin *lock)
{
	return likely(!__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE));
}

static inline void dapl_spin_unlock(struct dapl_spin *lock)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

#endif
