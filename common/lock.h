/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h - the two kinds of lock, and a condition variable. lock_rank.h lists all locks in their
 * order. doc/design/locking.md says which kind is used where.
 *
 * dapl_spin: held for a few dozen instructions, never over a system call or a callback. A waiter
 * spins, and yields now and then in case the holder was preempted. Exception: the lock of an EVD is
 * held over the device's poll. The locks of queues, which are held over posts, are of a kind of their
 * own (post_lock.h).
 *
 * dapl_mutex: a waiter spins for a moment, yields a few times, and then sleeps on a futex. Taking and
 * releasing a free mutex is one atomic exchange each. */
#ifndef COMMON_LOCK_H
#define COMMON_LOCK_H
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/compiler.h"
#include "common/lock_check.h"

static inline void dapl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* --- the rank of a lock; builds without DAPL_LOCK_CHECK have none ------------------------------- */

#ifdef DAPL_LOCK_CHECK
#define LOCK_RANK_FIELD uint8_t rank;	/* enum lock_rank */
#define LOCK_RANK_INIT(r) .rank = (r)
/* Atomic: a post or a dequeue with a stale handle may read it while the object is made anew. */
#define lock_rank_set(lock, r) __atomic_store_n(&(lock)->rank, r, __ATOMIC_RELAXED)
#define lock_rank(lock) __atomic_load_n(&(lock)->rank, __ATOMIC_RELAXED)
#else
#define LOCK_RANK_FIELD
#define LOCK_RANK_INIT(r)
#define lock_rank_set(lock, r) ((void)(lock), (void)(r))
#define lock_rank(lock) RANK_NONE
#endif

/* --- spin lock --------------------------------------------------------------------------------- */

/* All zeroes but the rank is a free lock. */
struct dapl_spin {
	uint8_t held;
	LOCK_RANK_FIELD
};
#define DAPL_SPIN_INIT(r) { .held = 0, LOCK_RANK_INIT(r) }
#define DAPL_SPIN_HELD(r) { .held = 1, LOCK_RANK_INIT(r) }

/* Sets the rank of a lock that is zeroed, or of one in use whose object is made anew. */
static inline void dapl_spin_init(struct dapl_spin *lock, enum lock_rank rank)
{
	lock_rank_set(lock, rank);
}

/* Out of line: the callers are hot, this is not. */
static COLD __attribute__((unused)) void dapl_spin_wait(struct dapl_spin *lock)
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

static inline void dapl_spin_take(struct dapl_spin *lock, const char *name, const char *where)
{
	lock_check_order(lock, lock_rank(lock), name, where);
	if (unlikely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		dapl_spin_wait(lock);
	lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
}

static inline bool dapl_spin_take_free(struct dapl_spin *lock, const char *name, const char *where)
{
	bool taken = likely(!__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE));

	if (taken)
		lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
	return taken;
}

static inline void dapl_spin_release(struct dapl_spin *lock, const char *name, const char *where)
{
	lock_check_release(lock, lock_rank(lock), name, where);
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	(void)name, (void)where;
}

#define dapl_spin_lock(lock) dapl_spin_take(lock, #lock, __func__)
/* Returns false if the lock is held. */
#define dapl_spin_try(lock) dapl_spin_take_free(lock, #lock, __func__)
#define dapl_spin_unlock(lock) dapl_spin_release(lock, #lock, __func__)

/* --- sleeping lock ------------------------------------------------------------------------------- */

enum { MUTEX_FREE, MUTEX_HELD, MUTEX_AWAITED };	/* awaited: held, and threads may sleep on it */

/* All zeroes but the rank is a free lock. There is nothing to destroy. */
struct dapl_mutex {
	uint32_t state;
	LOCK_RANK_FIELD
};
#define DAPL_MUTEX_INIT(r) { .state = MUTEX_FREE, LOCK_RANK_INIT(r) }

