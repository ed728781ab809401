/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_soft_desched.c - when a peer that polls is not waited for, from times that are given. That its
 * memory is accessed then is test_soft_shm.c's matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "dapl/soft/shm/desched.h"

enum { US = 1000, IN_TIME = 1 * US, LATE = 20 * US };

struct count {
	unsigned direct, timed;
};

/* `n` requests, one after the other, that the peer answers within `ns` of the ring. */
static struct count requests(struct shm_desched *desched, unsigned n, uint64_t ns)
{
	struct count count = { 0 };
	static uint64_t now = 1;

	for (uint32_t i = 0; i < n; i++) {
		assert_false(desched_is_over(desched, i));
		if (desched_passes(desched))
			continue;
		if (desched_decide(desched)) {
			count.direct++;
			continue;
		}
		desched_begin(desched, i, now);
		count.timed++;
		assert_false(desched_is_over(desched, i));
		now += ns;
		assert_true(desched_is_over(desched, i + 1));
		desched_end(desched, now);
	}
	return count;
}

static void who_answers_in_time_is_waited_for(void **state)
{
	struct shm_desched desched = { 0 };
	struct count count = requests(&desched, 1600, IN_TIME);

	(void)state;
	assert_int_equal(count.direct, 0);
	assert_int_equal(count.timed, 100);
}

static void who_is_late_twice_is_not(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	assert_int_equal(requests(&desched, 16, LATE).direct, 0);
	assert_int_equal(requests(&desched, 17, LATE).direct, 16);
}

/* Everybody is preempted now and then. */
static void who_is_late_seldom_is_waited_for(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(requests(&desched, 16, LATE).direct, 0);
		assert_int_equal(requests(&desched, 16 * 8, IN_TIME).direct, 0);
	}
}

/* The longer it has been late, the more seldom it is asked. */
static void who_stays_late_is_asked_seldom(void **state)
{
	struct shm_desched desched = { 0 };
	struct count count = requests(&desched, 100000, LATE);

	(void)state;
	assert_in_range(count.timed, 90, 120);
	assert_int_equal(count.timed + count.direct, 100000 - 15);
}

static void who_is_in_time_again_is_waited_for_again(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	requests(&desched, 100000, LATE);
	assert_in_range(requests(&desched, 5000, IN_TIME).direct, 1, 2500);
	assert_int_equal(requests(&desched, 1600, IN_TIME).direct, 0);
}

/* What only the ring can do is not timed, and does not put off what is to be. */
static void what_suits_the_ring_alone_says_nothing(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	assert_false(desched_passes(&desched));
	desched_skip(&desched);
	for (int i = 0; i < 15; i++)
		assert_true(desched_passes(&desched));
	assert_false(desched_passes(&desched));
	desched = (struct shm_desched){ 0 };
	requests(&desched, 17, LATE);
	desched_skip(&desched);
	assert_false(desched_passes(&desched));
	assert_true(desched_decide(&desched));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_answers_in_time_is_waited_for),
		cmocka_unit_test(who_is_late_twice_is_not),
		cmocka_unit_test(who_is_late_seldom_is_waited_for),
		cmocka_unit_test(who_stays_late_is_asked_seldom),
		cmocka_unit_test(who_is_in_time_again_is_waited_for_again),
		cmocka_unit_test(what_suits_the_ring_alone_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
