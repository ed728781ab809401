/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_random.c - where random numbers come from, how often the kernel is asked, and what a forked child discards. */
#include <sys/random.h>
#include "dapl/soft/obj/random.h"
#include "test/unit/unit.h"

enum { POOL = 64 };		/* numbers that the kernel gives at a time */

static unsigned calls;
static ssize_t gives;		/* bytes that getrandom(2) gives at most; -1: it fails */
static uint32_t next;		/* the numbers of the kernel are consecutive here */

REPLACE(getrandom, clock_gettime)

ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
	uint32_t *number = to;

	assert_int_equal(size, POOL * sizeof *number);
	assert_int_equal(flags, 0);
	calls++;
	errno = EINTR;
	if (gives < (ssize_t)size)
		return gives;
	for (int i = 0; i < POOL; i++)
		number[i] = next++;
	return (ssize_t)size;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static long ns;

	*now = (struct timespec){ .tv_nsec = ++ns };
	return 0;
}

UNIT_FIXTURE(set_up)
{
	soft_random_fork_child();	/* no number is left */
	calls = 0;
	gives = POOL * sizeof(uint32_t);
	next = 1000;
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

CASE(each_number_of_the_kernel_is_used_once)
{
	bool used[2 * POOL] = { false };

	for (unsigned i = 0; i < 2 * POOL; i++) {
		uint32_t number = soft_random();

		assert_in_range(number, 1000, 1000 + 2 * POOL - 1);
		assert_false(used[number - 1000]);
		used[number - 1000] = true;
		assert_int_equal(calls, i / POOL + 1);
	}
}

CASE(long_number_has_two_halves)
{
	uint64_t number = soft_random_64();

	assert_in_range(number >> 32, 1000, 1000 + POOL - 1);
	assert_in_range((uint32_t)number, 1000, 1000 + POOL - 1);
	assert_int_not_equal(number >> 32, (uint32_t)number);
}

/* They would be those of its parent. */
CASE(child_discards_what_is_left)
{
	soft_random();
	soft_random_fork_child();
	assert_in_range(soft_random(), 1000 + POOL, 1000 + 2 * POOL - 1);
	assert_int_equal(calls, 2);
}

/* A part of a pool is not used: the rest of it would be zeros, or numbers that were used. */
CASE(without_the_kernel_the_clock_is_used)
{
	static const ssize_t given[] = { -1, 0, 100 };

	for (int i = 0; i < 3; i++) {
		uint32_t first, second;

		gives = given[i];
		first = soft_random();
		second = soft_random();
		assert_int_not_equal(first, second);
		assert_int_not_equal(first, 0);
		assert_int_equal(calls, 2 * (i + 1));	/* it is asked again each time */
	}
	gives = POOL * sizeof(uint32_t);
	assert_in_range(soft_random(), 1000, 1000 + POOL - 1);
}

UNIT_MAIN(NULL, NULL)