static inline void dapl_mutex_init(struct dapl_mutex *mutex, enum lock_rank rank)
{
	mutex->state = MUTEX_FREE;
	lock_rank_set(mutex, rank);
}

/* `found` is the state that the caller's exchange has overwritten with MUTEX_HELD. */
void dapl_mutex_wait(struct dapl_mutex *mutex, uint32_t found);
void dapl_mutex_wake(struct dapl_mutex *mutex);

/* An exchange that finds MUTEX_AWAITED hides for a moment that threads sleep. The caller then waits
 * too, which marks the mutex as awaited again before it sleeps or takes the mutex. */
static inline void dapl_mutex_take(struct dapl_mutex *mutex, const char *name, const char *where)
{
	uint32_t found;

	lock_check_order(mutex, lock_rank(mutex), name, where);
	found = __atomic_exchange_n(&mutex->state, MUTEX_HELD, __ATOMIC_ACQUIRE);
	if (unlikely(found != MUTEX_FREE))
		dapl_mutex_wait(mutex, found);
	lock_check_taken(mutex, lock_rank(mutex), name, where);
	(void)name, (void)where;
}

static inline bool dapl_mutex_take_free(struct dapl_mutex *mutex, const char *name,
					const char *where)
{
	uint32_t free = MUTEX_FREE;
	bool taken = __atomic_load_n(&mutex->state, __ATOMIC_RELAXED) == MUTEX_FREE &&
		     __atomic_compare_exchange_n(&mutex->state, &free, MUTEX_HELD, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);

	if (taken)
		lock_check_taken(mutex, lock_rank(mutex), name, where);
	(void)name, (void)where;
	return taken;
}

static inline void dapl_mutex_release(struct dapl_mutex *mutex, const char *name, const char *where)
{
	lock_check_release(mutex, lock_rank(mutex), name, where);
	if (unlikely(__atomic_exchange_n(&mutex->state, MUTEX_FREE, __ATOMIC_RELEASE) ==
		     MUTEX_AWAITED))
		dapl_mutex_wake(mutex);
	(void)name, (void)where;
}

/* Takes one more mutex of the same rank. The caller excludes that two threads do so at a time. */
static inline void dapl_mutex_take_another(struct dapl_mutex *mutex, const char *name,
					   const char *where)
{
	uint32_t found;

	lock_check_another(mutex, lock_rank(mutex), name, where);
	found = __atomic_exchange_n(&mutex->state, MUTEX_HELD, __ATOMIC_ACQUIRE);
	if (found != MUTEX_FREE)
		dapl_mutex_wait(mutex, found);
	lock_check_another_taken(mutex, lock_rank(mutex), name, where);
	(void)name, (void)where;
}

#define dapl_mutex_lock(mutex) dapl_mutex_take(mutex, #mutex, __func__)
#define dapl_mutex_lock_another(mutex) dapl_mutex_take_another(mutex, #mutex, __func__)
/* Returns false if the mutex is held. */
#define dapl_mutex_try(mutex) dapl_mutex_take_free(mutex, #mutex, __func__)
#define dapl_mutex_unlock(mutex) dapl_mutex_release(mutex, #mutex, __func__)

/* --- condition variable --------------------------------------------------------------------------- */

/* All zeroes is a condition without waiters. Guarded by the mutex that its waiters hold. */
struct dapl_cond {
	uint32_t wakeups;	/* atomic */
	unsigned waiters;
};

/* Releases the mutex, sleeps until the next dapl_cond_broadcast(), and takes the mutex again. May
 * return without a broadcast: the caller checks its condition in a loop. */
void dapl_cond_wait(struct dapl_cond *cond, struct dapl_mutex *mutex);
/* The same, for `ns` nanoseconds at most. */
void dapl_cond_wait_for(struct dapl_cond *cond, struct dapl_mutex *mutex, uint64_t ns);
/* The caller holds the mutex. */
void dapl_cond_broadcast(struct dapl_cond *cond);

#endif
