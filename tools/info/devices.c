/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.c - see devices.h. RDMA devices are read from sysfs, which needs neither rights nor libibverbs;
 * values that only libibverbs has are added. Software devices are found by opening the entries of their
 * provider library. */
#include "tools/info/devices.h"
#include "tools/info/output.h"
#include "tools/info/probe.h"
#include "tools/info/remedy.h"
#include "tools/info/system.h"
#include "tools/info/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFINIBAND "/sys/class/infiniband"
enum { OPEN_SECONDS = 20 };

/* --- RDMA devices ------------------------------------------------------------------------- */

static json_t *value_of(const char *device, const char *file)
{
	char value[256];

	system_value(value, sizeof value, INFINIBAND "/%s/%s", device, file);
	return output_text(value);
}

/* "4: ACTIVE" gives "ACTIVE". */
static json_t *word_of(const char *device, const char *port, const char *file)
{
	char value[256], *blank;

	system_value(value, sizeof value, INFINIBAND "/%s/ports/%s/%s", device, port, file);
	blank = strchr(value, ' ');
	return output_text(blank && blank[-1] == ':' ? blank + 1 : value);
}

static json_t *describe_port(const char *device, const char *port)
{
	static const char *const files[][2] = {
		{ "state", "state" }, { "phys_state", "phys_state" }, { "rate", "rate" },
		{ "link_layer", "link_layer" }, { "lid", "lid" }, { "sm_lid", "sm_lid" },
		{ "lmc", "lid_mask_count" }, { "cap_mask", "cap_mask" }, { "gid", "gids/0" },
	};
	char netdev[SYSTEM_NAME];
	json_t *to = json_object();

	output_set(to, "port", json_integer(atoi(port)));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		output_set(to, files[i][0], word_of(device, port, files[i][1]));
	output_set(to, "netdev", output_text(system_interface_of(netdev, device, port)));
	return to;
}

/* node_type is for example "1: CA". On RoCE the transport is InfiniBand, too, as ibv_devinfo prints it. */
static const char *transport(const char *device)
{
	char type[64];

	system_value(type, sizeof type, INFINIBAND "/%s/node_type", device);
	switch (type[0]) {
	case '4': return "iWARP (1)";
	case '5': case '6': return "usNIC (3)";
	case '1': case '2': case '3': return "InfiniBand (0)";
	default: return "unspecified (4)";
	}
}

static json_t *describe_rdma(const char *name, bool limits)
{
	json_t *to = json_object(), *ports = system_names(INFINIBAND "/%s/ports", name), *port, *list;
	struct remedy remedy;
	const char *why;
	size_t i;

	list = json_array();
	json_array_foreach(ports, i, port)
		output_append(list, describe_port(name, json_string_value(port)));
	json_decref(ports);
	output_set(to, "name", output_text(name));
	output_set(to, "kind", output_text("RDMA"));
	output_set(to, "transport", output_text(transport(name)));
	output_set(to, "fw_ver", value_of(name, "fw_ver"));
	output_set(to, "node_guid", value_of(name, "node_guid"));
	output_set(to, "sys_image_guid", value_of(name, "sys_image_guid"));
	output_set(to, "hw_ver", value_of(name, "hw_rev"));
	output_set(to, "type", value_of(name, "hca_type"));
	output_set(to, "ports", list);
	if (remedy_device(&remedy, name)) {
		output_set(to, "problem", output_format("%s; %s", remedy.cause, remedy.fix));
	} else if (limits) {
		why = verbs_describe(to);
		if (why)
			output_set(to, "problem", output_text(why));
	}
	return to;
}

/* --- software devices ------------------------------------------------------------------------ */

static json_t *guid_text(const char *guid)
{
	if (strlen(guid) != 16)
		return output_text(guid);
	return output_format("%.4s:%.4s:%.4s:%.4s", guid, guid + 4, guid + 8, guid + 12);
}

