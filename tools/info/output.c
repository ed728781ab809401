/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.c - see output.h. */
#include "tools/info/output.h"
#include "tools/cli.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void *checked(void *memory)
{
	if (!memory)
		fail("there is no memory left");
	return memory;
}

/* --- JSON ------------------------------------------------------------------------ */

json_t *output_text(const char *text)
{
	json_t *value;
	char *copy;

	if (!text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	copy = checked(strdup(text));
	for (char *at = copy; *at; at++)
		if (*at & 0x80)
			*at = '?';
	value = checked(json_string(copy));
	free(copy);
	return value;
}

json_t *output_format(const char *fmt, ...)
{
	json_t *value;
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		fail("there is no memory left");
	value = output_text(text);
	free(text);
	return value;
}

void output_set(json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value))
		fail("there is no memory left");
}

void output_append(json_t *array, json_t *value)
{
	if (!value || json_array_append_new(array, value))
		fail("there is no memory left");
}

const char *output_get(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

const char *output_get_number(char text[24], const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	text[0] = '\0';
	if (json_is_integer(value))
		snprintf(text, 24, "%lld", (long long)json_integer_value(value));
	return text;
}

void output_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(value);
}

/* --- tables ---------------------------------------------------------------------- */

struct table {
	int columns;
	const char *const *heads;
	size_t rows, room;
	char **cells;		/* rows * columns */
};

struct table *table_new(int columns, const char *const *heads)
{
	struct table *table = checked(calloc(1, sizeof *table));

	table->columns = columns;
	table->heads = heads;
	return table;
}

/* Replaces control characters, which could be commands to the terminal. Returns "-" for an empty text. */
static char *clean_copy(const char *text)
{
	char *copy = checked(strdup(text && *text ? text : "-"));

	for (char *at = copy; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	return copy;
}

void table_add(struct table *table, const char *const *cells)
{
	if (table->rows == table->room) {
		table->room = table->room ? 2 * table->room : 16;
		table->cells = checked(realloc(table->cells, table->room * table->columns * sizeof *table->cells));
	}
	for (int i = 0; i < table->columns; i++)
		table->cells[table->rows * table->columns + i] = clean_copy(cells[i]);
	table->rows++;
}

/* Returns the number of characters of UTF-8 text. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* Returns the bytes of the first `width` characters of UTF-8 text that has more. */
static int bytes_of(const char *text, int width)
{
	int at = 0;

	while (width--)
		do
			at++;
		while ((text[at] & 0xc0) == 0x80);
	return at;
}

static int column_width(const struct table *table, int column)
{
	int width = table->heads ? width_of(table->heads[column]) : 0;

	for (size_t row = 0; row < table->rows; row++) {
		int cell = width_of(table->cells[row * table->columns + column]);

		if (cell > width)
			width = cell;
	}
	return width;
}

/* Returns the columns of the terminal, or 0 if stdout is not a terminal. */
static int terminal_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40 ? 80 : size.ws_col;
}

/* Prints the last cell of a row, from column `begin` on. On a terminal it is wrapped at blanks. */
static void print_wrapped(const char *text, int begin)
{
	int width = terminal_width() - begin;

	while (width >= 12 && width_of(text) > width) {
		int at = bytes_of(text, width);

		while (at > 0 && text[at] != ' ')
			at--;
		if (!at)
			break;
		printf("%.*s\n%*s", at, text, begin, "");
		text += at + 1;
	}
	fputs(text, stdout);
}

static void print_row(const int *widths, int columns, const char *const *cells, int indent)
{
	int at = indent;

	printf("%*s", indent, "");
	for (int i = 0; i < columns - 1; i++) {
		printf("%s%*s", cells[i], widths[i] - width_of(cells[i]) + 2, "");
		at += widths[i] + 2;
	}
	print_wrapped(cells[columns - 1], at);
}

void table_print(struct table *table, int indent)
{
	int *widths = checked(calloc(table->columns, sizeof *widths));

	for (int i = 0; i < table->columns; i++)
		widths[i] = column_width(table, i);
	if (table->heads) {
		fputs(output_bold(), stdout);
		print_row(widths, table->columns, table->heads, indent);
		printf("%s\n", output_plain());
	}
	for (size_t row = 0; row < table->rows; row++) {
		print_row(widths, table->columns,
			  (const char *const *)&table->cells[row * table->columns], indent);
		putchar('\n');
	}
	for (size_t i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(table->cells);
	free(widths);
	free(table);
}

/* --- terminals ------------------------------------------------------------------- */

static bool terminal_wants_emphasis(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

const char *output_bold(void)
{
	return terminal_wants_emphasis() ? "\033[1m" : "";
}

const char *output_plain(void)
{
	return terminal_wants_emphasis() ? "\033[0m" : "";
}

void output_print(const char *text)
{
	char *copy = clean_copy(text);

	fputs(copy, stdout);
	free(copy);
}
