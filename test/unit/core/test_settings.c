/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_settings.c - the ranges of the environment variables, and what may change in a running program. */
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static const char *const set_here[] = { "DAPL_MAX_INLINE", "DAPL_IB_PKEY", "DAPL_RNR_TIMER", "DAPL_WR_MAX",
	"TEST_PARAMETER", "DAPL_DBG_TYPE" };

UNIT_FIXTURE(set_up)
{
	for (size_t i = 0; i < sizeof set_here / sizeof *set_here; i++) {
		unsetenv(set_here[i]);
		parameter_unset(set_here[i]);
	}
	dapl_settings_read();
}

static int tear_down(void **state) { return set_up(state); }

UNIT_CASE(variables_have_ranges)
{
	static const struct {
		const char *text;
		unsigned value;		/* of DAPL_MAX_INLINE; 64 is the default */
	} cases[] = {
		{ "0", 0 }, { "65536", 65536 }, { "65537", 64 }, { "-1", 64 }, { "", 64 }, { "7x", 64 },
		{ "0x10", 16 }, { "99999999999999999999", 64 }, { "4294967296", 64 },
	};

	assert_int_equal(dapl_settings.max_inline, 64);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		setenv("DAPL_MAX_INLINE", cases[i].text, 1);
		dapl_settings_read();
		if (dapl_settings.max_inline != cases[i].value)
			fail_msg("\"%s\": %u", cases[i].text, dapl_settings.max_inline);
	}
}

UNIT_CASE(unset_variable_is_minus_one_where_zero_is_a_value)
{
	assert_int_equal(dapl_settings.ib_pkey, -1);
	setenv("DAPL_IB_PKEY", "0", 1);
	dapl_settings_read();
	assert_int_equal(dapl_settings.ib_pkey, 0);
	setenv("DAPL_IB_PKEY", "65536", 1);
	dapl_settings_read();
	assert_int_equal(dapl_settings.ib_pkey, -1);
}

UNIT_CASE(every_parameter_is_found_once)
{
	struct dapl_parameter at, found, other;
	bool device = false;
	unsigned n = 0;

	for (; dapl_settings_at(n, &at); n++) {
		assert_true(dapl_settings_find(at.name, &found));
		assert_string_equal(found.name, at.name);
		assert_true(at.min < at.max);
		if (at.by_default >= 0)	/* 0 of a range that begins later means unset */
			assert_true((unsigned long)at.by_default <= at.max);
		for (unsigned i = 0; i < n; i++)
			assert_true(dapl_settings_at(i, &other) && strcmp(other.name, at.name));
		device |= !strcmp(at.name, "TEST_PARAMETER");
	}
	assert_true(device);
	assert_int_equal(n, 4 + 23 + 1);	/* messages, variables of settings.h, the device's */
	assert_false(dapl_settings_at(n, &at));
	assert_false(dapl_settings_at(n + 1, &at));
	assert_false(dapl_settings_find("", &at));
	assert_false(dapl_settings_find("DAPL_MAX_INLIN", &at));
}

/* What datctl --persist takes, a program takes, too. */
UNIT_CASE(every_parameter_has_the_range_that_tools_know)
{
	struct dapl_parameter at;
	unsigned long min, max;

	for (unsigned i = 0; dapl_settings_at(i, &at); i++) {
		if (!strcmp(at.name, "TEST_PARAMETER"))
			continue;
		assert_true(parameter_range(at.name, &min, &max));
		if (min != at.min || max != at.max)
			fail_msg("%s: from %lu to %lu, expected %lu to %lu", at.name, min, max, at.min, at.max);
	}
}

static bool set(const char *name, const char *text, const char *reason)
{
	char why[160] = "";
	bool done = dapl_settings_set(name, text, why, sizeof why);

	if (!strstr(why, reason) || (done && *why))
		fail_msg("%s=%s: \"%s\", expected \"%s\"", name, text, why, reason);
	return done;
}

static long value_of(const char *name, enum parameter_origin *origin)
{
	struct dapl_parameter parameter;

	assert_true(dapl_settings_find(name, &parameter));
	return dapl_settings_value(&parameter, origin);
}

