/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* environment.c - see environment.h. The table is common/variables.h, which the libraries' own check
 * uses, too. */
#include "tools/info/environment.h"
#include "tools/info/output.h"
#include "common/nearest.h"
#include "common/variables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		json_t *to = json_object();

		output_set(to, "name", output_text(variables[i].name));
		output_set(to, "library", output_text(variables[i].library));
		output_set(to, "default", output_text(variables[i].by_default));
		output_set(to, "value", output_text(getenv(variables[i].name)));
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
		const char *cells[] = { output_get(variable, "name"), output_get(variable, "default"),
					output_get(variable, "value"), output_get(variable, "meaning") };

		table_add(table, cells);
	}
	table_print(table, 0);
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

void environment_show(bool json)
{
	json_t *known = known_variables(), *unknown = unknown_variables(), *all;

	if (json) {
		all = json_object();
		output_set(all, "variables", known);
		output_set(all, "unknown", unknown);
		output_json(all);
		return;
	}
	print_known(known);
	print_unknown(unknown);
	json_decref(known);
	json_decref(unknown);
}
