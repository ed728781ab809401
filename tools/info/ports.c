/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ports.c - see ports.h. Service points come from the control sockets of programs. Listeners on RDMA devices
 * and on TCP, also those of other programs, come from the kernel; those that belong to service points are
 * left out. */
#include "tools/info/ports.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/control/rdma_objects.h"
#include "tools/info/listeners.h"
#include "tools/info/output.h"
#include "tools/info/system.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- gathering ------------------------------------------------------------------------- */

static void add_service_points(json_t *ports)
{
	json_t *answers = control_ask_all(0, CONTROL_SERVICE_POINTS, NULL), *answer, *point;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "service_points"), j, point) {
			json_t *port = json_object();

			output_set(port, "pid", json_incref(json_object_get(answer, "pid")));
			output_set(port, "program", json_incref(json_object_get(answer, "program")));
			json_object_update(port, point);
			output_append(ports, port);
		}
	json_decref(answers);
}

static json_int_t number(const json_t *port, const char *key)
{
	return json_integer_value(json_object_get(port, key));
}

static bool is_member(const json_t *a, const json_t *b, const char *key)
{
	const json_t *value = json_object_get(a, key);

	return value && json_equal(value, json_object_get(b, key));
}

/* Whether this listener of the kernel belongs to a service point. */
static bool is_known(const json_t *ports, const json_t *listener)
{
	json_t *port;
	size_t i;

	json_array_foreach(ports, i, port)
		if (is_member(port, listener, "pid") && is_member(port, listener, "device") &&
		    is_member(port, listener, "port"))
			return true;
	return false;
}

static void add_listener(json_t *ports, const json_t *from, const char *service)
{
	json_t *port = json_object(), *services = json_array();

	json_object_update(port, (json_t *)(uintptr_t)from);
	json_object_del(port, "service");
	json_object_del(port, "state");
	json_object_del(port, "inode");
	output_append(services, output_text(service));
	output_set(port, "services", services);
	output_append(ports, port);
}

static void add_kernel_listeners(json_t *ports)
{
	json_t *devices = system_rdma_devices(), *device, *id;
	size_t i, j;

	json_array_foreach(devices, i, device) {
		json_t *ids = rdma_objects(RDMA_CM_ID, json_string_value(device));

		json_array_foreach(ids, j, id) {
			output_set(id, "device", json_incref(device));
			if (!strcmp(output_get(id, "state"), "LISTEN") && number(id, "port") &&
			    !is_known(ports, id))
				add_listener(ports, id, output_get(id, "service"));
		}
		json_decref(ids);
	}
	json_decref(devices);
}

/* Whether a socket belongs to a service point, or to an iWARP listener. The socket of an iWARP listener is
 * the kernel's and belongs to no process. */
static bool is_behind(const json_t *port, const json_t *socket)
{
	return is_member(port, socket, "port") &&
	       (is_member(port, socket, "pid") ||
		(!json_object_get(socket, "pid") && is_member(port, socket, "address")));
}

/* Adds TCP sockets, which occupy a qualifier on iWARP and on the software device. */
static void add_sockets(json_t *ports)
{
	json_t *sockets = listeners_tcp(), *socket;
	size_t count = json_array_size(ports), i;

	json_array_foreach(sockets, i, socket) {
		bool behind = false;

		for (size_t j = 0; j < count; j++)
			behind |= is_behind(json_array_get(ports, j), socket);
		if (!behind)
			add_listener(ports, socket, "TCP");
	}
	json_decref(sockets);
}

/* Adds the user: of the process, or, if it is not found, of the socket. */
static void add_owners(json_t *ports)
{
	char user[OWNER_NAME];
	json_t *port;
	size_t i;

	json_array_foreach(ports, i, port) {
		if (number(port, "pid"))
			owner_add(port);
		else if (json_object_get(port, "uid"))
			output_set(port, "user", output_text(owner_name(user, (uid_t)number(port, "uid"))));
	}
}

/* --- printing -------------------------------------------------------------------------- */

static int by_port(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;

	if (number(x, "port") != number(y, "port"))
		return number(x, "port") < number(y, "port") ? -1 : 1;
	return number(x, "pid") < number(y, "pid") ? -1 : number(x, "pid") > number(y, "pid");
}

static json_t *sorted(const json_t *ports)
{
	size_t count = json_array_size(ports);
	json_t **rows = calloc(count ? count : 1, sizeof *rows), *list = json_array();

	for (size_t i = 0; rows && i < count; i++)
		rows[i] = json_array_get(ports, i);
	if (rows)
		qsort(rows, count, sizeof *rows, by_port);
	for (size_t i = 0; i < count; i++)
		output_append(list, json_incref(rows ? rows[i] : json_array_get(ports, i)));
	free(rows);
	return list;
}

static const char *services_text(char text[16], const json_t *port)
{
	json_t *services = json_object_get(port, "services"), *service;
	size_t i, used = 0;

	text[0] = '\0';
	json_array_foreach(services, i, service)
		used += snprintf(text + used, used < 16 ? 16 - used : 0, "%s%s", i ? "," : "",
				 json_string_value(service));
	return text;
}

static void print_table(const json_t *ports)
{
	static const char *const heads[] = { "PORT", "QUALIFIER", "TYPE", "SERVICE", "ADDRESS", "IA",
		"DEVICE", "PID", "USER", "PROGRAM" };
	struct table *table = table_new(10, heads);
	json_t *port;
	size_t i;

	json_array_foreach(ports, i, port) {
		char at[24], services[16], pid[24];
		const char *cells[] = { output_get_number(at, port, "port"),
					output_get(port, "qualifier"),
					output_get(port, "type"),
					services_text(services, port),
					output_get(port, "address"),
					output_get(port, "ia"),
					output_get(port, "device"),
					number(port, "pid") ? output_get_number(pid, port, "pid") : "",
					output_get(port, "user"),
					output_get(port, "program") };

		table_add(table, cells);
	}
	table_print(table, 0);
}

void ports_show(bool json)
{
	json_t *found = json_array(), *ports;

	add_service_points(found);
	add_kernel_listeners(found);
	add_sockets(found);
	add_owners(found);
	ports = sorted(found);
	json_decref(found);
	if (json) {
		output_json(ports);
		return;
	}
	if (json_array_size(ports))
		print_table(ports);
	else
		puts("No program of this user listens in this network namespace.");
	json_decref(ports);
}
