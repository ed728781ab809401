/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_nearest.c - the variable that a misspelt name may mean. */
#include "common/nearest.h"
#include "test/unit/unit.h"

static void expect_nearest(const char *name, const char *expected)
{
	const char *found = variable_nearest(name);

	found = found ? found : "nothing";
	expected = expected ? expected : "nothing";
	if (strcmp(found, expected))
		fail_msg("%s: %s found, %s expected", name, found, expected);
}

UNIT_TEST(only_exact_names_are_known)
{
	assert_true(variable_is_known("DAPL_SOFT_SHM"));
	assert_true(variable_is_known("DAT_OVERRIDE"));
	assert_false(variable_is_known("DAPL_SOFT_SH"));
	assert_false(variable_is_known("DAPL_SOFT_SHMS"));
	assert_false(variable_is_known("dapl_soft_shm"));
	assert_false(variable_is_known(""));
}

UNIT_TEST(two_edits_are_near)
{
	expect_nearest("DAPL_WR_MAX", "DAPL_WR_MAX");
	expect_nearest("DAPL_WR_MA", "DAPL_WR_MAX");		/* one missing */
	expect_nearest("DAPL_WRR_MAX", "DAPL_WR_MAX");		/* one too many */
	expect_nearest("DAPL_WR_MIX", "DAPL_WR_MAX");		/* one replaced */
	expect_nearest("APL_WR_MAXI", "DAPL_WR_MAX");		/* one of each kind at the ends */
	expect_nearest("DAT_OVERIDDE", "DAT_OVERRIDE");		/* two replaced */
}

UNIT_TEST(three_edits_are_another_word)
{
	expect_nearest("DAPL_WR_M", "DAPL_WR_MAX");
	expect_nearest("DAPL_WR_", NULL);
	expect_nearest("XXXL_WR_MAX", NULL);
	expect_nearest("", NULL);
}

/* DAPL_DBG_TYPE and DAT_DBG_TYPE differ by two edits. */
UNIT_TEST(fewest_edits_count)
{
	expect_nearest("DAPL_DBG_TYPE", "DAPL_DBG_TYPE");
	expect_nearest("DAT_DBG_TYPE", "DAT_DBG_TYPE");
	expect_nearest("DAT_DBG_TYPO", "DAT_DBG_TYPE");
	expect_nearest("DAPL_DBG_DST", "DAPL_DBG_DEST");
}

UNIT_TEST(long_names_have_no_neighbour)
{
	char name[65];

	memset(name, 'D', sizeof name - 1);
	name[64] = '\0';
	expect_nearest(name, NULL);
	name[63] = '\0';
	expect_nearest(name, NULL);
}

UNIT_MAIN(NULL, NULL)
