/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameters.c - parameters of running programs, and their dat.conf (ctl.h). */
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/ctl/ctl.h"
#include "tools/info/output.h"
#include "common/nearest.h"
#include "common/parameter_range.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_name(const char *name)
{
	const char *near;

	if (variable_is_known(name))
		return;
	near = variable_nearest(name);
	usage_error("there is no parameter \"%s\"%s%s%s", name, near ? "; is " : "", near ? near : "",
		    near ? " meant?" : "");
}

/* A wrong value is a usage error. Programs check the value, too, but their refusal counts as a failure. */
static void check_value(const char *name, const char *value)
{
	unsigned long min, max, number;

	if (!parameter_range(name, &min, &max))
		usage_error("--parameter: \"%s\" found, the name of a parameter with a number expected "
			    "(datinfo --env)", name);
	if (strcmp(value, "default") &&
	    (strlen(value) >= PARAMETER_NUMBER || !parameter_number_in(value, min, max, &number)))
		usage_error("--parameter %s: \"%s\" found, a number from %lu to %lu, or \"default\", "
			    "expected", name, value, min, max);
}

static json_t *request_of(const char *name, const char *value)
{
	json_t *request = json_object();

	if (name)
		output_set(request, "name", output_text(name));
	if (value)
		output_set(request, "value", output_text(value));
	return request;
}

/* --- views ------------------------------------------------------------------------- */

static void add_parameter(struct table *table, const json_t *parameter)
{
	char value[24], by_default[24], range[48];
	const char *cells[] = { output_get(parameter, "name"), value, by_default, range,
		output_get(parameter, "when"), output_get(parameter, "from") };

	output_get_number(value, parameter, "value");
	output_get_number(by_default, parameter, "default");
	snprintf(range, sizeof range, "%lld-%lld",
		 (long long)json_integer_value(json_object_get(parameter, "min")),
		 (long long)json_integer_value(json_object_get(parameter, "max")));
	table_add(table, cells);
}

static int show(json_t *answers, bool json)
{
	static const char *const heads[] = { "PARAMETER", "VALUE", "DEFAULT", "RANGE", "CHANGES",
		"FROM" };
	json_t *answer, *parameter;
	size_t i, j;

	if (json) {
		output_json(answers);
		return 0;
	}
	json_array_foreach(answers, i, answer) {
		struct table *table = table_new(6, heads);

		printf("%sprocess %lld (", i ? "\n" : "",
		       (long long)json_integer_value(json_object_get(answer, "pid")));
		output_print(output_get(answer, "program"));
		printf("), provider ");
		output_print(output_get(answer, "provider"));
		putchar('\n');
		json_array_foreach(json_object_get(answer, "parameters"), j, parameter)
			add_parameter(table, parameter);
		table_print(table, 2);
	}
	json_decref(answers);
	return 0;
}

/* --- asking each program -------------------------------------------------------------- */

static void print_failure(const struct control_socket *socket, const char *why)
{
	fprintf(stderr, "datctl: process %ld: %s\n", (long)socket->pid, why);
}

static void add_answer(json_t *answers, const struct control_socket *socket, json_t *answer)
{
	json_t *list;
	char why[256];

	output_set(answer, "pid", json_integer(socket->pid));
	list = control_ask(socket, CONTROL_LIST, NULL, why, sizeof why);
	output_set(answer, "program", output_text(list ? output_get(list, "program") : "?"));
	output_set(answer, "provider", output_text(list ? output_get(list, "provider") : "?"));
	json_decref(list);
	output_append(answers, answer);
}

/* Whether the provider behind the socket reports its parameters, and `name` is not one of them. */
static bool lacks(const struct control_socket *socket, const char *name)
{
	char why[512];
	json_t *all = control_ask(socket, CONTROL_GET, NULL, why, sizeof why), *parameter;
	bool absent = all != NULL;
	size_t i;

	json_array_foreach(json_object_get(all, "parameters"), i, parameter)
		absent &= strcmp(output_get(parameter, "name"), name) != 0;
	json_decref(all);
	return absent;
}

/* Sends the request to each program. A program that refuses it gets a line of its own, and the others are
 * still asked. If `name` is given and `pid` is 0, programs whose provider lacks this parameter are left out.
 * For a process with two provider libraries, it is enough that one of them accepts the request. */
static json_t *ask_each(pid_t pid, enum control_verb verb, json_t *request, const char *name, int *status)
{
	size_t count;
	struct control_socket *sockets = control_find(pid, &count);
	json_t *answers = json_array(), *answer;
	char why[512] = "", failure[512] = "";
	pid_t done = 0, failed = 0;

	for (size_t i = 0; i < count; i++) {
		if (!pid && !control_is_ours(&sockets[i]))
			continue;
		answer = control_ask(&sockets[i], verb, json_incref(request), why, sizeof why);
		if (answer) {
			add_answer(answers, &sockets[i], answer);
			done = sockets[i].pid;
		} else if (pid || !name || !lacks(&sockets[i], name)) {
			failed = sockets[i].pid;
			snprintf(failure, sizeof failure, "%s", why);
		}
		if (failed == sockets[i].pid && done != failed &&
		    (i + 1 == count || sockets[i + 1].pid != failed)) {
			print_failure(&sockets[i], failure);
			*status = CLI_FAILURE;
		}
	}
	free(sockets);
	json_decref(request);
	return answers;
}

static json_t *ask_programs(pid_t pid, enum control_verb verb, json_t *request, const char *name, int *status)
{
	json_t *answers;

	if (pid)	/* ends the tool with a line if the program does not answer at all */
		json_decref(control_ask_all(pid, CONTROL_LIST, NULL));
	answers = ask_each(pid, verb, request, name, status);
	if (!json_array_size(answers) && !*status && name)
		fail("no program of this user in this network namespace has an adapter open and the parameter %s",
		     name);
	if (!json_array_size(answers) && !*status)
		fail("no program of this user has an adapter open in this network namespace");
	return answers;
}

int ctl_list_parameters(pid_t pid, const char *name, bool json)
{
	int status = 0;

	if (name)
		check_name(name);
	show(ask_programs(pid, CONTROL_GET, request_of(name, NULL), name, &status), json);
	return status;
}

int ctl_set_parameter(pid_t pid, const char *name, const char *value, bool json)
{
	json_t *answers;
	int status = 0;

	check_name(name);
	check_value(name, value);
	answers = ask_programs(pid, CONTROL_SET, request_of(name, value), name, &status);
	if (json_array_size(answers) || json)
		show(answers, json);
	else
		json_decref(answers);
	return status;
}

int ctl_reread(pid_t pid, bool json)
{
	int status = 0;
	json_t *answers = ask_programs(pid, CONTROL_REREAD, NULL, NULL, &status), *answer;
	size_t i;

	if (json) {
		output_json(answers);
		return status;
	}
	json_array_foreach(answers, i, answer) {
		printf("process %lld (", (long long)json_integer_value(json_object_get(answer, "pid")));
		output_print(output_get(answer, "program"));
		printf("): number of entries now: %lld\n",
		       (long long)json_integer_value(json_object_get(answer, "entries")));
	}
	json_decref(answers);
	return status;
}
