/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_text.c - text that grows in a buffer of fixed size. */
#include "dapl/core/base/text.h"
#include "test/unit/unit.h"

UNIT_TEST(texts_are_appended)
{
	char at[16] = "";
	struct dapl_text t = { at, 0, sizeof at };

	dapl_text_add(&t, "%s", "abc");
	dapl_text_add(&t, "%s", "");
	dapl_text_add(&t, " %d", 42);
	assert_string_equal(at, "abc 42");
	assert_int_equal(t.length, 6);
}

UNIT_TEST(text_fits_to_the_last_byte)
{
	char at[8] = "";
	struct dapl_text t = { at, 0, sizeof at };

	dapl_text_add(&t, "1234567");
	assert_string_equal(at, "1234567");
	assert_int_equal(t.length, 7);
}

UNIT_TEST(what_does_not_fit_is_cut)
{
	char at[9] = "";
	struct dapl_text t = { at, 0, 8 };

	at[8] = '#';
	dapl_text_add(&t, "12345");
	dapl_text_add(&t, "6789");
	assert_string_equal(at, "1234567");
	dapl_text_add(&t, "more");
	assert_string_equal(at, "1234567");
	assert_int_equal(t.length, 7);
	assert_int_equal(at[8], '#');
}

UNIT_MAIN(NULL, NULL)
