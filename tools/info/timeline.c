/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timeline.c - see timeline.h. Each process has a column. A text that is wider than its column continues in
 * the next line. Times are those of CLOCK_MONOTONIC, so all processes ran on one host. */
#include "tools/info/timeline.h"
#include "tools/cli.h"
#include "tools/info/output.h"
#include "tools/info/trace_file.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, TIME_WIDTH = 11, LINE = 256 };	/* characters */

struct row {
	const json_t *record;
	double time;
	int process;
	size_t sequence;
};

/* --- merging -------------------------------------------------------------------------------- */

/* Records of the same time stay in the order of their files. */
static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static struct row *merge(const json_t *processes, size_t *count)
{
	struct row *rows = NULL;
	json_t *process, *record;
	size_t i, j, n = 0;

	json_array_foreach(processes, i, process) {
		json_t *records = json_object_get(process, "records");

		rows = realloc(rows, (n + json_array_size(records)) * sizeof *rows);
		if (!rows)
			fail("there is no memory left");
		json_array_foreach(records, j, record) {
			rows[n] = (struct row){ record, json_real_value(json_object_get(record, "time")),
						(int)i, n };
			n++;
		}
	}
	qsort(rows, n, sizeof *rows, by_time);
	*count = n;
	return rows;
}

/* --- printing ------------------------------------------------------------------------------- */

/* Writes the text of a record: "ep1 connected (established)", with "! " in front if it reports an error. */
static void describe(char text[LINE], const json_t *record)
{
	const char *state = output_get(record, "state"), *rest = output_get(record, "text");
	const char *class = output_get(record, "class");
	const char *ends = strstr(rest, ", local ");
	int length = ends ? (int)(ends - rest) : (int)strlen(rest);

	snprintf(text, LINE, "%s%s%s%s%s%.*s", class[2] == '4' || class[2] == '8' ? "! " : "",
		 output_get(record, "object"), *state ? " " : "", state, length ? " " : "", length, rest);
}

/* Returns how many bytes of `text` fit into `width`: up to a blank, unless the first word is too long. */
static size_t fitting(const char *text, size_t width)
{
	size_t length = strlen(text), at = width;

	if (length <= width)
		return length;
	while (at > 0 && text[at] != ' ')
		at--;
	return at ? at : width;
}

static void print_clean(const char *text, size_t length)
{
	char part[LINE];

	snprintf(part, sizeof part, "%.*s", (int)length, text);
	if (*part)
		output_print(part);
}

/* Prints `text` in the column of a process, in as many lines as it needs. */
static void print_row(const char *time, const char *text, int process, int columns)
{
	int width = (WIDTH - TIME_WIDTH - 3 * (columns - 1)) / columns;

	do {
		size_t length = fitting(text, (size_t)width);

		printf("%-*s", TIME_WIDTH, time);
		for (int i = 0; i < process; i++)
			printf("%*s | ", width, "");
		print_clean(text, length);
		if (process < columns - 1)
			printf("%*s |", width - (int)length, "");
		putchar('\n');
		text += length + (text[length] == ' ');
		time = "";
	} while (*text);
}

static void title_of(char title[LINE], const json_t *process)
{
	const char *file = output_get(process, "file"), *slash = strrchr(file, '/');

	if (json_object_get(process, "pid"))
		snprintf(title, LINE, "%s %lld", output_get(process, "program"),
			 (long long)json_integer_value(json_object_get(process, "pid")));
	else
		snprintf(title, LINE, "%s", slash ? slash + 1 : file);
}

static void print_head(const json_t *processes)
{
	int columns = (int)json_array_size(processes);
	int width = (WIDTH - TIME_WIDTH - 3 * (columns - 1)) / columns;
	char title[LINE];
	json_t *process;
	size_t i;

	printf("%s%-*s", output_bold(), TIME_WIDTH, "SECONDS");
	json_array_foreach(processes, i, process) {
		title_of(title, process);
		printf("%s", i ? " | " : "");
		print_clean(title, strnlen(title, (size_t)width));
		if ((int)i < columns - 1)
			printf("%*s", width - (int)strnlen(title, (size_t)width), "");
	}
	printf("%s\n", output_plain());
}

/* Prints text such as "127.0.0.1 port 1, remote 127.0.0.1 port 2" after `begin` characters of a line. Uses
 * two lines if it is too long. */
static void print_ends(const char *ends, int begin)
{
	const char *remote = strstr(ends, ", remote ");

	if (!remote || begin + strlen(ends) <= WIDTH) {
		print_clean(ends, strlen(ends));
		return;
	}
	print_clean(ends, (size_t)(remote - ends));
	printf("\n%*sto ", begin, "");
	print_clean(remote + strlen(", remote "), (size_t)(WIDTH - begin));
}

/* Prints the names of objects with their addresses, by which they are found in the files. */
static void print_objects(const json_t *processes)
{
	json_t *process, *object;
	char title[LINE];
	size_t i, j;

	json_array_foreach(processes, i, process) {
		title_of(title, process);
		putchar('\n');
		output_print(title);
		putchar('\n');
		json_array_foreach(json_object_get(process, "objects"), j, object) {
			const char *ends = output_get(object, "ends");
			char text[LINE];

			snprintf(text, sizeof text, "  %-9s %s%s", output_get(object, "name"),
				 output_get(object, "address"), *ends ? " " : "");
			print_clean(text, strlen(text));
			print_ends(ends, (int)strlen(text));
			putchar('\n');
		}
	}
}

static void print_all(const json_t *processes, const struct row *rows, size_t count)
{
	print_head(processes);
	for (size_t i = 0; i < count; i++) {
		char time[32], text[LINE];

		snprintf(time, sizeof time, "%.6f", rows[i].time - rows[0].time);
		describe(text, rows[i].record);
		print_row(time, text, rows[i].process, (int)json_array_size(processes));
	}
	print_objects(processes);
}

static void print_json(json_t *processes, const struct row *rows, size_t count)
{
	json_t *all = json_object(), *records = json_array(), *process;
	size_t i;

	for (i = 0; i < count; i++) {
		json_t *record = (json_t *)(uintptr_t)rows[i].record;

		output_set(record, "process", json_integer(rows[i].process));
		output_append(records, json_incref(record));
	}
	json_array_foreach(processes, i, process)
		json_object_del(process, "records");
	output_set(all, "processes", json_incref(processes));
	output_set(all, "records", records);
	output_json(all);
}

void timeline_show(const char *first, char *const *files, int count, bool json)
{
	json_t *processes = json_array();
	struct row *rows;
	size_t n;

	output_append(processes, trace_file_read(first));
	for (int i = 0; i < count; i++)
		output_append(processes, trace_file_read(files[i]));
	rows = merge(processes, &n);
	if (json)
		print_json(processes, rows, n);
	else
		print_all(processes, rows, n);
	free(rows);
	json_decref(processes);
}
