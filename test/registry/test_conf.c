/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the library makes of a dat.conf: CFG-1 to CFG-34, and the words it has for what is
 * wrong. The grammar itself is tested in test/unit/dat/test_conf.c. */
#include "test/registry/scenario.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct outcome outcome;

/* --- which entries there are ---------------------------------------------------- */

static void print_list(void)
{
	printf("%s", listed());
}

static void lists(const char *conf, const char *names)
{
	scenario(&outcome, conf, print_list);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.out, names);
}

static void complains(const char *text)
{
	if (!strstr(outcome.err, text)) {
		print_message("no \"%s\" in:\n%s", text, outcome.err);
		fail();
	}
}

/* Lines on standard error. */
static int complaints(void)
{
	int count = 0;

	for (const char *at = outcome.err; *at; at++)
		count += *at == '\n';
	return count;
}

static void good_lists_are_silent(void **state)
{
	static const struct {
		const char *conf, *names;
	} cases[] = {
		{ "good.conf", "good " },				/* CFG-1 */
		{ "trailing-comment.conf", "x y " },			/* CFG-7 */
		{ "no-newline.conf", "x y " },				/* CFG-8 */
		{ "blanks.conf", "x y " },				/* CFG-9 */
		{ "indented-comment.conf", "after " },			/* CFG-10 */
		{ "hash-in-name.conf", "foo#bar " },			/* CFG-11 */
		{ "nondefault.conf", "after " },			/* CFG-23 */
		{ "duplicates.conf", "x y x " },			/* CFG-26 */
		{ "old-version.conf", "x y " },
		{ "crlf.conf", "x y " },				/* CFG-30 */
		{ "byte-order-mark.conf", "x " },
		{ "/dev/null", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		lists(cases[i].conf, cases[i].names);
		assert_string_equal(outcome.err, "");
	}
}

/* A wrong line is told once, with file, line, field, found and expected; the rest stays. */
static void a_wrong_line_is_told_and_left_out(void **state)
{
	static const struct {
		const char *conf, *names;
		int count;
		const char *message;
	} cases[] = {
		{ "seven-fields.conf", "after ", 1,			/* CFG-5 */
		  "seven-fields.conf:1: \"x\": 7 fields; expected 8 (" },
		{ "nine-fields.conf", "after ", 1,			/* CFG-6 */
		  "nine-fields.conf:1: \"x\": more than 8 fields; expected 8 (" },
		{ "unterminated-quote.conf", "after ", 1,		/* CFG-18 */
		  "unterminated-quote.conf:1: \"x\": a quoted field is not closed" },
		{ "backslash-newline.conf", "after ", 2,		/* CFG-19 */
		  "backslash-newline.conf:1: \"x\": 6 fields; expected 8" },
		{ "api-versions.conf", "short ", 6,			/* CFG-20, 21 */
		  "api-versions.conf:3: \"x2\": api_version is \"U2.0\"; expected "
		  "u<major>.<minor>, as in \"u2.0\"; entry ignored\n" },
		{ "thread-words.conf", "after ", 3,			/* CFG-22 */
		  "thread-words.conf:3: \"x2\": threadsafety is \"threadsave\"; expected "
		  "\"threadsafe\" or \"nonthreadsafe\"; entry ignored\n" },
		{ "default-words.conf", "after ", 1,
		  "default is \"yes\"; expected \"default\" or \"nondefault\"; entry ignored" },
		{ "provider-versions.conf", "y ", 5,			/* CFG-24, 25 */
		  "provider_version is \"mock.x.y\"; expected <id>.<major>.<minor>" },
		{ "empty-fields.conf", "after ", 2,
		  "empty-fields.conf:2: \"x\": lib_path is \"\"; expected a file name" },
		{ "include-what.conf", "after ", 1,
		  "include-what.conf:1: include is \"all\"; expected \"auto\"; line ignored\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		lists(cases[i].conf, cases[i].names);
		assert_int_equal(complaints(), cases[i].count);
		complains(cases[i].message);
		assert_memory_equal(outcome.err, "dat: ", 5);
	}
}

static void CFG_31_32_names_have_up_to_255_characters(void **state)
{
	char expected[400];

	(void)state;
	memset(expected, 'n', 255);
	strcpy(expected + 255, " after ");
	lists("long-names.conf", expected);
	assert_int_equal(complaints(), 1);
	complains(":2: \"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm...\": ia_name is");
}

static void open_the_long_name(void)
{
	char name[256];
	DAT_IA_HANDLE ia;

	memset(name, 'n', 255);
	name[255] = '\0';
	OK(open_ia(name, &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
}

static void CFG_31_opens_a_name_of_255(void **state)
{
	(void)state;
	scenario(&outcome, "long-names.conf", open_the_long_name);
	assert_int_equal(outcome.status, 0);
}

static void list_a_thousand(void)
{
	const char *names = listed(), *at = names;
	char name[16];

	for (int i = 0; i < 1000; i++) {
		int n = snprintf(name, sizeof(name), "ia-%d ", i);

		CHECK(!strncmp(at, name, n));
		at += n;
	}
	CHECK(!*at);
}

static void CFG_33_a_thousand_entries(void **state)
{
	(void)state;
	silent("thousand.conf", list_a_thousand);
}

static void CFG_34_garbage_spoils_its_own_lines_only(void **state)
{
	(void)state;
	lists("garbage.conf", "before after ");
	complains("garbage.conf:4: a NUL byte; expected text; line ignored");
	for (const char *at = outcome.err; *at; at++)
		assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
}

/* --- DAT_OVERRIDE --------------------------------------------------------------- */

static void nothing_there(void)
{
	DAT_IA_HANDLE ia;

	CHECK(!*listed());
	RETURNS(open_ia("good", &ia), NOT_FOUND);
}

static void CFG_2_3_an_unreadable_override_is_an_empty_registry(void **state)
{
	(void)state;
	scenario(&outcome, "/no/such/file", nothing_there);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err, "dat: cannot read the file that DAT_OVERRIDE names, "
			    "\"/no/such/file\": No such file or directory; no interface "
			    "adapter is configured\n");
	scenario(&outcome, "/", nothing_there);
	assert_int_equal(outcome.status, 0);
	complains("\"/\": Is a directory");
	setenv("DAT_OVERRIDE", "", 1);
	scenario(&outcome, NULL, nothing_there);
	unsetenv("DAT_OVERRIDE");
	assert_int_equal(outcome.status, 0);
	complains("\"\": No such file or directory");
}

/* --- what an entry does ----------------------------------------------------------- */

static void opens(const char *name)
{
	DAT_IA_HANDLE ia;

	OK(open_ia(name, &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
}

static void open_quoted(void)
{
	opens("a b");
	CHECK(noted("init a b 2.0 nonthreadsafe []") == 1);		/* CFG-13 */
	opens("two-words");
	CHECK(noted("init two-words 2.0 nonthreadsafe [p 1]") == 1);	/* CFG-14 */
	opens("hash");
	CHECK(noted("init hash 2.0 nonthreadsafe [a # b]") == 1);	/* CFG-12 */
	opens("escapes");
	CHECK(noted("init escapes 2.0 nonthreadsafe [a\"b\\c]") == 1);	/* CFG-15 */
	opens("not-newline");
	CHECK(noted("init not-newline 2.0 nonthreadsafe [anb]") == 1);	/* CFG-16 */
	opens("empty");
	CHECK(noted("init empty 2.0 nonthreadsafe []") == 1);		/* CFG-17 */
}

static void CFG_12_to_17_quoted_fields_are_read(void **state)
{
	(void)state;
	silent("quoting.conf", open_quoted);
}

static void open_short(void)
{
	opens("short");
}

static void CFG_21_u2_is_2_0(void **state)
{
	(void)state;
	scenario(&outcome, "api-versions.conf", open_short);
	assert_int_equal(outcome.status, 0);
}

static void open_hidden(void)
{
	DAT_IA_HANDLE ia;

	RETURNS(open_ia("hidden", &ia), NOT_FOUND);
}

static void CFG_23_nondefault_is_not_opened(void **state)
{
	(void)state;
	scenario(&outcome, "nondefault.conf", open_hidden);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 1);
	complains("nondefault.conf; there are: after\n");
}

static void open_first_that_loads(void)
{
	opens("x");
	CHECK(noted("init x 2.0 nonthreadsafe [third]") == 1);
}

static void CFG_27_the_first_library_that_loads_wins(void **state)
{
	(void)state;
	scenario(&outcome, "second-library.conf", open_first_that_loads);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 2);
	complains("second-library.conf:1: \"x\": cannot load ./no-such-library.so: ");
	complains("second-library.conf:2: \"x\": cannot load ./no_fini.so: ./no_fini.so has no "
		  "dat_provider_fini: it is not a provider\n");
}

static void open_unsafe(void)
{
	opens("x");
	CHECK(noted("init x 2.0 nonthreadsafe [unsafe]") == 1);
	CHECK(noted("init x 2.0 threadsafe [safe]") == 0);
}

static void CFG_28_an_exact_entry_precedes_a_threadsafe_one(void **state)
{
	(void)state;
	silent("both-thread-safeties.conf", open_unsafe);
}

static void open_safe(void)
{
	opens("x");
	CHECK(noted("init x 2.0 threadsafe [safe]") == 1);
}

static void a_threadsafe_entry_after_exact_ones_that_fail(void **state)
{
	(void)state;
	scenario(&outcome, "unsafe-cannot-load.conf", open_safe);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 1);
}

static void open_old(void)
{
	DAT_IA_HANDLE ia;

	RETURNS(open_ia("x", &ia), FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND));
	RETURNS(open_ia("y", &ia), FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND));
}

