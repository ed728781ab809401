/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rate limit: windows of one second, and the count of what was not admitted. */
#include "common/rate.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static unsigned suppressed;

static int admitted(struct rate *rate, uint64_t now, int events)
{
	int n = 0;

	while (events--)
		n += rate_admit(rate, now, &suppressed);
	return n;
}

static void ten_lines_a_second_are_admitted(void **state)
{
	struct rate rate = { 0 };

	(void)state;
	assert_int_equal(admitted(&rate, 5, 10), 10);
	assert_int_equal(admitted(&rate, 1004, 5), 0);
	assert_int_equal(suppressed, 0);
	assert_int_equal(admitted(&rate, 1005, 1), 1);
	assert_int_equal(suppressed, 5);
	assert_int_equal(admitted(&rate, 2004, 20), 9);
	assert_int_equal(suppressed, 0);
}

static void count_restarts_after_a_quiet_second(void **state)
{
	struct rate rate = { 0 };

	(void)state;
	assert_int_equal(admitted(&rate, 1, 10), 10);
	assert_int_equal(admitted(&rate, 90000, 1), 1);
	assert_int_equal(suppressed, 0);
}

static void suppressed_lines_are_counted_once(void **state)
{
	struct rate rate = { 0 };

	(void)state;
	assert_int_equal(rate_suppressed(&rate), 0);
	assert_int_equal(admitted(&rate, 7, 12), 10);
	assert_int_equal(rate_suppressed(&rate), 2);
	assert_int_equal(rate_suppressed(&rate), 0);
	assert_int_equal(admitted(&rate, 7, 3), 0);	/* still the same second */
	assert_int_equal(admitted(&rate, 2000, 1), 1);
	assert_int_equal(suppressed, 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_lines_a_second_are_admitted),
		cmocka_unit_test(count_restarts_after_a_quiet_second),
		cmocka_unit_test(suppressed_lines_are_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
