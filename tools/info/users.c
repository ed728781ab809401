/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* users.c - see users.h. */
#include "tools/info/users.h"
#include "tools/control/client.h"
#include "tools/control/rdma_objects.h"
#include "tools/info/output.h"
#include "tools/info/system.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a process may have on a device. */
enum { HELD = 5 };
static const struct {
	enum rdma_kind kind;
	const char *key;
} held[HELD] = {
	{ RDMA_CONTEXT, "contexts" }, { RDMA_PD, "pds" }, { RDMA_MR, "mrs" }, { RDMA_CQ, "cqs" },
	{ RDMA_QP, "qps" },
};

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

/* QPs that no DAT endpoint has: other programs, and users of verbs. */
static void add_kernel_qps(json_t *users, const json_t *device)
{
	json_t *qps = rdma_objects(RDMA_QP, output_get(device, "name")), *qp;
	size_t i;

	json_array_foreach(qps, i, qp)
		if (!is_known(users, json_integer_value(json_object_get(qp, "pid")),
			      json_integer_value(json_object_get(qp, "qp"))))
			output_append(users, json_incref(qp));
	json_decref(qps);
}

static json_t *holder_of(json_t *holders, const json_t *object)
{
	json_t *holder;
	size_t i;

	json_array_foreach(holders, i, holder)
		if (json_equal(json_object_get(holder, "pid"), json_object_get(object, "pid")))
			return holder;
	holder = user_of(object);
	for (int kind = 0; kind < HELD; kind++)
		output_set(holder, held[kind].key, json_integer(0));
	output_append(holders, holder);
	return holder;
}

/* The number of objects of each process, also of those without a QP. This one has opened the device, too
 * (verbs.c). */
static json_t *count_objects(const char *device)
{
	json_t *holders = json_array(), *objects, *object;
	size_t i;

	for (int kind = 0; kind < HELD; kind++) {
		objects = rdma_objects(held[kind].kind, device);
		json_array_foreach(objects, i, object) {
			json_t *holder;
			const char *key = held[kind].key;

			if (json_integer_value(json_object_get(object, "pid")) == getpid())
				continue;
			holder = holder_of(holders, object);
			output_set(holder, key,
				   json_integer(json_integer_value(json_object_get(holder, key)) + 1));
		}
		json_decref(objects);
	}
	return holders;
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
			output_set(device, "objects", count_objects(output_get(device, "name")));
		if (kernel)
			json_array_foreach(json_object_get(device, "ports"), j, port)
				add_errors(port, output_get(device, "name"));
	}
	json_decref(lists);
	json_decref(endpoints);
}

/* --- printing ---------------------------------------------------------------------------- */

static void print_users(const json_t *users)
{
	static const char *const heads[] = { "PID", "PROGRAM", "IA", "QP", "STATE", "BY", "SENT", "RECV",
		"PEER" };
	struct table *table = table_new(9, heads);
	json_t *user;
	size_t i;

	json_array_foreach(users, i, user) {
		char pid[24], qp[24], sent[24], received[24];
		const char *cells[] = { output_get_number(pid, user, "pid"), output_get(user, "program"),
			output_get(user, "ia"), output_get_number(qp, user, "qp"), output_get(user, "state"),
			output_get(user, "carrier"), output_get_number(sent, user, "bytes_sent"),
			output_get_number(received, user, "bytes_received"), output_get(user, "remote") };

		table_add(table, cells);
	}
	table_print(table, 8);
}

static void print_objects(const json_t *holders)
{
	static const char *const heads[] = { "PID", "PROGRAM", "CONTEXTS", "PDS", "MRS", "CQS", "QPS" };
	struct table *table;
	json_t *holder;
	size_t i;

	if (!json_array_size(holders))
		return;
	printf("    Objects in the kernel:\n");
	table = table_new(2 + HELD, heads);
	json_array_foreach(holders, i, holder) {
		char pid[24], counts[HELD][24];
		const char *cells[2 + HELD] = { output_get_number(pid, holder, "pid"),
			output_get(holder, "program") };

		for (int kind = 0; kind < HELD; kind++)
			cells[2 + kind] = output_get_number(counts[kind], holder, held[kind].key);
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
	printf("    Users:%s\n", json_array_size(users) ? "" : " none");
	if (json_array_size(users))
		print_users(users);
	print_objects(json_object_get(device, "objects"));
}