static void CFG_29_other_versions_do_not_match(void **state)
{
	(void)state;
	silent("old-version.conf", open_old);
}

static void open_all_twice(void)
{
	static const char *const names[] = { "x", "y", "z", "program" };
	DAT_IA_HANDLE ia;

	for (int i = 0; i < 8; i++)
		RETURNS(open_ia(names[i % 4], &ia), NOT_FOUND);
}

/* REG-15 */
static void a_library_that_cannot_be_loaded_is_told_once(void **state)
{
	(void)state;
	scenario(&outcome, "cannot-load.conf", open_all_twice);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 3);
	complains("cannot-load.conf:1: \"x\": cannot load ./no-such-library.so: ./no-such-library.so: "
		  "cannot open shared object file: No such file or directory\n");
	complains("cannot-load.conf:4: \"program\": cannot load ./not-a-library.so: ");
}

static void open_unknown(void)
{
	static const char *const names[] = { "foo", "foo", "bar", "foo", "a", "b", "c", "foo", "d" };
	DAT_IA_HANDLE ia;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		RETURNS(open_ia(names[i], &ia), NOT_FOUND);
}

/* Once for each name, and for four of them. */
static void an_unknown_name_is_told_with_the_known_ones(void **state)
{
	(void)state;
	scenario(&outcome, "duplicates.conf", open_unknown);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 4);
	assert_string_equal(strstr(outcome.err, "dat: no"), outcome.err);
	assert_memory_equal(outcome.err, "dat: no interface adapter \"foo\" in /",
			    strlen("dat: no interface adapter \"foo\" in /"));
	complains("/duplicates.conf; there are: x y\ndat: no interface adapter \"bar\" in ");
	complains("dat: no interface adapter \"b\" in ");
	scenario(&outcome, "/dev/null", open_unknown);
	complains("dat: no interface adapter \"foo\" in /dev/null; there is none\n");
}