UNIT_CASE(value_outside_its_range_is_refused)
{
	static const char *const bad[] = { "32", "-1", "", " 1", "1 ", "one", "0x20", "4294967297",
		"99999999999999999999" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(set("DAPL_RNR_TIMER", bad[i], "a number from 0 to 31, or \"default\", expected"));
		assert_int_equal(dapl_settings.rnr_timer, 12);
	}
	assert_false(set("TEST_PARAMETER", "1", "a number from 2 to 9"));
	assert_false(set("TEST_PARAMETER", "10", "a number from 2 to 9"));
	assert_true(set("TEST_PARAMETER", "2", ""));
	assert_true(set("TEST_PARAMETER", "9", ""));
}

UNIT_CASE(parameters_that_are_fixed_say_why)
{
	assert_false(set("DAPL_CONTROL", "0", "it is read when the program opens its first adapter"));
	assert_false(set("DAPL_MAX_CM_RETRIES", "1", "it has no effect"));
	assert_false(set("DAPL_MAX_CM_RETRIES", "default", "it has no effect"));
	assert_false(set("NO_SUCH", "1", "provider test has no parameter NO_SUCH"));
}

UNIT_CASE(value_that_is_set_counts_until_it_is_default_again)
{
	enum parameter_origin origin;

	setenv("DAPL_RNR_TIMER", "5", 1);
	dapl_settings_read();
	assert_int_equal(value_of("DAPL_RNR_TIMER", &origin), 5);
	assert_int_equal(origin, PARAMETER_ENVIRONMENT);
	assert_true(set("DAPL_RNR_TIMER", "31", ""));
	assert_int_equal(dapl_settings.rnr_timer, 31);	/* at once */
	assert_int_equal(value_of("DAPL_RNR_TIMER", &origin), 31);
	assert_int_equal(origin, PARAMETER_SET);
	assert_true(set("DAPL_RNR_TIMER", "default", ""));
	assert_int_equal(dapl_settings.rnr_timer, 5);
	assert_int_equal(value_of("DAPL_RNR_TIMER", &origin), 5);
	assert_int_equal(origin, PARAMETER_ENVIRONMENT);
}

UNIT_CASE(setting_one_parameter_changes_no_other)
{
	struct dapl_settings before = dapl_settings;

	assert_true(set("DAPL_WR_MAX", "1", ""));
	before.wr_max = 1;
	assert_memory_equal(&before, &dapl_settings, sizeof before);
}

UNIT_CASE(bad_value_of_the_environment_counts_as_the_default)
{
	static const char *const bad[] = { "32", "x", "" };
	enum parameter_origin origin;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		setenv("DAPL_RNR_TIMER", bad[i], 1);
		assert_int_equal(value_of("DAPL_RNR_TIMER", &origin), 12);
		assert_int_equal(origin, PARAMETER_DEFAULT);
	}
	setenv("DAPL_RNR_TIMER", "31", 1);
	assert_int_equal(value_of("DAPL_RNR_TIMER", &origin), 31);
}

/* No octal: a leading zero changes nothing, wherever the value comes from. */
UNIT_CASE(value_is_read_the_same_from_all_sources)
{
	enum parameter_origin origin;

	setenv("DAPL_MAX_INLINE", "010", 1);
	dapl_settings_read();
	assert_int_equal(dapl_settings.max_inline, 10);
	assert_int_equal(value_of("DAPL_MAX_INLINE", &origin), 10);
	assert_int_equal(origin, PARAMETER_ENVIRONMENT);
	assert_true(set("DAPL_MAX_INLINE", "011", ""));
	assert_int_equal(dapl_settings.max_inline, 11);
	assert_false(set("DAPL_MAX_INLINE", "0x", "a number from 0 to 65536"));
}

UNIT_CASE(message_mask_is_applied_at_once)
{
	enum parameter_origin origin;

	assert_true(set("DAPL_DBG_TYPE", "0x81", ""));
	assert_int_equal(log_mask, 0x81);
	assert_int_equal(value_of("DAPL_DBG_TYPE", &origin), 0x81);
	log_set_mask(1);	/* as DAPL_DBG_LEVEL does: the text says something else */
	assert_int_equal(value_of("DAPL_DBG_TYPE", &origin), 1);
	assert_true(set("DAPL_DBG_TYPE", "default", ""));
	assert_int_equal(log_mask, 3);
}

UNIT_MAIN(NULL, NULL)
