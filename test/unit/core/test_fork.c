/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fork.c - the order in which parts of the library are called around a fork, and the wait for threads
 * that are in these handlers. */
#include <semaphore.h>
#include "dapl/core/base/fork.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"

static char calls[64];		/* a letter for each: of the part, upper case after the fork */
static bool blocking;		/* part a stays in its handler until `go` */
static sem_t inside, go;
static unsigned sleeps;		/* of dapl_fork_end */
static unsigned go_at;		/* the sleep that lets the handler go on; 0: none */
static bool left;		/* atomic: the handler has been let go */

static void note(char letter) { calls[strlen(calls)] = letter; }

static void before_a(void)
{
	note('a');
	if (!blocking)
		return;
	sem_post(&inside);
	sem_wait(&go);
}

static void parent_a(void) { note('A'); }
static void child_a(void) { note('1'); }
static void before_b(void) { note('b'); }
static void parent_b(void) { note('B'); }
static void child_b(void) { note('2'); }
static void before_c(void) { note('c'); }
static void child_c(void) { note('3'); }
static void parent_d(void) { note('D'); }

/* c has no handler of the parent, d has one of the parent only. */
static struct dapl_fork_part
	a = { RANK_FORK + 1, before_a, parent_a, child_a, NULL },
	b = { RANK_FORK + 2, before_b, parent_b, child_b, NULL },
	c = { RANK_FORK + 2, before_c, NULL, child_c, NULL },
	d = { RANK_FORK + 3, NULL, parent_d, NULL, NULL };

EXTEND(usleep)
int __wrap_usleep(useconds_t us)
{
	if (++sleeps == go_at) {
		__atomic_store_n(&left, true, __ATOMIC_SEQ_CST);
		sem_post(&go);
	}
	return __real_usleep(1);
}

/* Not in the order of their ranks. */
UNIT_FIXTURE(register_parts)
{
	sem_init(&inside, 0, 0);
	sem_init(&go, 0, 0);
	dapl_fork_register(&b);
	dapl_fork_register(&d);
	dapl_fork_register(&a);
	dapl_fork_register(&c);
}

UNIT_FIXTURE(set_up)
{
	memset(calls, 0, sizeof calls);
	blocking = left = false;
	sleeps = go_at = 0;
}

/* Forks; the child's result is that of `in_child`. */
static void fork_and(bool (*in_child)(void))
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(in_child() ? 0 : 1);
	expect_success(pid);
}

static bool child_is_called_backwards(void) { return !strcmp(calls, "abc321"); }

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* Of equal ranks the one that was registered first comes first. */
TEST(parts_are_called_by_rank_and_backwards_after_the_fork)
{
	fork_and(child_is_called_backwards);
	assert_string_equal(calls, "abcDBA");
}

static bool fork_again(void)
{
	memset(calls, 0, sizeof calls);
	fork_and(child_is_called_backwards);
	return !strcmp(calls, "abcDBA");
}

TEST(child_may_fork)
{
	fork_and(fork_again);
}

/* --- waiting ---------------------------------------------------------------------------------------- */

TEST(wait_without_a_fork_returns_at_once)
{
	dapl_fork_end();
	assert_int_equal(sleeps, 0);
}

static bool wait_at_once(void)
{
	dapl_fork_end();
	return sleeps == 0;
}

TEST(handlers_are_left_when_fork_returns)
{
	fork_and(wait_at_once);
	dapl_fork_end();
	assert_int_equal(sleeps, 0);
}

static void *fork_in_a_thread(void *arg)
{
	fork_and(child_is_called_backwards);
	return NULL;
}

/* The handler is let go by the 20th look. */
TEST(thread_in_a_handler_is_waited_for)
{
	pthread_t thread;

	blocking = true;
	go_at = 20;
	assert_int_equal(pthread_create(&thread, NULL, fork_in_a_thread, NULL), 0);
	sem_wait(&inside);
	dapl_fork_end();
	assert_true(__atomic_load_n(&left, __ATOMIC_SEQ_CST));
	pthread_join(thread, NULL);
}

/* At exit the thread may never run again: 10000 looks, a second. */
TEST(wait_for_a_thread_that_stays_ends)
{
	pthread_t thread;

	blocking = true;
	assert_int_equal(pthread_create(&thread, NULL, fork_in_a_thread, NULL), 0);
	sem_wait(&inside);
	dapl_fork_end();
	assert_int_equal(sleeps, 10000);
	sem_post(&go);
	pthread_join(thread, NULL);
}

UNIT_MAIN(register_parts, NULL)
