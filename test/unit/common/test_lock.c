/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lock.c - spin lock, sleeping lock and condition variable. Built with DAPL_LOCK_CHECK in every build. */
#include <sys/syscall.h>
#include "common/lock.h"
#include "test/unit/unit.h"

enum { LIMIT_S = 60, THREADS = 4, TURNS = 20000 };

static struct dapl_mutex outer = DAPL_MUTEX_INIT(RANK_EP);
static struct dapl_spin leaf = DAPL_SPIN_INIT(RANK_SQ);

static unsigned count;

static void *count_with_mutex(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		dapl_mutex_lock(&outer);
		count++;
		dapl_mutex_unlock(&outer);
	}
	return unused;
}

static void *count_with_spin(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		while (i % 2 && !dapl_spin_try(&leaf))
			sched_yield();
		if (!(i % 2))
			dapl_spin_lock(&leaf);
		count++;
		dapl_spin_unlock(&leaf);
	}
	return unused;
}

static void run_threads(void *(*body)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

UNIT_TEST(mutex_excludes)
{
	count = 0;
	run_threads(count_with_mutex);
	assert_int_equal(count, THREADS * TURNS);
}

UNIT_TEST(spin_lock_excludes)
{
	count = 0;
	run_threads(count_with_spin);
	assert_int_equal(count, THREADS * TURNS);
}

static int waiter_tid;		/* atomic */

static void *wait_for_outer(void *unused)
{
	__atomic_store_n(&waiter_tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	errno = 77;
	dapl_mutex_lock(&outer);
	assert_int_equal(errno, 77);
	dapl_mutex_unlock(&outer);
	return unused;
}

/* Returns whether the thread is in a futex call, by /proc. */
static bool sleeps_on_futex(int tid)
{
	char path[64], line[256] = "";
	long number = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	if (!(file = fopen(path, "r")))
		return false;
	if (fgets(line, sizeof line, file))
		sscanf(line, "%ld", &number);
	fclose(file);
	return number == SYS_futex;
}

UNIT_TEST(waiter_of_a_mutex_sleeps)
{
	time_t end = time(NULL) + LIMIT_S;
	pthread_t waiter;
	int tid;

	if (access("/proc/self/syscall", R_OK))
		skip();		/* a kernel without CONFIG_HAVE_ARCH_TRACEHOOK */
	dapl_mutex_lock(&outer);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_outer, NULL), 0);
	while (!(tid = __atomic_load_n(&waiter_tid, __ATOMIC_ACQUIRE)) || !sleeps_on_futex(tid)) {
		assert_true(time(NULL) < end);
		usleep(1000);
	}
	dapl_mutex_unlock(&outer);
	pthread_join(waiter, NULL);
}

static struct dapl_cond reached;
static int stage, waiting;

static void *wait_for_stage(void *unused)
{
	dapl_mutex_lock(&outer);
	waiting++;
	while (stage < 1)
		dapl_cond_wait(&reached, &outer);
	assert_held(&outer);
	waiting--;
	dapl_cond_broadcast(&reached);
	dapl_mutex_unlock(&outer);
	return unused;
}

UNIT_TEST(broadcast_wakes_all_waiters)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_stage, NULL), 0);
	dapl_mutex_lock(&outer);
	while (waiting < THREADS) {
		dapl_mutex_unlock(&outer);
		usleep(1000);
		dapl_mutex_lock(&outer);
	}
	stage = 1;
	dapl_cond_broadcast(&reached);
	while (waiting)
		dapl_cond_wait(&reached, &outer);
	dapl_mutex_unlock(&outer);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(reached.waiters, 0);
}

UNIT_TEST(wait_with_a_limit_ends)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	dapl_mutex_lock(&outer);
	errno = EXDEV;
	do {
		dapl_cond_wait_for(&reached, &outer, 2000000);
		clock_gettime(CLOCK_MONOTONIC, &after);
	} while ((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec < 2000000);
	assert_int_equal(errno, EXDEV);
	assert_held(&outer);
	assert_int_equal(reached.waiters, 0);
	dapl_mutex_unlock(&outer);
}

UNIT_MAIN(NULL, NULL)
