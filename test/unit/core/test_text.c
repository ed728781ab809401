/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_text.c - text that grows in a buffer of fixed size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/core/base/text.h"

static void texts_are_appended(void **state)
{
	char at[16] = "";
	struct dapl_text t = { at, 0, sizeof at };

	(void)state;
	dapl_text_add(&t, "%s", "abc");
	dapl_text_add(&t, "%s", "");
	dapl_text_add(&t, " %d", 42);
	assert_string_equal(at, "abc 42");
	assert_int_equal(t.length, 6);
}

static void text_fits_to_the_last_byte(void **state)
{
	char at[8] = "";
	struct dapl_text t = { at, 0, sizeof at };

	(void)state;
	dapl_text_add(&t, "1234567");
	assert_string_equal(at, "1234567");
	assert_int_equal(t.length, 7);
}

static void what_does_not_fit_is_cut(void **state)
{
	char at[9] = "";
	struct dapl_text t = { at, 0, 8 };

	(void)state;
	at[8] = '#';
	dapl_text_add(&t, "12345");
	dapl_text_add(&t, "6789");
	assert_string_equal(at, "1234567");
	dapl_text_add(&t, "more");
	assert_string_equal(at, "1234567");
	assert_int_equal(t.length, 7);
	assert_int_equal(at[8], '#');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_appended),
		cmocka_unit_test(text_fits_to_the_last_byte),
		cmocka_unit_test(what_does_not_fit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
