/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* programs.c - see programs.h. */
#include "tools/info/programs.h"
#include "tools/control/client.h"
#include "tools/info/output.h"
#include <stdio.h>

/* Prints "process 4711 (dtest), provider soft". A program may use two provider libraries. */
static void print_head(const json_t *list)
{
	printf("%sprocess %lld (", output_bold(),
	       (long long)json_integer_value(json_object_get(list, "pid")));
	output_print(output_get(list, "program"));
	printf("), provider ");
	output_print(output_get(list, "provider"));
	printf("%s\n", output_plain());
}

/* --- the trace level ---------------------------------------------------------------- */

int programs_trace(pid_t pid, unsigned level, bool json)
{
	json_t *request = json_object(), *answers, *answer;
	size_t i;

	output_set(request, "level", json_integer(level));
	answers = control_ask_all(pid, CONTROL_TRACE, request);
	if (json) {
		output_json(answers);
		return 0;
	}
	json_array_foreach(answers, i, answer) {
		printf("process %ld (", (long)pid);
		output_print(output_get(answer, "program"));
		printf("): trace level %lld, was %lld\n",
		       (long long)json_integer_value(json_object_get(answer, "level")),
		       (long long)json_integer_value(json_object_get(answer, "was")));
	}
	json_decref(answers);
	return 0;
}

/* --- the dump ------------------------------------------------------------------------- */

static void add_counters(struct table *table, const char *what, const json_t *counted)
{
	json_t *counters = json_object_get(counted, "counters"), *value;
	const char *name;

	json_object_foreach(counters, name, value) {
		char number[32], object[64];
		const char *cells[] = { what, object, name, number };

		snprintf(object, sizeof object, "%s", output_get(counted, "object"));
		snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
		table_add(table, cells);
	}
}

static void print_counters(const json_t *counters)
{
	static const char *const heads[] = { "OBJECT", "ADDRESS", "COUNTER", "VALUE" };
	json_t *ia, *counted;
	size_t i, j;

	json_array_foreach(json_object_get(counters, "ias"), i, ia) {
		struct table *table = table_new(4, heads);

		printf("\ncounters of ");
		output_print(output_get(ia, "name"));
		printf(", those that are not 0:\n");
		add_counters(table, "ia", ia);
		json_array_foreach(json_object_get(ia, "endpoints"), j, counted)
			add_counters(table, "ep", counted);
		json_array_foreach(json_object_get(ia, "evds"), j, counted)
			add_counters(table, "evd", counted);
		table_print(table, 2);
	}
}

static void print_records(const json_t *dump)
{
	json_t *records = json_object_get(dump, "records"), *record;
	size_t i;

	printf("\ntrace level %lld, %zu record%s\n",
	       (long long)json_integer_value(json_object_get(dump, "level")), json_array_size(records),
	       json_array_size(records) == 1 ? "" : "s");
	json_array_foreach(records, i, record) {
		printf("  ");
		output_print(json_string_value(record));
		putchar('\n');
	}
}

/* Returns the answer of the library that gave the answer `list`, or NULL. */
static json_t *answer_of(const json_t *list, json_t *answers)
{
	json_t *answer;
	size_t i;

	json_array_foreach(answers, i, answer)
		if (json_equal(json_object_get(answer, "socket"), json_object_get(list, "socket")))
			return answer;
	return NULL;
}

/* Combines the answers of each library to three requests. Leaves out a library that was unloaded between the
 * requests. */
int programs_dump(pid_t pid, bool json)
{
	json_t *lists = control_ask_all(pid, CONTROL_LIST, NULL), *list;
	json_t *dumps = control_ask_all(pid, CONTROL_DUMP, NULL);
	json_t *counters = control_ask_all(pid, CONTROL_COUNTERS, NULL);
	json_t *complete = json_array();
	size_t i;

	json_array_foreach(lists, i, list) {
		json_t *dump = answer_of(list, dumps), *counted = answer_of(list, counters);

		if (!dump || !counted)
			continue;
		if (json) {
			output_set(list, "records", json_incref(json_object_get(dump, "records")));
			output_set(list, "counters", json_incref(json_object_get(counted, "ias")));
			output_append(complete, json_incref(list));
			continue;
		}
		print_head(list);
		print_records(dump);
		print_counters(counted);
	}
	json_decref(lists);
	json_decref(dumps);
	json_decref(counters);
	if (json)
		output_json(complete);
	else
		json_decref(complete);
	return 0;
}
