/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.c - finds the local addresses that an entry's ia_params may mean.
 *
 * A dat.conf often names devices that the machine lacks, and a program tries them all. Whether a
 * device is absent is therefore decided from the interface list and sysfs alone, which takes
 * microseconds. A name server is asked only for what cannot be a device's name. */
#include "address.h"
#include "common/local_addresses.h"
#include "common/log.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RDMA_CLASS "/sys/class/infiniband"

static uint32_t scope(const struct sockaddr *a)
{
	return ((const struct sockaddr_in6 *)a)->sin6_scope_id;
}

const char *hw_address_text(const struct sockaddr *a, char *buf, size_t size)
{
	char digits[INET6_ADDRSTRLEN];
	const char *host = address_host(a, digits);

	if (!host)
		host = "?";
	if (address_port(a))
		snprintf(buf, size, "%s port %u", host, address_port(a));
	else
		snprintf(buf, size, "%s", host);
	return buf;
}

void hw_address_fill_scope(struct sockaddr *a, const struct sockaddr *like)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;

	if (a->sa_family == AF_INET6 && like->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && !six->sin6_scope_id)
		six->sin6_scope_id = scope(like);
}

/* Inserts the address behind those that are as good, or better. */
static void add_place(struct hw_places *p, const struct local_address *a)
{
	const struct sockaddr *at = (const struct sockaddr *)&a->at;
	unsigned i = p->n, rank = local_address_rank(at, a->flags);

	if (p->n == HW_PLACES)
		return;
	while (i && p->place[i - 1].rank < rank) {
		p->place[i] = p->place[i - 1];
		i--;
	}
	p->place[i] = (struct hw_place){ .address = a->at, .rank = rank };
	snprintf(p->place[i].netdev, sizeof(p->place[i].netdev), "%s", a->link->name);
	p->n++;
}

/* Adds the addresses of the network device of that name (NULL: any) that equal this address (NULL: any). */
static void add_places(struct hw_places *p, const struct local_addresses *all, const char *netdev,
		       const struct sockaddr *address)
{
	for (size_t i = 0; i < all->address_count; i++) {
		const struct local_address *a = &all->addresses[i];
		const struct sockaddr *at = (const struct sockaddr *)&a->at;

		if (address_is_loopback(at) || (netdev && strcmp(netdev, a->link->name) != 0) ||
		    (address && !address_same_host(address, at)))
			continue;
		add_place(p, a);
	}
}

/* Adds the addresses that the entry names by their network device, or by a label. Returns whether it names any. */
static bool add_named_places(struct hw_places *p, const struct local_addresses *all)
{
	bool is_known = all->named;

	for (size_t i = 0; i < all->address_count; i++) {
		const struct local_address *a = &all->addresses[i];

		is_known |= a->is_named;
		if (a->is_named && !address_is_loopback((const struct sockaddr *)&a->at))
			add_place(p, a);
	}
	return is_known;
}

/* Reads an address in digits, with or without a %scope. Returns false for any other text. */
static bool is_numeric(const char *name, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;

	if (name[strspn(name, "0123456789.")] && !strchr(name, ':'))
		return false;
	if (getaddrinfo(name, NULL, &hints, &found))
		return false;
	address_copy(address, found->ai_addr);
	freeaddrinfo(found);
	return true;
}

/* Writes the names in a directory to `list`, separated by spaces; "none" if there are none. */
static void list_directory(char *list, size_t size, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	size_t n = 0;

	list[0] = 0;
	while (dir && (e = readdir(dir)) && n < size)
		if (e->d_name[0] != '.')
			n += snprintf(list + n, size - n, "%s%s", n ? " " : "", e->d_name);
	if (dir)
		closedir(dir);
	if (!n)
		snprintf(list, size, "none");
}

/* Adds the addresses of the network devices behind a RoCE port's GIDs. */
static void add_gid_places(struct hw_places *p, const struct local_addresses *all, unsigned port)
{
	char path[512], name[IF_NAMESIZE + 1], seen[IF_NAMESIZE + 1] = "";
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), RDMA_CLASS "/%s/ports/%u/gid_attrs/ndevs", p->device, port);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		char file[800];
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		f = fopen(file, "re");
		if (f && fgets(name, sizeof(name), f)) {
			name[strcspn(name, "\n")] = 0;
			if (strcmp(name, seen) != 0)
				add_places(p, all, name, NULL);
			strcpy(seen, name);
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
}

