/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* environment.c - see environment.h. The table of variables is common/variables.h, which the libraries
 * use, too, to check names. The libraries' code also reads dapl.conf. */
#include "tools/info/environment.h"
#include "tools/info/output.h"
#include "common/nearest.h"
#include "common/parameters.h"
#include "common/variables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Adds "min" and "max" of a number, and whether the libraries ignore its value. */
static void add_range(json_t *to, const char *name, const char *value)
{
	unsigned long min, max, number;

	if (!parameter_range(name, &min, &max))
		return;
	output_set(to, "min", json_integer((json_int_t)min));
	output_set(to, "max", json_integer((json_int_t)max));
	output_set(to, "ignored", json_boolean(value && !parameter_number_in(value, min, max, &number)));
}

static void add_value(json_t *to, const char *name)
{
	static const char *const origins[] = { NULL, "dapl.conf", "environment", NULL };
	enum parameter_origin origin;
	char buffer[PARAMETER_NUMBER];
	const char *value = parameter_text(name, buffer, &origin);

	output_set(to, "value", output_text(value));
	output_set(to, "from", output_text(origins[origin]));
	add_range(to, name, value);
}

static json_t *faults;		/* of dapl.conf: sentences */

static void keep_fault(const char *message)
{
	output_append(faults, output_text(message));
}

static json_t *known_variables(void)
{
	static const struct {
		const char *name, *library, *by_default, *meaning;
	} variables[] = {
#define X(name, library, min, max, by_default, meaning) { #name, library, by_default, meaning },
		ENVIRONMENT_VARIABLES(X)
#undef X
	};
	json_t *list = json_array();

	parameters_read_file(keep_fault);
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		json_t *to = json_object();

		output_set(to, "name", output_text(variables[i].name));
		output_set(to, "library", output_text(variables[i].library));
		output_set(to, "default", output_text(variables[i].by_default));
		add_value(to, variables[i].name);
		output_set(to, "meaning", output_text(variables[i].meaning));
		output_append(list, to);
	}
	return list;
}

static void add_if_unknown(json_t *list, const char *variable)
{
	size_t length = strcspn(variable, "=");
	char name[256];
	json_t *to;

	if ((strncmp(variable, "DAT_", 4) && strncmp(variable, "DAPL_", 5)) || length >= sizeof name)
		return;
	memcpy(name, variable, length);
	name[length] = '\0';
	if (variable_is_known(name))
		return;
	to = json_object();
	output_set(to, "name", output_text(name));
	output_set(to, "value", output_text(variable + length + (variable[length] == '=')));
	output_set(to, "nearest", output_text(variable_nearest(name)));
	output_append(list, to);
}

static json_t *unknown_variables(void)
{
	json_t *list = json_array();

	for (char **variable = environ; variable && *variable; variable++)
		add_if_unknown(list, *variable);
	return list;
}

static void print_known(const json_t *list)
{
	static const char *const heads[] = { "VARIABLE", "DEFAULT", "VALUE", "MEANING" };
	struct table *table = table_new(4, heads);
	json_t *variable;
	size_t i;

	json_array_foreach((json_t *)list, i, variable) {
		char from_file[PARAMETER_NUMBER + 16];
		const char *value = output_get(variable, "value");
		const char *cells[] = { output_get(variable, "name"), output_get(variable, "default"), value,
					output_get(variable, "meaning") };

		if (!strcmp(output_get(variable, "from"), "dapl.conf")) {
			snprintf(from_file, sizeof from_file, "%s (dapl.conf)", value);
			cells[2] = from_file;
		}
		table_add(table, cells);
	}
	table_print(table, 0);
}

/* Prints the message with the words that the libraries use. */
static void print_ignored(const json_t *list)
{
	json_t *variable;
	size_t i;

	json_array_foreach((json_t *)list, i, variable) {
		bool in_file = !strcmp(output_get(variable, "from"), "dapl.conf");
		const char *value = output_get(variable, "value");

		if (!json_is_true(json_object_get(variable, "ignored")))
			continue;
		printf("%s%s%s is \"", output_get(variable, "name"), in_file ? " in " : "",
		       in_file ? parameters_file() : "");
		if (*value)	/* output_print() has "-" for an empty text */
			output_print(value);
		printf("\"; expected a number from %lld to %lld; ignored\n",
		       (long long)json_integer_value(json_object_get(variable, "min")),
		       (long long)json_integer_value(json_object_get(variable, "max")));
	}
}

static void print_unknown(const json_t *list)
{
	json_t *variable;
	size_t i;

	json_array_foreach((json_t *)list, i, variable) {
		const char *nearest = output_get(variable, "nearest");

		output_print(output_get(variable, "name"));
		printf(" has no meaning%s%s%s\n", *nearest ? "; is " : "", nearest, *nearest ? " meant?" : "");
	}
}

static void print_faults(void)
{
	json_t *fault;
	size_t i;

	json_array_foreach(faults, i, fault) {
		output_print(json_string_value(fault));
		putchar('\n');
	}
}

void environment_show(bool json)
{
	json_t *known, *unknown = unknown_variables(), *all;

	faults = json_array();
	known = known_variables();

	if (json) {
		all = json_object();
		output_set(all, "variables", known);
		output_set(all, "unknown", unknown);
		output_set(all, "messages", faults);
		output_json(all);
		return;
	}
	print_known(known);
	print_ignored(known);
	print_faults();
	print_unknown(unknown);
	json_decref(faults);
	json_decref(known);
	json_decref(unknown);
}
