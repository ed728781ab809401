/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* table.c - reads the interfaces and addresses of the namespace (table.h). */
#include "net/table.h"
#include "common/local_addresses.h"
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/addr.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DUMP_TRIES = 8 };	/* how often a dump that changes interrupt is made */

/* Makes room for one more element at the end of an array, which grows by doubling. */
static void *grown(void *array, size_t count, size_t size)
{
	if (count & (count - 1))	/* room up to the next power of two */
		return array;
	return realloc(array, (count ? 2 * count : 1) * size);
}

void net_link_fill(struct net_link *to, struct rtnl_link *from)
{
	struct nl_addr *address = rtnl_link_get_addr(from);
	const char *name = rtnl_link_get_name(from);

	memset(to, 0, sizeof *to);
	to->index = rtnl_link_get_ifindex(from);
	to->mtu = rtnl_link_get_mtu(from);
	to->flags = rtnl_link_get_flags(from);
	snprintf(to->name, sizeof to->name, "%s", name ? name : "");
	if (address && nl_addr_get_len(address) <= sizeof to->lladdr) {
		to->length = (uint8_t)nl_addr_get_len(address);
		memcpy(to->lladdr, nl_addr_get_binary_addr(address), to->length);
	}
}

static void add_link(struct nl_object *object, void *arg)
{
	struct net_table *table = arg;
	struct net_link *links = grown(table->links, table->link_count, sizeof *links);

	if (!links) {
		table->err = ENOMEM;
		return;
	}
	table->links = links;
	net_link_fill(&links[table->link_count++], (struct rtnl_link *)object);
}

static void add_address(struct nl_object *object, void *arg)
{
	struct rtnl_addr *from = (struct rtnl_addr *)object;
	struct net_table *table = arg;
	struct net_address *all, *to;
	struct sockaddr_in6 *six;
	const char *label;
	unsigned flags;

	all = grown(table->addresses, table->address_count, sizeof *all);
	if (!all) {
		table->err = ENOMEM;
		return;
	}
	table->addresses = all;
	to = memset(&all[table->address_count], 0, sizeof *to);
	net_sockaddr(&to->address, rtnl_addr_get_local(from));
	if (!to->address.ss_family)
		return;
	table->address_count++;
	flags = rtnl_addr_get_flags(from);
	to->index = rtnl_addr_get_ifindex(from);
	to->scope = (uint8_t)rtnl_addr_get_scope(from);
	to->prefix = (unsigned)rtnl_addr_get_prefixlen(from);
	to->usable = !(flags & IFA_F_DADFAILED) &&
		     (!(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC);
	to->deprecated = flags & IFA_F_DEPRECATED;
	label = rtnl_addr_get_label(from);
	snprintf(to->label, sizeof to->label, "%s", label ? label : "");
	to->rank = local_address_rank((struct sockaddr *)&to->address, flags);
	six = (struct sockaddr_in6 *)&to->address;
	if (six->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		six->sin6_scope_id = (uint32_t)to->index;
}

static int read_once(struct net_table *table, struct nl_sock *sock)
{
	int err;

	table->link_count = table->address_count = 0;
	table->err = 0;
	err = net_dump(sock, RTM_GETLINK, AF_UNSPEC, add_link, table);
	if (!err)
		err = net_dump(sock, RTM_GETADDR, AF_UNSPEC, add_address, table);
	return err ? err : table->err;
}

int net_table_read(struct net_table *table, struct nl_sock *sock)
{
	int err = EINTR;

	memset(table, 0, sizeof *table);
	for (int i = 0; i < DUMP_TRIES && err == EINTR; i++)
		err = read_once(table, sock);
	return err;
}

void net_table_free(struct net_table *table)
{
	free(table->links);
	free(table->addresses);
	table->links = NULL;
	table->addresses = NULL;
}

const struct net_link *net_link_by_index(const struct net_table *table, int index)
{
	for (size_t i = 0; i < table->link_count; i++)
		if (table->links[i].index == index)
			return &table->links[i];
	return NULL;
}

const struct net_link *net_link_by_name(const struct net_table *table, const char *name)
{
	for (size_t i = 0; i < table->link_count; i++)
		if (!strcmp(table->links[i].name, name))
			return &table->links[i];
	return NULL;
}

bool net_link_is_up(const struct net_link *link)
{
	return link->flags & IFF_UP && link->flags & IFF_RUNNING;
}
