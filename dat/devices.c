/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.c - finds RDMA devices, their ports and network devices in sysfs.
 *
 * A port's network devices are named by its GID table (RoCE, iWARP), or have its address
 * (iWARP on older kernels), or are children of the same PCI device (IP over InfiniBand). */
#include "dat/devices.h"
#include "dat/shortage.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libdaplofa.so.2"
#define NODE_RNIC '4'		/* first character of node_type: an iWARP device */
#define GID_GAP 32
#define ARPHRD_INFINIBAND "32"	/* a network device's type: IP over InfiniBand */

struct names {
	char **names;
	size_t count, room;
};

struct found {
	struct names netdevs;	/* each once, in the order of the devices */
	struct names roce;	/* those with RoCE */
	struct names ports;	/* "<device> <port>" */
	int err;		/* ENOMEM, EMFILE, ENFILE */
	const char *sysfs;
	char gid[64];		/* the GID that netdev_with_gid() searches for */
};

static void note(struct found *found, int err)
{
	if (err)
		found->err = err;
}

/* --- lists of names ----------------------------------------------------------- */

static void names_free(struct names *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
}

static bool names_has(const struct names *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->names[i], name))
			return true;
	return false;
}

static int names_add(struct names *list, const char *name)
{
	char *copy;

	if (names_has(list, name))
		return 0;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 8;
		char **grown = realloc(list->names, room * sizeof(*grown));

		if (!grown)
			return ENOMEM;
		list->names = grown;
		list->room = room;
	}
	copy = strdup(name);
	if (!copy)
		return ENOMEM;
	list->names[list->count++] = copy;
	return 0;
}

/* Sorts mlx5_2 before mlx5_10. */
static int by_number(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* --- sysfs -------------------------------------------------------------------- */

/* Reads one value. Returns false if it cannot be read, as with the attributes of an unused
 * GID. Notes a shortage. */
static bool read_value(struct found *found, char *value, size_t size, const char *dir,
		       const char *file)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		note(found, is_shortage(errno) ? errno : 0);
		return false;
	}
	n = read(fd, value, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	value[n] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return value[0] != '\0';
}

/* Appends the names in a directory, sorted; none if there is no such directory. Returns 0, or
 * the error number of a shortage. */
static int list_dir(struct names *list, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int err = 0;

	if (!d)
		return is_shortage(errno) ? errno : 0;
	while (!err && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			err = names_add(list, entry->d_name);
	closedir(d);
	if (list->count)
		qsort(list->names, list->count, sizeof(*list->names), by_number);
	return err;
}

/* Calls `each` with every name in DIR/SUB. */
static void for_each(struct found *found, const char *dir, const char *sub,
		     void (*each)(struct found *, const char *dir, const char *name))
{
	struct names list = { .names = NULL };
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s", dir, sub) >= sizeof(path))
		return;
	note(found, list_dir(&list, path));
	for (size_t i = 0; i < list.count; i++)
		each(found, path, list.names[i]);
	names_free(&list);
}

static void found_netdev(struct found *found, const char *name, bool roce)
{
	note(found, names_add(&found->netdevs, name));
	if (roce)
		note(found, names_add(&found->roce, name));
}

/* Finds the network devices of a port's GIDs. A table has up to a thousand entries and is
 * filled from its beginning with few gaps: GID_GAP unused entries in a row are its end. */
static bool netdevs_of_gids(struct found *found, const char *port, bool roce)
{
	char file[64], name[64];
	bool any = false;

	for (int i = 0, gap = 0; gap < GID_GAP; i++) {
		snprintf(file, sizeof(file), "gid_attrs/ndevs/%d", i);
		if (read_value(found, name, sizeof(name), port, file)) {
			found_netdev(found, name, roce);
			any = true;
			gap = 0;
		} else {
			gap++;
		}
	}
	return any;
}

/* The GID of an iWARP port begins with the network device's hardware address. */
static bool gid_begins_with(const char *gid, const char *address)
{
	for (; *address; address++) {
		if (*address == ':')
			continue;
		if (*gid == ':')
			gid++;
		if (*gid++ != *address)
			return false;
	}
	return true;
}

static void netdev_with_gid(struct found *found, const char *net, const char *name)
{
	char dir[PATH_MAX], address[64];

	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", net, name) < sizeof(dir) &&
	    read_value(found, address, sizeof(address), dir, "address") &&
	    strlen(address) == strlen("00:00:00:00:00:00") &&
	    strcmp(address, "00:00:00:00:00:00") && gid_begins_with(found->gid, address))
		found_netdev(found, name, false);
}

