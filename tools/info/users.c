/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* users.c - see users.h. */
#include "tools/info/users.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/control/rdma_objects.h"
#include "tools/info/output.h"
#include "tools/info/screen.h"
#include "tools/info/system.h"
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	HELD = 5,	/* kinds of objects that a process may have on a device */
	NARROW = 100,	/* characters of a screen below which tables are indented less */
};
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

/* Software devices of one network interface have one name: their addresses tell them apart. */
static bool is_ia_of(const json_t *ia, const json_t *device)
{
	const char *own = output_get(device, "address"), *address = output_get(ia, "address");

	return is_of(ia, device) && (!*own || !*address || !strcmp(own, address));
}

/* Whether the endpoint is one of an IA of this device. `ias` are those of its process. */
static bool is_endpoint_of(const json_t *endpoint, const json_t *ias, const json_t *device)
{
	json_t *ia;
	size_t i;

	json_array_foreach((json_t *)ias, i, ia)
		if (!strcmp(output_get(ia, "name"), output_get(endpoint, "ia")))
			return is_ia_of(ia, device);
	return is_of(endpoint, device);
}

/* The IAs of the process that gave this answer. */
static const json_t *ias_of(const json_t *lists, const json_t *answer)
{
	json_t *list;
	size_t i;

	json_array_foreach((json_t *)lists, i, list)
		if (json_equal(json_object_get(list, "pid"), json_object_get(answer, "pid")))
			return json_object_get(list, "ias");
	return NULL;
}

static json_t *user_of(const json_t *answer)
{
	json_t *user = json_object();

	output_set(user, "pid", json_incref(json_object_get(answer, "pid")));
	output_set(user, "program", json_incref(json_object_get(answer, "program")));
	return user;
}

static void add_endpoints(json_t *users, const json_t *answers, const json_t *lists, const json_t *device)
{
	json_t *answer, *endpoint;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "endpoints"), j, endpoint)
			if (is_endpoint_of(endpoint, ias_of(lists, answer), device)) {
				json_t *user = user_of(answer);

				json_object_update(user, endpoint);
				json_object_del(user, "device");
				output_append(users, user);
			}
}

