/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atomic.h - counters that are plain integers unless MPI runs with threads, and a lock. The types that
 * Open MPI has for them differ between its versions. */
#ifndef BTL_UDAPL_ATOMIC_H
#define BTL_UDAPL_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the sum. */
static inline int32_t udapl_add(volatile int32_t *n, int32_t delta)
{
	if (opal_using_threads())
		return __atomic_add_fetch(n, delta, __ATOMIC_SEQ_CST);
	*n = *n + delta;
	return *n;
}

/* True while a thread holds it. */
typedef volatile bool udapl_lock_t;

/* Returns false if another thread holds it. */
static inline bool udapl_trylock(udapl_lock_t *lock)
{
	return !__atomic_test_and_set(lock, __ATOMIC_ACQUIRE);
}

static inline void udapl_unlock(udapl_lock_t *lock)
{
	__atomic_clear(lock, __ATOMIC_RELEASE);
}

#endif
