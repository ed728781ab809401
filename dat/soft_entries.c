/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft_entries.c - see soft_entries.h. */
#include "dat/soft_entries.h"
#include "common/local_addresses.h"
#include "dat/devices.h"
#include "dat/shortage.h"
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static bool is_link_local(const struct local_address *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->at;

	return address->at.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static bool is_usable(const struct local_addresses *all, const struct local_link *link)
{
	if (!(link->flags & IFF_UP) || link->flags & IFF_LOOPBACK)
		return false;
	for (size_t i = 0; i < all->address_count; i++)
		if (all->addresses[i].link == link && !is_link_local(&all->addresses[i]))
			return true;
	return false;
}

/* A test has a root of its own, and with it devices. */
static bool is_in_sysfs(const char *sysfs, const char *netdev)
{
	char path[PATH_MAX];

	return (size_t)snprintf(path, sizeof(path), "%s/class/net/%s", sysfs, netdev) < sizeof(path) &&
	       !access(path, F_OK);
}

static int add(struct conf *conf, const char *netdev)
{
	char name[IF_NAMESIZE + 16], params[IF_NAMESIZE + 4];
	int err;

	snprintf(name, sizeof(name), "ofa-v2-soft-%s", netdev);
	snprintf(params, sizeof(params), "%s 0", netdev);
	err = conf_add(conf, name, SOFT_LIBRARY, params);
	if (!err)
		conf->entries[conf->count - 1].unlisted = true;
	return err;
}

int soft_entries_make(struct conf *conf, const char *sysfs)
{
	struct local_addresses all;
	int err = local_addresses_read(&all, "");

	if (!is_shortage(err))	/* without netlink no device is known */
		err = 0;
	for (size_t i = 0; i < all.link_count && !err; i++)
		if (is_usable(&all, &all.links[i]) && is_in_sysfs(sysfs, all.links[i].name))
			err = add(conf, all.links[i].name);
	local_addresses_free(&all);
	return err;
}