/* Adds the IAs without endpoints. */
static void add_idle_ias(json_t *users, const json_t *answers, const json_t *device)
{
	json_t *answer, *ia;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			if (is_ia_of(ia, device) &&
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

/* Adds the QPs that belong to no reported DAT endpoint: those of other programs, and those of users of
 * verbs. */
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

/* Counts the objects of each process, also of processes without a QP. Leaves out this process, which has
 * opened the device, too (verbs.c). */
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

/* Whether the name of a counter stands for errors. Drivers use words and abbreviations in any case. */
static bool is_error(const char *name)
{
	static const char *const words[] = { "err", "discard", "down", "overrun", "wait", "drop", "retr",
		"out_of_", "dup", "timeout", "rq_num_", "sq_num_", "cqovf" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/* Adds the counters of errors among the files of a directory of sysfs. */
static void read_errors(json_t *errors, const char *directory)
{
	json_t *names = system_names("%s", directory), *name;
	char value[64];
	size_t i;

	json_array_foreach(names, i, name) {
		const char *file = json_string_value(name);

		if (is_error(file) && system_value(value, sizeof value, "%s/%s", directory, file))
			output_set(errors, file, json_integer(atoll(value)));
	}
	json_decref(names);
}

/* Adds "errors" to a device (port 0) or to one of its ports. Older drivers of mlx4 have diag_counters. */
static void add_errors(json_t *to, const char *device, long long port)
{
	static const char *const of_port[] = { "counters", "hw_counters" };
	static const char *const of_device[] = { "hw_counters", "diag_counters" };
	json_t *errors = json_object();
	char directory[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		if (port)
			snprintf(directory, sizeof directory, "/sys/class/infiniband/%s/ports/%lld/%s", device,
				 port, of_port[i]);
		else
			snprintf(directory, sizeof directory, "/sys/class/infiniband/%s/%s", device, of_device[i]);
		read_errors(errors, directory);
	}
	output_set(to, "errors", errors);
}

static void add_owners(json_t *rows)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		owner_add(row);
}

void users_add(json_t *devices)
{
	json_t *lists = control_ask_all(0, CONTROL_LIST, NULL), *device, *port;
	json_t *endpoints = control_ask_all(0, CONTROL_ENDPOINTS, NULL);
	size_t i, j;

	json_array_foreach(devices, i, device) {
		bool kernel = !strcmp(output_get(device, "kind"), "RDMA");
		json_t *users = json_array();

		add_endpoints(users, endpoints, lists, device);
		add_idle_ias(users, lists, device);
		if (kernel)
			add_kernel_qps(users, device);
		add_owners(users);
		output_set(device, "users", users);
		if (kernel) {
			json_t *objects = count_objects(output_get(device, "name"));

			add_owners(objects);
			output_set(device, "objects", objects);
		}
		if (kernel)
			add_errors(device, output_get(device, "name"), 0);
		if (kernel)
			json_array_foreach(json_object_get(device, "ports"), j, port)
				add_errors(port, output_get(device, "name"),
					   json_integer_value(json_object_get(port, "port")));
	}
	json_decref(lists);
	json_decref(endpoints);
}

/* --- printing ---------------------------------------------------------------------------- */

/* A user with its bytes since the previous look, and of all time. */
struct traffic {
	const json_t *user;
	json_int_t change, total;
	size_t index;
};

static json_int_t bytes_of(const json_t *user)
{
	return json_integer_value(json_object_get(user, "bytes_sent")) +
	       json_integer_value(json_object_get(user, "bytes_received")) +
	       json_integer_value(json_object_get(user, "bytes_read"));
}

static json_int_t bytes_before(const json_t *users, const json_t *wanted)
{
	json_t *user;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)users, i, user)
		if (json_equal(json_object_get(user, "pid"), json_object_get(wanted, "pid")) &&
		    !strcmp(output_get(user, "object"), output_get(wanted, "object")))
			return bytes_of(user);
	return 0;
}

static int busiest_first(const void *a, const void *b)
{
	const struct traffic *x = a, *y = b;

	if (x->change != y->change)
		return x->change < y->change ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Returns the users in the order of their traffic, for a screen that may lack the room for all. */
static struct traffic *order_users(const json_t *users, const json_t *before)
{
	size_t count = json_array_size(users);
	struct traffic *order = calloc(count, sizeof *order);

	if (!order)
		fail("there is no memory left");
	for (size_t i = 0; i < count; i++) {
		const json_t *user = json_array_get(users, i);

		order[i] = (struct traffic){ user, bytes_of(user) - bytes_before(before, user), bytes_of(user), i };
	}
	if (screen_rows())
		qsort(order, count, sizeof *order, busiest_first);
	return order;
}

/* Prints a table of users. On a screen that is renewed it has at most `rows` rows, and a line that counts the
 * others. */
static void print_table(struct table *table, int rows, const int *drop)
{
	int indent = screen_columns() && screen_columns() < NARROW ? 2 : 8;

	if (screen_columns())
		table_fit(table, indent, screen_columns(), (size_t)rows + 2, drop);
	table_print(table, indent);
}

static void print_users(const json_t *users, const json_t *before, int rows)
{
	static const char *const heads[] = { "PID", "USER", "PROGRAM", "IA", "QP", "STATE", "BY", "SENT", "RECV",
		"PEER" };
	static const int drop[] = { 4, 6, 3, 1, 5, 9, 8, 0, -1 };
	struct table *table = table_new(10, heads);
	struct traffic *order = order_users(users, before);

	for (size_t i = 0; i < json_array_size(users); i++) {
		const json_t *user = order[i].user;
		char pid[24], qp[24], sent[24], received[24];
		const char *cells[] = { output_get_number(pid, user, "pid"),
					output_get(user, "user"),
					output_get(user, "program"),
					output_get(user, "ia"),
					output_get_number(qp, user, "qp"),
					output_get(user, "state"),
					output_get(user, "carrier"),
					output_get_number(sent, user, "bytes_sent"),
					output_get_number(received, user, "bytes_received"),
					output_get(user, "remote") };

		table_add(table, cells);
	}
	print_table(table, rows, drop);
	free(order);
}

static void print_objects(const json_t *holders, int rows)
{
	static const char *const heads[] = { "PID", "USER", "PROGRAM", "CONTEXTS", "PDS", "MRS", "CQS", "QPS" };
	static const int drop[] = { 4, 3, 1, 6, 5, 0, -1 };
	struct table *table;
	json_t *holder;
	size_t i;

	if (!json_array_size(holders))
		return;
	fprintf(output_stream(), "    Objects in the kernel:\n");
	table = table_new(3 + HELD, heads);
	json_array_foreach(holders, i, holder) {
		char pid[24], counts[HELD][24];
		const char *cells[3 + HELD] = { output_get_number(pid, holder, "pid"),
			output_get(holder, "user"), output_get(holder, "program") };

		for (int kind = 0; kind < HELD; kind++)
			cells[3 + kind] = output_get_number(counts[kind], holder, held[kind].key);
		table_add(table, cells);
	}
	print_table(table, rows, drop);
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

/* Prints the errors that are not 0, each after `place` ("Port 1"). `before` is the same place at the
 * previous look, or NULL. */
static void print_errors(const char *place, const json_t *now, const json_t *before)
{
	json_t *old = json_object_get(before, "errors"), *value;
	const char *name;

	json_object_foreach(json_object_get(now, "errors"), name, value) {
		json_int_t is = json_integer_value(value);
		json_int_t was = old ? json_integer_value(json_object_get(old, name)) : is;

		if (!is)
			continue;
		fprintf(output_stream(), "        %s, ", place);
		output_print(name);
		fprintf(output_stream(), ": %lld", (long long)is);
		if (is != was)
			fprintf(output_stream(), " (%+lld)", (long long)(is - was));
		fputc('\n', output_stream());
	}
}

void users_print(const json_t *device, const json_t *before, int rows)
{
	json_t *users = json_object_get(device, "users"), *port;
	char place[40];
	size_t i;

	print_errors("Device", device, before);
	json_array_foreach(json_object_get(device, "ports"), i, port) {
		json_int_t number = json_integer_value(json_object_get(port, "port"));

		snprintf(place, sizeof place, "Port %lld", (long long)number);
		print_errors(place, port, port_of(before, number));
	}
	fprintf(output_stream(), "    Users:%s\n", json_array_size(users) ? "" : " none");
	if (json_array_size(users))
		print_users(users, json_object_get(before, "users"), rows);
	print_objects(json_object_get(device, "objects"), rows);
}
