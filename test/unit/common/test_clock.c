/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_clock.c - the monotonic clock: its unit, its order, and the coarse clock beside it. */
#include "common/clock.h"
#include "test/unit/unit.h"

static uint64_t in_ns(struct timespec t) { return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

UNIT_TEST(clock_counts_nanoseconds)
{
	struct timespec before, after;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &before);
	now = clock_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(in_ns(before) <= now && now <= in_ns(after));
}

UNIT_TEST(clock_never_goes_back)
{
	uint64_t last = 0;

	for (int i = 0; i < 100000; i++) {
		uint64_t now = clock_now_ns();

		assert_true(now >= last);
		last = now;
	}
}

UNIT_TEST(coarse_clock_is_not_ahead)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t coarse = clock_coarse_ns();

		assert_true(coarse <= clock_now_ns());
	}
}

UNIT_MAIN(NULL, NULL)