/* The device is named after the network interface that the entry's address or name has selected. */
static json_t *describe_soft_port(const json_t *named)
{
	const char *device = output_get(named, "DAT_IB_DEVICE_NAME");
	const char *state = output_get(named, "DAT_IB_PORT_STATUS");
	json_int_t mtu = atoll(output_get(named, "DAT_IB_TRANSPORT_MTU"));
	json_t *to = json_object();

	output_set(to, "port", json_integer(1));
	output_set(to, "state", output_text(!strncmp(state, "PORT_", 5) ? state + 5 : state));
	output_set(to, "link_layer", output_text("Ethernet"));
	output_set(to, "gid", output_text(output_get(named, "DAT_IB_GID")));
	output_set(to, "netdev", output_text(strncmp(device, "soft_", 5) ? device : device + 5));
	output_set(to, "max_mtu", json_integer(mtu));
	output_set(to, "active_mtu", json_integer(mtu));
	return to;
}

static json_t *describe_soft(const DAT_ENTRY *entry, bool limits)
{
	json_t *probe = probe_ia(&entry->info, OPEN_SECONDS), *to = json_object(), *ports = json_array();
	const json_t *named = json_object_get(probe, "named"), *ia = json_object_get(probe, "ia_attributes");
	const char *name = output_get(named, "DAT_IB_DEVICE_NAME");
	struct remedy remedy;

	output_set(to, "name", output_text(*name ? name : entry->info.ia_name));
	output_set(to, "kind", output_text("software"));
	output_set(to, "ia", output_text(entry->info.ia_name));
	output_set(to, "address", output_text(output_get(ia, "ia_address")));
	output_set(to, "transport", output_text("iWARP (1)"));
	output_set(to, "fw_ver", output_text(output_get(ia, "firmware_version")));
	output_set(to, "node_guid", guid_text(output_get(named, "DAT_IB_NODE_GUID")));
	output_set(to, "sys_image_guid", guid_text(output_get(named, "DAT_IB_NODE_GUID")));
	output_set(to, "hw_ver", output_text(output_get(ia, "hardware_version")));
	output_set(to, "type", output_text(output_get(ia, "vendor_name")));
	if (named)
		output_append(ports, describe_soft_port(named));
	output_set(to, "ports", ports);
	if (limits && ia)
		output_set(to, "limits", json_deep_copy(ia));
	if (remedy_find(&remedy, entry, probe))
		output_set(to, "problem", output_format("%s; %s", remedy.cause, remedy.fix));
	json_decref(probe);
	return to;
}

/* Two entries with the same ia_params are one device. */
static bool is_soft_device(const DAT_ENTRY *list, DAT_COUNT index)
{
	const DAT_ENTRY *e = &list[index];

	if (!strstr(e->library, "libdaplsoft") || !e->is_default || e->is_repeated ||
	    e->info.dapl_version_major != DAT_VERSION_MAJOR)
		return false;
	for (DAT_COUNT i = 0; i < index; i++)
		if (strstr(list[i].library, "libdaplsoft") && list[i].is_default &&
		    !strcmp(list[i].ia_params, e->ia_params))
			return false;
	return true;
}

static bool is_named(const json_t *device, const char *only)
{
	return !only || !strcmp(output_get(device, "name"), only) || !strcmp(output_get(device, "ia"), only);
}

static void add_soft_devices(json_t *devices, const char *only, bool limits)
{
	json_t *messages, *device;
	DAT_ENTRY *list;
	DAT_COUNT count;

	probe_init();
	if (probe_entries(&list, &count, &messages))
		count = 0;
	json_decref(messages);
	for (DAT_COUNT i = 0; i < count; i++) {
		if (!is_soft_device(list, i))
			continue;
		device = describe_soft(&list[i], limits);
		if (is_named(device, only))
			output_append(devices, device);
		else
			json_decref(device);
	}
	if (count)
		free(list);
}

json_t *devices_gather(const char *only, bool limits)
{
	json_t *devices = json_array(), *names = system_rdma_devices(), *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (!only || !strcmp(json_string_value(name), only))
			output_append(devices, describe_rdma(json_string_value(name), limits));
	json_decref(names);
	add_soft_devices(devices, only, limits);
	return devices;
}
