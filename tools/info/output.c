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

enum { DIGITS = 15 };	/* of a real number: 17 would show that 0.1 has no exact double */

static FILE *redirected;	/* of output_redirect(); NULL: stdout */

static void *checked(void *memory)
{
	if (!memory)
		fail("there is no memory left");
	return memory;
}

void output_redirect(FILE *stream)
{
	redirected = stream;
}

FILE *output_stream(void)
{
	return redirected ? redirected : stdout;
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

static void print_json(json_t *value, size_t flags)
{
	json_dumpf(value, stdout, JSON_REAL_PRECISION(DIGITS) | flags);
	putchar('\n');
	json_decref(value);
}

void output_json(json_t *value)
{
	print_json(value, JSON_INDENT(2));
}

void output_json_line(json_t *value)
{
	print_json(value, 0);
}

/* --- tables ---------------------------------------------------------------------- */

/* Characters that table_fit() leaves of a text: before it drops columns (an IPv4 address and port have 21), and
 * after that. */
enum { LONG = 24, SHORT = 12 };

struct table {
	int columns;
	const char *const *heads;
	size_t rows, room;
	char **cells;		/* rows * columns */
	int *widths;		/* characters of each column; -1: it is not shown */
	size_t left_out;	/* rows that table_fit() removed */
	bool fitted;
};

struct table *table_new(int columns, const char *const *heads)
{
	struct table *table = checked(calloc(1, sizeof *table));

	table->columns = columns;
	table->heads = heads;
	table->widths = checked(calloc(columns, sizeof *table->widths));
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

static void set_widths(struct table *table)
{
	for (int i = 0; i < table->columns; i++)
		table->widths[i] = column_width(table, i);
}

static int total_width(const struct table *table, int indent)
{
	int total = indent - 2;

	for (int i = 0; i < table->columns; i++)
		if (table->widths[i] >= 0)
			total += table->widths[i] + 2;
	return total;
}

/* Whether a column has texts, which can be cut; a cut number would be another number. */
static bool has_text(const struct table *table, int column)
{
	for (size_t row = 0; row < table->rows; row++) {
		const char *cell = table->cells[row * table->columns + column];

		if (cell[strspn(cell, "-+.0123456789")])
			return true;
	}
	return false;
}

/* Cuts `excess` characters off the widest column of texts, but leaves `rest` characters. Returns whether there is such
 * a column. */
static bool cut_texts(struct table *table, int excess, int rest)
{
	int longest = -1;

	for (int i = 0; i < table->columns; i++)
		if (table->widths[i] > rest && has_text(table, i) &&
		    (longest < 0 || table->widths[i] > table->widths[longest]))
			longest = i;
	if (longest < 0)
		return false;
	table->widths[longest] = excess < table->widths[longest] - rest ? table->widths[longest] - excess : rest;
	return true;
}

static void keep_rows(struct table *table, size_t rows)
{
	table->left_out = table->rows - rows;
	for (size_t i = rows * table->columns; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	table->rows = rows;
}

void table_fit(struct table *table, int indent, int width, size_t lines, const int *drop)
{
	size_t heads = table->heads ? 1 : 0;
	int excess;

	if (table->rows + heads > lines)
		keep_rows(table, lines > heads + 2 ? lines - heads - 1 : 1);
	table->fitted = true;
	set_widths(table);
	while ((excess = total_width(table, indent) - width) > 0) {
		if (cut_texts(table, excess, LONG))
			continue;
		if (*drop >= 0)
			table->widths[*drop++] = -1;
		else if (!cut_texts(table, excess, SHORT))
			return;
	}
}

/* Returns the columns of the terminal, or 0 if stdout is not a terminal. */
static int terminal_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
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
		fprintf(output_stream(), "%.*s\n%*s", at, text, begin, "");
		text += at + 1;
	}
	fputs(text, output_stream());
}

/* Prints a cell that is cut after `width` characters: the last of them is then "+", as in ps(1). Returns how many
 * were printed. */
static int print_cut(const char *text, int width)
{
	if (width_of(text) > width)
		fprintf(output_stream(), "%.*s+", bytes_of(text, width - 1), text);
	else
		fputs(text, output_stream());
	return width_of(text) > width ? width : width_of(text);
}

static void print_row(const struct table *table, const char *const *cells, int indent)
{
	int last = table->columns - 1, at = indent;

	while (last > 0 && table->widths[last] < 0)
		last--;
	fprintf(output_stream(), "%*s", indent, "");
	for (int i = 0; i < last; i++) {
		if (table->widths[i] < 0)
			continue;
		fprintf(output_stream(), "%*s", table->widths[i] - print_cut(cells[i], table->widths[i]) + 2, "");
		at += table->widths[i] + 2;
	}
	if (table->fitted)
		print_cut(cells[last], table->widths[last]);
	else
		print_wrapped(cells[last], at);
}

void table_print(struct table *table, int indent)
{
	if (!table->fitted)
		set_widths(table);
	if (table->heads) {
		fputs(output_bold(), output_stream());
		print_row(table, table->heads, indent);
		fprintf(output_stream(), "%s\n", output_plain());
	}
	for (size_t row = 0; row < table->rows; row++) {
		print_row(table, (const char *const *)&table->cells[row * table->columns], indent);
		fputc('\n', output_stream());
	}
	if (table->left_out)
		fprintf(output_stream(), "%*sand %zu more\n", indent, "", table->left_out);
	for (size_t i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->widths);
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

	fputs(copy, output_stream());
	free(copy);
}
