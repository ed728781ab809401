/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_parse_json.c - the tool fails when there is no memory left for a text; others are read, or are malformed. */
#include "tools/parse_json.h"
#include "tools/cli.h"
#include "test/unit/unit.h"

static const char text[] = "{\"state\": \"open\", \"list\": [1, 2.5, true], "
			   "\"text\": \"a string that is longer than the first buffer of the parser\"}";
static unsigned allocations, failing;	/* the number of the allocation that fails; 0: none */
static bool complete;

UNIT_FAIL_MALLOC(++allocations == failing)

/* A tool that fails ends, so jansson's memory is not given back. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:allocate"; }
static bool quiet(void) { return true; }

static void read_text(void *arg)
{
	json_t *value = parse_json(text, strlen(text));

	complete = json_is_object(value);
	json_decref(value);
}

UNIT_TEST(each_failed_allocation_ends_the_tool)
{
	bool ended = true;

	cli_on_failure(quiet);
	for (failing = 1; ended; failing++) {
		allocations = 0;
		ended = !cli_attempt(read_text, NULL);
	}
	assert_true(complete);
	assert_true(allocations > 5);	/* all of the parser go through it */
	assert_int_equal(failing, allocations + 2);
	failing = 0;
}

UNIT_TEST(malformed_text_is_no_value)
{
	json_error_t error;
	FILE *file = fmemopen((void *)"[1,\n2", 5, "r");

	assert_null(parse_json("{", 1));
	assert_null(parse_json(NULL, 0));
	assert_non_null(file);
	assert_null(parse_json_file(file, &error));
	assert_int_equal(error.line, 2);
	fclose(file);
}

UNIT_MAIN(NULL, NULL)
