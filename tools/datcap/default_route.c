/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* default_route.c - see default_route.h. Reads the routes of both IP versions in all tables, and the network devices:
 * a default route of a bond, a bridge or a VLAN leaves by the devices below it. */
#include "default_route.h"
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cli.h"

enum {
	WIDE_PREFIX = 3,	/* bits: VPNs replace the default route by 0.0.0.0/1 and 128.0.0.0/1, or by 2000::/3 */
	DEPTH_MAX = 16,		/* devices above each other */
	TRIES = 10,		/* of a dump that changes interrupt */
};

struct link {
	unsigned index, master, lower;
	bool has_address;		/* an Ethernet address */
	uint8_t address[6];
	char name[IFNAMSIZ];
};

struct network {
	struct link *links;
	unsigned *carriers;		/* indexes of the devices of default routes; 0: not known which */
	size_t link_count, carrier_count;
};

static void *grown(void *at, size_t count, size_t size)
{
	void *new = reallocarray(at, count + 1, size);

	if (!new)
		fail("no memory");
	return new;
}

static void add_carrier(struct network *n, unsigned index)
{
	n->carriers = grown(n->carriers, n->carrier_count, sizeof *n->carriers);
	n->carriers[n->carrier_count++] = index;
}

static void add_hops(struct network *n, const struct nlattr *attribute)
{
	const struct rtnexthop *hop = nla_data(attribute);
	int left = nla_len(attribute);

	/* RTNH_OK reads a header before it looks whether there is one */
	while (left >= (int)sizeof *hop && RTNH_OK(hop, left)) {
		add_carrier(n, (unsigned)hop->rtnh_ifindex);
		left -= (int)RTNH_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
}

static int add_route(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	const struct rtmsg *route = nlmsg_data(header);
	struct nlattr *attribute;
	bool by_object = false, device = false;
	int left;

	if (header->nlmsg_type != RTM_NEWROUTE || !nlmsg_valid_hdr(header, sizeof *route) ||
	    (route->rtm_family != AF_INET && route->rtm_family != AF_INET6) || route->rtm_dst_len > WIDE_PREFIX ||
	    route->rtm_type != RTN_UNICAST || (route->rtm_flags & RTM_F_CLONED))
		return NL_OK;
	nlmsg_for_each_attr(attribute, header, sizeof *route, left) {
		if (nla_type(attribute) == RTA_OIF)
			add_carrier(arg, nla_get_u32(attribute));
		else if (nla_type(attribute) == RTA_MULTIPATH)
			add_hops(arg, attribute);
		device |= nla_type(attribute) == RTA_OIF || nla_type(attribute) == RTA_MULTIPATH;
		by_object |= nla_type(attribute) == RTA_NH_ID;
	}
	if (by_object && !device)	/* net.ipv4.nexthop_compat_mode is 0 */
		add_carrier(arg, 0);
	return NL_OK;
}

/* The index that a veth device has as its lower one is that of its peer. */
static bool is_pair(const struct nlattr *info)
{
	const struct nlattr *kind = info ? nla_find(nla_data(info), nla_len(info), IFLA_INFO_KIND) : NULL;

	return kind && (!nla_strcmp(kind, "veth") || !nla_strcmp(kind, "netkit"));
}

static int add_link(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	const struct ifinfomsg *info = nlmsg_data(header);
	struct nlattr *has[IFLA_MAX + 1];
	struct network *n = arg;
	struct link *link;

	if (header->nlmsg_type != RTM_NEWLINK || nlmsg_parse(header, sizeof *info, has, IFLA_MAX, NULL) < 0)
		return NL_OK;
	n->links = grown(n->links, n->link_count, sizeof *n->links);
	link = &n->links[n->link_count++];
	*link = (struct link){ .index = (unsigned)info->ifi_index };
	if (has[IFLA_MASTER])
		link->master = nla_get_u32(has[IFLA_MASTER]);
	if (has[IFLA_LINK] && !has[IFLA_LINK_NETNSID] && !is_pair(has[IFLA_LINKINFO]))
		link->lower = nla_get_u32(has[IFLA_LINK]);
	link->has_address = has[IFLA_ADDRESS] && nla_len(has[IFLA_ADDRESS]) == sizeof link->address;
	if (link->has_address)
		memcpy(link->address, nla_data(has[IFLA_ADDRESS]), sizeof link->address);
	if (has[IFLA_IFNAME])
		nla_strlcpy(link->name, has[IFLA_IFNAME], sizeof link->name);
	return NL_OK;
}

/* Calls `each` with the messages that answer a request for all objects of a kind. `head` is its header. */
static int dump(int type, void *head, size_t size, nl_recvmsg_msg_cb_t each, struct network *n)
{
	struct nl_sock *sock = nl_socket_alloc();
	int err;

	if (!sock)
		return -NLE_NOMEM;
	nl_socket_enable_msg_peek(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, each, n);
	err = nl_connect(sock, NETLINK_ROUTE);
	if (err >= 0)
		err = nl_send_simple(sock, type, NLM_F_DUMP, head, size);
	if (err >= 0)
		err = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	return err;
}

static void read_network(struct network *n)
{
	struct rtmsg all_routes = { .rtm_family = AF_UNSPEC };
	struct ifinfomsg all_links = { .ifi_family = AF_UNSPEC };
	int err = -NLE_DUMP_INTR;

	for (int i = 0; i < TRIES && err == -NLE_DUMP_INTR; i++) {
		n->link_count = n->carrier_count = 0;
		err = dump(RTM_GETROUTE, &all_routes, sizeof all_routes, add_route, n);
		if (err >= 0)
			err = dump(RTM_GETLINK, &all_links, sizeof all_links, add_link, n);
	}
	if (err < 0)
		fail("the kernel does not tell its routes: %s; --yes sends without asking", nl_geterror(err));
}

static bool is_carrier(const struct network *n, unsigned index)
{
	for (size_t i = 0; i < n->carrier_count; i++)
		if (n->carriers[i] == index || !n->carriers[i])
			return true;
	return false;
}

/* Returns the device, or else one above it, that carries a default route. */
static const struct link *find_carrier(const struct network *n, const struct link *link, int depth)
{
	const struct link *found = is_carrier(n, link->index) ? link : NULL;

	for (size_t i = 0; !found && depth < DEPTH_MAX && i < n->link_count; i++)
		if (n->links[i].index == link->master || n->links[i].lower == link->index)
			found = find_carrier(n, &n->links[i], depth + 1);
	return found;
}

static const char *describe(const struct link *link, const struct link *carrier, bool named)
{
	static char text[128];

	if (link == carrier && named)
		return "carries the default route";
	if (link == carrier)
		snprintf(text, sizeof text, "is on %s, which carries the default route", carrier->name);
	else
		snprintf(text, sizeof text, "is below %s, which carries the default route", carrier->name);
	return text;
}

const char *default_route_on(unsigned index, const uint8_t address[6])
{
	struct network n = { .links = NULL };
	const struct link *carrier = NULL;
	const char *text = NULL;

	read_network(&n);
	for (size_t i = 0; !carrier && i < n.link_count; i++) {
		const struct link *link = &n.links[i];

		if (index ? link->index == index :
		    link->has_address && !memcmp(link->address, address, sizeof link->address))
			carrier = find_carrier(&n, link, 0);
		if (carrier)
			text = describe(link, carrier, index != 0);
	}
	free(n.links);
	free(n.carriers);
	return text;
}
