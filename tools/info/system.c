/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* system.c - see system.h. */
#include "tools/info/system.h"
#include "common/env.h"
#include "tools/info/output.h"
#include "common/address.h"
#include "common/local_addresses.h"
#include "tools/cli.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <grp.h>
#include <net/if.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INFINIBAND "/sys/class/infiniband"
enum { GID_GAP = 32 };	/* consecutive unused entries of a GID table that end the search */

static void make_path(char path[PATH_MAX], const char *fmt, va_list args)
{
	int head = snprintf(path, PATH_MAX, "%s", test_root());

	if (head < PATH_MAX)
		vsnprintf(path + head, PATH_MAX - head, fmt, args);
}

const char *system_path(char path[PATH_MAX], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	make_path(path, fmt, args);
	va_end(args);
	return path;
}

bool system_value(char *value, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	bool found;
	FILE *file;

	va_start(args, fmt);
	make_path(path, fmt, args);
	va_end(args);
	value[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fgets(value, (int)size, file) != NULL;
	fclose(file);
	value[strcspn(value, "\n")] = '\0';
	return found;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

json_t *system_names(const char *fmt, ...)
{
	json_t *names = json_array();
	struct dirent **list;
	char path[PATH_MAX];
	va_list args;
	int count;

	va_start(args, fmt);
	make_path(path, fmt, args);
	va_end(args);
	count = scandir(path, &list, is_visible, versionsort);
	for (int i = 0; i < count; i++) {
		output_append(names, output_text(list[i]->d_name));
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return names;
}

const char *system_join(char *text, size_t size, const json_t *names, const char *none)
{
	size_t i, at = 0;
	json_t *name;

	snprintf(text, size, "%s", none);
	json_array_foreach((json_t *)names, i, name)
		if (at < size)
			at += snprintf(text + at, size - at, "%s%s", i ? ", " : "", json_string_value(name));
	return text;
}

json_t *system_rdma_devices(void)
{
	return system_names(INFINIBAND);
}

/* --- network interfaces ------------------------------------------------------------ */

/* Does not read /sys/class/net, which shows the network namespace in which /sys was mounted. */
json_t *system_interfaces(void)
{
	struct if_nameindex *list = if_nameindex();
	json_t *names = json_array();

	for (int i = 0; list && list[i].if_name; i++)
		output_append(names, output_text(list[i].if_name));
	if (list)
		if_freenameindex(list);
	return names;
}

struct system_interface system_interface(const char *name)
{
	struct system_interface found = { .exists = false };
	struct local_addresses all;

	if (!local_addresses_read(&all, name)) {
		found.exists = all.named;
		found.up = all.named && all.named->flags & IFF_UP;
		for (size_t i = 0; i < all.address_count; i++)
			if (all.addresses[i].is_named) {
				found.exists = found.has_address = true;	/* by a label */
				found.up = all.addresses[i].link->flags & IFF_UP;
			}
	}
	local_addresses_free(&all);
	return found;
}

static bool parse(struct sockaddr_storage *to, const char *text)
{
	memset(to, 0, sizeof *to);
	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)to)->sin_addr) == 1)
		to->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)to)->sin6_addr) == 1)
		to->ss_family = AF_INET6;
	return to->ss_family;
}

bool system_has_address(const char *text)
{
	struct sockaddr_storage wanted;
	struct local_addresses all;
	bool found = false;

	if (!parse(&wanted, text) || local_addresses_read(&all, ""))
		return false;
	for (size_t i = 0; i < all.address_count && !found; i++)
		found = address_same_host((struct sockaddr *)&all.addresses[i].at, (struct sockaddr *)&wanted);
	local_addresses_free(&all);
	return found;
}

/* --- RDMA devices ------------------------------------------------------------------ */

static bool port_belongs_to(const char *device, const char *port, const char *interface)
{
	char name[SYSTEM_NAME];

	for (int i = 0, gap = 0; gap < GID_GAP; i++, gap++) {
		if (!system_value(name, sizeof name, INFINIBAND "/%s/ports/%s/gid_attrs/ndevs/%d",
				  device, port, i))
			continue;
		if (!strcmp(name, interface))
			return true;
		gap = -1;
	}
	return false;
}

/* An interface of IP over InfiniBand belongs to the same PCI device. For siw the file "parent" names the
 * interface. */
static bool is_child(const char *device, const char *interface)
{
	char path[PATH_MAX], parent[SYSTEM_NAME];

	system_path(path, INFINIBAND "/%s/device/net/%s", device, interface);
	if (!access(path, F_OK))
		return true;
	return system_value(parent, sizeof parent, INFINIBAND "/%s/parent", device) &&
	       !strcmp(parent, interface);
}

static bool belongs_to(const char *device, const char *interface)
{
	json_t *ports = system_names(INFINIBAND "/%s/ports", device), *port;
	bool found = is_child(device, interface);
	size_t i;

	json_array_foreach(ports, i, port)
		found = found || port_belongs_to(device, json_string_value(port), interface);
	json_decref(ports);
	return found;
}

