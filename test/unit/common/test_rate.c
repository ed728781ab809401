/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rate limit: windows of one second, and the count of what was not admitted. */
#include "common/rate.h"
#include "test/unit/unit.h"

static unsigned suppressed;

static int admitted(struct rate *rate, uint64_t now, int events)
{
	int n = 0;

	while (events--)
		n += rate_admit(rate, now, &suppressed);
	return n;
}

UNIT_TEST(ten_lines_a_second_are_admitted)
{
	struct rate rate = { 0 };

	assert_int_equal(admitted(&rate, 5, 10), 10);
	assert_int_equal(admitted(&rate, 1004, 5), 0);
	assert_int_equal(suppressed, 0);
	assert_int_equal(admitted(&rate, 1005, 1), 1);
	assert_int_equal(suppressed, 5);
	assert_int_equal(admitted(&rate, 2004, 20), 9);
	assert_int_equal(suppressed, 0);
}

UNIT_TEST(count_restarts_after_a_quiet_second)
{
	struct rate rate = { 0 };

	assert_int_equal(admitted(&rate, 1, 10), 10);
	assert_int_equal(admitted(&rate, 90000, 1), 1);
	assert_int_equal(suppressed, 0);
}

UNIT_TEST(suppressed_lines_are_counted_once)
{
	struct rate rate = { 0 };

	assert_int_equal(rate_suppressed(&rate), 0);
	assert_int_equal(admitted(&rate, 7, 12), 10);
	assert_int_equal(rate_suppressed(&rate), 2);
	assert_int_equal(rate_suppressed(&rate), 0);
	assert_int_equal(admitted(&rate, 7, 3), 0);	/* still the same second */
	assert_int_equal(admitted(&rate, 2000, 1), 1);
	assert_int_equal(suppressed, 3);
}

UNIT_MAIN(NULL, NULL)
