/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_entry_table.c - entries by key, and what becomes of them when the files are read again. */
#include "dat/entry_table.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

static void replace(struct entry_table *table, const char *lines)
{
	struct entry_table fresh = table_of(lines);

	table_replace(table, &fresh);
	assert_null(fresh.reading);
}

static DAT_PROVIDER_INFO key(const char *name, unsigned minor, bool thread_safe)
{
	DAT_PROVIDER_INFO info = key_of(name);

	info.dapl_version_minor = minor;
	info.is_thread_safe = thread_safe ? DAT_TRUE : DAT_FALSE;
	return info;
}

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define B LINE("ia_b", "default", "libb.so", "eth0 0")

UNIT_TEST(each_part_of_a_key_counts)
{
	DAT_PROVIDER_INFO a = key("ia", 0, false), b;

	b = a;
	assert_true(same_key(&a, &b));
	b = key("ib", 0, false);
	assert_false(same_key(&a, &b));
	b = key("ia", 1, false);
	assert_false(same_key(&a, &b));
	b = key("ia", 0, true);
	assert_false(same_key(&a, &b));
	b.is_thread_safe = (DAT_BOOLEAN)2;	/* any value but 0 is true */
	a.is_thread_safe = DAT_TRUE;
	assert_true(same_key(&a, &b));
	b.dapl_version_major = 1;
	assert_false(same_key(&a, &b));
}

UNIT_TEST(equal_keys_come_in_the_order_of_the_file)
{
	struct entry_table table = table_of(A B LINE("ia_a", "default", "libc.so", ""));
	DAT_PROVIDER_INFO a = key("ia_a", 0, false), absent = key("ia_c", 0, false);
	struct entry *first = table_next(&table, &a, NULL);

	assert_int_equal(table.count, 3);
	assert_ptr_equal(first, table.entries[0]);
	assert_ptr_equal(table_next(&table, &a, first), table.entries[2]);
	assert_null(table_next(&table, &a, table.entries[2]));
	assert_null(table_next(&table, &absent, NULL));
	assert_false(table.entries[0]->repeated || table.entries[1]->repeated);
	assert_true(table.entries[2]->repeated && table.reading->repeated[2]);
	table_free(&table);
}

UNIT_TEST(many_entries_are_all_found)
{
	enum { MANY = 200, LINE_BYTES = 80 };
	static char lines[MANY * LINE_BYTES];
	struct entry_table table;
	size_t length = 0;
	char name[16];

	for (int i = 0; i < MANY; i++)
		length += (size_t)snprintf(lines + length, LINE_BYTES,
			"ia%d u2.0 nonthreadsafe default l.so dapl.2.0 \"\" \"\"\n", i);
	table = table_of(lines);
	for (int i = 0; i < MANY; i++) {
		DAT_PROVIDER_INFO wanted;

		snprintf(name, sizeof name, "ia%d", i);
		wanted = key(name, 0, false);
		assert_ptr_equal(table_next(&table, &wanted, NULL), table.entries[i]);
	}
	table_free(&table);
}

UNIT_TEST(changed_entry_is_another)
{
	static const char *const changed[] = {
		LINE("ia_a", "default", "libx.so", "eth0 0"), LINE("ia_a", "default", "liba.so", "eth1 0"),
		LINE("ia_a", "nondefault", "liba.so", "eth0 0"), LINE("ia_x", "default", "liba.so", "eth0 0"),
	};

	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
		struct entry_table table = table_of(A);
		struct entry *old = table.entries[0];

		old->loaded = true;
		old->users = 1;
		replace(&table, changed[i]);
		assert_ptr_not_equal(table.entries[0], old);
		assert_true(old->replaced);
		assert_string_equal(old->conf->library, "liba.so");	/* its reading is still there */
		entry_free_replaced(old);	/* it has a user: nothing happens */
		assert_true(old->replaced);
		old->loaded = false;
		old->users = 0;
		entry_free_replaced(old);
		table_free(&table);
	}
}

UNIT_TEST(two_equal_entries_keep_their_places)
{
	struct entry_table table = table_of(A A);
	struct entry *first = table.entries[0], *second = table.entries[1];

	replace(&table, A A A);
	assert_ptr_equal(table.entries[0], first);
	assert_ptr_equal(table.entries[1], second);
	assert_true(second->repeated && table.entries[2]->repeated && !first->repeated);
	table_free(&table);
}

UNIT_MAIN(NULL, NULL)
