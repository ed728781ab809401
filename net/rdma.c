/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma.c - finds the interfaces of RDMA ports in sysfs (rdma.h). The interfaces of a port are those of its
 * GID table (RoCE, iWARP), the one with the address that the first GID begins with (iWARP on older
 * kernels), or the children of the same PCI device (IP over InfiniBand). The registry makes its entries by
 * the same rules (dat/devices.c). */
#include "net/rdma.h"
#include "common/env.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GID_GAP = 32 };		/* unused GIDs in a row that end a table */
#define INFINIBAND "/sys/class/infiniband"

static void make_path(char path[PATH_MAX], const char *fmt, va_list args)
{
	int n = snprintf(path, PATH_MAX, "%s", test_root());

	if (n < PATH_MAX)
		vsnprintf(path + n, (size_t)(PATH_MAX - n), fmt, args);
}

/* The errno of a failed open if memory or descriptors were short; 0: there is nothing of the name. */
static int shortage(void)
{
	return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? errno : 0;
}

/* Reads the first line of a file; "" if there is none. Returns 0, or the errno of a shortage. */
__attribute__((format(printf, 3, 4)))
static int read_value(char *value, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;

	*value = '\0';
	va_start(args, fmt);
	make_path(path, fmt, args);
	va_end(args);
	file = fopen(path, "re");
	if (!file)
		return shortage();
	if (fgets(value, (int)size, file))
		value[strcspn(value, "\n")] = '\0';
	else
		*value = '\0';
	fclose(file);
	return 0;
}

__attribute__((format(printf, 1, 2)))
static DIR *open_directory(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	make_path(path, fmt, args);
	va_end(args);
	return opendir(path);
}

static struct dirent *next_name(DIR *dir)
{
	struct dirent *entry;

	do
		entry = readdir(dir);
	while (entry && entry->d_name[0] == '.');
	return entry;
}

static bool is_known(const struct net_rdma_list *list, const char *netdev, const char *device,
		     unsigned port)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->ports[i].netdev, netdev) && list->ports[i].port == port &&
		    !strcmp(list->ports[i].device, device))
			return true;
	return false;
}

static int add(struct net_rdma_list *list, const char *netdev, const char *device, unsigned port,
	       uint8_t kind)
{
	struct net_rdma *ports;

	if (is_known(list, netdev, device, port))
		return 0;
	ports = realloc(list->ports, (list->count + 1) * sizeof *ports);
	if (!ports)
		return ENOMEM;
	list->ports = ports;
	ports += list->count++;
	memset(ports, 0, sizeof *ports);
	snprintf(ports->netdev, sizeof ports->netdev, "%s", netdev);
	snprintf(ports->device, sizeof ports->device, "%s", device);
	ports->port = port;
	ports->kind = kind;
	return 0;
}

static int add_gid_netdevs(struct net_rdma_list *list, const char *device, unsigned port, uint8_t kind)
{
	char name[DAT_NET_NETDEV_MAX + 1];
	int err = 0;

	for (int i = 0, gap = 0; gap < GID_GAP && !err; i++) {
		err = read_value(name, sizeof name, INFINIBAND "/%s/ports/%u/gid_attrs/ndevs/%d", device,
				 port, i);
		if (!*name) {
			gap++;
			continue;
		}
		gap = 0;
		err = add(list, name, device, port, kind);
	}
	return err;
}

/* The first GID of an iWARP port begins with the link-layer address of its interface. */
static int add_iwarp_netdev(struct net_rdma_list *list, const struct net_table *table,
			    const char *device, unsigned port)
{
	unsigned a, b, c;
	uint8_t mac[6];
	char gid[64];
	int err = read_value(gid, sizeof gid, INFINIBAND "/%s/ports/%u/gids/0", device, port);

	if (err || sscanf(gid, "%4x:%4x:%4x", &a, &b, &c) != 3 || !(a | b | c))
		return err;
	memcpy(mac, (uint8_t[]){ a >> 8, a, b >> 8, b, c >> 8, c }, sizeof mac);
	for (size_t i = 0; i < table->link_count && !err; i++)
		if (table->links[i].length == sizeof mac &&
		    !memcmp(table->links[i].lladdr, mac, sizeof mac))
			err = add(list, table->links[i].name, device, port, DAT_NET_IWARP);
	return err;
}

static int add_ipoib_netdevs(struct net_rdma_list *list, const char *device, unsigned port)
{
	DIR *dir = open_directory(INFINIBAND "/%s/device/net", device);
	char value[32];
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return shortage();
	while (!err && (entry = next_name(dir))) {
		/* dev_port counts from 0 */
		err = read_value(value, sizeof value, "/sys/class/net/%s/dev_port", entry->d_name);
		if (!err && (!*value || (unsigned)atoi(value) + 1 == port))
			err = add(list, entry->d_name, device, port, DAT_NET_IB);
	}
	closedir(dir);
	return err;
}

static int add_port(struct net_rdma_list *list, const struct net_table *table, const char *device,
		    unsigned port)
{
	char type[32], layer[32];
	size_t before = list->count;
	int err = read_value(type, sizeof type, INFINIBAND "/%s/node_type", device);

	if (!err)
		err = read_value(layer, sizeof layer, INFINIBAND "/%s/ports/%u/link_layer", device, port);
	if (err)
		return err;
	if (type[0] == '4') {	/* RNIC */
		err = add_gid_netdevs(list, device, port, DAT_NET_IWARP);
		return err || list->count > before ? err : add_iwarp_netdev(list, table, device, port);
	}
	if (!strcmp(layer, "Ethernet"))
		return add_gid_netdevs(list, device, port, DAT_NET_ROCE);
	return add_ipoib_netdevs(list, device, port);
}

static int add_device(struct net_rdma_list *list, const struct net_table *table, const char *device)
{
	DIR *dir = open_directory(INFINIBAND "/%s/ports", device);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return shortage();
	while (!err && (entry = next_name(dir)))
		err = add_port(list, table, device, (unsigned)atoi(entry->d_name));
	closedir(dir);
	return err;
}

/* By device and port, since directories have no order. */
static int by_name(const void *left, const void *right)
{
	const struct net_rdma *a = left, *b = right;
	int order = strverscmp(a->device, b->device);

	return order ? order : (int)a->port - (int)b->port;
}

int net_rdma_read(struct net_rdma_list *list, const struct net_table *table)
{
	struct dirent *entry;
	int err = 0;
	DIR *dir;

	memset(list, 0, sizeof *list);
	dir = open_directory(INFINIBAND);
	if (!dir)
		return shortage();
	while (!err && (entry = next_name(dir)))
		err = add_device(list, table, entry->d_name);
	closedir(dir);
	if (list->count)
		qsort(list->ports, list->count, sizeof *list->ports, by_name);
	return err;
}

void net_rdma_free(struct net_rdma_list *list)
{
	free(list->ports);
	list->ports = NULL;
}

const struct net_rdma *net_rdma_of(const struct net_rdma_list *list, const char *netdev,
				   const struct net_rdma *last)
{
	for (size_t i = last ? (size_t)(last - list->ports) + 1 : 0; i < list->count; i++)
		if (!strcmp(list->ports[i].netdev, netdev))
			return &list->ports[i];
	return NULL;
}

uint32_t net_rdma_speed(const char *netdev)
{
	char value[32];
	long long speed;

	read_value(value, sizeof value, "/sys/class/net/%s/speed", netdev);
	speed = atoll(value);
	return speed > 0 && speed < UINT32_MAX ? (uint32_t)speed : 0;
}