bool system_device_of(char device[SYSTEM_NAME], const char *interface)
{
	json_t *devices = system_rdma_devices(), *name;
	bool found = false;
	size_t i;

	json_array_foreach(devices, i, name) {
		if (found || !belongs_to(json_string_value(name), interface))
			continue;
		snprintf(device, SYSTEM_NAME, "%s", json_string_value(name));
		found = true;
	}
	json_decref(devices);
	return found;
}

const char *system_interface_of(char interface[SYSTEM_NAME], const char *device, const char *port)
{
	json_t *children;

	for (int i = 0; i < GID_GAP; i++)
		if (system_value(interface, SYSTEM_NAME, INFINIBAND "/%s/ports/%s/gid_attrs/ndevs/%d",
				 device, port, i))
			return interface;
	if (system_value(interface, SYSTEM_NAME, INFINIBAND "/%s/parent", device))
		return interface;
	children = system_names(INFINIBAND "/%s/device/net", device);
	if (json_array_size(children))
		snprintf(interface, SYSTEM_NAME, "%s", json_string_value(json_array_get(children, 0)));
	json_decref(children);
	return interface;
}

/* The file says "4: ACTIVE". */
const char *system_port_state(char state[32], const char *device, unsigned port)
{
	char value[32], *word;

	system_value(value, sizeof value, INFINIBAND "/%s/ports/%u/state", device, port ? port : 1);
	word = strchr(value, ' ');
	snprintf(state, 32, "%s", word ? word + 1 : value);
	return state;
}

const char *system_verbs_node(char node[PATH_MAX], const char *device)
{
	json_t *nodes = system_names("/sys/class/infiniband_verbs"), *name;
	char owner[SYSTEM_NAME];
	size_t i;

	node[0] = '\0';
	json_array_foreach(nodes, i, name) if (system_value(owner, sizeof owner, "/sys/class/infiniband_verbs/%s/ibdev",
							    json_string_value(name)) &&
					       !strcmp(owner, device))
		system_path(node, "/dev/infiniband/%s", json_string_value(name));
	json_decref(nodes);
	return node;
}

const char *system_rights(char text[128], const char *path)
{
	static const char letters[] = "rwxrwxrwx";
	struct group *group;
	struct passwd *user;
	struct stat st;
	char mode[11];

	snprintf(text, 128, "%s", "absent");
	if (stat(path, &st))
		return text;
	mode[0] = S_ISCHR(st.st_mode) ? 'c' : S_ISDIR(st.st_mode) ? 'd' : '-';
	for (int i = 0; i < 9; i++)
		mode[i + 1] = st.st_mode & (0400 >> i) ? letters[i] : '-';
	mode[10] = '\0';
	user = getpwuid(st.st_uid);
	group = getgrgid(st.st_gid);
	snprintf(text, 128, "%s %s %s", mode, user ? user->pw_name : "?", group ? group->gr_name : "?");
	return text;
}

/* --- drivers of libibverbs ------------------------------------------------------------ */

const char *system_driver_dir(char path[PATH_MAX])
{
	const char *dir = getenv("IBV_CONFIG_DIR");

	if (dir)
		snprintf(path, PATH_MAX, "%s", dir);
	else
		system_path(path, "/etc/libibverbs.d");
	return path;
}

/* Finds the kernel's driver of a device: "mlx5_core" of mlx5_0. Software devices have no PCI device, but
 * their names usually begin with that of the driver ("rxe0", "siw_eth0"). */
static void kernel_driver(char driver[SYSTEM_NAME], const char *device)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n = readlink(system_path(path, INFINIBAND "/%s/device/driver", device), target,
			     sizeof target - 1);
	const char *slash;

	driver[0] = '\0';
	if (n > 0) {
		target[n] = '\0';
		slash = strrchr(target, '/');
		snprintf(driver, SYSTEM_NAME, "%.*s", SYSTEM_NAME - 1, slash ? slash + 1 : target);
	} else if (!strncmp(device, "rxe", 3) || !strncmp(device, "siw", 3)) {
		snprintf(driver, SYSTEM_NAME, "%.3s", device);
	}
}

/* The file says "driver mlx5"; the kernel's module is mlx5_core, mlx5_ib, or has the same name. */
static bool file_is_for(const char *dir, const char *file, const char *driver)
{
	char path[PATH_MAX], line[SYSTEM_NAME];
	bool found = false;
	FILE *f;

	if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path || !(f = fopen(path, "re")))
		return false;
	while (!found && fgets(line, sizeof line, f)) {
		char *name = strncmp(line, "driver", 6) ? NULL : line + 6 + strspn(line + 6, " \t");

		if (!name)
			continue;
		name[strcspn(name, " \t\r\n")] = '\0';
		found = !*driver || !strncmp(driver, name, strlen(name));
	}
	fclose(f);
	return found;
}

bool system_has_driver(const char *device)
{
	char dir[PATH_MAX], driver[SYSTEM_NAME];
	struct dirent **list;
	bool found = false;
	int count;

	kernel_driver(driver, device);
	count = scandir(system_driver_dir(dir), &list, is_visible, NULL);
	for (int i = 0; i < count; i++) {
		found = found || file_is_for(dir, list[i]->d_name, driver);
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return found;
}
