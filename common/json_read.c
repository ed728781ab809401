/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* json_read.c - parses a flat JSON object (json_read.h). */
#include "common/json_read.h"
#include <string.h>

struct reader {
	const char *at, *end;
	const char *fault;
};

static bool fails(struct reader *r, const char *fault)
{
	r->fault = fault;
	return false;
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && memchr(" \t\r\n", *r->at, 4))
		r->at++;
}

static bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* A string of less than `room` bytes, its opening quote at r->at. */
static bool read_string(struct reader *r, char *to, size_t room)
{
	size_t n = 0;

	if (!take(r, '"'))
		return fails(r, "a string in quotes expected");
	while (r->at < r->end && *r->at != '"') {
		if (*r->at == '\\') {
			r->at++;
			if (r->at == r->end || !memchr("\"\\/", *r->at, 3))
				return fails(r, "an escape other than \\\" \\\\ \\/");
		} else if (*r->at < ' ' || *r->at > '~') {	/* a signed char above 127 is below */
			return fails(r, "a character that is not printable ASCII");
		}
		if (n + 1 == room)
			return fails(r, "a string that is too long");
		to[n++] = *r->at++;
	}
	to[n] = '\0';
	return take(r, '"') || fails(r, "a string without end");
}

static bool read_number(struct reader *r, struct json_member *member)
{
	size_t n = 0;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		unsigned digit = *r->at - '0';

		if (n == 1 && member->text[0] == '0')
			return fails(r, "a number that begins with 0");
		if (member->number > (UINT64_MAX - digit) / 10)
			return fails(r, "a number of more than 64 bits");
		member->number = member->number * 10 + digit;
		member->text[n++] = *r->at++;
	}
	member->text[n] = '\0';
	member->is_number = true;
	return n || fails(r, "a string or an unsigned integer expected");
}

static bool read_member(struct reader *r, struct json_object *object)
{
	struct json_member *member = &object->members[object->count];

	if (object->count == JSON_MEMBERS)
		return fails(r, "too many members");
	memset(member, 0, sizeof *member);
	if (!read_string(r, member->key, sizeof member->key))
		return false;
	if (json_member(object, member->key))
		return fails(r, "a member that comes twice");
	skip_blanks(r);
	if (!take(r, ':'))
		return fails(r, "\":\" expected");
	skip_blanks(r);
	if (r->at < r->end && *r->at == '"') {
		if (!read_string(r, member->text, sizeof member->text))
			return false;
	} else if (!read_number(r, member)) {
		return false;
	}
	object->count++;
	skip_blanks(r);
	return true;
}

static bool read_object(struct reader *r, struct json_object *object)
{
	skip_blanks(r);
	if (!take(r, '{'))
		return fails(r, "\"{\" expected");
	skip_blanks(r);
	if (!take(r, '}')) {
		do {
			skip_blanks(r);
			if (!read_member(r, object))
				return false;
		} while (take(r, ','));
		if (!take(r, '}'))
			return fails(r, "\",\" or \"}\" expected");
	}
	skip_blanks(r);
	return r->at == r->end || fails(r, "something after the object");
}

const char *json_read(const char *text, size_t length, struct json_object *object, size_t *at)
{
	struct reader r = { text, text + length, NULL };

	object->count = 0;
	read_object(&r, object);
	*at = r.at - text;
	return r.fault;
}

const struct json_member *json_member(const struct json_object *object, const char *key)
{
	for (size_t i = 0; i < object->count; i++)
		if (!strcmp(object->members[i].key, key))
			return &object->members[i];
	return NULL;
}
