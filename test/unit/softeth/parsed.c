/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parsed.c - see parsed.h. */
#include <linux/if_ether.h>
#include "test/unit/softeth/parsed.h"
#include "test/unit/unit.h"

struct eth_headers parse_cut(const struct frame *f, size_t length)
{
	uint8_t *copy = malloc(length + !length);
	struct eth_headers headers;

	assert_non_null(copy);
	memcpy(copy, f->bytes, length);
	memset(&headers, 255, sizeof headers);
	eth_match_parse(copy, length, (struct eth_tag){ 0, 0 }, &headers);
	free(copy);
	return headers;
}

struct eth_headers parse(const struct frame *f) { return parse_cut(f, f->length); }

void assert_key(const struct dapl_eth_key *found, const struct dapl_eth_key *expected)
{
	assert_memory_equal(found, expected, sizeof *found);
}

static struct dapl_eth_key key_of_ethernet(uint16_t type)
{
	return (struct dapl_eth_key){ .dst = { 2, 0, 0, 0, 0, 1 }, .src = { 2, 0, 0, 0, 0, 2 },
		.ether_type = htons(type) };
}

struct dapl_eth_key key_of_ipv4(uint8_t protocol)
{
	struct dapl_eth_key key = key_of_ethernet(ETH_P_IP);

	key.ip_version = 4;
	key.protocol = protocol;
	key.tos = 0x28;
	memcpy(key.ip_src, (const uint8_t[]){ 10, 0, 0, 1 }, 4);
	memcpy(key.ip_dst, (const uint8_t[]){ 10, 0, 0, 2 }, 4);
	return key;
}

struct dapl_eth_key key_of_ipv6(uint8_t protocol)
{
	struct dapl_eth_key key = key_of_ethernet(ETH_P_IPV6);

	key.ip_version = 6;
	key.protocol = protocol;
	key.tos = 0x12;
	key.flow_label = htonl(0xabcde);
	key.ip_src[0] = key.ip_dst[0] = 0xfd;
	key.ip_src[15] = 1;
	key.ip_dst[15] = 2;
	return key;
}

void key_set_ports(struct dapl_eth_key *key, uint16_t to)
{
	key->port_src = htons(12345);
	key->port_dst = htons(to);
}
