/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* changes.c - makes changes from messages of rtnetlink and from uevents (changes.h). */
#include "net/changes.h"
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/errno.h>
#include <netlink/object.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct visit {
	struct net_changes *changes;
	bool gone;			/* a message that something was deleted */
	bool replaced;
};

static struct dat_net_change *add(struct net_changes *c, unsigned what, uint32_t before, uint32_t now)
{
	struct dat_net_change *change = &c->ready[c->count];

	if (!(c->what & what) || c->count == NET_CHANGES_PER_MESSAGE)
		return NULL;
	memset(change, 0, sizeof *change);
	change->what = what;
	change->before = before;
	change->now = now;
	c->count++;
	return change;
}

static void set_netdev(struct net_changes *c, struct dat_net_change *change, int index)
{
	const struct net_link *link = net_link_by_index(&c->table, index);

	if (link)
		snprintf(change->netdev, sizeof change->netdev, "%s", link->name);
}

/* --- links ------------------------------------------------------------------------------ */

static struct net_link *known_link(struct net_changes *c, int index)
{
	return (struct net_link *)(uintptr_t)net_link_by_index(&c->table, index);
}

static struct net_link *new_link(struct net_changes *c)
{
	struct net_link *links = realloc(c->table.links, (c->table.link_count + 1) * sizeof *links);

	if (!links) {
		c->err = ENOMEM;
		return NULL;
	}
	c->table.links = links;
	return &links[c->table.link_count++];
}

static void forget_link(struct net_changes *c, struct net_link *link)
{
	*link = c->table.links[--c->table.link_count];
}

static void report_link(struct net_changes *c, const struct net_link *link, uint32_t before, uint32_t now)
{
	struct dat_net_change *change = add(c, DAT_NET_LINK, before, now);

	if (change)
		snprintf(change->netdev, sizeof change->netdev, "%s", link->name);
}

static void compare_links(struct net_changes *c, const struct net_link *old, const struct net_link *now)
{
	struct dat_net_change *change;

	if (old->mtu != now->mtu && (change = add(c, DAT_NET_MTU, old->mtu, now->mtu)))
		snprintf(change->netdev, sizeof change->netdev, "%s", now->name);
	if (net_link_is_up(old) != net_link_is_up(now))
		report_link(c, now, net_link_is_up(old), net_link_is_up(now));
}

static void visit_link(struct visit *v, struct rtnl_link *from)
{
	struct net_changes *c = v->changes;
	struct net_link now, *old = known_link(c, rtnl_link_get_ifindex(from));

	if (rtnl_link_get_family(from) != AF_UNSPEC)	/* a bridge's own view of its ports */
		return;
	net_link_fill(&now, from);
	if (v->gone && old) {
		report_link(c, old, net_link_is_up(old), 0);
		forget_link(c, old);
	} else if (!v->gone && old) {
		compare_links(c, old, &now);
		*old = now;
	} else if (!v->gone && (old = new_link(c))) {
		*old = now;
		report_link(c, old, 0, net_link_is_up(old));
	}
}

/* --- the others ---------------------------------------------------------------------------- */

static void visit_address(struct visit *v, struct rtnl_addr *from)
{
	struct dat_net_change *change = add(v->changes, DAT_NET_ADDRESS, v->gone, !v->gone);

	if (!change)
		return;
	net_sockaddr(&change->address, rtnl_addr_get_local(from));
	change->prefix = (uint8_t)rtnl_addr_get_prefixlen(from);
	set_netdev(v->changes, change, rtnl_addr_get_ifindex(from));
}

