/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.h - the order of preference of the candidate routes to a destination. It depends on the candidates
 * alone. */
#ifndef NET_ORDER_H
#define NET_ORDER_H
#include <dat/dat_net.h>
#include <stdbool.h>

/* A route that may be used, with what only the comparison needs. */
struct net_candidate {
	struct dat_net_route route;
	bool chosen_source, chosen_hop;	/* chosen by the kernel for a packet without a source address */
	bool same;			/* source and destination are equal */
	bool deprecated;
	uint8_t scope, to_scope;	/* RT_SCOPE_ of source and destination; greater is narrower */
	unsigned common;		/* leading bits that source and destination have in common */
	size_t entry;			/* place in dat.conf */
	size_t sequence;		/* place in which it was found, decides last */
};

/* Candidates without a route last; then the kernel's own choice; then RFC 6724, section 5: rules 1, 2, 3 and
 * 8; then RDMA devices before the software device before none; metric, MTU, dat.conf. */
int net_order_compare(const struct net_candidate *a, const struct net_candidate *b);
/* The scope of an address by its value. */
uint8_t net_order_scope(const struct sockaddr *address);
/* Bits in common, at most `limit`. */
unsigned net_order_common(const struct sockaddr *a, const struct sockaddr *b, unsigned limit);

#endif
