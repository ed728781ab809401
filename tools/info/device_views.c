/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_views.c - see device_views.h. The fields have the names that users know from these programs. */
#include "tools/info/device_views.h"
#include "tools/info/devices.h"
#include "tools/info/output.h"
#include "tools/info/screen.h"
#include "tools/info/users.h"
#include "tools/cli.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* --- what is asked for ------------------------------------------------------------------ */

static void drop_other_ports(json_t *device, unsigned wanted)
{
	json_t *ports = json_object_get(device, "ports");

	for (size_t i = json_array_size(ports); i-- > 0;)
		if (json_integer_value(json_object_get(json_array_get(ports, i), "port")) != wanted)
			json_array_remove(ports, i);
}

/* Returns the devices that the options select. Fails with one line if there is no such device or port. */
static json_t *find(const struct device_options *o)
{
	json_t *devices = devices_gather(o->device, o->verbose), *device;
	bool any = false;
	size_t i;

	if (o->device && !json_array_size(devices))
		fail("there is no device \"%s\"; datinfo --devices lists them", o->device);
	json_array_foreach(devices, i, device) {
		if (o->port)
			drop_other_ports(device, o->port);
		any |= json_array_size(json_object_get(device, "ports")) > 0;
	}
	if (o->port && !any)
		fail("no device%s%s has a port %u", o->device ? " " : "", o->device ? o->device : "", o->port);
	return devices;
}

/* Prints JSON; or calls `print` (or NULL) for each device, and then prints their problems. Drops the
 * reference to `devices`. Returns the exit status. */
static int show(const struct device_options *o, json_t *devices, void (*print)(const json_t *))
{
	int status = json_array_size(devices) ? 0 : CLI_FAILURE;
	json_t *device, *all;
	size_t i;

	if (o->json) {
		all = json_object();
		output_set(all, "devices", devices);
		output_json(all);
		return status;
	}
	if (status)
		fputs("no RDMA device is present, and no software device is configured\n", output_stream());
	json_array_foreach(devices, i, device)
		if (print)
			print(device);
	json_array_foreach(devices, i, device)
		if (*output_get(device, "problem")) {
			output_print(output_get(device, "name"));
			fputs(": ", output_stream());
			output_print(output_get(device, "problem"));
			fputc('\n', output_stream());
		}
	json_decref(devices);
	return status;
}

/* --- ibv_devices -------------------------------------------------------------------------- */

static const char *port_value(const json_t *device, const char *name)
{
	return output_get(json_array_get(json_object_get(device, "ports"), 0), name);
}

int device_views_list(const struct device_options *o)
{
	static const char *const heads[] = { "DEVICE", "NODE GUID", "NETDEV", "STATE", "IA" };
	json_t *devices = find(o), *device;
	struct table *table;
	size_t i;

	if (!o->json && json_array_size(devices)) {
		table = table_new(5, heads);
		json_array_foreach(devices, i, device) {
			const char *cells[] = {
				output_get(device, "name"), output_get(device, "node_guid"),
				port_value(device, "netdev"), port_value(device, "state"),
				output_get(device, "ia"),
			};

			table_add(table, cells);
		}
		table_print(table, 0);
	}
	return show(o, devices, NULL);
}

/* --- ibv_devinfo -------------------------------------------------------------------------- */

static const char *value_text(const json_t *object, const char *name)
{
	static char text[32];
	const json_t *value = json_object_get(object, name);

	if (json_is_string(value))
		return json_string_value(value);
	snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
	return json_is_integer(value) ? text : "";
}

static void add_row(struct table *table, const char *name, const char *value)
{
	char label[64];
	const char *cells[] = { label, value };

	snprintf(label, sizeof label, "%s:", name);
	if (*value)
		table_add(table, cells);
}

static void add_rows(struct table *table, const json_t *object, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_row(table, names[i], value_text(object, names[i]));
}

static void print_info_port(const json_t *port)
{
	static const char *const names[] = {
		"max_mtu", "active_mtu", "sm_lid", "lid", "lmc", "link_layer", "phys_state", "rate", "cap_mask",
		"gid", "netdev", "max_msg_sz", "max_vl_num", "bad_pkey_cntr", "qkey_viol_cntr", "sm_sl",
		"pkey_tbl_len", "gid_tbl_len", "subnet_timeout", "init_type_reply", "active_width",
		"active_speed",
	};
	const char *state = output_get(port, "state");
	struct table *table = table_new(2, NULL);
	char text[64];

	printf("        port: %s\n", value_text(port, "port"));
	snprintf(text, sizeof text, "PORT_%s", state);
	add_row(table, "state", *state ? text : "");
	add_rows(table, port, names, sizeof names / sizeof *names);
	table_print(table, 16);
}

static void print_info(const json_t *device)
{
	static const char *const names[] = { "transport", "fw_ver", "node_guid", "sys_image_guid", "vendor_id",
					     "vendor_part_id", "hw_ver", "type", "ia" };
	json_t *ports = json_object_get(device, "ports"), *port, *limits = json_object_get(device, "limits");
	struct table *table = table_new(2, NULL);
	const char *limit;
	char count[16];
	json_t *value;
	size_t i;

	printf("%shca_id: ", output_bold());
	output_print(output_get(device, "name"));
	printf("%s\n", output_plain());
	add_rows(table, device, names, sizeof names / sizeof *names);
	snprintf(count, sizeof count, "%zu", json_array_size(ports));
	add_row(table, "phys_port_cnt", count);
	json_object_foreach(limits, limit, value)
		add_row(table, limit, value_text(limits, limit));
	table_print(table, 4);
	json_array_foreach(ports, i, port)
		print_info_port(port);
	putchar('\n');
}

