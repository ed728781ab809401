/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The queue of times of the library's thread: the first comes first, whatever was added, changed and taken out. */
#include "sock/timers.h"
#include "test/unit/unit.h"

enum { TIMERS = 300, STEPS = 20000 };

UNIT_TEST(empty_queue_has_no_first)
{
	struct timers t = { 0 };
	struct timer timer = { 0 };

	assert_null(timers_first(&t));
	timers_cancel(&t, &timer);
	assert_null(timers_first(&t));
}

UNIT_TEST(times_come_in_order)
{
	static const uint64_t at[] = { 50, 10, 40, UINT64_MAX, 0, 30, 10 };
	enum { COUNT = sizeof at / sizeof *at };
	struct timers t = { 0 };
	struct timer timer[COUNT] = { 0 };
	uint64_t last = 0;

	for (int i = 0; i < COUNT; i++)
		assert_true(timers_set(&t, &timer[i], at[i]));
	for (int i = 0; i < COUNT; i++) {
		struct timer *first = timers_first(&t);

		assert_non_null(first);
		assert_true(first->at >= last);
		last = first->at;
		timers_cancel(&t, first);
		assert_int_equal(first->place, 0);
	}
	assert_true(last == UINT64_MAX);
	assert_null(timers_first(&t));
	free(t.heap);
}

UNIT_TEST(changed_time_counts)
{
	struct timers t = { 0 };
	struct timer a = { 0 }, b = { 0 };

	assert_true(timers_set(&t, &a, 10) && timers_set(&t, &b, 20));
	assert_true(timers_set(&t, &a, 30));
	assert_ptr_equal(timers_first(&t), &b);
	assert_true(timers_set(&t, &a, 5));
	assert_ptr_equal(timers_first(&t), &a);
	timers_cancel(&t, &a);
	timers_cancel(&t, &b);
	assert_null(timers_first(&t));
	free(t.heap);
}

/* Beside a search of all timers. */
UNIT_TEST(first_is_the_least_of_all)
{
	static struct timer timer[TIMERS];
	struct timers t = { 0 };

	srand(1);
	for (int step = 0; step < STEPS; step++) {
		struct timer *one = &timer[rand() % TIMERS];
		uint64_t least = UINT64_MAX;
		unsigned count = 0;

		if (rand() % 3)
			assert_true(timers_set(&t, one, rand() % 1000));
		else
			timers_cancel(&t, one);
		for (int i = 0; i < TIMERS; i++)
			if (timer[i].place) {
				count++;
				if (timer[i].at < least)
					least = timer[i].at;
			}
		assert_int_equal(t.count, count);
		if (count)
			assert_true(timers_first(&t)->at == least);
		else
			assert_null(timers_first(&t));
	}
	free(t.heap);
}

UNIT_MAIN(NULL, NULL)
