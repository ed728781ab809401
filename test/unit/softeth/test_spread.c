/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_spread.c - how a group distributes frames: what of a frame is hashed, and which table names the owner at
 * what time. The hash function: test/eth/toeplitz.c. */
#include "dapl/softeth/spread.h"
#include "test/unit/unit.h"

enum { SIZE = 4, WITH_PORTS = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP };

/* Key, addresses, ports and hashes of Microsoft's "Verifying the RSS Hash Calculation". */
static uint8_t key[TOEPLITZ_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
	0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
	0xbe, 0xac, 0x01, 0xfa,
};
enum { HASH_OF_ADDRESSES = 0x323e8fc2, HASH_WITH_PORTS = 0x51ccc178 };

static const uint16_t first_table[SIZE] = { 0, 1, 2, 3 }, second_table[SIZE] = { 5, 5, 1, 1 };
static struct eth_spread *spread;

static void make(uint64_t fields)
{
	const struct dapl_eth_rss rss = { .hash = { .rx_hash_key = key, .rx_hash_key_len = sizeof key,
		.rx_hash_fields_mask = fields }, .size = SIZE, .table = first_table };

	if (spread)
		spread_put(spread);
	spread = spread_new(&rss);
	assert_non_null(spread);
}

UNIT_FIXTURE(set_up)
{
	spread = NULL;
	make(WITH_PORTS);
}

UNIT_FIXTURE(tear_down) { spread_put(spread); }

static struct dapl_eth_key headers_of(uint8_t protocol)
{
	static const uint8_t source[4] = { 66, 9, 149, 187 }, target[4] = { 161, 142, 100, 80 };
	struct dapl_eth_key of = { .ip_version = 4, .protocol = protocol };

	memcpy(of.ip_src, source, sizeof source);
	memcpy(of.ip_dst, target, sizeof target);
	of.port_src = htons(2794);
	of.port_dst = htons(1766);
	return of;
}

/* --- the hash ------------------------------------------------------------------------------------------ */

UNIT_CASE(ports_are_hashed_where_asked_for)
{
	const struct eth_headers tcp = { .outer = headers_of(IPPROTO_TCP) }, udp = { .outer = headers_of(IPPROTO_UDP) },
		other = { .outer = headers_of(IPPROTO_SCTP) };

	assert_int_equal(spread_hash(spread, &tcp), HASH_WITH_PORTS);
	assert_int_equal(spread_hash(spread, &udp), HASH_WITH_PORTS);
	assert_int_equal(spread_hash(spread, &other), HASH_OF_ADDRESSES);
	make(0);
	assert_int_equal(spread_hash(spread, &tcp), HASH_OF_ADDRESSES);
}

UNIT_CASE(all_fragments_have_the_hash_of_their_addresses)
{
	const struct eth_headers fragment = { .outer = headers_of(IPPROTO_UDP), .outer_fragmented = true };

	assert_int_equal(spread_hash(spread, &fragment), HASH_OF_ADDRESSES);
}

UNIT_CASE(frame_without_addresses_has_the_hash_0)
{
	const struct eth_headers arp = { .outer = { .ip_version = 0 } };

	assert_int_equal(spread_hash(spread, &arp), 0);
}

/* Where the headers within a tunnel are asked for, and can be seen in each fragment. */
UNIT_CASE(headers_within_a_tunnel_are_hashed_where_asked_for)
{
	struct eth_headers tunnelled = { .outer = headers_of(IPPROTO_UDP), .inner = headers_of(IPPROTO_TCP) };
	uint32_t outer;

	tunnelled.outer.tunnel = ETH_VXLAN;
	tunnelled.outer.ip_src[3]++;
	outer = spread_hash(spread, &tunnelled);
	assert_int_not_equal(outer, HASH_WITH_PORTS);
	make(WITH_PORTS | IBV_RX_HASH_INNER);
	assert_int_equal(spread_hash(spread, &tunnelled), HASH_WITH_PORTS);
	tunnelled.inner_fragmented = true;
	assert_int_equal(spread_hash(spread, &tunnelled), HASH_OF_ADDRESSES);
	tunnelled.outer_fragmented = true;
	assert_int_not_equal(spread_hash(spread, &tunnelled), HASH_OF_ADDRESSES);
	tunnelled = (struct eth_headers){ .outer = headers_of(IPPROTO_TCP) };	/* no tunnel */
	assert_int_equal(spread_hash(spread, &tunnelled), HASH_WITH_PORTS);
}

/* --- tables -------------------------------------------------------------------------------------------- */

UNIT_CASE(lowest_bits_of_the_hash_select_the_owner)
{
	for (uint32_t hash = 0; hash < 3 * SIZE; hash++)
		assert_int_equal(spread_owner(spread, hash, 0), hash % SIZE);
	assert_int_equal(spread_owner(spread, 0xfffffffe, UINT64_MAX), 2);
}

/* Of a frame that may still be on its way, the filters must know each table that it can go by. */
UNIT_CASE(bits_are_of_all_tables_that_are_valid)
{
	uint32_t bits[SPREAD_TABLE_MAX / 32];

	assert_false(spread_bits(spread, 1, 0, bits));
	assert_int_equal(bits[0], 1 << 1);
	assert_true(spread_announce(spread, second_table));
	assert_true(spread_bits(spread, 1, 500, bits));		/* announced: before it begins */
	assert_int_equal(bits[0], 1 << 1 | 1 << 2 | 1 << 3);
	spread_begin(spread, 1000);
	assert_true(spread_bits(spread, 1, 500, bits));
	assert_int_equal(bits[0], 1 << 1 | 1 << 2 | 1 << 3);
	assert_false(spread_bits(spread, 1, 1500, bits));
	assert_int_equal(bits[0], 1 << 2 | 1 << 3);
	assert_false(spread_bits(spread, 0, 1500, bits));
	assert_int_equal(bits[0], 0);
}

UNIT_CASE(groups_are_numbered_in_their_order)
{
	unsigned before = spread->id;

	make(WITH_PORTS);
	assert_true(spread->id > before);
}

UNIT_MAIN(NULL, NULL)
