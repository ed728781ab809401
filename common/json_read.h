/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* json_read.h - reads the requests of the control socket: one flat JSON object whose values are
 * strings and numbers. A strict subset, so that little code can be wrong: strings have printable
 * ASCII characters, with \" \\ and \/ as the only escapes; numbers are unsigned integers below
 * 2^64; no member comes twice; nothing follows the object but blanks. */
#ifndef COMMON_JSON_READ_H
#define COMMON_JSON_READ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_MEMBERS = 8, JSON_KEY = 32, JSON_TEXT = 256 };	/* the sizes include the zero byte */

struct json_member {
	char key[JSON_KEY];
	bool is_number;
	uint64_t number;
	char text[JSON_TEXT];	/* of a number its digits */
};

struct json_object {
	size_t count;
	struct json_member members[JSON_MEMBERS];
};

/* Returns NULL, or what is wrong as a constant text, with the offset in *at. */
const char *json_read(const char *text, size_t length, struct json_object *object, size_t *at);
/* Returns NULL if there is no such member. */
const struct json_member *json_member(const struct json_object *object, const char *key);

#endif
