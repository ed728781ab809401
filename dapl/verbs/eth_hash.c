/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_hash.c - kinds of headers that hash QPs of a group are made for (eth_hash.h).
 *
 * A rule has one flow, which leads to one QP. Flows for several kinds would overlap, and with COPY the device gives a
 * frame to each of them. */
#include "eth_hash.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd };

#define FIELDS_IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define FIELDS_IPV6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define FIELDS_TCP (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define FIELDS_UDP (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

uint64_t hw_hash_fields(enum hw_hash_kind kind, uint64_t fields)
{
	static const uint64_t masks[HASH_KINDS] = {
		[HASH_JOINT] = ~(uint64_t)0,
		[HASH_NONE] = 0,
		[HASH_IPV4] = FIELDS_IPV4,
		[HASH_IPV4_TCP] = FIELDS_IPV4 | FIELDS_TCP,
		[HASH_IPV4_UDP] = FIELDS_IPV4 | FIELDS_UDP,
		[HASH_IPV6] = FIELDS_IPV6,
		[HASH_IPV6_TCP] = FIELDS_IPV6 | FIELDS_TCP,
		[HASH_IPV6_UDP] = FIELDS_IPV6 | FIELDS_UDP,
	};

	return fields & masks[kind];
}

/* Returns 4, 6, 0 for no IP, or -1 if the rule does not fix it. */
static int version_of(const struct dapl_eth_rule *rule)
{
	if (rule->mask.ip_version == 0xff)
		return rule->key.ip_version;
	if (rule->mask.ether_type != 0xffff)
		return -1;
	return ntohs(rule->key.ether_type) == TYPE_IPV4 ? 4 : ntohs(rule->key.ether_type) == TYPE_IPV6 ? 6 : 0;
}

/* Returns the protocol of the outer IP header, or -1 if the rule does not fix it. */
static int protocol_of(const struct dapl_eth_rule *rule)
{
	if (rule->mask.tunnel == 0xffffffff && rule->key.tunnel == ETH_VXLAN)
		return IPPROTO_UDP;
	if (rule->mask.tunnel == 0xffffffff && (rule->key.tunnel == ETH_GRE || rule->key.tunnel == ETH_NVGRE))
		return IPPROTO_GRE;
	return rule->mask.protocol == 0xff ? rule->key.protocol : -1;
}

const char *hw_hash_kind_of(const struct dapl_eth_rule *rule, uint64_t fields, enum hw_hash_kind *kind)
{
	int version = version_of(rule), protocol = protocol_of(rule);

	if (version < 0)
		return "the device hashes either IPv4 or IPv6: a rule of a group needs ip_version, with a full mask";
	if (version != 4 && version != 6) {
		*kind = HASH_NONE;
		return NULL;
	}
	*kind = version == 4 ? HASH_IPV4 : HASH_IPV6;
	if (!(fields & (FIELDS_TCP | FIELDS_UDP)))
		return NULL;
	if (protocol < 0)
		return "the device hashes the ports of either TCP or UDP: a rule of a group needs protocol, with a "
		       "full mask";
	if (protocol == IPPROTO_TCP)
		*kind = version == 4 ? HASH_IPV4_TCP : HASH_IPV6_TCP;
	else if (protocol == IPPROTO_UDP)
		*kind = version == 4 ? HASH_IPV4_UDP : HASH_IPV6_UDP;
	return NULL;
}
