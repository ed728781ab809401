/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_siw_table.c - the table from verbs objects to what belongs to them: more entries than buckets, so that
 * most share one, and removal from each place in a bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "dapl/verbs/siw_table.h"

enum { OBJECTS = 1024 };	/* four for each of the table's 256 buckets */

static struct siw_entry entries[OBJECTS];
static char objects[OBJECTS][64];	/* addresses are all that matters */

static int fill(void **state)
{
	(void)state;
	memset(entries, 0, sizeof entries);
	for (int i = 0; i < OBJECTS; i++)
		siw_table_add(&entries[i], objects[i]);
	return 0;
}

static int empty(void **state)
{
	(void)state;
	for (int i = 0; i < OBJECTS; i++)
		siw_table_remove(objects[i]);
	return 0;
}

static void each_object_has_its_entry(void **state)
{
	(void)state;
	for (int i = 0; i < OBJECTS; i++) {
		assert_ptr_equal(siw_table_find(objects[i]), &entries[i]);
		assert_ptr_equal(entries[i].object, objects[i]);
	}
}

static void unknown_object_has_none(void **state)
{
	(void)state;
	for (int i = 0; i < OBJECTS; i++) {
		assert_null(siw_table_find(objects[i] + 1));
		assert_null(siw_table_remove(objects[i] + 1));
	}
	each_object_has_its_entry(state);
}

/* The first of each `step` objects: their places in the buckets differ. */
static void remove_each(int step)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct siw_entry *removed = i % step ? NULL : siw_table_remove(objects[i]);

		if (i % step == 0)
			assert_ptr_equal(removed, &entries[i]);
	}
	for (int i = 0; i < OBJECTS; i++)
		assert_ptr_equal(siw_table_find(objects[i]), i % step ? &entries[i] : NULL);
}

static void removal_leaves_all_other_entries(void **state)
{
	for (int step = 1; step < 8; step++) {
		remove_each(step);
		empty(state);
		fill(state);
	}
}

static void removed_object_is_removed_once(void **state)
{
	(void)state;
	assert_ptr_equal(siw_table_remove(objects[3]), &entries[3]);
	assert_null(siw_table_remove(objects[3]));
}

/* siw.c does so when the device refuses to destroy an object. */
static void removed_entry_can_be_added_again(void **state)
{
	struct siw_entry *e = siw_table_remove(objects[3]);

	siw_table_add(e, objects[4] + 1);
	assert_ptr_equal(siw_table_find(objects[4] + 1), e);
	assert_null(siw_table_find(objects[3]));
	assert_ptr_equal(siw_table_remove(objects[4] + 1), e);
	siw_table_add(e, objects[3]);
	each_object_has_its_entry(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fill, empty)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_object_has_its_entry),
		TEST(unknown_object_has_none),
		TEST(removal_leaves_all_other_entries),
		TEST(removed_object_is_removed_once),
		TEST(removed_entry_can_be_added_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
