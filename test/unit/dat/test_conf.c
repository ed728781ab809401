/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The grammar of dat.conf: text in, entries and reports of wrong lines out. */
#include "dat/conf.h"
#include "test/unit/unit.h"

static struct conf conf;
static char complaints[65536];

static char places[4096];	/* "line:column field|found|expected\n" of each report */

static void note(void *arg, const struct conf_fault *fault)
{
	size_t at = strlen(complaints), place = strlen(places);

	assert_ptr_equal(arg, &conf);
	snprintf(complaints + at, sizeof(complaints) - at, "%s:%u: %s\n", fault->file, fault->line,
		 fault->message);
	snprintf(places + place, sizeof(places) - place, "%u:%u %s|%s|%s\n", fault->line,
		 fault->column, fault->field, fault->found, fault->expected);
}

static void parse_bytes(const char *text, size_t length)
{
	complaints[0] = places[0] = '\0';
	assert_int_equal(conf_parse(&conf, text, length, "f", note, &conf), 0);
}

static void parse(const char *text)
{
	conf_free(&conf);
	parse_bytes(text, strlen(text));
}

UNIT_FIXTURE(free_conf) { conf_free(&conf); }

#define REST " u2.0 nonthreadsafe default lib.so x.1.2 \"\" \"\""

UNIT_TEST(an_entry_has_all_its_fields)
{
	const struct conf_entry *e;

	parse("\nname u2.1 threadsafe nondefault /a/lib.so x.1.2 \"dev 1\" \"plat\"\n");
	assert_int_equal(conf.count, 1);
	e = conf.entries;
	assert_string_equal(e->info.ia_name, "name");
	assert_int_equal(e->info.dapl_version_major, 2);
	assert_int_equal(e->info.dapl_version_minor, 1);
	assert_int_equal(e->info.is_thread_safe, DAT_TRUE);
	assert_false(e->is_default);
	assert_string_equal(e->library, "/a/lib.so");
	assert_string_equal(e->ia_params, "dev 1");
	assert_string_equal(e->file, "f");
	assert_int_equal(e->line, 2);
}

UNIT_TEST(texts_are_appended)
{
	parse("a" REST);
	parse_bytes("b" REST "\n", strlen("b" REST "\n"));
	assert_int_equal(conf.count, 2);
	assert_string_equal(conf.entries[1].info.ia_name, "b");
	assert_int_equal(conf.entries[1].line, 1);
}

UNIT_TEST(quotation_marks_end_words)
{
	parse("name u2.0 nonthreadsafe default lib.so x.1.2 \"a\"\"b\"\n");
	assert_int_equal(conf.count, 1);
	assert_string_equal(conf.entries[0].ia_params, "a");
	parse("na\"me\" u2.0 nonthreadsafe default lib.so x.1.2 \"\"\n");
	assert_int_equal(conf.count, 0);
	assert_non_null(strstr(complaints, "\"na\": api_version is \"me\""));
}

UNIT_TEST(backslashes_count_inside_quotation_marks_only)
{
	parse("n\\ame u2.0 nonthreadsafe default lib.so x.1.2 \"\\\\\\\"\" \\\n");
	assert_int_equal(conf.count, 1);
	assert_string_equal(conf.entries[0].info.ia_name, "n\\ame");
	assert_string_equal(conf.entries[0].ia_params, "\\\"");
	parse("name u2.0 nonthreadsafe default lib.so x.1.2 \"\" \"\\\"\n");
	assert_int_equal(conf.count, 0);
	assert_non_null(strstr(complaints, "f:1: \"name\": a quoted field is not closed before the "
			       "end of the line: the quotation mark in column 49 has no partner"));
}

/* The seventh field, and what the OpenFabrics registry takes it for; NULL: it drops the line, too. */
UNIT_TEST(unquoted_fields_are_those_of_the_openfabrics_registry)
{
	static const char *const fields[][2] = {
		{ "a\\\"b", "a\\\"b" }, { "a\\\"", "a\\\"" }, { "a\\\\b", "a\\\\b" }, { "a\\", "a\\" }, { "\\", "\\" },
		{ "x\\\\\\\"y", "x\\\\\\\"y" },
		{ "\\\"lo", NULL }, { "a\\ b", NULL }, { "a\\\\\"b", NULL }, { "ab\"c", NULL },
		{ "ab\\\"c d\\\"e", NULL }, { "a\"b\"", NULL }, { "a\\\"b\"c\"", NULL }, { "\\a\"b", NULL },
	};
	char line[100];

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		snprintf(line, sizeof(line), "name u2.0 nonthreadsafe default lib.so x.1.2 %s \"\"\n", fields[i][0]);
		parse(line);
		assert_int_equal(conf.count, fields[i][1] ? 1 : 0);
		if (fields[i][1])
			assert_string_equal(conf.entries[0].ia_params, fields[i][1]);
	}
}

UNIT_TEST(hash_after_a_quotation_is_a_comment)
{
	parse("name" REST "# x");
	assert_int_equal(conf.count, 1);
	parse("name u2.0 nonthreadsafe default lib.so x.1.2 \"\"#\"\"");
	assert_int_equal(conf.count, 0);
	assert_string_equal(complaints, "f:1: \"name\": 7 fields; expected 8 (ia_name "
			    "api_version threadsafety default lib_path provider_version ia_params "
			    "platform_params); entry ignored\n");
}

