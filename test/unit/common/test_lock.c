/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lock.c - spin lock, sleeping lock and condition variable, and the check of their
 * order. Built with DAPL_LOCK_CHECK in every build. A violation must abort: a child commits it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "common/lock.h"

enum { LIMIT_S = 60, THREADS = 4, TURNS = 20000 };

static struct dapl_mutex outer = DAPL_MUTEX_INIT(RANK_EP), inner = DAPL_MUTEX_INIT(RANK_IA);
static struct dapl_spin leaf = DAPL_SPIN_INIT(RANK_SQ);

/* --- the check ------------------------------------------------------------------------------- */

/* What the child prints before it aborts. */
static const char *abort_line(void (*violation)(void))
{
	static char line[512];
	struct rlimit none = { 0, 0 };
	size_t length = 0;
	ssize_t n;
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);	/* cmocka has a handler */
		dup2(ends[1], STDERR_FILENO);
		violation();
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], line + length, sizeof line - 1 - length)) > 0)
		length += n;
	line[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	return line;
}

static void take_outer_after_inner(void)
{
	dapl_mutex_lock(&inner);
	dapl_mutex_lock(&outer);
}

static void inversion_aborts_and_names_both_locks(void **state)
{
	const char *line = abort_line(take_outer_after_inner);

	(void)state;
	assert_non_null(strstr(line, "take_outer_after_inner takes &outer"));
	assert_non_null(strstr(line, "holds &inner"));
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void take_mutex_after_leaf(void)
{
	dapl_spin_lock(&leaf);
	dapl_mutex_lock(&inner);
}

static void mutex_of_lower_rank_after_spin_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(take_mutex_after_leaf), "holds &leaf"));
}

static void take_twice(void)
{
	dapl_mutex_lock(&inner);
	dapl_mutex_lock(&inner);
}

static void second_acquisition_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(take_twice), "the same lock"));
}

static void take_two_of_a_rank(void)
{
	static struct dapl_mutex other = DAPL_MUTEX_INIT(RANK_IA);

	dapl_mutex_lock(&inner);
	dapl_mutex_lock(&other);
}

static void two_locks_of_a_rank_abort(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(take_two_of_a_rank), "takes &other"));
}

static void need_outer(void)
{
	assert_held(&outer);
}

static void missing_lock_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(need_outer), "need_outer needs &outer"));
}

static void block_with_lock(void)
{
	dapl_mutex_lock(&outer);
	assert_no_lock_held();
}

static void blocking_with_a_lock_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(block_with_lock), "holds &outer"));
}

static void release_free(void)
{
	dapl_spin_unlock(&leaf);
}

static void release_of_a_free_lock_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(release_free), "releases &leaf"));
}

static void take_without_rank(void)
{
	static struct dapl_mutex zeroed;

	dapl_mutex_lock(&zeroed);
}

static void lock_without_rank_aborts(void **state)
{
	(void)state;
	assert_non_null(strstr(abort_line(take_without_rank), "not initialized"));
}

static void locks_in_order_pass(void **state)
{
	(void)state;
	dapl_mutex_lock(&outer);
	dapl_mutex_lock(&inner);
	dapl_spin_lock(&leaf);
	assert_held(&outer);
	assert_held(&leaf);
	dapl_mutex_unlock(&outer);	/* releases come in any order */
	dapl_spin_unlock(&leaf);
	assert_held(&inner);
	dapl_mutex_unlock(&inner);
	assert_no_lock_held();
}

static void lock_that_is_tried_needs_no_order(void **state)
{
	(void)state;
	dapl_mutex_lock(&inner);
	assert_true(dapl_mutex_try(&outer));
	assert_false(dapl_mutex_try(&outer));
	dapl_mutex_unlock(&outer);
	dapl_mutex_unlock(&inner);
	assert_no_lock_held();
}

static void locks_of_a_rank_pass_if_announced(void **state)
{
	struct dapl_mutex a[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		dapl_mutex_init(&a[i], RANK_IA);
		dapl_mutex_lock_another(&a[i]);
	}
	for (int i = 0; i < 3; i++)
		dapl_mutex_unlock(&a[i]);
	assert_no_lock_held();
}

/* --- the locks ------------------------------------------------------------------------------- */

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

static void mutex_excludes(void **state)
{
	(void)state;
	count = 0;
	run_threads(count_with_mutex);
	assert_int_equal(count, THREADS * TURNS);
}

static void spin_lock_excludes(void **state)
{
	(void)state;
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

/* True: the thread is in a futex call, as the kernel tells. */
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

static void waiter_of_a_mutex_sleeps(void **state)
{
	time_t end = time(NULL) + LIMIT_S;
	pthread_t waiter;
	int tid;

	(void)state;
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

static void broadcast_wakes_all_waiters(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inversion_aborts_and_names_both_locks),
		cmocka_unit_test(mutex_of_lower_rank_after_spin_aborts),
		cmocka_unit_test(second_acquisition_aborts),
		cmocka_unit_test(two_locks_of_a_rank_abort),
		cmocka_unit_test(missing_lock_aborts),
		cmocka_unit_test(blocking_with_a_lock_aborts),
		cmocka_unit_test(release_of_a_free_lock_aborts),
		cmocka_unit_test(lock_without_rank_aborts),
		cmocka_unit_test(locks_in_order_pass),
		cmocka_unit_test(lock_that_is_tried_needs_no_order),
		cmocka_unit_test(locks_of_a_rank_pass_if_announced),
		cmocka_unit_test(mutex_excludes),
		cmocka_unit_test(spin_lock_excludes),
		cmocka_unit_test(waiter_of_a_mutex_sleeps),
		cmocka_unit_test(broadcast_wakes_all_waiters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
