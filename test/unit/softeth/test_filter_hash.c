/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_filter_hash.c - the hash of a group in the kernel's filter (dapl/softeth/filter_hash.c): it selects the entry
 * of the table that spread_hash() does, and lets a frame through where it cannot know. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include "common/tunnel.h"
#include "dapl/softeth/filter.h"
#include "test/unit/softeth/cbpf.h"
#include "test/unit/softeth/parsed.h"
#include "test/unit/unit.h"

enum { SNAP = 1234 };

static const struct dapl_eth_rule any = { .mode = ETH_COPY, .flags = ETH_ALL | ETH_EGRESS };
static struct sock_filter code[ETH_FILTER_MAX];
static struct eth_spread spread;	/* key, size, and what is hashed */

UNIT_FIXTURE(set_up)
{
	spread = (struct eth_spread){ .ports = true, .size = 128 };
	for (unsigned i = 0; i < TOEPLITZ_KEY; i++)
		spread.key[i] = (uint8_t)(37 * i + 11);
}

/* The program of a port of the group with these rules and entries. */
static bool accepts(const struct filter_part *part, const struct frame *f, size_t length)
{
	struct eth_filter filter;
	unsigned n;
	uint32_t kept;

	eth_filter_begin(&filter, code, SNAP);
	eth_filter_add(&filter, part);
	n = eth_filter_end(&filter);
	cbpf_assert_accepted(code, n);
	kept = cbpf_run(code, n, f->bytes, length, PACKET_HOST);
	assert_true(kept == SNAP || !kept);
	return kept;
}

static struct filter_part part_of(const struct dapl_eth_rule *const *rules, unsigned n)
{
	return (struct filter_part){ .rules = rules, .n = n, .key = spread.key, .ports = spread.ports,
		.inner = spread.inner, .size = spread.size };
}

/* The entry of a frame, and whether the filter finds it: it rejects the frame if the entry is another port's. */
static bool finds_entry(const struct frame *f, size_t length)
{
	const struct dapl_eth_rule *rule = &any;
	struct filter_part own = part_of(&rule, 1), others = own;
	const struct eth_headers headers = parse_cut(f, length);
	uint32_t entry = spread_hash(&spread, &headers) & (spread.size - 1);

	memset(others.bits, 0xff, sizeof others.bits);
	own.bits[entry / 32] |= (uint32_t)1 << entry % 32;
	others.bits[entry / 32] &= ~own.bits[entry / 32];
	assert_true(accepts(&own, f, length));	/* in any case */
	return !accepts(&others, f, length);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(entry_of_each_protocol_is_found)
{
	static const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, IPPROTO_GRE };

	for (size_t i = 0; i < 4 * sizeof protocols; i++) {
		const struct frame f = frame_over(i & 1 ? 4 : 6, protocols[i / 4], 4711);

		spread.ports = i & 2;
		assert_true(finds_entry(&f, f.length));
	}
}

