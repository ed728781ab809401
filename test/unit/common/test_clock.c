/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_clock.c - the monotonic clock: its unit, its order, and the coarse clock beside it. */
#include "common/clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static uint64_t in_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void clock_counts_nanoseconds(void **state)
{
	struct timespec before, after;
	uint64_t now;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &before);
	now = clock_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(in_ns(before) <= now && now <= in_ns(after));
}

static void clock_never_goes_back(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t now = clock_now_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void coarse_clock_is_not_ahead(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t coarse = clock_coarse_ns();

		assert_true(coarse <= clock_now_ns());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_counts_nanoseconds),
		cmocka_unit_test(clock_never_goes_back),
		cmocka_unit_test(coarse_clock_is_not_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