static void print_name(const json_t *device)
{
	output_print(output_get(device, "name"));
	putchar('\n');
}

int device_views_info(const struct device_options *o)
{
	return show(o, find(o), o->names_only ? print_name : print_info);
}

/* --- ibstat --------------------------------------------------------------------------------- */

/* Writes a word as ibstat does: "ACTIVE" becomes "Active", "4X_QDR" does not change. */
static const char *capital(const char *word)
{
	static char text[64];

	snprintf(text, sizeof text, "%s", word);
	for (size_t i = 1; i < strlen(text); i++)
		if (text[i] >= 'A' && text[i] <= 'Z' && text[i - 1] >= 'A')
			text[i] += 'a' - 'A';
	return text;
}

static void print_line(int indent, const char *name, const char *value)
{
	if (!*value)
		return;
	fprintf(output_stream(), "%*s%s: ", indent, "", name);
	output_print(value);
	fputc('\n', output_stream());
}

static void print_stat_port(const json_t *port)
{
	fprintf(output_stream(), "    Port %s:\n", value_text(port, "port"));
	print_line(8, "State", capital(output_get(port, "state")));
	print_line(8, "Physical state", output_get(port, "phys_state"));
	print_line(8, "Rate", output_get(port, "rate"));
	print_line(8, "Base lid", output_get(port, "lid"));
	print_line(8, "LMC", output_get(port, "lmc"));
	print_line(8, "SM lid", output_get(port, "sm_lid"));
	print_line(8, "Capability mask", output_get(port, "cap_mask"));
	print_line(8, "GID", output_get(port, "gid"));
	print_line(8, "MTU, active", value_text(port, "active_mtu"));
	print_line(8, "MTU, max", value_text(port, "max_mtu"));
	print_line(8, "Network interface", output_get(port, "netdev"));
	print_line(8, "Link layer", output_get(port, "link_layer"));
}

/* How much a look of --stat shows. */
static struct {
	json_t *before;		/* the devices of the previous look of --watch; NULL: none */
	bool details;		/* attributes of devices and ports */
	int rows;		/* of each table */
} look = { .details = true, .rows = INT_MAX - 2 };

static const json_t *device_before(const json_t *device)
{
	json_t *old;
	size_t i;

	json_array_foreach(look.before, i, old)
		if (!strcmp(output_get(old, "name"), output_get(device, "name")))
			return old;
	return NULL;
}

static void print_details(const json_t *device)
{
	json_t *ports = json_object_get(device, "ports"), *port;
	size_t i;

	print_line(4, "CA type", output_get(device, "type"));
	print_line(4, "IA", output_get(device, "ia"));
	fprintf(output_stream(), "    Number of ports: %zu\n", json_array_size(ports));
	print_line(4, "Firmware version", output_get(device, "fw_ver"));
	print_line(4, "Hardware version", output_get(device, "hw_ver"));
	print_line(4, "Node GUID", output_get(device, "node_guid"));
	print_line(4, "System image GUID", output_get(device, "sys_image_guid"));
	json_array_foreach(ports, i, port)
		print_stat_port(port);
}

static void print_stat(const json_t *device)
{
	fprintf(output_stream(), "%sCA '", output_bold());
	output_print(output_get(device, "name"));
	fprintf(output_stream(), "'%s\n", output_plain());
	if (look.details)
		print_details(device);
	users_print(device, device_before(device), look.rows);
}

/* Prints a look. If the screen lacks the room, the details are left out first, and then rows of the tables. */
static int show_look(const struct device_options *o, json_t *devices)
{
	int status;

	look.details = true;
	look.rows = INT_MAX - 2;
	for (;;) {
		screen_frame();
		status = show(o, json_incref(devices), print_stat);
		if (o->json || screen_fits() || (!look.details && look.rows == 1))
			return status;
		look.rows = look.details ? look.rows : look.rows > screen_rows() ? screen_rows() : look.rows - 1;
		look.details = false;
	}
}

static int watch_stat(const struct device_options *o, const struct device_options *with_mtu)
{
	int status = 0;

	if (o->json)
		screen_catch_signals();
	else
		screen_begin();
	do {
		json_t *devices = find(with_mtu);

		users_add(devices);
		status = show_look(o, devices);
		json_decref(look.before);
		look.before = devices;
	} while (screen_wait(o->watch));
	screen_end();
	json_decref(look.before);
	return status;
}

int device_views_stat(const struct device_options *o)
{
	struct device_options with_mtu = *o;
	json_t *devices;

	with_mtu.verbose = true;	/* only libibverbs reports MTUs */
	if (o->watch > 0)
		return watch_stat(o, &with_mtu);
	devices = find(&with_mtu);
	users_add(devices);
	return show(o, devices, print_stat);
}
