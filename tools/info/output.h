/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.h - what datinfo prints: aligned tables, JSON, and emphasis where a terminal shows it. What
 * stands in them is decided elsewhere. Without memory the program fails with one line. */
#ifndef TOOLS_INFO_OUTPUT_H
#define TOOLS_INFO_OUTPUT_H
#include <jansson.h>
#include <stdbool.h>

/* `text` as JSON, also if it is no UTF-8: other bytes become '?'. NULL gives null. */
json_t *output_text(const char *text);
/* printf() to JSON. */
json_t *output_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* json_object_set_new() and json_array_append_new() that fail the program without memory. */
void output_set(json_t *object, const char *key, json_t *value);
void output_append(json_t *array, json_t *value);
/* The string of a member; "" if there is none, or it is no string. */
const char *output_get(const json_t *object, const char *key);
/* An integer member as text in `text`, which it returns; "" if there is none, or it is no integer. */
const char *output_get_number(char text[24], const json_t *object, const char *key);

void output_json(json_t *value);	/* prints it, with a newline, and drops the reference */

/* Rows of an aligned table. Lines do not end with blanks. On a terminal the last column is wrapped. */
struct table;
struct table *table_new(int columns, const char *const *heads);	/* heads NULL: none */
/* `cells` are copied. NULL or "" is shown as "-". */
void table_add(struct table *table, const char *const *cells);
void table_print(struct table *table, int indent);	/* frees it, too */

/* Escape sequences for bold and for the end of it: "" unless stdout is a terminal that wants them
 * (NO_COLOR, TERM). */
const char *output_bold(void);
const char *output_plain(void);

/* `text` on stdout without control characters. */
void output_print(const char *text);

#endif
