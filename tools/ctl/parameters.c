/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameters.c - parameters of running programs, and their dat.conf (ctl.h). */
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
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

void ctl_check_parameter(const char *name, const char *value)
{
	check_name(name);
	check_value(name, value);
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

/* What a table shows of a parameter. */
struct parameter_text {
	char value[24], by_default[24], range[48];
};

static void describe_parameter(struct parameter_text *text, const json_t *parameter)
{
	output_get_number(text->value, parameter, "value");
	output_get_number(text->by_default, parameter, "default");
	snprintf(text->range, sizeof text->range, "%lld-%lld",
		 (long long)json_integer_value(json_object_get(parameter, "min")),
		 (long long)json_integer_value(json_object_get(parameter, "max")));
}

/* Prints all parameters of one program, or the one that was asked for. */
static void print_program(const json_t *answer)
{
	static const char *const heads[] = { "PARAMETER", "VALUE", "DEFAULT", "RANGE", "CHANGES",
		"FROM" };
	struct table *table = table_new(6, heads);
	json_t *parameter;
	size_t i;

	printf("process %lld (", (long long)json_integer_value(json_object_get(answer, "pid")));
	output_print(output_get(answer, "program"));
	printf("), provider ");
	output_print(output_get(answer, "provider"));
	putchar('\n');
	json_array_foreach(json_object_get(answer, "parameters"), i, parameter) {
		struct parameter_text text;
		const char *cells[] = { output_get(parameter, "name"), text.value, text.by_default, text.range,
			output_get(parameter, "when"), output_get(parameter, "from") };

		describe_parameter(&text, parameter);
		table_add(table, cells);
	}
	table_print(table, 2);
}

/* Prints one parameter of all programs: a row for each. */
static void print_parameter(const json_t *answers, const char *name)
{
	const char *const heads[] = { "PID", "USER", "PROGRAM", "PROVIDER", name, "DEFAULT", "RANGE", "CHANGES",
		"FROM" };
	struct table *table = table_new(9, heads);
	json_t *answer;
	size_t i;

	json_array_foreach(answers, i, answer) {
		const json_t *parameter = json_array_get(json_object_get(answer, "parameters"), 0);
		struct parameter_text text;
		char pid[24];
		const char *cells[] = { output_get_number(pid, answer, "pid"), output_get(answer, "user"),
			output_get(answer, "program"), output_get(answer, "provider"), text.value,
			text.by_default, text.range, output_get(parameter, "when"),
			output_get(parameter, "from") };

		describe_parameter(&text, parameter);
		table_add(table, cells);
	}
	table_print(table, 0);
}

/* Shows the answers of one program, or (pid 0) of all. */
static void show(json_t *answers, pid_t pid, const char *name, bool json)
{
	json_t *answer;
	size_t i;

	if (json) {
		output_json(answers);
		return;
	}
	if (!pid && name && json_array_size(answers)) {
		print_parameter(answers, name);
	} else {
		json_array_foreach(answers, i, answer) {
			if (i)
				putchar('\n');
			print_program(answer);
		}
	}
	json_decref(answers);
}

/* --- asking each program -------------------------------------------------------------- */

/* A control socket, and the answers behind it. */
struct target {
	struct control_socket socket;
	struct control_result list, result;
};

static void *checked(void *memory)
{
	if (!memory)
		fail("there is no memory left");
	return memory;
}

/* Asks all targets at once. Returns their results, which the caller frees. */
static struct control_result *ask_targets(const struct target *targets, size_t count, enum control_verb verb,
					  json_t *request)
{
	struct control_socket *sockets = checked(calloc(count + 1, sizeof *sockets));
	struct control_result *results = checked(calloc(count + 1, sizeof *results));

	for (size_t i = 0; i < count; i++)
		sockets[i] = targets[i].socket;
	control_ask_each(sockets, count, verb, request, results);
	free(sockets);
	return results;
}

/* Returns the control sockets that this user may ask: of one program, or (pid 0) of all; with their answers to
 * CONTROL_LIST, or why there is none. If no library of the program `pid` answers, the tool ends with a line. */
static struct target *find_targets(pid_t pid, size_t *count)
{
	struct control_socket *sockets = control_find(pid, count);
	struct target *targets = checked(calloc(*count + 1, sizeof *targets));
	struct control_result *lists;
	size_t kept = 0, answers = 0;

	if (pid && !*count)
		control_fail_absent(pid);
	for (size_t i = 0; i < *count; i++)
		targets[i].socket = sockets[i];
	free(sockets);
	lists = ask_targets(targets, *count, CONTROL_LIST, NULL);
	for (size_t i = 0; i < *count; i++) {
		targets[i].list = lists[i];
		answers += lists[i].answer != NULL;
		if (pid || targets[i].list.answer || !targets[i].list.absent)
			targets[kept++] = targets[i];
	}
	if (pid && !answers)
		fail("process %ld: %s", (long)pid, targets[0].list.why);
	free(lists);
	*count = kept;
	return targets;
}

static void add_answer(json_t *answers, const struct target *target)
{
	json_t *answer = target->result.answer;

	output_set(answer, "pid", json_integer(target->socket.pid));
	output_set(answer, "program", output_text(output_get(target->list.answer, "program")));
	output_set(answer, "provider", output_text(output_get(target->list.answer, "provider")));
	owner_add(answer);
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

/* Sends the request to those targets that answered CONTROL_LIST. The others fail for the same reason as that. */
static void ask_answering(struct target *targets, size_t count, enum control_verb verb, json_t *request)
{
	struct target *answering = checked(calloc(count + 1, sizeof *answering));
	struct control_result *results;
	size_t asked = 0;

	for (size_t i = 0; i < count; i++)
		if (targets[i].list.answer)
			answering[asked++] = targets[i];
	results = ask_targets(answering, asked, verb, request);
	asked = 0;
	for (size_t i = 0; i < count; i++)
		targets[i].result = targets[i].list.answer ? results[asked++] : targets[i].list;
	free(results);
	free(answering);
}

/* Sends the request to each program. A program that refuses it gets a line of its own, and the others are
 * still asked. If `name` is given and `pid` is 0, programs whose provider lacks this parameter are left out.
 * For a process with two provider libraries, it is enough that one of them accepts the request. */
static json_t *ask_each(pid_t pid, enum control_verb verb, json_t *request, const char *name, int *status)
{
	size_t count;
	struct target *targets = find_targets(pid, &count);
	const char *failure = "";
	json_t *answers = json_array();
	pid_t done = 0, failed = 0;

	ask_answering(targets, count, verb, request);
	for (size_t i = 0; i < count; i++) {
		const struct target *target = &targets[i];

		if (target->result.answer) {
			add_answer(answers, target);
			done = target->socket.pid;
		} else if (pid || !name || !target->list.answer || !lacks(&target->socket, name)) {
			failed = target->socket.pid;
			failure = target->result.why;
		}
		if (failed == target->socket.pid && done != failed &&
		    (i + 1 == count || targets[i + 1].socket.pid != failed)) {
			cli_warn("process %ld: %s", (long)failed, failure);
			*status = CLI_FAILURE;
		}
		json_decref(target->list.answer);
	}
	free(targets);
	return answers;
}

static json_t *ask_programs(pid_t pid, enum control_verb verb, json_t *request, const char *name, int *status)
{
	json_t *answers = ask_each(pid, verb, request, name, status);

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
	show(ask_programs(pid, CONTROL_GET, request_of(name, NULL), name, &status), pid, name, json);
	return status;
}

int ctl_set_parameter(pid_t pid, const char *name, const char *value, bool json)
{
	int status = 0;

	show(ask_programs(pid, CONTROL_SET, request_of(name, value), name, &status), pid, name, json);
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
