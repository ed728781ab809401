/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* users.c - see users.h. */
#include "tools/info/users.h"
#include "tools/control/client.h"
#include "tools/control/run.h"
#include "tools/info/output.h"
#include "tools/info/system.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- gathering ------------------------------------------------------------------------- */

static bool is_of(const json_t *object, const json_t *device)
{
	return !strcmp(output_get(object, "device"), output_get(device, "name"));
}

static json_t *user_of(const json_t *answer)
{
	json_t *user = json_object();

	output_set(user, "pid", json_incref(json_object_get(answer, "pid")));
	output_set(user, "program", json_incref(json_object_get(answer, "program")));
	return user;
}

static void add_endpoints(json_t *users, const json_t *answers, const json_t *device)
{
	json_t *answer, *endpoint;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "endpoints"), j, endpoint)
			if (is_of(endpoint, device)) {
				json_t *user = user_of(answer);

				json_object_update(user, endpoint);
				json_object_del(user, "device");
				output_append(users, user);
			}
}

/* IAs without endpoints. */
static void add_idle_ias(json_t *users, const json_t *answers, const json_t *device)
{
	json_t *answer, *ia;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			if (is_of(ia, device) &&
			    !json_integer_value(json_object_get(ia, "endpoints"))) {
				json_t *user = user_of(answer);

				output_set(user, "ia", json_incref(json_object_get(ia, "name")));
				output_append(users, user);
			}
}

static bool is_known(const json_t *users, json_int_t pid, json_int_t qp)
{
	json_t *user;
	size_t i;

	json_array_foreach(users, i, user)
		if (json_integer_value(json_object_get(user, "pid")) == pid &&
		    json_integer_value(json_object_get(user, "qp")) == qp)
			return true;
	return false;
}

/* QPs that no endpoint of ours has: other programs, and users of verbs. The kernel's own have no pid. */
static void add_kernel_qps(json_t *users, const json_t *device)
{
	json_t *qps = run_rdma_resource("qp", output_get(device, "name")), *qp;
	size_t i;

	json_array_foreach(qps, i, qp) {
		json_int_t pid = json_integer_value(json_object_get(qp, "pid"));
		json_int_t number = json_integer_value(json_object_get(qp, "lqpn"));
		json_t *user;

		if (!pid || is_known(users, pid, number))
			continue;
		user = json_object();
		output_set(user, "pid", json_integer(pid));
		output_set(user, "program", output_text(output_get(qp, "comm")));
		output_set(user, "qp", json_integer(number));
		output_set(user, "type", output_text(output_get(qp, "type")));
		output_set(user, "state", output_text(output_get(qp, "state")));
		output_append(users, user);
	}
	json_decref(qps);
}

/* Of a port: the files whose names tell of errors. */
static void add_errors(json_t *port, const char *device)
{
	static const char *const words[] = { "err", "discard", "down", "overrun", "wait", "drop", "retr",
		"out_of_", "dup", "timeout" };
	static const char *const directories[] = { "counters", "hw_counters" };
	long long number = json_integer_value(json_object_get(port, "port"));
	json_t *errors = json_object();
	char value[64];

	for (int d = 0; d < 2; d++) {
		json_t *names = system_names("/sys/class/infiniband/%s/ports/%lld/%s", device, number,
					     directories[d]), *name;
		size_t i;

		json_array_foreach(names, i, name) {
			const char *file = json_string_value(name);
			bool wanted = false;

			for (size_t w = 0; w < sizeof words / sizeof *words; w++)
				wanted |= strstr(file, words[w]) != NULL;
			if (wanted && system_value(value, sizeof value,
						   "/sys/class/infiniband/%s/ports/%lld/%s/%s", device,
						   number, directories[d], file))
				output_set(errors, file, json_integer(atoll(value)));
		}
		json_decref(names);
	}
	output_set(port, "errors", errors);
}

void users_add(json_t *devices)
{
	json_t *lists = control_ask_all(0, CONTROL_LIST, NULL), *device, *port;
	json_t *endpoints = control_ask_all(0, CONTROL_ENDPOINTS, NULL);
	size_t i, j;

	json_array_foreach(devices, i, device) {
		bool kernel = !strcmp(output_get(device, "kind"), "RDMA");
		json_t *users = json_array();

		add_endpoints(users, endpoints, device);
		add_idle_ias(users, lists, device);
		if (kernel)
			add_kernel_qps(users, device);
		output_set(device, "users", users);
		if (kernel)
			json_array_foreach(json_object_get(device, "ports"), j, port)
				add_errors(port, output_get(device, "name"));
	}
	json_decref(lists);
	json_decref(endpoints);
}

/* --- printing ---------------------------------------------------------------------------- */

static const char *number_text(char text[24], const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	snprintf(text, 24, json_is_integer(value) ? "%lld" : "", (long long)json_integer_value(value));
	return text;
}

static void print_users(const json_t *users)
{
	static const char *const heads[] = { "PID", "PROGRAM", "IA", "QP", "STATE", "BY", "SENT", "RECV",
		"PEER" };
	struct table *table = table_new(9, heads);
	json_t *user;
	size_t i;

	json_array_foreach(users, i, user) {
		char pid[24], qp[24], sent[24], received[24];
		const char *cells[] = { number_text(pid, user, "pid"), output_get(user, "program"),
			output_get(user, "ia"), number_text(qp, user, "qp"), output_get(user, "state"),
			output_get(user, "carrier"), number_text(sent, user, "bytes_sent"),
			number_text(received, user, "bytes_received"), output_get(user, "remote") };

		table_add(table, cells);
	}
	table_print(table, 8);
}

static const json_t *port_of(const json_t *device, json_int_t number)
{
	json_t *port;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, port)
		if (json_integer_value(json_object_get(port, "port")) == number)
			return port;
	return NULL;
}

static void print_errors(const json_t *port, const json_t *before)
{
	json_t *old = json_object_get(before, "errors"), *value;
	const char *name;

	json_object_foreach(json_object_get(port, "errors"), name, value) {
		json_int_t now = json_integer_value(value);
		json_int_t was = old ? json_integer_value(json_object_get(old, name)) : now;

		if (!now)
			continue;
		printf("        Port %lld, ", (long long)json_integer_value(json_object_get(port, "port")));
		output_print(name);
		printf(": %lld", (long long)now);
		if (now != was)
			printf(" (%+lld)", (long long)(now - was));
		putchar('\n');
	}
}

void users_print(const json_t *device, const json_t *before)
{
	json_t *users = json_object_get(device, "users"), *port;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, port)
		print_errors(port, port_of(before, json_integer_value(json_object_get(port, "port"))));
	if (!json_array_size(users)) {
		printf("    Users: none\n");
		return;
	}
	printf("    Users:\n");
	print_users(users);
}