static void visit_route(struct visit *v, struct rtnl_route *from)
{
	struct rtnl_nexthop *hop = rtnl_route_get_nnexthops(from) ? rtnl_route_nexthop_n(from, 0) : NULL;
	struct nl_addr *to = rtnl_route_get_dst(from);
	struct dat_net_change *change;

	if (rtnl_route_get_table(from) == RT_TABLE_LOCAL ||	/* this host's own addresses */
	    rtnl_route_get_flags(from) & RTM_F_CLONED)
		return;
	change = add(v->changes, DAT_NET_ROUTE, v->gone || v->replaced, !v->gone);
	if (!change)
		return;
	net_sockaddr(&change->address, to);
	change->prefix = to ? (uint8_t)nl_addr_get_prefixlen(to) : 0;
	change->address.ss_family = (sa_family_t)rtnl_route_get_family(from);	/* of a default route, too */
	if (!hop)
		return;
	net_sockaddr(&change->via, net_gateway(hop));
	set_netdev(v->changes, change, rtnl_route_nh_get_ifindex(hop));
}

static void visit_neighbour(struct visit *v, struct rtnl_neigh *from)
{
	struct nl_addr *lladdr = rtnl_neigh_get_lladdr(from);
	int state = rtnl_neigh_get_state(from);
	struct dat_net_change *change;

	/* questions under way, and multicast addresses, are no neighbours */
	if (rtnl_neigh_get_family(from) == AF_BRIDGE || state & (NUD_INCOMPLETE | NUD_NOARP))
		return;
	v->gone |= state & NUD_FAILED;
	change = add(v->changes, DAT_NET_NEIGHBOUR, v->gone, !v->gone);
	if (!change)
		return;
	net_sockaddr(&change->address, rtnl_neigh_get_dst(from));
	set_netdev(v->changes, change, rtnl_neigh_get_ifindex(from));
	if (lladdr && nl_addr_get_len(lladdr) <= sizeof change->lladdr) {
		change->length = (uint8_t)nl_addr_get_len(lladdr);
		memcpy(change->lladdr, nl_addr_get_binary_addr(lladdr), change->length);
	}
}

static void visit(struct nl_object *object, void *arg)
{
	switch (nl_object_get_msgtype(object)) {
	case RTM_NEWLINK: case RTM_DELLINK: visit_link(arg, (struct rtnl_link *)object); break;
	case RTM_NEWADDR: case RTM_DELADDR: visit_address(arg, (struct rtnl_addr *)object); break;
	case RTM_NEWROUTE: case RTM_DELROUTE: visit_route(arg, (struct rtnl_route *)object); break;
	case RTM_NEWNEIGH: case RTM_DELNEIGH: visit_neighbour(arg, (struct rtnl_neigh *)object); break;
	default: break;
	}
}

void net_changes_of(struct net_changes *c, struct nl_msg *msg)
{
	const struct nlmsghdr *head = nlmsg_hdr(msg);
	struct visit v = { .changes = c };

	v.gone = head->nlmsg_type == RTM_DELLINK || head->nlmsg_type == RTM_DELADDR ||
		 head->nlmsg_type == RTM_DELROUTE || head->nlmsg_type == RTM_DELNEIGH;
	v.replaced = head->nlmsg_flags & NLM_F_REPLACE;
	c->count = 0;
	if (net_parse(msg, visit, &v) == -NLE_NOMEM)
		c->err = ENOMEM;
}

/* --- RDMA devices ----------------------------------------------------------------------------- */

void net_changes_of_uevent(struct net_changes *c, const char *text, size_t length)
{
	const char *device = NULL, *action = "";
	bool infiniband = false;
	struct dat_net_change *change;

	c->count = 0;
	for (size_t at = 0; at < length; at += strnlen(text + at, length - at) + 1) {
		if (strnlen(text + at, length - at) == length - at)
			break;		/* without an end */
		if (!strncmp(text + at, "ACTION=", 7))
			action = text + at + 7;
		if (!strncmp(text + at, "DEVPATH=", 8) && strrchr(text + at, '/'))
			device = strrchr(text + at, '/') + 1;
		if (!strcmp(text + at, "SUBSYSTEM=infiniband"))
			infiniband = true;
	}
	if (!infiniband || !device || (strcmp(action, "add") != 0 && strcmp(action, "remove") != 0))
		return;
	change = add(c, DAT_NET_RDMA, *action == 'r', *action == 'a');
	if (change)
		snprintf(change->device, sizeof change->device, "%s", device);
}
