/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* match.c - parses Ethernet, VLAN, MPLS, IP, TCP, UDP, SCTP, and the headers within VXLAN, Geneve, NVGRE,
 * GRE and MPLS, at most one tunnel deep. Every read is checked against the length of the frame: fields of a
 * header that is cut off are 0. Loops are bounded. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>
#include "common/bytes.h"
#include "common/tunnel.h"
#include "dapl/softeth/match.h"

struct cursor {
	const uint8_t *at;
	size_t left;
};

/* The next `n` bytes, or NULL if they are cut off. */
static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *at = c->at;

	if (c->left < n)
		return NULL;
	c->at += n;
	c->left -= n;
	return at;
}

static void parse_type(struct cursor *c, uint16_t type, struct eth_headers *h, bool inner);

static struct dapl_eth_key *key_of(struct eth_headers *h, bool inner)
{
	return inner ? &h->inner : &h->outer;
}

static void set_fragmented(struct eth_headers *h, bool inner)
{
	if (inner)
		h->inner_fragmented = true;
	else
		h->outer_fragmented = true;
}

static void parse_ethernet(struct cursor *c, struct eth_tag stripped, struct eth_headers *h, bool inner)
{
	struct dapl_eth_key *key = key_of(h, inner);
	const uint8_t *p = take(c, ETH_HLEN);
	uint16_t type;

	if (!p)
		return;
	memcpy(key->dst, p, 6);
	memcpy(key->src, p + 6, 6);
	type = get_be16(p + 12);
	if (stripped.type)
		key->vlan_tci = htons(stripped.tci);
	for (int tags = stripped.type != 0; tags < MATCH_TAGS && (type == ETH_P_8021Q || type == ETH_P_8021AD);
	     tags++) {
		if (!(p = take(c, 4)))
			return;
		if (!tags)
			memcpy(&key->vlan_tci, p, 2);
		type = get_be16(p + 2);
	}
	key->ether_type = htons(type);
	parse_type(c, type, h, inner);
}

static void set_tunnel(struct eth_headers *h, enum dapl_eth_tunnel tunnel, uint32_t id)
{
	h->outer.tunnel = tunnel;
	h->outer.tunnel_id = htonl(id);
}

/* The header is known, but it may be cut off behind its number. */
static void parse_tunnel(struct cursor *c, const struct tunnel *tunnel, struct eth_headers *h)
{
	static const enum dapl_eth_tunnel kinds[] = {
		[TUNNEL_VXLAN] = ETH_VXLAN, [TUNNEL_GENEVE] = ETH_GENEVE, [TUNNEL_GRE] = ETH_GRE,
		[TUNNEL_NVGRE] = ETH_NVGRE,
	};

	set_tunnel(h, kinds[tunnel->kind], tunnel->id);
	if (!take(c, tunnel->length))
		return;
	if (tunnel->type == TYPE_BRIDGING)
		parse_ethernet(c, (struct eth_tag){ 0, 0 }, h, true);
	else
		parse_type(c, tunnel->type, h, true);
}

static void parse_mpls(struct cursor *c, struct eth_headers *h, bool inner)
{
	const uint8_t *p = NULL;

	for (int i = 0; i < MATCH_LABELS; i++) {
		if (!(p = take(c, 4)))
			return;
		if (!i && !inner)
			set_tunnel(h, ETH_MPLS, (uint32_t)p[0] << 12 | p[1] << 4 | p[2] >> 4);
		if (p[2] & 1)		/* bottom of the stack */
			break;
	}
	if (inner || !(p[2] & 1) || !c->left)
		return;
	if (c->at[0] >> 4 == 4)
		parse_type(c, ETH_P_IP, h, true);
	else if (c->at[0] >> 4 == 6)
		parse_type(c, ETH_P_IPV6, h, true);
}

static void parse_ports(struct cursor *c, struct eth_headers *h, bool inner)
{
	struct dapl_eth_key *key = key_of(h, inner);
	struct tunnel tunnel;
	const uint8_t *p;

	if (key->protocol == IPPROTO_GRE && !inner) {
		if (tunnel_read_gre(c->at, c->left, &tunnel))
			parse_tunnel(c, &tunnel, h);
		return;
	}
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP && key->protocol != IPPROTO_SCTP)
		return;
	if (!(p = take(c, 4)))
		return;
	memcpy(&key->port_src, p, 2);
	memcpy(&key->port_dst, p + 2, 2);
	if (key->protocol != IPPROTO_UDP || inner || !take(c, 4))
		return;
	if (tunnel_read_udp(c->at, c->left, get_be16(p + 2), &tunnel))
		parse_tunnel(c, &tunnel, h);
}