/* Other addresses and ports select other entries; the first 36 bytes behind the Ethernet header have all of IPv4's. */
TEST(each_bit_of_addresses_and_ports_counts)
{
	for (int version = 4; version <= 6; version += 2) {
		struct frame f = frame_over(version, IPPROTO_TCP, 4711);
		size_t first = ETH_HLEN + (version == 4 ? 12 : 8), end = ETH_HLEN + (version == 4 ? 24 : 44);

		for (size_t bit = 8 * first; bit < 8 * end; bit++) {
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_true(finds_entry(&f, f.length));
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

TEST(tables_of_each_size_are_looked_up)
{
	const struct frame f = frame_over(4, IPPROTO_UDP, 4711);

	for (spread.size = 1; spread.size <= SPREAD_TABLE_MAX; spread.size *= 2)
		assert_true(finds_entry(&f, f.length));
}

TEST(frame_without_ip_has_the_hash_0)
{
	struct frame f = { .length = 0 };

	frame_put_ethernet(&f, ETH_P_ARP);
	FRAME_PUT(&f, "no address of IP");
	assert_true(finds_entry(&f, f.length));
}

TEST(fragment_has_the_hash_of_its_addresses)
{
	static const uint8_t places[][2] = { { 0x20, 0 }, { 0, 1 }, { 0x20, 7 } };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct frame f = frame_over(4, IPPROTO_UDP, 4711);

		memcpy(f.bytes + 20, places[i], 2);
		assert_true(finds_entry(&f, f.length));
	}
}

/* cbpf_run() fails if a byte behind the end is read. */
TEST(cut_frame_is_never_rejected_for_a_wrong_entry)
{
	for (int version = 4; version <= 6; version += 2) {
		const struct frame f = frame_over(version, IPPROTO_UDP, 4711);

		for (size_t length = 0; length < f.length; length++)
			finds_entry(&f, length);
	}
}

TEST(headers_that_are_not_read_are_let_through)
{
	static const struct {
		int version;
		size_t byte;		/* that is set to this value */
		uint8_t value;
	} rows[] = {
		{ 4, ETH_HLEN, 0x46 }, { 6, 20, IPPROTO_HOPOPTS }, { 6, 20, IPPROTO_ROUTING },
		{ 6, 20, IPPROTO_FRAGMENT },
		{ 6, 20, IPPROTO_DSTOPTS }, { 6, ETH_HLEN, 0x50 }, { 4, ETH_HLEN, 0x55 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct frame f = frame_over(rows[i].version, IPPROTO_UDP, 4711);

		f.bytes[rows[i].byte] = rows[i].value;
		assert_false(finds_entry(&f, f.length));
	}
	for (size_t i = 0; i < 2; i++) {
		struct frame tagged = { .length = 0 };

		frame_put_ethernet(&tagged, i ? ETH_P_8021AD : ETH_P_8021Q);
		FRAME_PUT(&tagged, "\x00\x07\x08\x00");
		frame_put_ipv4(&tagged, IPPROTO_UDP);
		frame_put_udp(&tagged, 4711);
		assert_false(finds_entry(&tagged, tagged.length));
	}
}

TEST(tunnels_are_let_through_if_inner_headers_count)
{
	static const struct { uint8_t protocol; uint16_t port; bool tunnel; } rows[] = {
		{ IPPROTO_UDP, PORT_VXLAN, true }, { IPPROTO_UDP, PORT_GENEVE, true }, { IPPROTO_GRE, 0, true },
		{ IPPROTO_UDP, 4711, false },
	};
	struct frame mpls = { .length = 0 };

	for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
		const struct frame f = frame_over(i & 1 ? 4 : 6, rows[i / 4].protocol, rows[i / 4].port);

		spread.inner = i & 2;
		assert_int_equal(finds_entry(&f, f.length), !(spread.inner && rows[i / 4].tunnel));
	}
	frame_put_ethernet(&mpls, ETH_P_MPLS_UC);
	FRAME_PUT(&mpls, "\x00\x01\x01\x40");
	spread.inner = true;
	assert_false(finds_entry(&mpls, mpls.length));
	mpls.bytes[13] = ETH_P_MPLS_MC & 0xff;
	assert_false(finds_entry(&mpls, mpls.length));
	spread.inner = false;
	assert_true(finds_entry(&mpls, mpls.length));
}

/* --- rules of a group ------------------------------------------------------------------------------------- */

TEST(each_rule_of_a_group_leads_to_the_hash)
{
	struct dapl_eth_rule four = { .mode = ETH_COPY }, six = { .mode = ETH_COPY };
	const struct dapl_eth_rule *rules[] = { &four, &six };
	const struct frame frames[] = { frame_over(4, IPPROTO_UDP, 4711), frame_over(6, IPPROTO_UDP, 4711) };
	struct filter_part all = part_of(rules, 2), none = all;
	struct frame arp = { .length = 0 };

	frame_put_ethernet(&arp, ETH_P_ARP);
	four.key.ip_version = 4;
	six.key.ip_version = 6;
	four.mask.ip_version = six.mask.ip_version = 0xff;
	memset(all.bits, 0xff, sizeof all.bits);
	for (size_t i = 0; i < 2; i++) {
		assert_true(accepts(&all, &frames[i], frames[i].length));
		assert_false(accepts(&none, &frames[i], frames[i].length));
	}
	assert_false(accepts(&all, &arp, arp.length));
	all.n = 0;
	assert_false(accepts(&all, &frames[0], frames[0].length));
}

UNIT_MAIN(NULL, NULL)
