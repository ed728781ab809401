/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_environment.c - reports of variables that no library reads. */
#include "dat/environment.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "common/log.h"
#include "common/trace.h"
#include "test/unit/printed.h"

static void check(void *unused)
{
	(void)unused;
	log_init("t", NULL, NULL, NULL, 3);
	environment_check();
}

static int set_up(void **state)
{
	(void)state;
	clearenv();
	trace_set_level(TRC_LVL_NORMAL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	clearenv();
	trace_set_level(0);
	return 0;
}

static void variables_with_a_meaning_are_silent(void **state)
{
	(void)state;
	setenv("DAT_OVERRIDE", "/dev/null", 1);
	setenv("DAPL_SOFT_SHM", "0", 1);
	assert_string_equal(printed_by(check, NULL), "");
}

static void variables_of_others_are_silent(void **state)
{
	(void)state;
	setenv("DATA_OVERRIDE", "1", 1);
	setenv("DAPLTEST", "1", 1);
	setenv("XDAT_OVERRIDE", "1", 1);
	assert_string_equal(printed_by(check, NULL), "");
}

static void misspelt_variable_gets_the_nearest_name(void **state)
{
	(void)state;
	setenv("DAPL_SOFT_SMH", "0", 1);
	assert_string_equal(printed_by(check, NULL),
			    "t: the variable DAPL_SOFT_SMH has no meaning; is DAPL_SOFT_SHM meant?\n");
}

static void unlike_variable_has_no_meaning(void **state)
{
	(void)state;
	setenv("DAT_COLOUR_OF_THE_SKY", "blue", 1);
	assert_string_equal(printed_by(check, NULL),
			    "t: the variable DAT_COLOUR_OF_THE_SKY has no meaning\n");
}

/* Names from 64 bytes on are cut, at 60. */
static void long_name_is_cut(void **state)
{
	char name[100] = "DAT_", expected[200];

	(void)state;
	memset(name + 4, 'X', 60);
	snprintf(expected, sizeof expected, "t: the variable %.60s... has no meaning\n", name);
	setenv(name, "1", 1);
	assert_string_equal(printed_by(check, NULL), expected);
}

/* What follows the sign of equality is no part of the name. */
static void value_is_not_compared(void **state)
{
	(void)state;
	setenv("DAT_OVERRIDE", "a value of more than sixty-four bytes, which a name could not have", 1);
	assert_string_equal(printed_by(check, NULL), "");
}

static void nothing_is_said_without_trace(void **state)
{
	static const struct {
		int level;
		const char *providers;
		unsigned lines;
	} rows[] = {
		{ 0, NULL, 0 }, { 2, NULL, 0 }, { 3, NULL, 1 }, { 5, NULL, 1 }, { 0, "2", 0 }, { 0, "3", 1 },
		{ 0, "0x3", 1 }, { 0, "many", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		clearenv();
		setenv("DAT_SOMETHING_ELSE", "", 1);
		if (rows[i].providers)
			setenv("DAPL_TRACE_LEVEL", rows[i].providers, 1);
		trace_set_level(rows[i].level);
		assert_int_equal(times_in(printed_by(check, NULL), "DAT_SOMETHING_ELSE"), rows[i].lines);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(variables_with_a_meaning_are_silent),
		TEST(variables_of_others_are_silent),
		TEST(misspelt_variable_gets_the_nearest_name),
		TEST(unlike_variable_has_no_meaning),
		TEST(long_name_is_cut),
		TEST(value_is_not_compared),
		TEST(nothing_is_said_without_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