static void parse_ipv4(struct cursor *c, struct eth_headers *h, bool inner)
{
	struct dapl_eth_key *key = key_of(h, inner);
	const uint8_t *p = take(c, 20);
	size_t header;

	if (!p || p[0] >> 4 != 4 || (p[0] & 15) < 5)
		return;
	key->ip_version = 4;
	key->tos = p[1];
	key->protocol = p[9];
	memcpy(key->ip_src, p + 12, 4);
	memcpy(key->ip_dst, p + 16, 4);
	key->fragment = (get_be16(p + 6) & 0x1fff) != 0;
	if (get_be16(p + 6) & 0x3fff)	/* an offset, or more fragments follow */
		set_fragmented(h, inner);
	header = (size_t)(p[0] & 15) * 4;
	if (!key->fragment && take(c, header - 20))
		parse_ports(c, h, inner);
}

static bool is_extension(uint8_t header)
{
	return header == IPPROTO_HOPOPTS || header == IPPROTO_ROUTING || header == IPPROTO_DSTOPTS ||
	       header == IPPROTO_FRAGMENT;
}

static void parse_ipv6(struct cursor *c, struct eth_headers *h, bool inner)
{
	struct dapl_eth_key *key = key_of(h, inner);
	const uint8_t *p = take(c, 40);
	uint8_t next;

	if (!p || p[0] >> 4 != 6)
		return;
	key->ip_version = 6;
	key->tos = (uint8_t)(p[0] << 4 | p[1] >> 4);
	key->flow_label = htonl((uint32_t)(p[1] & 15) << 16 | get_be16(p + 2));
	memcpy(key->ip_src, p + 8, 16);
	memcpy(key->ip_dst, p + 24, 16);
	next = p[6];
	for (int i = 0; i < MATCH_EXTENSIONS && is_extension(next); i++) {
		bool fragment = next == IPPROTO_FRAGMENT;

		if (!(p = take(c, 8)))
			return;
		next = p[0];
		if (fragment && (get_be16(p + 2) & 0xfff9))
			set_fragmented(h, inner);
		if (fragment)
			key->fragment = (get_be16(p + 2) & 0xfff8) != 0;
		else if (!take(c, (size_t)p[1] * 8))
			return;
	}
	key->protocol = next;
	if (!key->fragment)
		parse_ports(c, h, inner);
}

static void parse_type(struct cursor *c, uint16_t type, struct eth_headers *h, bool inner)
{
	if (type == ETH_P_IP)
		parse_ipv4(c, h, inner);
	else if (type == ETH_P_IPV6)
		parse_ipv6(c, h, inner);
	else if (type == ETH_P_MPLS_UC || type == ETH_P_MPLS_MC)
		parse_mpls(c, h, inner);
}

void eth_match_parse(const uint8_t *frame, size_t length, struct eth_tag stripped, struct eth_headers *headers)
{
	struct cursor c = { frame, length };

	memset(headers, 0, sizeof *headers);
	parse_ethernet(&c, stripped, headers, false);
}

_Static_assert(sizeof(struct dapl_eth_key) == 68, "a key has no padding");

/* HOT: once for each frame and rule. Without a branch, in words: a byte at a time took a fifth of a capture. */
static bool key_matches(const void *key, const void *mask, const void *header)
{
	const char *k = key, *m = mask, *h = header;
	uint32_t difference = 0;

	for (size_t i = 0; i < sizeof(struct dapl_eth_key); i += sizeof difference) {
		uint32_t k4, m4, h4;

		memcpy(&k4, k + i, sizeof k4);
		memcpy(&m4, m + i, sizeof m4);
		memcpy(&h4, h + i, sizeof h4);
		difference |= (h4 & m4) ^ k4;
	}
	return !difference;
}

bool eth_match_rule(const struct dapl_eth_rule *rule, const struct eth_headers *headers)
{
	return key_matches(&rule->key, &rule->mask, &headers->outer) &&
	       key_matches(&rule->inner_key, &rule->inner_mask, &headers->inner);
}

bool eth_match_all(const struct dapl_eth_rule *rule)
{
	static const struct dapl_eth_key none;

	return !memcmp(&rule->mask, &none, sizeof none) && !memcmp(&rule->inner_mask, &none, sizeof none) &&
	       !memcmp(&rule->key, &none, sizeof none) && !memcmp(&rule->inner_key, &none, sizeof none);
}
