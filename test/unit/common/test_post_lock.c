/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_lock.c - the lock that is held over a post: where posts can sleep, its waiters do. Built with
 * DAPL_LOCK_CHECK in every build. */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include "common/post_lock.h"
#include "test/unit/unit.h"

enum { LIMIT_S = 60, THREADS = 4, TURNS = 20000 };

static struct dapl_post_lock spins = DAPL_POST_LOCK_INIT(RANK_SQ, false), sleeps = DAPL_POST_LOCK_INIT(RANK_SQ, true);
static struct dapl_post_lock *tried;
static unsigned count;

/* --- the kernel --- */

static bool has_membarrier = true, is_registered;	/* is_registered: by the program; membarrier wants it */
static unsigned sleepers, wakes;			/* atomic: threads in a futex; calls to wake one */

EXTEND(syscall)

static long answer_membarrier(int command)
{
	if (has_membarrier && command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
		is_registered = true;
	if (has_membarrier && is_registered)
		return __real_syscall(SYS_membarrier, command, 0, 0);
	errno = has_membarrier ? EPERM : ENOSYS;
	return -1;
}

long __wrap_syscall(long number, ...)
{
	struct timespec *timeout;
	va_list args;
	uint32_t *word;
	int op, value;
	long ret;

	va_start(args, number);
	if (number == SYS_membarrier) {
		op = va_arg(args, int);
		va_end(args);
		return answer_membarrier(op);
	}
	assert_int_equal(number, SYS_futex);
	word = va_arg(args, uint32_t *);
	op = va_arg(args, int);
	value = va_arg(args, int);
	timeout = va_arg(args, struct timespec *);
	va_end(args);
	__atomic_add_fetch(op == FUTEX_WAIT_PRIVATE ? &sleepers : &wakes, 1, __ATOMIC_SEQ_CST);
	ret = __real_syscall(SYS_futex, word, op, value, timeout, NULL, 0);
	if (op == FUTEX_WAIT_PRIVATE)
		__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	return ret;
}

static void start(bool membarrier)
{
	has_membarrier = membarrier;
	is_registered = false;
	count = wakes = 0;
}

static void until(bool (*what)(uint64_t than), uint64_t than)
{
	time_t end = time(NULL) + LIMIT_S;

	while (!what(than)) {
		assert_true(time(NULL) < end);
		usleep(1000);
	}
}

static bool thread_sleeps(uint64_t unused) { return __atomic_load_n(&sleepers, __ATOMIC_SEQ_CST); }
static bool more_waits(uint64_t than) { return dapl_post_lock_waits().waits > than; }

/* --- exclusion --- */

static void *count_with(void *arg)
{
	struct dapl_post_lock *lock = arg;

	for (int i = 0; i < TURNS; i++) {
		if (!(i % 2) || !dapl_post_try(lock))
			dapl_post_lock(lock);
		if (i % 64 == 0)
			sched_yield();
		count++;
		dapl_post_unlock(lock);
	}
	return NULL;
}

static void threads_count(struct dapl_post_lock *lock)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_with, lock), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count, THREADS * TURNS);
	assert_int_equal(lock->held, 0);
	assert_int_equal(lock->sleepers, 0);
}

UNIT_TEST(lock_whose_waiters_spin_excludes)
{
	start(true);
	threads_count(&spins);
	assert_int_equal(wakes, 0);
}

UNIT_TEST(lock_whose_waiters_sleep_excludes)
{
	start(true);
	threads_count(&sleeps);
}

UNIT_TEST(lock_whose_waiters_sleep_excludes_without_membarrier)
{
	start(false);
	threads_count(&sleeps);
}

/* --- waiting --- */

static void *take_once(void *unused)
{
	errno = 77;
	dapl_post_lock(tried);
	assert_int_equal(errno, 77);
	dapl_post_unlock(tried);
	return unused;
}

static pthread_t start_waiter(struct dapl_post_lock *lock)
{
	pthread_t waiter;

	tried = lock;
	assert_int_equal(pthread_create(&waiter, NULL, take_once, NULL), 0);
	return waiter;
}

UNIT_TEST(uncontended_lock_counts_no_wait)
{
	struct dapl_post_waits before = dapl_post_lock_waits(), after;

	start(true);
	dapl_post_lock(&sleeps);
	assert_false(dapl_post_try(&sleeps));
	assert_false(dapl_post_unlock_only(&sleeps));
	after = dapl_post_lock_waits();
	assert_int_equal(after.waits, before.waits);
	assert_int_equal(after.sleeps, before.sleeps);
	assert_int_equal(wakes, 0);
}

UNIT_TEST(waiter_for_a_post_that_can_sleep_sleeps_until_it_is_woken)
{
	struct dapl_post_waits before = dapl_post_lock_waits(), after;
	pthread_t waiter;

	start(true);
	dapl_post_lock(&sleeps);
	waiter = start_waiter(&sleeps);
	until(thread_sleeps, 0);
	assert_true(is_registered);
	assert_int_equal(sleeps.sleepers, 1);
	assert_true(dapl_post_unlock_only(&sleeps));
	dapl_post_lock_wake(&sleeps);
	pthread_join(waiter, NULL);
	after = dapl_post_lock_waits();
	assert_int_equal(after.waits, before.waits + 1);
	assert_int_equal(after.sleeps, before.sleeps + 1);
	assert_int_equal(sleeps.sleepers, 0);
}

UNIT_TEST(waiter_for_a_post_that_cannot_sleep_spins)
{
	struct dapl_post_waits before = dapl_post_lock_waits();
	pthread_t waiter;

	start(true);
	dapl_post_lock(&spins);
	waiter = start_waiter(&spins);
	until(more_waits, before.waits);
	for (int i = 0; i < 100; i++)
		sched_yield();
	assert_false(dapl_post_unlock_only(&spins));
	pthread_join(waiter, NULL);
	assert_int_equal(dapl_post_lock_waits().sleeps, before.sleeps);
}

/* Without membarrier a release may not see that a thread sleeps. */
UNIT_TEST(sleeper_without_membarrier_finds_a_release_without_a_wake)
{
	pthread_t waiter;

	start(false);
	dapl_post_lock(&sleeps);
	waiter = start_waiter(&sleeps);
	until(thread_sleeps, 0);
	dapl_post_unlock_only(&sleeps);
	pthread_join(waiter, NULL);
	assert_int_equal(wakes, 0);
	assert_int_equal(sleeps.held, 0);
}

UNIT_MAIN(NULL, NULL)
