/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace_file.c - see trace_file.h. A record is "CLASS SECONDS THREAD KIND ADDRESS STATE TEXT"
 * (common/trace.c). A state may contain blanks. A change of state continues with "was OLD (cause), local
 * ADDRESS, remote ADDRESS". */
#include "tools/info/trace_file.h"
#include "tools/cli.h"
#include "tools/parse_json.h"
#include "tools/info/output.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD = 40 };	/* bytes of a kind or an address */

struct reading {
	const char *name;
	json_t *file;		/* what trace_file_read() returns */
	size_t line;		/* 1, 2, 3... */
};

/* --- one record ---------------------------------------------------------------------------- */

static bool is_record(const char *text)
{
	return !strncmp(text, "5C", 2) && text[2] && strchr("3478", text[2]) && text[3] == ' ' &&
	       isdigit((unsigned char)text[4]);
}

/* Returns the name of an object: its kind and a number, given at its first record. Objects of one kind are
 * told apart by their address alone. */
static const char *name_object(json_t *objects, const char *kind, const char *address)
{
	json_t *object;
	size_t i, same = 0;

	json_array_foreach(objects, i, object) {
		bool of_kind = !strcmp(output_get(object, "kind"), kind);

		if (of_kind && !strcmp(output_get(object, "address"), address))
			return output_get(object, "name");
		same += of_kind;
	}
	object = json_object();
	output_set(object, "name", output_format("%s%zu", kind, same + 1));
	output_set(object, "kind", output_text(kind));
	output_set(object, "address", output_text(address));
	output_append(objects, object);
	return output_get(object, "name");
}

static void set_ends(json_t *objects, const char *name, const char *text)
{
	const char *local = strstr(text, ", local ");
	json_t *object;
	size_t i;

	json_array_foreach(objects, i, object)
		if (local && !strcmp(output_get(object, "name"), name))
			output_set(object, "ends", output_text(local + strlen(", local ")));
}

static json_t *part_of(const char *text, size_t length)
{
	return output_format("%.*s", (int)length, text);
}

/* Parses "STATE was OLD (cause), ...", "STATE text", or "- text". */
static void set_state(json_t *record, const char *rest)
{
	const char *was = strstr(rest, " was "), *cause = was ? strstr(was, " (") : NULL;

	output_set(record, "state", json_null());
	output_set(record, "was", json_null());
	if (!strncmp(rest, "- ", 2)) {
		rest += 2;
	} else if (cause) {
		output_set(record, "state", part_of(rest, (size_t)(was - rest)));
		was += strlen(" was ");
		output_set(record, "was", part_of(was, (size_t)(cause - was)));
		rest = cause + 1;
	} else {
		size_t length = strcspn(rest, " ");

		output_set(record, "state", part_of(rest, length));
		rest += length + (rest[length] == ' ');
	}
	output_set(record, "text", output_text(rest));
}

static void add_record(struct reading *reading, const char *text)
{
	json_t *objects = json_object_get(reading->file, "objects"), *record = json_object();
	char class[4], kind[FIELD + 1], address[FIELD + 1];
	const char *name;
	double time;
	long thread;
	int n = 0;

	if (sscanf(text, "%3s %lf %ld %40s %40s %n", class, &time, &thread, kind, address, &n) != 5 ||
	    !n || !text[n] || !isfinite(time))
		fail("%s:%zu: \"%.60s\" found; class, time, thread, kind, address and state of a trace "
		     "record expected", reading->name, reading->line, text);
	name = name_object(objects, kind, address);
	output_set(record, "time", json_real(time));
	output_set(record, "class", output_text(class));
	output_set(record, "thread", json_integer(thread));
	output_set(record, "object", output_text(name));
	set_state(record, text + n);
	set_ends(objects, name, text + n);
	output_append(json_object_get(reading->file, "records"), record);
}

/* --- files ----------------------------------------------------------------------------------- */

/* Parses the head of a dump, and ignores other lines. */
static void see_head(json_t *file, const char *line)
{
	char program[64];
	long pid;

	if (sscanf(line, "process %ld (%63[^)]), provider", &pid, program) != 2)
		return;
	output_set(file, "pid", json_integer(pid));
	output_set(file, "program", output_text(program));
}

static void read_line(struct reading *reading, char *line, size_t length)
{
	char *text = line + strspn(line, " ");

	if (is_record(text) && line[length - 1] != '\n')
		fail("%s:%zu: the file ends within the record \"%.60s\"", reading->name, reading->line, text);
	line[strcspn(line, "\n")] = '\0';
	if (is_record(text))
		add_record(reading, text);
	else
		see_head(reading->file, line);
}

static void read_dump(struct reading *reading, const json_t *dump)
{
	json_t *records = json_object_get(dump, "records"), *record;
	size_t i;

	json_object_set(reading->file, "pid", json_object_get(dump, "pid"));
	json_object_set(reading->file, "program", json_object_get(dump, "program"));
	json_array_foreach(records, i, record) {
		const char *text = json_string_value(record);

		reading->line = i + 1;
		if (!text || !is_record(text))
			fail("%s: record %zu: \"%.60s\" found, a trace record expected", reading->name, i + 1,
			     text ? text : "");
		add_record(reading, text);
	}
}

static void read_json(struct reading *reading, FILE *file)
{
	json_error_t error;
	json_t *dumps = parse_json_file(file, &error), *dump;
	size_t i;

	if (!dumps)
		fail("%s:%d: %s; what datinfo --dump --json prints expected", reading->name, error.line,
		     error.text);
	json_array_foreach(dumps, i, dump)
		read_dump(reading, dump);
	json_decref(dumps);
}

static void read_text(struct reading *reading, FILE *file)
{
	char *line = NULL, first[61] = "";
	ssize_t length;
	size_t room = 0;

	while ((length = getline(&line, &room, file)) > 0) {
		reading->line++;
		read_line(reading, line, (size_t)length);
		if (reading->line == 1)
			snprintf(first, sizeof first, "%s", line);
	}
	free(line);
	if (ferror(file))
		fail("%s cannot be read: %s", reading->name, strerror(errno));
	if (!reading->line)
		fail("%s:1: the file is empty; trace records expected", reading->name);
	if (!json_array_size(json_object_get(reading->file, "records")))
		fail("%s:1: \"%s\" found, and no trace record in the %zu lines; \"5C3 TIME THREAD ...\" "
		     "expected (DAPL_TRACE_LEVEL, datinfo --dump)", reading->name, first, reading->line);
}

/* Also looks at the second character, since a line of a log may begin with a bracket, too. */
static bool is_json(FILE *file)
{
	int first = getc(file), second = first == '[' ? getc(file) : EOF;

	if (second != EOF)
		ungetc(second, file);
	if (first != EOF)
		ungetc(first, file);
	return second == '\n' || second == '{' || second == ']';
}

json_t *trace_file_read(const char *name)
{
	struct reading reading = { .name = name, .file = json_object() };
	FILE *file = fopen(name, "re");

	if (!file)
		fail("%s cannot be read: %s", name, strerror(errno));
	output_set(reading.file, "file", output_text(name));
	output_set(reading.file, "objects", json_array());
	output_set(reading.file, "records", json_array());
	if (is_json(file))
		read_json(&reading, file);
	else
		read_text(&reading, file);
	if (!json_array_size(json_object_get(reading.file, "records")))
		fail("%s: a dump without trace records; the trace level was 0", name);
	fclose(file);
	return reading.file;
}
