/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lmr_table.c - LMR handles by IA and context. */
#include "dat/lmr_table.h"
#include "test/unit/unit.h"

enum { MANY = 1000 };	/* more than fifteen times the first chains */

static char ia_memory[2][4096];	/* so far apart that a context of both has the same chain */
static char lmr_memory[MANY];

static DAT_IA_HANDLE ia(unsigned i) { return (DAT_IA_HANDLE)ia_memory[i]; }
static DAT_LMR_HANDLE lmr(unsigned i) { return (DAT_LMR_HANDLE)&lmr_memory[i]; }

UNIT_FIXTURE(tear_down)
{
	lmr_table_drop(ia(0));
	lmr_table_drop(ia(1));
	lmr_table_fini();
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, tear_down)

TEST(empty_table_finds_nothing)
{
	assert_null(dats_lmr_find(ia(0), 7));
	dats_lmr_remove(ia(0), 7, lmr(0));
	lmr_table_drop(ia(0));
}

TEST(contexts_of_two_ias_are_apart)
{
	assert_int_equal(dats_lmr_add(ia(0), 7, lmr(0)), DAT_SUCCESS);
	assert_int_equal(dats_lmr_add(ia(1), 7, lmr(1)), DAT_SUCCESS);
	assert_ptr_equal(dats_lmr_find(ia(0), 7), lmr(0));
	assert_ptr_equal(dats_lmr_find(ia(1), 7), lmr(1));
	assert_null(dats_lmr_find(ia(0), 8));
}

TEST(second_entry_replaces_the_first)
{
	dats_lmr_add(ia(0), 7, lmr(0));
	dats_lmr_add(ia(0), 7, lmr(1));
	assert_ptr_equal(dats_lmr_find(ia(0), 7), lmr(1));
	dats_lmr_remove(ia(0), 7, lmr(1));
	assert_null(dats_lmr_find(ia(0), 7));
}

/* The context was given to a new LMR before the old one was removed. */
TEST(entry_of_another_lmr_is_not_removed)
{
	dats_lmr_add(ia(0), 7, lmr(1));
	dats_lmr_remove(ia(0), 7, lmr(0));
	assert_ptr_equal(dats_lmr_find(ia(0), 7), lmr(1));
}

TEST(table_grows_without_loss)
{
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(dats_lmr_add(ia(i % 2), 256 * i, lmr(i)), DAT_SUCCESS);
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(dats_lmr_find(ia(i % 2), 256 * i), lmr(i));
	for (unsigned i = 0; i < MANY; i += 3)
		dats_lmr_remove(ia(i % 2), 256 * i, lmr(i));
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(dats_lmr_find(ia(i % 2), 256 * i), i % 3 ? lmr(i) : DAT_HANDLE_NULL);
}

TEST(drop_takes_the_entries_of_one_ia)
{
	for (unsigned i = 0; i < MANY; i++)
		dats_lmr_add(ia(i % 2), i, lmr(i));
	lmr_table_drop(ia(0));
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(dats_lmr_find(ia(i % 2), i), i % 2 ? lmr(i) : DAT_HANDLE_NULL);
}

UNIT_MAIN(NULL, NULL)
