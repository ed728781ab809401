/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_object_table.c - the table from verbs objects to what belongs to them: more entries than buckets, so that
 * most share one, and removal from each place in a bucket. */
#include "dapl/verbs/object_table.h"
#include "test/unit/unit.h"

enum { OBJECTS = 1024 };	/* four for each of the table's 256 buckets */

static struct object_entry entries[OBJECTS];
static char objects[OBJECTS][64];	/* addresses are all that matters */

UNIT_FIXTURE(fill)
{
	memset(entries, 0, sizeof entries);
	for (int i = 0; i < OBJECTS; i++)
		object_table_add(&entries[i], objects[i]);
}

UNIT_FIXTURE(empty)
{
	for (int i = 0; i < OBJECTS; i++)
		object_table_remove(objects[i]);
}

#define TEST(name) UNIT_TEST_WITH(name, fill, empty)

TEST(each_object_has_its_entry)
{
	for (int i = 0; i < OBJECTS; i++) {
		assert_ptr_equal(object_table_find(objects[i]), &entries[i]);
		assert_ptr_equal(entries[i].object, objects[i]);
	}
}

TEST(unknown_object_has_none)
{
	for (int i = 0; i < OBJECTS; i++) {
		assert_null(object_table_find(objects[i] + 1));
		assert_null(object_table_remove(objects[i] + 1));
	}
	each_object_has_its_entry(state);
}

/* The first of each `step` objects: their places in the buckets differ. */
static void remove_each(int step)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct object_entry *removed = i % step ? NULL : object_table_remove(objects[i]);

		if (i % step == 0)
			assert_ptr_equal(removed, &entries[i]);
	}
	for (int i = 0; i < OBJECTS; i++)
		assert_ptr_equal(object_table_find(objects[i]), i % step ? &entries[i] : NULL);
}

TEST(removal_leaves_all_other_entries)
{
	for (int step = 1; step < 8; step++) {
		remove_each(step);
		empty(state);
		fill(state);
	}
}

TEST(removed_object_is_removed_once)
{
	assert_ptr_equal(object_table_remove(objects[3]), &entries[3]);
	assert_null(object_table_remove(objects[3]));
}

/* siw.c does so when the device refuses to destroy an object. */
TEST(removed_entry_can_be_added_again)
{
	struct object_entry *e = object_table_remove(objects[3]);

	object_table_add(e, objects[4] + 1);
	assert_ptr_equal(object_table_find(objects[4] + 1), e);
	assert_null(object_table_find(objects[3]));
	assert_ptr_equal(object_table_remove(objects[4] + 1), e);
	object_table_add(e, objects[3]);
	each_object_has_its_entry(state);
}

UNIT_MAIN(NULL, NULL)