static void a_long_list_of_names_is_cut(void **state)
{
	(void)state;
	scenario(&outcome, "thousand.conf", open_unknown);
	assert_int_equal(outcome.status, 0);
	complains("/thousand.conf; there are: ia-0 ia-1 ia-2 ");
	complains(" ia-66 ia-67, and 932 more\n");
	assert_int_equal(complaints(), 4);
}

/* --- variables -------------------------------------------------------------------- */

static void open_good(void)
{
	opens("good");
}

static void set_misspelt(void)
{
	setenv("DAT_OVERIDE", "1", 1);			/* a letter is missing */
	setenv("DAPL_SOFT_SHN", "1", 1);		/* another letter */
	setenv("DAPL_UCM_REP_TIME", "1", 1);		/* nothing like it */
	setenv("DATA_OVERRIDE", "1", 1);		/* not our prefix */
	setenv("DAPL_ACK_RETRY", "1", 1);		/* known */
}

static void open_good_misspelt(void)
{
	set_misspelt();
	opens("good");
}

static void traced_open(void)
{
	setenv("DAT_TRACE_LEVEL", "3", 1);
	open_good_misspelt();
	opens("good");
}

static void providers_traced_open(void)
{
	setenv("DAPL_TRACE_LEVEL", "3", 1);
	open_good_misspelt();
	opens("good");
}

static int variables_told(void)
{
	int count = 0;

	for (const char *at = outcome.err; (at = strstr(at, "the variable ")); at++)
		count++;
	return count;
}

