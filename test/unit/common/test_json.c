/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_json.c - what the reader of requests takes and refuses, and what the writer escapes. */
#include "common/json_read.h"
#include "common/json_write.h"
#include "test/unit/unit.h"

static const char *read_text(const char *text, struct json_object *object)
{
	size_t at;

	return json_read(text, strlen(text), object, &at);
}

UNIT_TEST(flat_objects_are_read)
{
	struct json_object object;

	assert_null(read_text("{}", &object));
	assert_int_equal(object.count, 0);
	assert_null(read_text(" { \"name\" : \"a\\\"\\\\\\/b\" ,\n\"n\":18446744073709551615,\"z\":0} ",
			      &object));
	assert_int_equal(object.count, 3);
	assert_string_equal(json_member(&object, "name")->text, "a\"\\/b");
	assert_false(json_member(&object, "name")->is_number);
	assert_true(json_member(&object, "n")->number == UINT64_MAX);
	assert_string_equal(json_member(&object, "n")->text, "18446744073709551615");
	assert_true(json_member(&object, "z")->is_number);
	assert_null(json_member(&object, "absent"));
}

UNIT_TEST(all_else_is_refused)
{
	static const char *const bad[] = {
		"", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,}", "{\"a\":1}x", "{a:1}",
		"{\"a\":01}", "{\"a\":-1}", "{\"a\":1.5}", "{\"a\":18446744073709551616}",
		"{\"a\":true}", "{\"a\":{}}", "{\"a\":1,\"a\":2}", "{\"a\":\"\\n\"}", "{\"a\":\"\t\"}",
		"{\"a\":\"\xc3\xa4\"}", "{\"a\":\"\\u0041\"}", "{\"a\":\"\\", "{\"a\":\"b",
		"{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}",
		"{\"a23456789012345678901234567890123\":1}",
	};
	char text[JSON_TEXT + 16];
	struct json_object object;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!read_text(bad[i], &object))
			fail_msg("%s is taken", bad[i]);
	snprintf(text, sizeof text, "{\"a\":\"%0*d\"}", JSON_TEXT - 1, 0);
	assert_null(read_text(text, &object));
	snprintf(text, sizeof text, "{\"a\":\"%0*d\"}", JSON_TEXT, 0);
	assert_non_null(read_text(text, &object));
}

UNIT_TEST(a_zero_byte_is_refused)
{
	struct json_object object;
	size_t at;

	assert_non_null(json_read("{\"a\":\"\0\"}", 9, &object, &at));
	assert_int_equal(at, 6);
	assert_non_null(json_read("{}\0", 3, &object, &at));
	assert_int_equal(at, 2);
}

static void written(struct json_writer *json, const char *expected)
{
	assert_false(json->failed);
	assert_int_equal(json->length, strlen(expected));
	assert_memory_equal(json->text, expected, json->length);
	json_write_free(json);
}

UNIT_TEST(commas_stand_between_values)
{
	struct json_writer json = { 0 };

	json_write_open(&json, NULL, '{');
	json_write_number(&json, "a", -5);
	json_write_open(&json, "b", '[');
	json_write_count(&json, NULL, UINT64_MAX);
	json_write_open(&json, NULL, '{');
	json_write_close(&json, '}');
	json_write_number(&json, NULL, 0);
	json_write_close(&json, ']');
	json_write_text(&json, "c", NULL);
	json_write_format(&json, "d", "%d.%d", 1, 2);
	json_write_close(&json, '}');
	written(&json, "{\"a\":-5,\"b\":[18446744073709551615,{},0],\"c\":null,\"d\":\"1.2\"}");
}

UNIT_TEST(text_is_escaped)
{
	struct json_writer json = { 0 };

	json_write_text(&json, NULL, "\"\\/\n\x01\x7f");
	written(&json, "\"\\\"\\\\/\\u000a\\u0001\\u007f\"");
	json_write_bytes(&json, NULL, "a\0b", 3);
	written(&json, "\"a\\u0000b\"");
	json_write_text(&json, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
	written(&json, "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
	json_write_text(&json, NULL, "\xff \xc3 \xc0\x80 \xed\xa0\x80 \xe2\x82");
	written(&json, "\"? ? ?? ??? ??\"");
}

UNIT_TEST(a_text_that_is_too_long_fails)
{
	struct json_writer json = { 0 };
	char *text = calloc(1, JSON_WRITE_MAX + 1);

	memset(text, 'x', JSON_WRITE_MAX);
	json_write_text(&json, NULL, text);
	assert_true(json.failed);
	json_write_text(&json, NULL, "more");
	json_write_free(&json);
	free(text);
}

UNIT_MAIN(NULL, NULL)
