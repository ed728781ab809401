/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_unknown_ia.c - the line about an adapter that does not exist. */
#include "dat/unknown_ia.h"
#include <dat/udat.h>
#include "common/log.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static void report(void *list)
{
	log_init("t", NULL, NULL, NULL, 1);
	unknown_ia_report("ia9", "in /etc/dat.conf", list);
}

UNIT_TEST(line_without_names_says_so)
{
	struct name_list list = { .length = 0 };

	assert_string_equal(printed_by(report, &list),
			    "t: no interface adapter \"ia9\" in /etc/dat.conf; there is none\n");
}

/* Names of ten bytes with the blank: the last byte of the list is the NUL. */
UNIT_TEST(names_that_do_not_fit_are_counted)
{
	struct name_list list = { .length = 0 };
	char expected[64];

	for (int i = 0; i < NAME_LIST_BYTES / 10 + 2; i++)
		unknown_ia_add_name(&list, "adapter_x");
	assert_int_equal(list.length, NAME_LIST_BYTES - 10);
	assert_int_equal(strlen(list.text), list.length);
	assert_int_equal(list.left_out, 3);
	snprintf(expected, sizeof expected, " adapter_x, and %u more\n", list.left_out);
	assert_int_equal(times_in(printed_by(report, &list), expected), 1);
}

UNIT_TEST(list_can_be_filled_to_its_last_byte)
{
	struct name_list list = { .length = 0 };
	char name[NAME_LIST_BYTES];

	memset(name, 'x', sizeof name);
	name[NAME_LIST_BYTES - 2] = '\0';
	unknown_ia_add_name(&list, name);
	assert_int_equal(list.left_out, 0);
	assert_int_equal(list.length, NAME_LIST_BYTES - 1);
}

/* A short name behind one that did not fit would look like the last of all. */
UNIT_TEST(later_names_do_not_fill_the_gap)
{
	struct name_list list = { .length = 0 };
	char name[NAME_LIST_BYTES];

	memset(name, 'x', sizeof name);
	name[NAME_LIST_BYTES - 1] = '\0';
	unknown_ia_add_name(&list, name);
	unknown_ia_add_name(&list, "b");
	assert_int_equal(list.length, 0);
	assert_int_equal(list.left_out, 2);
}

UNIT_TEST(each_name_is_new_once_and_four_are_enough)
{
	char name[16];

	for (unsigned i = 0; i < UNKNOWN_IA_MAX; i++) {
		snprintf(name, sizeof name, "ia%u", i);
		assert_true(unknown_ia_is_new(name));
		assert_false(unknown_ia_is_new(name));
		assert_false(unknown_ia_is_new("ia0"));
	}
	assert_false(unknown_ia_is_new("another"));
}

UNIT_MAIN(NULL, NULL)
