/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* table.h - the interfaces and addresses of the namespace, as they were at one moment. */
#ifndef NET_TABLE_H
#define NET_TABLE_H
#include "net/netlink.h"
#include <dat/dat_net.h>
#include <stdbool.h>

struct net_link {
	int index;
	char name[DAT_NET_NETDEV_MAX];
	uint32_t mtu;
	unsigned flags;			/* IFF_ */
	uint8_t lladdr[DAT_NET_LLADDR_MAX], length;
};

struct net_address {
	struct sockaddr_storage address;	/* a link-local IPv6 address has its scope id */
	int index;			/* of its interface */
	uint8_t scope;			/* RT_SCOPE_; greater is narrower */
	bool usable;			/* as a source: not tentative, no duplicate */
	bool deprecated;
	unsigned prefix;		/* bits */
	unsigned rank;			/* local_address_rank() */
	char label[DAT_NET_NETDEV_MAX];	/* IPv4: "eth0:0", or the name of the interface; else "" */
};

struct net_table {
	struct net_link *links;
	struct net_address *addresses;	/* in the kernel's order */
	size_t link_count, address_count;
	int err;			/* of the dump in progress */
};

/* Returns 0 or an errno; net_table_free() may be called in either case. */
int net_table_read(struct net_table *table, struct nl_sock *sock);
void net_table_free(struct net_table *table);

const struct net_link *net_link_by_index(const struct net_table *table, int index);
const struct net_link *net_link_by_name(const struct net_table *table, const char *name);
/* Up, and with a carrier. */
bool net_link_is_up(const struct net_link *link);
/* Fills `to` from what libnl parsed. */
struct rtnl_link;
void net_link_fill(struct net_link *to, struct rtnl_link *from);

#endif