/* Older kernels do not name the network device of an iWARP port. */
static void netdevs_of_iwarp(struct found *found, const char *port)
{
	if (!netdevs_of_gids(found, port, false) &&
	    read_value(found, found->gid, sizeof(found->gid), port, "gids/0"))
		for_each(found, found->sysfs, "/class/net", netdev_with_gid);
}

static void child_of_ib_device(struct found *found, const char *net, const char *name)
{
	char dir[PATH_MAX], type[16];

	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", net, name) < sizeof(dir) &&
	    read_value(found, type, sizeof(type), dir, "type") && !strcmp(type, ARPHRD_INFINIBAND))
		found_netdev(found, name, false);
}

/* `ports` is .../<device>/ports. */
static void found_port(struct found *found, const char *ports, const char *port)
{
	char name[NAME_MAX + 16];
	const char *end = strrchr(ports, '/'), *device = end;

	while (device[-1] != '/')
		device--;
	snprintf(name, sizeof(name), "%.*s %s", (int)(end - device), device, port);
	note(found, names_add(&found->ports, name));
}

static void port_of_device(struct found *found, const char *ports, const char *port)
{
	char dir[PATH_MAX], node_type[32] = "", layer[32] = "";

	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", ports, port) >= sizeof(dir))
		return;
	found_port(found, ports, port);
	read_value(found, node_type, sizeof(node_type), dir, "../../node_type");
	read_value(found, layer, sizeof(layer), dir, "link_layer");
	if (node_type[0] == NODE_RNIC)
		netdevs_of_iwarp(found, dir);
	else if (!strcmp(layer, "Ethernet"))
		netdevs_of_gids(found, dir, true);
}

static void device_of_class(struct found *found, const char *class, const char *device)
{
	char dir[PATH_MAX];

	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", class, device) >= sizeof(dir))
		return;
	for_each(found, dir, "/ports", port_of_device);
	for_each(found, dir, "/device/net", child_of_ib_device);
}

/* --- entries ------------------------------------------------------------------ */

/* Leaves out a name that is too long; sysfs has none. */
static int add(struct conf *conf, const char *library, const char *params,
	       const char *name_fmt, ...)
{
	char name[2 * DAT_NAME_MAX_LENGTH];
	va_list args;
	int err;

	va_start(args, name_fmt);
	vsnprintf(name, sizeof(name), name_fmt, args);
	va_end(args);
	err = conf_add(conf, name, library, params);
	return err == EINVAL ? 0 : err;
}

static int add_netdevs(struct conf *conf, const struct names *netdevs, const char *prefix)
{
	char params[80];
	int err = 0;

	for (size_t i = 0; i < netdevs->count && !err; i++) {
		snprintf(params, sizeof(params), "%s 0", netdevs->names[i]);
		err = add(conf, LIBRARY, params, "%s%s", prefix, netdevs->names[i]);
	}
	return err;
}

static int add_ports(struct conf *conf, const struct names *ports, const char *suffix)
{
	int err = 0;

	for (size_t i = 0; i < ports->count && !err; i++) {
		const char *port = ports->names[i];
		int device_length = strcspn(port, " ");

		err = add(conf, LIBRARY, port, "ofa-v2-%.*s-%s%s", device_length, port,
			  port + device_length + 1, suffix);
	}
	return err;
}

static int add_all(struct conf *conf, const struct found *found, bool with_soft)
{
	int err = add_netdevs(conf, &found->netdevs, "ofa-v2-");

	if (!err)
		err = add_ports(conf, &found->ports, "");
	if (!err && with_soft)
		err = add(conf, SOFT_LIBRARY, "lo 0", "ofa-v2-soft");
	if (!err)
		err = add_ports(conf, &found->ports, "s");
	if (!err)
		err = add_ports(conf, &found->ports, "u");
	if (!err)
		err = add_netdevs(conf, &found->roce, "ofa-v2-cma-roe-");
	return err;
}

int devices_make_entries(struct conf *conf, const char *sysfs, bool with_soft)
{
	struct found found = { .sysfs = sysfs };
	int err;

	for_each(&found, sysfs, "/class/infiniband", device_of_class);
	err = found.err ? found.err : add_all(conf, &found, with_soft);
	names_free(&found.netdevs);
	names_free(&found.roce);
	names_free(&found.ports);
	return err;
}
