/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_parameter_range.c - texts that are numbers, and ranges of the table of variables. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "common/parameter_range.h"

static void expect_number(const char *text, unsigned long expected)
{
	unsigned long value = 7;

	if (!parameter_number(text, &value) || value != expected)
		fail_msg("\"%s\" is %lu, expected %lu", text, value, expected);
}

static void numbers_are_decimal_or_hexadecimal(void **state)
{
	(void)state;
	expect_number("0", 0);
	expect_number("010", 10);	/* not octal */
	expect_number("0x1f", 31);
	expect_number("0X1F", 31);
	expect_number("4294967295", 4294967295);
}

static void other_texts_are_no_numbers(void **state)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1f", "1x", "0x", "0xg", "x1", "one",
		"99999999999999999999999" };
	unsigned long value;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parameter_number(bad[i], &value))
			fail_msg("\"%s\" is taken as %lu", bad[i], value);
}

static void numbers_have_the_range_of_the_table(void **state)
{
	unsigned long min = 9, max = 9;

	(void)state;
	assert_true(parameter_range("DAPL_IB_MTU", &min, &max));
	assert_int_equal(min, 256);
	assert_int_equal(max, 4096);
	assert_true(parameter_range("DAT_DBG_TYPE", &min, &max));
	assert_int_equal(min, 0);
	assert_int_equal(max, UINT_MAX);
}

static void paths_and_unknown_names_have_no_range(void **state)
{
	static const char *const none[] = { "DAT_OVERRIDE", "DAT_TEST_ROOT", "XDG_RUNTIME_DIR", "DAPL_IB_MT", "PATH",
		"" };
	unsigned long min, max;

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_false(parameter_range(none[i], &min, &max));
}

static void number_is_within_its_bounds(void **state)
{
	unsigned long value;

	(void)state;
	assert_true(parameter_number_in("2", 2, 9, &value) && value == 2);
	assert_true(parameter_number_in("0x9", 2, 9, &value) && value == 9);
	assert_false(parameter_number_in("1", 2, 9, &value));
	assert_false(parameter_number_in("10", 2, 9, &value));
	assert_false(parameter_number_in("-3", 2, 9, &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_is_within_its_bounds),
		cmocka_unit_test(numbers_are_decimal_or_hexadecimal),
		cmocka_unit_test(other_texts_are_no_numbers),
		cmocka_unit_test(numbers_have_the_range_of_the_table),
		cmocka_unit_test(paths_and_unknown_names_have_no_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
