/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* json_write.c - writes JSON text into memory (json_write.h). After a failure all calls do nothing. */
#include "common/json_write.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct json_writer *json, const char *bytes, size_t length)
{
	size_t need = json->length + length;

	if (json->failed || need > JSON_WRITE_MAX) {
		json->failed = true;
		return;
	}
	if (need > json->room) {
		size_t room = need < 2048 ? 4096 : 2 * need;
		char *more = realloc(json->text, room);

		if (!more) {
			json->failed = true;
			return;
		}
		json->text = more;
		json->room = room;
	}
	memcpy(json->text + json->length, bytes, length);
	json->length = need;
}

static void append_text(struct json_writer *json, const char *text)
{
	append(json, text, strlen(text));
}

static void begin(struct json_writer *json, const char *key)
{
	if (json->comma)
		append_text(json, ",");
	json->comma = true;
	if (!key)
		return;
	append_text(json, "\"");
	append_text(json, key);
	append_text(json, "\":");
}

void json_write_open(struct json_writer *json, const char *key, char bracket)
{
	begin(json, key);
	append(json, &bracket, 1);
	json->comma = false;
}

void json_write_close(struct json_writer *json, char bracket)
{
	append(json, &bracket, 1);
	json->comma = true;
}

/* Length of the UTF-8 sequence at `at`; 0 if it is none. Surrogates and overlong forms are none. */
static size_t sequence(const unsigned char *at, size_t left)
{
	size_t length = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : (*at & 0xf0) == 0xe0 ? 3 :
			*at >= 0xf0 && *at < 0xf5 ? 4 : 0;

	if (!length || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] >= 0xa0) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] >= 0x90))
		return 0;
	return length;
}

void json_write_bytes(struct json_writer *json, const char *key, const char *text, size_t length)
{
	begin(json, key);
	append_text(json, "\"");
	for (size_t i = 0, n; i < length; i += n) {
		char escaped[8];

		n = sequence((const unsigned char *)text + i, length - i);
		if (!n) {
			n = 1;
			append_text(json, "?");
		} else if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
			snprintf(escaped, sizeof escaped, "\\u%04x", text[i]);
			append_text(json, escaped);
		} else {
			if (text[i] == '"' || text[i] == '\\')
				append_text(json, "\\");
			append(json, text + i, n);
		}
	}
	append_text(json, "\"");
}

void json_write_text(struct json_writer *json, const char *key, const char *text)
{
	if (text) {
		json_write_bytes(json, key, text, strlen(text));
	} else {
		begin(json, key);
		append_text(json, "null");
	}
}

void json_write_format(struct json_writer *json, const char *key, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	json_write_text(json, key, text);
}

static void write_raw(struct json_writer *json, const char *key, const char *text)
{
	begin(json, key);
	append_text(json, text);
}

void json_write_number(struct json_writer *json, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	write_raw(json, key, text);
}

void json_write_count(struct json_writer *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, value);
	write_raw(json, key, text);
}

void json_write_free(struct json_writer *json)
{
	free(json->text);
	*json = (struct json_writer){ 0 };
}