static int find_rdma_device(struct hw_places *p, const struct local_addresses *all,
			    const struct ia_params *params, const char *printable)
{
	char path[512], list[256];

	snprintf(p->device, sizeof(p->device), "%s", params->name);
	p->port = params->port ? params->port : 1;
	snprintf(path, sizeof(path), RDMA_CLASS "/%s/ports/%u", p->device, p->port);
	if (access(path, F_OK)) {
		snprintf(path, sizeof(path), RDMA_CLASS "/%s/ports", p->device);
		list_directory(list, sizeof(list), path);
		log_report(REPORT_NO_DEVICE, NULL, "\"%s\": RDMA device %s has no port %u; its ports: %s", printable,
			   p->device, p->port, list);
		return ENODEV;
	}
	add_gid_places(p, all, p->port);
	if (!p->n)	/* InfiniBand, iWARP: device.c finds the address that is this device's */
		add_places(p, all, NULL, NULL);
	if (p->n)
		return 0;
	log_report(REPORT_NO_ADDRESS, NULL, "\"%s\": no network device of RDMA device %s has an IP address", printable,
		   p->device);
	return ENODEV;
}

/* The first address that /etc/hosts has for a name, except loopback addresses. */
static bool in_hosts_file(const char *name, struct sockaddr_storage *address)
{
	FILE *f = fopen("/etc/hosts", "re");
	char line[1024], *word, *rest;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = 0;
		word = strtok_r(line, " \t\r", &rest);
		if (!word || !is_numeric(word, address) ||
		    address_is_loopback((struct sockaddr *)address))
			continue;
		while (!found && (word = strtok_r(NULL, " \t\r", &rest)))
			found = strcasecmp(word, name) == 0;
	}
	if (f)
		fclose(f);
	return found;
}

/* Adds all local addresses of a host name. A name that looks like a device's ("eth7", "mlx5_9") is looked
 * up in /etc/hosts only, since a name server may take seconds to deny it. */
static void add_host_places(struct hw_places *p, const struct local_addresses *all, const char *name)
{
	struct addrinfo hints = { .ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM }, *found;
	struct sockaddr_storage address;
	char self[256] = "";

	if (in_hosts_file(name, &address))
		add_places(p, all, NULL, (struct sockaddr *)&address);
	gethostname(self, sizeof(self) - 1);
	if (p->n || (!strpbrk(name, ".-") && strcmp(name, self) != 0))
		return;
	if (getaddrinfo(name, NULL, &hints, &found))
		return;
	for (struct addrinfo *i = found; i; i = i->ai_next)
		if (address_length(i->ai_addr))
			add_places(p, all, NULL, i->ai_addr);
	freeaddrinfo(found);
}

static int find(struct hw_places *p, const struct local_addresses *all, const struct ia_params *params,
		const char *printable)
{
	const char *name = params->name;
	struct sockaddr_storage address;
	char path[512], list[256];

	list_directory(list, sizeof(list), RDMA_CLASS);
	if (strcmp(list, "none") == 0) {
		log_report(REPORT_NO_DEVICE, NULL, "\"%s\": this machine has no RDMA device (%s is empty)", printable,
			   RDMA_CLASS);
		return ENODEV;
	}
	if (add_named_places(p, all)) {
		if (p->n)
			return 0;
		log_report(REPORT_NO_ADDRESS, NULL,
			   "\"%s\": network device %s has no IP address that RDMA "
			 "could use", printable, name);
		return ENODEV;
	}
	if (is_numeric(name, &address)) {
		add_places(p, all, NULL, (struct sockaddr *)&address);
		if (p->n)
			return 0;
		log_report(REPORT_NO_ADDRESS, NULL, "\"%s\": no network device here has the address %s", printable,
			   name);
		return ENODEV;
	}
	snprintf(path, sizeof(path), RDMA_CLASS "/%s", name);
	if (access(path, F_OK) == 0)
		return find_rdma_device(p, all, params, printable);
	add_host_places(p, all, name);
	if (p->n)
		return 0;
	log_report(REPORT_NO_ADDRESS, NULL,
		   "\"%s\": %s is no network device, local address, host name or RDMA "
		 "device here; RDMA devices: %s", printable, name, list);
	return ENODEV;
}

int hw_address_find_places(struct hw_places *places, const struct ia_params *params, const char *printable)
{
	struct local_addresses all;
	int err;

	memset(places, 0, sizeof(*places));
	if (!*params->name) {
		log_report(REPORT_BAD_PARAMS, NULL, "device \"%s\": no name; expected \"netdev 0\", \"address 0\", "
			 "\"hostname 0\" or \"ibdevice port\"", printable);
		return EINVAL;
	}
	err = local_addresses_read(&all, params->name);
	if (err)
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err),
			   "\"%s\": interfaces cannot be listed, rtnetlink: %s", printable, strerror(err));
	else
		err = find(places, &all, params, printable);
	local_addresses_free(&all);
	return err;
}
