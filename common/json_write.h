/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* json_write.h - writes JSON text into memory. For the libraries, which need nothing but libc; the
 * tools use jansson. */
#ifndef COMMON_JSON_WRITE_H
#define COMMON_JSON_WRITE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {	/* all zeroes: empty */
	char *text;		/* not terminated by a zero byte */
	size_t length, room;
	bool comma;		/* the next value follows another */
	bool failed;		/* no memory, or the text would exceed JSON_WRITE_MAX */
};
enum { JSON_WRITE_MAX = 32 << 20 };	/* bytes: 50 000 endpoints with all their counters */

/* `key` NULL: an element of an array, or the outermost value. Keys need no escapes. `bracket` is '{'
 * or '['. */
void json_write_open(struct json_writer *json, const char *key, char bracket);
void json_write_close(struct json_writer *json, char bracket);	/* '}' or ']' */
/* NULL gives null. Bytes that are no UTF-8 become '?'. */
void json_write_text(struct json_writer *json, const char *key, const char *text);
void json_write_bytes(struct json_writer *json, const char *key, const char *text, size_t length);
void json_write_format(struct json_writer *json, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));	/* at most 255 bytes */
void json_write_number(struct json_writer *json, const char *key, int64_t value);
void json_write_count(struct json_writer *json, const char *key, uint64_t value);
void json_write_free(struct json_writer *json);

#endif
