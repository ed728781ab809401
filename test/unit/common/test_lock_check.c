/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lock_check.c - the check of the order of locks. Built with DAPL_LOCK_CHECK in every build. A violation
 * must abort: a child commits it. */
#include <signal.h>
#include <sys/resource.h>
#include "common/lock.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"

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

UNIT_TEST(inversion_aborts_and_names_both_locks)
{
	const char *line = abort_line(take_outer_after_inner);

	assert_non_null(strstr(line, "take_outer_after_inner takes &outer"));
	assert_non_null(strstr(line, "holds &inner"));
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void take_mutex_after_leaf(void)
{
	dapl_spin_lock(&leaf);
	dapl_mutex_lock(&inner);
}

static void take_twice(void)
{
	dapl_mutex_lock(&inner);
	dapl_mutex_lock(&inner);
}

static void take_two_of_a_rank(void)
{
	static struct dapl_mutex other = DAPL_MUTEX_INIT(RANK_IA);

	dapl_mutex_lock(&inner);
	dapl_mutex_lock(&other);
}

static void need_outer(void) { assert_held(&outer); }
static void block_with_lock(void)
{
	dapl_mutex_lock(&outer);
	assert_no_lock_held();
}

static void release_free(void) { dapl_spin_unlock(&leaf); }

static void take_without_rank(void)
{
	static struct dapl_mutex zeroed;

	dapl_mutex_lock(&zeroed);
}

UNIT_TEST(violation_aborts_and_says_which)
{
	static const struct { void (*violation)(void); const char *said; } rows[] = {
		{ take_mutex_after_leaf, "holds &leaf" }, { take_twice, "the same lock" },
		{ take_two_of_a_rank, "takes &other" }, { need_outer, "need_outer needs &outer" },
		{ block_with_lock, "holds &outer" }, { release_free, "releases &leaf" },
		{ take_without_rank, "not initialized" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_non_null(strstr(abort_line(rows[i].violation), rows[i].said));
}

UNIT_TEST(locks_in_order_pass)
{
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

UNIT_TEST(lock_that_is_tried_needs_no_order)
{
	dapl_mutex_lock(&inner);
	assert_true(dapl_mutex_try(&outer));
	assert_false(dapl_mutex_try(&outer));
	dapl_mutex_unlock(&outer);
	dapl_mutex_unlock(&inner);
	assert_no_lock_held();
}

UNIT_TEST(locks_of_a_rank_pass_if_announced)
{
	struct dapl_mutex a[3];

	for (int i = 0; i < 3; i++) {
		dapl_mutex_init(&a[i], RANK_IA);
		dapl_mutex_lock_another(&a[i]);
	}
	for (int i = 0; i < 3; i++)
		dapl_mutex_unlock(&a[i]);
	assert_no_lock_held();
}

UNIT_MAIN(NULL, NULL)