static void misspelt_variables_are_told_once_at_trace_level_3(void **state)
{
	(void)state;
	silent("good.conf", open_good_misspelt);
	for (int i = 0; i < 2; i++) {
		scenario(&outcome, "good.conf", i ? providers_traced_open : traced_open);
		assert_int_equal(outcome.status, 0);
		assert_int_equal(variables_told(), 3);
		complains("dat: the variable DAT_OVERIDE has no meaning; is DAT_OVERRIDE meant?\n");
		complains("dat: the variable DAPL_SOFT_SHN has no meaning; is DAPL_SOFT_SHM meant?\n");
		complains("dat: the variable DAPL_UCM_REP_TIME has no meaning\n");
	}
}

static void REG_52_messages_can_be_turned_off(void **state)
{
	(void)state;
	setenv("DAT_DBG_TYPE", "0", 1);
	silent("seven-fields.conf", open_hidden);
	unsetenv("DAT_DBG_TYPE");
}

static void REG_53_all_messages_go_to_standard_output(void **state)
{
	(void)state;
	setenv("DAT_DBG_TYPE", "0xff", 1);
	setenv("DAT_DBG_DEST", "1", 1);
	scenario(&outcome, "good.conf", open_good);
	unsetenv("DAT_DBG_TYPE");
	unsetenv("DAT_DBG_DEST");
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err, "");
	assert_non_null(strstr(outcome.out, "dat: open \"good\" u2.0: 0x0\n"));
	assert_non_null(strstr(outcome.out, "good.conf:1: \"good\" u2.0 nonthreadsafe ./mock.so"));
}

static void a_wrong_variable_is_told(void **state)
{
	(void)state;
	setenv("DAT_DBG_TYPE", "all", 1);
	setenv("DAT_TRACE_LEVEL", "11", 1);
	scenario(&outcome, "good.conf", open_good);
	unsetenv("DAT_DBG_TYPE");
	unsetenv("DAT_TRACE_LEVEL");
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err,
		"dat: DAT_DBG_TYPE is \"all\"; expected a number from 0 to 4294967295; ignored\n"
		"dat: DAT_TRACE_LEVEL is \"11\"; expected a number from 0 to 10; ignored\n");
}

static void a_trace_tells_the_life_of_an_ia(void **state)
{
	(void)state;
	setenv("DAT_TRACE_LEVEL", "3", 1);
	scenario(&outcome, "good.conf", open_good);
	unsetenv("DAT_TRACE_LEVEL");
	assert_int_equal(outcome.status, 0);
	assert_int_equal(complaints(), 4);
	complains("5C7 ");
	complains(" - loaded ./mock.so\n");
	complains(" ia 0x1 open good\n");
	complains(" ia 0x1 closed good\n");
	complains(" - unloaded ./mock.so\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lists_are_silent),
		cmocka_unit_test(a_wrong_line_is_told_and_left_out),
		cmocka_unit_test(CFG_31_32_names_have_up_to_255_characters),
		cmocka_unit_test(CFG_31_opens_a_name_of_255),
		cmocka_unit_test(CFG_33_a_thousand_entries),
		cmocka_unit_test(CFG_34_garbage_spoils_its_own_lines_only),
		cmocka_unit_test(CFG_2_3_an_unreadable_override_is_an_empty_registry),
		cmocka_unit_test(CFG_12_to_17_quoted_fields_are_read),
		cmocka_unit_test(CFG_21_u2_is_2_0),
		cmocka_unit_test(CFG_23_nondefault_is_not_opened),
		cmocka_unit_test(CFG_27_the_first_library_that_loads_wins),
		cmocka_unit_test(CFG_28_an_exact_entry_precedes_a_threadsafe_one),
		cmocka_unit_test(a_threadsafe_entry_after_exact_ones_that_fail),
		cmocka_unit_test(CFG_29_other_versions_do_not_match),
		cmocka_unit_test(a_library_that_cannot_be_loaded_is_told_once),
		cmocka_unit_test(misspelt_variables_are_told_once_at_trace_level_3),
		cmocka_unit_test(an_unknown_name_is_told_with_the_known_ones),
		cmocka_unit_test(a_long_list_of_names_is_cut),
		cmocka_unit_test(REG_52_messages_can_be_turned_off),
		cmocka_unit_test(REG_53_all_messages_go_to_standard_output),
		cmocka_unit_test(a_wrong_variable_is_told),
		cmocka_unit_test(a_trace_tells_the_life_of_an_ia),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
