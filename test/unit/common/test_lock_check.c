/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lock_check.c - the check of the order of locks. Built with DAPL_LOCK_CHECK in every build. A violation
 * must abort: a child commits it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "common/lock.h"
#include "test/unit/child.h"

static struct dapl_mutex outer = DAPL_MUTEX_INIT(RANK_EP), inner = DAPL_MUTEX_INIT(RANK_IA);
static struct dapl_spin leaf = DAPL_SPIN_INIT(RANK_SQ);

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
	child = fork_child();
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
