/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.c - decides which address of a peer an adapter can reach, by network prefixes alone:
 * DAT knows no routes. Both sides must choose the same pairs, so nothing else is considered. */
#include "address.h"
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include "opal/mca/hwloc/base/base.h"

struct bytes {
	const uint8_t *at;
	uint32_t bits;
};

static struct bytes bytes_of(const void *address)
{
	const struct sockaddr_in *v4 = address;
	const struct sockaddr_in6 *v6 = address;

	if (v4->sin_family == AF_INET)
		return (struct bytes){ (const uint8_t *)&v4->sin_addr, 32 };
	if (v4->sin_family == AF_INET6)
		return (struct bytes){ (const uint8_t *)&v6->sin6_addr, 128 };
	return (struct bytes){ NULL, 0 };
}

static bool same_family(const void *a, const void *b)
{
	return ((const struct sockaddr *)a)->sa_family == ((const struct sockaddr *)b)->sa_family;
}

static bool same_prefix(const void *a, const void *b, uint32_t bits)
{
	struct bytes x = bytes_of(a), y = bytes_of(b);
	uint32_t whole = bits / 8, rest = bits % 8;

	if (!same_family(a, b) || bits > x.bits || memcmp(x.at, y.at, whole))
		return false;
	return !rest || !((x.at[whole] ^ y.at[whole]) >> (8 - rest));
}

static bool is_loopback(const void *address)
{
	struct bytes b = bytes_of(address);

	return b.bits == 32 ? b.at[0] == 127
			    : b.bits == 128 && IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)b.at);
}

static uint32_t ones(struct bytes mask)
{
	uint32_t n = 0;

	while (n < mask.bits && mask.at[n / 8] >> (7 - n % 8) & 1)
		n++;
	return n;
}

/* Whether it is the same address, on the same link. */
static bool is_same(const void *a, const void *b)
{
	const struct sockaddr_in6 *x = a, *y = b;

	return same_prefix(a, b, bytes_of(a).bits) &&
	       (x->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&x->sin6_addr) ||
		x->sin6_scope_id == y->sin6_scope_id);
}

/* Shortest prefix length of the interfaces with this address: a virtual address of a cluster is on lo, too, as a
 * network of its own. The full length if no interface has it. */
static uint32_t prefix_of(const void *address)
{
	uint32_t prefix = bytes_of(address).bits, found;
	struct ifaddrs *all, *i;

	if (getifaddrs(&all) != 0)
		return prefix;
	for (i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || !i->ifa_netmask || !same_family(i->ifa_addr, address) ||
		    !is_same(i->ifa_addr, address))
			continue;
		found = ones(bytes_of(i->ifa_netmask));
		if (found < prefix)
			prefix = found;
	}
	freeifaddrs(all);
	return prefix;
}

/* Whether this node has the address, on whichever link: a connection to it ends here. Bridges of containers and
 * virtual machines have equal addresses on all nodes. */
static bool is_of_this_node(const struct udapl_address *address)
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (i = all; i && !found; i = i->ifa_next)
		found = i->ifa_addr && same_family(i->ifa_addr, &address->at) &&
			same_prefix(i->ifa_addr, &address->at, bytes_of(&address->at).bits);
	freeifaddrs(all);
	return found;
}

/* Fills in module->address, except the qualifier. */
bool udapl_address_own(mca_btl_udapl_module_t *m)
{
	const void *own = m->attr.ia_address_ptr;
	struct udapl_address *a = &m->address;
	size_t name = strlen(m->name);

	if (!own || !bytes_of(own).bits)
		return false;
	memset(a, 0, sizeof *a);
	if (bytes_of(own).bits == 32) {
		struct sockaddr_in *to = (struct sockaddr_in *)&a->at;

		to->sin_family = AF_INET;
		to->sin_addr = ((const struct sockaddr_in *)own)->sin_addr;
	} else {
		const struct sockaddr_in6 *from = own;

		a->at.sin6_family = AF_INET6;
		a->at.sin6_addr = from->sin6_addr;
		a->at.sin6_scope_id = from->sin6_scope_id;
	}
	a->prefix = prefix_of(own);
	memcpy(a->ia, m->name, name < sizeof a->ia ? name : sizeof a->ia - 1);
	return true;
}

static bool reachable(const struct udapl_address *own, const struct udapl_address *to,
		      const opal_proc_t *proc)
{
	bool near = OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);

	if (!same_family(&own->at, &to->at) || is_loopback(&own->at) != is_loopback(&to->at))
		return false;
	if (is_loopback(&own->at))
		return near;
	if (near)
		return true;
	return (mca_btl_udapl_component.any_network || same_prefix(&own->at, &to->at, own->prefix)) &&
	       !same_prefix(&own->at, &to->at, bytes_of(&own->at).bits) && !is_of_this_node(to);
}

/* Returns the address to which this module connects: that of an adapter of the same name, or
 * else the first reachable one. NULL if none is reachable. */
const struct udapl_address *udapl_address_match(mca_btl_udapl_module_t *m,
						const opal_proc_t *proc,
						const struct udapl_address *of, size_t n)
{
	const struct udapl_address *best = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!reachable(&m->address, &of[i], proc))
			continue;
		if (!strncmp(of[i].ia, m->address.ia, sizeof of[i].ia))
			return &of[i];
		if (!best)
			best = &of[i];
	}
	return best;
}
