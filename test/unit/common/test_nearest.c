/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_nearest.c - the variable that a misspelt name may mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "common/nearest.h"

static void expect_nearest(const char *name, const char *expected)
{
	const char *found = variable_nearest(name);

	found = found ? found : "nothing";
	expected = expected ? expected : "nothing";
	if (strcmp(found, expected))
		fail_msg("%s: %s found, %s expected", name, found, expected);
}

static void only_exact_names_are_known(void **state)
{
	(void)state;
	assert_true(variable_is_known("DAPL_SOFT_SHM"));
	assert_true(variable_is_known("DAT_OVERRIDE"));
	assert_false(variable_is_known("DAPL_SOFT_SH"));
	assert_false(variable_is_known("DAPL_SOFT_SHMS"));
	assert_false(variable_is_known("dapl_soft_shm"));
	assert_false(variable_is_known(""));
}

static void two_edits_are_near(void **state)
{
	(void)state;
	expect_nearest("DAPL_WR_MAX", "DAPL_WR_MAX");
	expect_nearest("DAPL_WR_MA", "DAPL_WR_MAX");		/* one missing */
	expect_nearest("DAPL_WRR_MAX", "DAPL_WR_MAX");		/* one too many */
	expect_nearest("DAPL_WR_MIX", "DAPL_WR_MAX");		/* one replaced */
	expect_nearest("APL_WR_MAXI", "DAPL_WR_MAX");		/* one of each kind at the ends */
	expect_nearest("DAT_OVERIDDE", "DAT_OVERRIDE");		/* two replaced */
}

static void three_edits_are_another_word(void **state)
{
	(void)state;
	expect_nearest("DAPL_WR_M", "DAPL_WR_MAX");
	expect_nearest("DAPL_WR_", NULL);
	expect_nearest("XXXL_WR_MAX", NULL);
	expect_nearest("", NULL);
}

/* DAPL_DBG_TYPE and DAT_DBG_TYPE differ by two edits. */
static void fewest_edits_count(void **state)
{
	(void)state;
	expect_nearest("DAPL_DBG_TYPE", "DAPL_DBG_TYPE");
	expect_nearest("DAT_DBG_TYPE", "DAT_DBG_TYPE");
	expect_nearest("DAT_DBG_TYPO", "DAT_DBG_TYPE");
	expect_nearest("DAPL_DBG_DST", "DAPL_DBG_DEST");
}

static void long_names_have_no_neighbour(void **state)
{
	char name[65];

	(void)state;
	memset(name, 'D', sizeof name - 1);
	name[64] = '\0';
	expect_nearest(name, NULL);
	name[63] = '\0';
	expect_nearest(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_exact_names_are_known),
		cmocka_unit_test(two_edits_are_near),
		cmocka_unit_test(three_edits_are_another_word),
		cmocka_unit_test(fewest_edits_count),
		cmocka_unit_test(long_names_have_no_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
