/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c - compares candidate routes (order.h). */
#include "net/order.h"
#include "net/netlink.h"
#include <linux/rtnetlink.h>
#include <netinet/in.h>

/* Returns a negative number if `a` comes first, a positive one if `b` does. */
static int greater_first(unsigned long a, unsigned long b)
{
	return a > b ? -1 : a < b;
}

static bool has_route(const struct net_candidate *candidate)
{
	return candidate->route.via.ss_family != 0;
}

static int kernels_choice(const struct net_candidate *candidate)
{
	return candidate->chosen_source ? 1 + candidate->chosen_hop : 0;
}

/* RFC 6724, section 5, rule 2: the narrowest scope that still holds the destination. Values of RT_SCOPE_
 * are greater for narrower scopes. */
static int compare_scopes(const struct net_candidate *a, const struct net_candidate *b)
{
	if (a->scope == b->scope)
		return 0;
	if (a->scope > b->scope)	/* a is narrower */
		return a->scope > a->to_scope ? 1 : -1;
	return b->scope > b->to_scope ? -1 : 1;
}

static int kind(const struct net_candidate *candidate)
{
	return candidate->route.rdma == DAT_NET_NONE ? 0 : candidate->route.rdma == DAT_NET_SOFT ? 1 : 2;
}

int net_order_compare(const struct net_candidate *a, const struct net_candidate *b)
{
	int order = greater_first(has_route(a), has_route(b));

	if (!order)
		order = greater_first((unsigned long)kernels_choice(a), (unsigned long)kernels_choice(b));
	if (!order)
		order = greater_first(a->same, b->same);
	if (!order)
		order = compare_scopes(a, b);
	if (!order)
		order = greater_first(b->deprecated, a->deprecated);
	if (!order)
		order = greater_first(a->common, b->common);
	if (!order)
		order = greater_first((unsigned long)kind(a), (unsigned long)kind(b));
	if (!order)
		order = greater_first(b->route.metric, a->route.metric);
	if (!order)
		order = greater_first(a->route.mtu, b->route.mtu);
	if (!order)
		order = greater_first(b->entry, a->entry);
	return order ? order : greater_first(b->sequence, a->sequence);
}

static uint8_t scope4(uint32_t address)
{
	if (address >> 24 == IN_LOOPBACKNET)
		return RT_SCOPE_HOST;
	return address >> 16 == 0xa9fe ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;	/* 169.254.0.0/16 */
}

uint8_t net_order_scope(const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET)
		return scope4(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
	if (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr))
		return RT_SCOPE_HOST;
	if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		return RT_SCOPE_LINK;
	return IN6_IS_ADDR_SITELOCAL(&six->sin6_addr) ? RT_SCOPE_SITE : RT_SCOPE_UNIVERSE;
}

unsigned net_order_common(const struct sockaddr *a, const struct sockaddr *b, unsigned limit)
{
	size_t length, other;
	const uint8_t *left = net_bytes(a, &length), *right = net_bytes(b, &other);
	unsigned bits = 0;

	if (length != other)
		return 0;
	while (bits < limit && bits < 8 * length &&
	       !((left[bits / 8] ^ right[bits / 8]) & (0x80 >> bits % 8)))
		bits++;
	return bits;
}
