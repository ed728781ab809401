/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* membership.c - see membership.h. */
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dapl/softeth/membership.h"

enum { MAX_MEMBERSHIPS = 3 };	/* of a rule: all frames, all multicast frames, one address */

static bool is_exact(const uint8_t mask[6])
{
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };

	return !memcmp(mask, all, 6);
}

/* What the packet socket needs of the device for a rule. Returns how many. ETH-20. */
static unsigned wanted_memberships(const struct eth_port *port, const struct dapl_eth_rule *rule,
				   struct packet_mreq wanted[MAX_MEMBERSHIPS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAX_MEMBERSHIPS; i++)
		wanted[i] = (struct packet_mreq){ .mr_ifindex = port->index };
	if (rule->flags & ETH_ALL)
		wanted[n++].mr_type = PACKET_MR_PROMISC;
	if (rule->flags & ETH_ALL_MULTICAST)
		wanted[n++].mr_type = PACKET_MR_ALLMULTI;
	if (is_exact(rule->mask.dst) && !is_exact(rule->key.dst)) {
		wanted[n].mr_type = rule->key.dst[0] & 1 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
		wanted[n].mr_alen = 6;
		memcpy(wanted[n++].mr_address, rule->key.dst, 6);
	}
	return n;
}

/* The socket counts equal memberships: each rule adds its own. After an error those before it stay, until
 * drop(). */
static int add(struct eth_port *port, struct eth_rule *rule)
{
	struct packet_mreq wanted[MAX_MEMBERSHIPS];
	unsigned n = wanted_memberships(port, &rule->rule, wanted);

	for (; rule->memberships < n; rule->memberships++)
		if (setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted[rule->memberships],
			       sizeof *wanted))
			return errno;
	return 0;
}

/* Drops those that the rule has added, no more: another rule may have equal ones. */
static void drop(struct eth_port *port, struct eth_rule *rule)
{
	struct packet_mreq wanted[MAX_MEMBERSHIPS];

	wanted_memberships(port, &rule->rule, wanted);
	while (rule->memberships)
		setsockopt(port->fd, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &wanted[--rule->memberships],
			   sizeof *wanted);
}

/* Opens the socket of an IP group, which is a member until it is closed. ETH-20. */
static int join_group(const struct eth_port *port, struct eth_rule *r)
{
	const struct dapl_eth_rule *rule = &r->rule;
	struct ip_mreqn group4 = { .imr_ifindex = port->index };
	struct ipv6_mreq group6 = { .ipv6mr_interface = (unsigned)port->index };
	bool is_ipv4 = rule->key.ip_version == 4;
	int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed, err;

	if (fd < 0)
		return errno;
	memcpy(&group4.imr_multiaddr, rule->key.ip_dst, 4);
	memcpy(&group6.ipv6mr_multiaddr, rule->key.ip_dst, 16);
	failed = is_ipv4 ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group4, sizeof group4) :
		setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group6, sizeof group6);
	if (failed) {
		err = errno;
		close(fd);
		return err;
	}
	r->joined = fd;
	return 0;
}

int membership_join(struct eth_port *port, struct eth_rule *rule)
{
	int err = rule->rule.flags & ETH_JOIN ? join_group(port, rule) : 0;

	return err ? err : add(port, rule);
}

void membership_leave(struct eth_port *port, struct eth_rule *rule)
{
	drop(port, rule);
	if (rule->joined >= 0)
		close(rule->joined);
	rule->joined = -1;
}