UNIT_TEST(line_numbers_count_every_line)
{
	parse("a" REST "\n\n# c\nwrong\nb" REST "\r\n\"open\nc" REST);
	assert_int_equal(conf.count, 3);
	assert_int_equal(conf.entries[1].line, 5);
	assert_int_equal(conf.entries[2].line, 7);
	assert_non_null(strstr(complaints, "f:4: \"wrong\": 1 field;"));
	assert_non_null(strstr(complaints, "f:6: a quoted field is not closed before the end of "
			       "the line: the quotation mark in column 1 has no partner"));
}

UNIT_TEST(include_auto_remembers_the_first_place)
{
	parse("a" REST "\n include\tauto # devices\nb" REST "\ninclude auto\n");
	assert_true(conf.wants_auto);
	assert_int_equal(conf.auto_at, 1);
	assert_int_equal(conf.count, 2);
	parse("include" REST "\n");
	assert_false(conf.wants_auto);
	assert_string_equal(conf.entries[0].info.ia_name, "include");
	parse("include\n");
	assert_string_equal(complaints, "f:1: include is alone on its line; expected \"include "
			    "auto\"; line ignored\n");
	parse("include auto auto\n");
	assert_false(conf.wants_auto);
	assert_non_null(strstr(complaints, "f:1: include has more than one word after it;"));
}

UNIT_TEST(found_values_are_printable)
{
	parse("\x1b[31mred u2.0 \"\a\xff " "0123456789012345678901234567890123456789\" default "
	      "lib.so x.1.2 \"\" \"\"");
	assert_string_equal(complaints, "f:1: \"\\x1b[31mred\": threadsafety is \"\\x07\\xff "
			    "0123456789012345678901234567890123456...\"; expected \"threadsafe\" "
			    "or \"nonthreadsafe\"; entry ignored\n");
}

UNIT_TEST(report_names_field_found_and_expected)
{
	parse("a u2.0 sometimes default lib.so x.1.2 \"\" \"\"\n"
	      "  b u2.0\n"
	      "c u2.0 threadsafe default lib.so x.1.2 \"\" \"\" more\n"
	      "d u2.0 threadsafe default \"\" x.1.2 \"\" \"\"\n"
	      "e u2.0 threadsafe default \"lib.so x.1.2\n"
	      "include all\n"
	      "include\n"
	      "include auto twice\n");
	assert_string_equal(places,
		"1:8 threadsafety|sometimes|\"threadsafe\" or \"nonthreadsafe\"\n"
		"2:9 |2 fields|8 fields: ia_name api_version threadsafety default lib_path "
		"provider_version ia_params platform_params\n"
		"3:46 |more than 8 fields|8 fields: ia_name api_version threadsafety default "
		"lib_path provider_version ia_params platform_params\n"
		"4:27 lib_path||a file name\n"
		"5:27 lib_path|a quotation mark without a partner|a closing quotation mark on "
		"the same line\n"
		"6:9 include|all|auto\n"
		"7:8 include|nothing|auto\n"
		"8:14 include|more than one word|auto\n");
	parse_bytes("a\0b", 3);
	assert_string_equal(places, "1:2 |a NUL byte|text\n");
}

UNIT_TEST(a_NUL_byte_spoils_its_line)
{
	static const char text[] = "a" REST "\0\nb" REST "\n";

	conf_free(&conf);
	parse_bytes(text, sizeof(text) - 1);
	assert_int_equal(conf.count, 1);
	assert_string_equal(conf.entries[0].info.ia_name, "b");
	assert_string_equal(complaints, "f:1: a NUL byte; expected text; line ignored\n");
}

/* A compressed file may have no NUL byte. */
UNIT_TEST(binary_file_is_reported_once)
{
	static const char program[] = "\177ELF\2\1\1\0\nx\n\0\0\n\2\na" REST "\ny\n";
	static const char packed[] = "\x1f\x8b\x08x\nyy zz\n\x01 \x02\n\x05\n";
	static const char coloured[] = "\033[1m\tx\n\033[0m\r\n";

	conf_free(&conf);
	parse_bytes(program, sizeof(program) - 1);
	assert_int_equal(conf.count, 1);
	assert_string_equal(complaints, "f:1: not a text file; its lines that are no entries are ignored\n");
	assert_string_equal(places, "1:5 |a control character|a text file\n");
	conf_free(&conf);
	parse_bytes(packed, sizeof(packed) - 1);
	assert_string_equal(complaints, "f:1: not a text file; its lines that are no entries are ignored\n");
	conf_free(&conf);
	parse_bytes(coloured, sizeof(coloured) - 1);
	assert_non_null(strstr(complaints, "f:2: "));
}

UNIT_TEST(generated_entries_are_what_programs_open)
{
	char long_name[300];

	conf_free(&conf);
	assert_int_equal(conf_add(&conf, "name", "lib.so", "dev 0"), 0);
	assert_int_equal(conf.count, 1);
	assert_int_equal(conf.entries[0].info.dapl_version_major, 2);
	assert_int_equal(conf.entries[0].info.dapl_version_minor, 0);
	assert_int_equal(conf.entries[0].info.is_thread_safe, DAT_FALSE);
	assert_true(conf.entries[0].is_default);
	assert_null(conf.entries[0].file);
	memset(long_name, 'n', 299);
	long_name[299] = '\0';
	assert_int_not_equal(conf_add(&conf, long_name, "lib.so", ""), 0);
	assert_int_equal(conf.count, 1);
}

UNIT_MAIN(NULL, free_conf)
