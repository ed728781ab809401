/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_desched.c - detects a polling peer that is descheduled, from response times that
 * the test gives. test_large.c tests that memory is then accessed directly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "dapl/soft/shm/desched.h"

enum { US = 1000, IN_TIME = 1 * US, LATE = 20 * US };

struct count {
	unsigned direct, timed;
};

/* Makes `n` requests, one after the other. The peer answers each within `ns` through the ring. */
static struct count requests(struct shm_desched *desched, unsigned n, uint64_t ns)
{
	struct count count = { 0 };
	static uint64_t now = 1;

	for (uint32_t i = 0; i < n; i++) {
		assert_false(desched_is_over(desched, i));
		if (desched_count_down(desched))
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

static void peer_that_answers_in_time_is_waited_for(void **state)
{
	struct shm_desched desched = { 0 };
	struct count count = requests(&desched, 1600, IN_TIME);

	(void)state;
	assert_int_equal(count.direct, 0);
	assert_int_equal(count.timed, 100);
}

static void peer_that_is_late_twice_is_not_waited_for(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	assert_int_equal(requests(&desched, 16, LATE).direct, 0);
	assert_int_equal(requests(&desched, 17, LATE).direct, 16);
}

/* Every thread is preempted sometimes. */
static void peer_that_is_seldom_late_is_waited_for(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(requests(&desched, 16, LATE).direct, 0);
		assert_int_equal(requests(&desched, 16 * 8, IN_TIME).direct, 0);
	}
}

/* The longer the peer is late, the fewer requests go through the ring. */
static void peer_that_stays_late_is_retried_seldom(void **state)
{
	struct shm_desched desched = { 0 };
	struct count count = requests(&desched, 100000, LATE);

	(void)state;
	assert_in_range(count.timed, 90, 120);
	assert_int_equal(count.timed + count.direct, 100000 - 15);
}

static void peer_that_is_in_time_again_is_waited_for(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	requests(&desched, 100000, LATE);
	assert_in_range(requests(&desched, 5000, IN_TIME).direct, 1, 2500);
	assert_int_equal(requests(&desched, 1600, IN_TIME).direct, 0);
}

/* Requests that only the ring can carry are not timed, and do not postpone a measurement. */
static void requests_for_the_ring_only_do_not_count(void **state)
{
	struct shm_desched desched = { 0 };

	(void)state;
	assert_false(desched_count_down(&desched));
	desched_skip(&desched);
	for (int i = 0; i < 15; i++)
		assert_true(desched_count_down(&desched));
	assert_false(desched_count_down(&desched));
	desched = (struct shm_desched){ 0 };
	requests(&desched, 17, LATE);
	desched_skip(&desched);
	assert_false(desched_count_down(&desched));
	assert_true(desched_decide(&desched));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_answers_in_time_is_waited_for),
		cmocka_unit_test(peer_that_is_late_twice_is_not_waited_for),
		cmocka_unit_test(peer_that_is_seldom_late_is_waited_for),
		cmocka_unit_test(peer_that_stays_late_is_retried_seldom),
		cmocka_unit_test(peer_that_is_in_time_again_is_waited_for),
		cmocka_unit_test(requests_for_the_ring_only_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
