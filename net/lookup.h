/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup.h - asks the kernel by which hops a packet goes from here to there. The kernel applies policy
 * rules, tables and multipath. */
#ifndef NET_LOOKUP_H
#define NET_LOOKUP_H
#include "net/netlink.h"
#include <stdbool.h>

enum { NET_HOPS = 64 };		/* next hops of a multipath route that are returned */

struct net_hop {
	struct sockaddr_storage via;	/* family 0: the destination is on the link */
	int index;			/* of the interface */
};

struct net_answer {
	int err;			/* 0, or why there is no route: ENETUNREACH, EACCES (prohibit),
					 * EINVAL (blackhole), EHOSTUNREACH (unreachable) */
	bool local;			/* the destination is this host */
	struct sockaddr_storage source;	/* that the kernel would take; family 0: unknown */
	uint32_t mtu;			/* of the route; 0: it has none */
	uint32_t metric;
	size_t count;
	struct net_hop hops[NET_HOPS];	/* [0]: the one that the kernel takes */
};

/* `from` NULL: any source; index 0: any interface. Returns 0, also if answer->err says why there is no
 * route; or the errno of another failure. */
int net_lookup(struct nl_sock *sock, const struct sockaddr *to, const struct sockaddr *from, int index,
	       struct net_answer *answer);

#endif
