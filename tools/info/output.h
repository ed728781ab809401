/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.h - the forms of datinfo's output: aligned tables, JSON, and bold text on terminals. The callers
 * decide on the contents. If memory lacks, the program fails with one line. */
#ifndef TOOLS_INFO_OUTPUT_H
#define TOOLS_INFO_OUTPUT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Returns `text` as a string of JSON. Bytes that are not UTF-8 become '?'. NULL becomes null. */
json_t *output_text(const char *text);
/* printf() to JSON. */
json_t *output_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* json_object_set_new() and json_array_append_new(), but the program fails if memory lacks. */
void output_set(json_t *object, const char *key, json_t *value);
void output_append(json_t *array, json_t *value);
/* The string of a member; "" if there is none, or it is no string. */
const char *output_get(const json_t *object, const char *key);
/* An integer member as text in `text`, which it returns; "" if there is none, or it is no integer. */
const char *output_get_number(char text[24], const json_t *object, const char *key);

void output_json(json_t *value);	/* prints it, with a newline, and drops the reference */
void output_json_line(json_t *value);	/* the same on one line */

/* Rows of an aligned table. Lines do not end with blanks. On a terminal the last column is wrapped. */
struct table;
struct table *table_new(int columns, const char *const *heads);	/* heads NULL: none */
/* `cells` are copied. NULL or "" is shown as "-". */
void table_add(struct table *table, const char *const *cells);
void table_print(struct table *table, int indent);	/* frees it, too */
/* Makes the table, which has rows, fit into `lines` lines of `width` characters, as far as possible: the last rows
 * give way to a line "and N more"; long texts are cut; then the columns that `drop` lists are left out, one
 * after the other. `drop` ends with -1. Call it before table_print(), with the same indent. */
void table_fit(struct table *table, int indent, int width, size_t lines, const int *drop);

/* Tables and output_print() go to `stream` instead of stdout; NULL ends that. */
void output_redirect(FILE *stream);
FILE *output_stream(void);

/* Return the escape sequence that begins or ends bold text; "" unless stdout is a terminal and TERM and
 * NO_COLOR allow it. */
const char *output_bold(void);
const char *output_plain(void);

/* Prints `text` without its control characters. */
void output_print(const char *text);

#endif
