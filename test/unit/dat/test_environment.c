/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_environment.c - reports of variables that no library reads. */
#include "dat/environment.h"
#include "common/log.h"
#include "common/trace.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static void check(void *unused)
{
	log_init("t", NULL, NULL, NULL, 3);
	environment_check();
}

UNIT_FIXTURE(set_up)
{
	clearenv();
	trace_set_level(TRC_LVL_NORMAL);
}

UNIT_FIXTURE(tear_down)
{
	clearenv();
	trace_set_level(0);
}

/* The last value is longer than a name could be: what follows the sign of equality is no part of it. */
UNIT_CASE(variables_with_a_meaning_and_those_of_others_are_silent)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	setenv("DATA_OVERRIDE", "1", 1);
	setenv("DAPLTEST", "1", 1);
	setenv("XDAT_OVERRIDE", "1", 1);
	setenv("DAT_OVERRIDE", "a value of more than sixty-four bytes, which a name could not have", 1);
	assert_string_equal(printed_by(check, NULL), "");
}

UNIT_CASE(unlike_variable_has_no_meaning)
{
	setenv("DAT_COLOUR_OF_THE_SKY", "blue", 1);
	assert_string_equal(printed_by(check, NULL),
			    "t: the variable DAT_COLOUR_OF_THE_SKY has no meaning\n");
}

/* Names from 64 bytes on are cut, at 60. */
UNIT_CASE(long_name_is_cut)
{
	char name[100] = "DAT_", expected[200];

	memset(name + 4, 'X', 60);
	snprintf(expected, sizeof expected, "t: the variable %.60s... has no meaning\n", name);
	setenv(name, "1", 1);
	assert_string_equal(printed_by(check, NULL), expected);
}

UNIT_MAIN(NULL, NULL)
