/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_forks.c - what libraries do around a fork: when they are called, and that the list stays as it is meanwhile. */
#include "dat/forks.h"
#include "dat/error.h"
#include "test/unit/unit.h"

static char calls[64];		/* a letter for each call; upper case after the fork, a digit in the child */
static bool short_of_memory;

/* forks.c is linked with it instead of malloc(). */
UNIT_FAIL_MALLOC(short_of_memory)

static void note(char letter) { calls[strlen(calls)] = letter; }
static void before_a(void) { note('a'); }
static void parent_a(void) { note('A'); }
static void child_a(void) { note('1'); }
static void before_b(void) { note('b'); }
static void parent_b(void) { note('B'); }
static void child_b(void) { note('2'); }

UNIT_FIXTURE(set_up)
{
	memset(calls, 0, sizeof calls);
	assert_int_equal(dats_fork_add(before_a, parent_a, child_a), DAT_SUCCESS);
}

UNIT_FIXTURE(tear_down) { dats_fork_remove(before_a); }

UNIT_CASE(all_libraries_are_called)
{
	assert_int_equal(dats_fork_add(before_b, parent_b, child_b), DAT_SUCCESS);
	forks_before();
	assert_int_equal(strlen(calls), 2);
	assert_true(strchr(calls, 'a') && strchr(calls, 'b'));
	forks_parent();
	assert_int_equal(strlen(calls), 4);
	assert_true(strchr(calls, 'A') && strchr(calls, 'B'));
	forks_before();
	forks_child();
	assert_int_equal(strlen(calls), 8);
	assert_true(strchr(calls, '1') && strchr(calls, '2'));
	dats_fork_remove(before_b);
}

UNIT_CASE(removed_library_is_not_called)
{
	assert_int_equal(dats_fork_add(before_b, parent_b, child_b), DAT_SUCCESS);
	dats_fork_remove(before_b);
	dats_fork_remove(before_b);	/* no longer there */
	forks_before();
	forks_parent();
	assert_string_equal(calls, "aA");
}

UNIT_CASE(shortage_of_memory_is_told)
{
	short_of_memory = true;
	assert_int_equal(dats_fork_add(before_b, parent_b, child_b),
			 DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY));
	short_of_memory = false;
	forks_before();
	forks_parent();
	assert_string_equal(calls, "aA");
}

static void *add_b(void *done)
{
	dats_fork_add(before_b, parent_b, child_b);
	__atomic_store_n((bool *)done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *remove_a(void *done)
{
	dats_fork_remove(before_a);
	__atomic_store_n((bool *)done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Returns whether the thread has ended before the fork did. */
static bool ends_during_fork(void *(*change)(void *))
{
	bool done = false, early;
	pthread_t thread;

	forks_before();
	assert_int_equal(pthread_create(&thread, NULL, change, &done), 0);
	usleep(20000);		/* time enough for a thread that does not wait */
	early = __atomic_load_n(&done, __ATOMIC_SEQ_CST);
	forks_parent();
	pthread_join(thread, NULL);
	return early;
}

/* It may hold locks that the fork has not taken. */
UNIT_CASE(library_is_not_added_during_a_fork)
{
	assert_false(ends_during_fork(add_b));
	assert_string_equal(calls, "aA");
	dats_fork_remove(before_b);
}

/* The functions called after the fork must still be there. */
UNIT_CASE(library_is_not_removed_during_a_fork)
{
	assert_false(ends_during_fork(remove_a));
	assert_string_equal(calls, "aA");
	forks_before();
	forks_parent();
	assert_string_equal(calls, "aA");
}

UNIT_MAIN(NULL, NULL)
