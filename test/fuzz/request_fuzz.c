/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request_fuzz.c - any bytes as a request to the control socket: what is read lies within the limits,
 * and is read the same when it is written again; any bytes as text of an answer: the escaped text has
 * no byte that JSON forbids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/json_read.h"
#include "common/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "request_fuzz: %s\n", what);
	abort();
}

static bool is_printable(const char *text, size_t room)
{
	size_t length = strnlen(text, room);

	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return length < room;
}

/* Keys with quotes are read, but the writer takes only such as need no escapes. */
static bool is_plain(const char *key)
{
	return !strpbrk(key, "\"\\");
}

static void check_again(const struct json_object *object)
{
	struct json_writer json = { 0 };
	struct json_object again;
	size_t at;

	json_write_open(&json, NULL, '{');
	for (size_t i = 0; i < object->count; i++) {
		const struct json_member *m = &object->members[i];

		if (!is_plain(m->key))
			goto free;
		if (m->is_number)
			json_write_count(&json, m->key, m->number);
		else
			json_write_text(&json, m->key, m->text);
	}
	json_write_close(&json, '}');
	demand(!json_read(json.text, json.length, &again, &at), "what was written cannot be read");
	demand(again.count == object->count, "another number of members");
	for (size_t i = 0; i < object->count; i++)
		demand(!strcmp(again.members[i].key, object->members[i].key) &&
		       !strcmp(again.members[i].text, object->members[i].text), "another member");
free:
	json_write_free(&json);
}

static void check_writer(const char *data, size_t size)
{
	struct json_writer json = { 0 };

	json_write_bytes(&json, NULL, data, size);
	demand(!json.failed && json.length >= 2 && json.text[json.length - 1] == '"', "no string");
	for (size_t i = 1; i + 1 < json.length; i++) {
		demand((unsigned char)json.text[i] >= ' ', "a control character");
		demand(json.text[i] != '"', "a quote without an escape");
		if (json.text[i] == '\\')
			i++;
	}
	json_write_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object object;
	size_t at;

	if (size > 16384)
		return 0;
	check_writer((const char *)data, size);
	if (json_read((const char *)data, size, &object, &at)) {
		demand(at <= size, "the fault lies behind the end");
		return 0;
	}
	demand(at == size && object.count <= JSON_MEMBERS, "not all was read");
	for (size_t i = 0; i < object.count; i++)
		demand(is_printable(object.members[i].key, JSON_KEY) &&
		       is_printable(object.members[i].text, JSON_TEXT), "a character that is not allowed");
	check_again(&object);
	return 0;
}
