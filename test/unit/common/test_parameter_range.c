/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_parameter_range.c - texts that are numbers, and ranges of the table of variables. */
#include <limits.h>
#include "common/parameter_range.h"
#include "test/unit/unit.h"

static void expect_number(const char *text, unsigned long expected)
{
	unsigned long value = 7;

	if (!parameter_number(text, &value) || value != expected)
		fail_msg("\"%s\" is %lu, expected %lu", text, value, expected);
}

UNIT_TEST(numbers_are_decimal_or_hexadecimal)
{
	expect_number("0", 0);
	expect_number("010", 10);	/* not octal */
	expect_number("0x1f", 31);
	expect_number("0X1F", 31);
	expect_number("4294967295", 4294967295);
}

UNIT_TEST(other_texts_are_no_numbers)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1f", "1x", "0x", "0xg", "x1", "one",
		"99999999999999999999999" };
	unsigned long value;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parameter_number(bad[i], &value))
			fail_msg("\"%s\" is taken as %lu", bad[i], value);
}

UNIT_TEST(numbers_have_the_range_of_the_table)
{
	unsigned long min = 9, max = 9;

	assert_true(parameter_range("DAPL_IB_MTU", &min, &max));
	assert_int_equal(min, 256);
	assert_int_equal(max, 4096);
	assert_true(parameter_range("DAT_DBG_TYPE", &min, &max));
	assert_int_equal(min, 0);
	assert_int_equal(max, UINT_MAX);
}

UNIT_TEST(paths_and_unknown_names_have_no_range)
{
	static const char *const none[] = { "DAT_OVERRIDE", "DAT_TEST_ROOT", "XDG_RUNTIME_DIR", "DAPL_IB_MT", "PATH",
		"" };
	unsigned long min, max;

	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_false(parameter_range(none[i], &min, &max));
}

UNIT_TEST(number_is_within_its_bounds)
{
	unsigned long value;

	assert_true(parameter_number_in("2", 2, 9, &value) && value == 2);
	assert_true(parameter_number_in("0x9", 2, 9, &value) && value == 9);
	assert_false(parameter_number_in("1", 2, 9, &value));
	assert_false(parameter_number_in("10", 2, 9, &value));
	assert_false(parameter_number_in("-3", 2, 9, &value));
}

UNIT_MAIN(NULL, NULL)
