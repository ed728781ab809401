/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_lock.h - HOT: the lock of a queue, held over a device's post. On hardware a post is a store to a doorbell: a
 * waiter spins, and yields now and then. The post of other devices takes sleeping locks and makes system calls:
 * there a waiter that has spun for a while sleeps on a futex (may_sleep).
 *
 * An uncontended lock and unlock have one atomic instruction. The release looks at `sleepers` with no barrier between
 * its store and that load, so it may miss a thread that is about to sleep. That thread therefore makes all threads
 * of the process execute a barrier (membarrier) after it has raised `sleepers` and before it looks at the lock for
 * the last time: a release that missed it is visible then. lock_rank.h has the order of locks. */
#ifndef COMMON_POST_LOCK_H
#define COMMON_POST_LOCK_H
#include "common/lock.h"

/* All zeroes but the rank is a free lock whose waiters spin. */
struct dapl_post_lock {
	uint32_t held;		/* atomic: 1 or 0 */
	uint32_t sleepers;	/* atomic: threads that sleep for it, or are about to */
	bool may_sleep;		/* atomic: waiters sleep after a while */
	LOCK_RANK_FIELD
};
#define DAPL_POST_LOCK_INIT(r, sleep) { .may_sleep = (sleep), LOCK_RANK_INIT(r) }

/* Initializes a lock that is zeroed, or one in use whose object is made anew. */
static inline void dapl_post_lock_init(struct dapl_post_lock *lock, enum lock_rank rank, bool may_sleep)
{
	__atomic_store_n(&lock->may_sleep, may_sleep, __ATOMIC_RELAXED);
	lock_rank_set(lock, rank);
}

/* Waits for a lock that is held, and takes it. */
void dapl_post_lock_wait(struct dapl_post_lock *lock);
/* Wakes one thread that sleeps for a lock that was released. */
void dapl_post_lock_wake(struct dapl_post_lock *lock);

/* How often threads have waited for locks of posts since the library was loaded, and how many of these waits
 * slept. An uncontended lock counts nothing. */
struct dapl_post_waits {
	uint64_t waits, sleeps;
};
struct dapl_post_waits dapl_post_lock_waits(void);

/* The first bit is tested and set in one instruction. */
static inline bool dapl_post_set_held(struct dapl_post_lock *lock)
{
	return !(__atomic_fetch_or(&lock->held, 1, __ATOMIC_ACQUIRE) & 1);
}

static inline void dapl_post_take(struct dapl_post_lock *lock, const char *name, const char *where)
{
	lock_check_order(lock, lock_rank(lock), name, where);
	if (unlikely(!dapl_post_set_held(lock)))
		dapl_post_lock_wait(lock);
	lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
}

static inline bool dapl_post_take_free(struct dapl_post_lock *lock, const char *name, const char *where)
{
	bool taken = likely(dapl_post_set_held(lock));

	if (taken)
		lock_check_taken(lock, lock_rank(lock), name, where);
	(void)name, (void)where;
	return taken;
}

/* Returns true if threads sleep for the lock. */
static inline bool dapl_post_release(struct dapl_post_lock *lock, const char *name, const char *where)
{
	lock_check_release(lock, lock_rank(lock), name, where);
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);	/* the compiler keeps the order; see above for the processor */
	(void)name, (void)where;
	return unlikely(__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED));
}

static inline void dapl_post_release_and_wake(struct dapl_post_lock *lock, const char *name, const char *where)
{
	if (dapl_post_release(lock, name, where))
		dapl_post_lock_wake(lock);
}

#define dapl_post_lock(lock) dapl_post_take(lock, #lock, __func__)
/* Returns false if the lock is held. */
#define dapl_post_try(lock) dapl_post_take_free(lock, #lock, __func__)
#define dapl_post_unlock(lock) dapl_post_release_and_wake(lock, #lock, __func__)
/* Returns true if threads sleep for the lock: the caller then calls dapl_post_lock_wake(). */
#define dapl_post_unlock_only(lock) dapl_post_release(lock, #lock, __func__)

#endif
