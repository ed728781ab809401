/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_match.c - what the parser reads from a frame without a tunnel, whole and cut off, and which rules match. That
 * the kernel's filter and the program for TAKE and DROP agree is tested by test/eth/match.c. */
#include <linux/if_ether.h>
#include "test/unit/softeth/parsed.h"
#include "test/unit/unit.h"

static struct frame frame;

static void assert_outer(const struct dapl_eth_key *expected)
{
	struct eth_headers h = parse(&frame);

	assert_key(&h.outer, expected);
}

UNIT_FIXTURE(set_up) { frame.length = 0; }

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- Ethernet and VLAN ------------------------------------------------------------------------------- */

TEST(type_is_read_behind_two_tags)
{
	struct dapl_eth_key expected = key_of_ipv4(IPPROTO_ICMP);

	expected.vlan_tci = htons(0xe007);
	frame_put_ethernet(&frame, ETH_P_8021AD);
	FRAME_PUT(&frame, "\xe0\x07\x81\x00\x00\x09\x08\x00");
	frame_put_ipv4(&frame, IPPROTO_ICMP);
	assert_outer(&expected);
}

/* --- IP ------------------------------------------------------------------------------------------- */

TEST(ports_are_those_of_tcp_udp_and_sctp)
{
	static const struct {
		uint8_t protocol;
		bool has_ports;
	} rows[] = { { IPPROTO_TCP, true }, { IPPROTO_UDP, true }, { IPPROTO_SCTP, true },
		{ IPPROTO_ICMP, false }, { IPPROTO_ESP, false } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dapl_eth_key v4 = key_of_ipv4(rows[i].protocol), v6 = key_of_ipv6(rows[i].protocol);
		struct eth_headers h;

		if (rows[i].has_ports) {
			key_set_ports(&v4, 53);
			key_set_ports(&v6, 53);
		}
		set_up(NULL);
		frame_put_ethernet_ipv4(&frame, rows[i].protocol);
		frame_put_udp(&frame, 53);
		h = parse(&frame);
		assert_key(&h.outer, &v4);
		set_up(NULL);
		frame_put_ethernet(&frame, ETH_P_IPV6);
		frame_put_ipv6(&frame, rows[i].protocol);
		frame_put_udp(&frame, 53);
		h = parse(&frame);
		assert_key(&h.outer, &v6);
	}
}

/* The first fragment has ports, all of them are fragments; "do not fragment" and the reserved bit are no offset. */
struct fragment_row {
	uint8_t first, second;		/* bytes of the offset and the flags */
	bool fragmented, later;
};

static void expect_fragments(size_t at, const struct fragment_row *rows, size_t n, struct dapl_eth_key whole)
{
	for (size_t i = 0; i < n; i++) {
		struct dapl_eth_key expected = whole;
		struct eth_headers h;

		frame.bytes[at] = rows[i].first;
		frame.bytes[at + 1] = rows[i].second;
		expected.fragment = rows[i].later;
		if (!rows[i].later)
			key_set_ports(&expected, 53);
		h = parse(&frame);
		assert_key(&h.outer, &expected);
		assert_int_equal(h.outer_fragmented, rows[i].fragmented);
	}
}

TEST(fragments_of_ipv4_are_told_apart)
{
	static const struct fragment_row rows[] = { { 0x00, 0, false, false }, { 0x40, 0, false, false },
		{ 0x80, 0, false, false }, { 0x20, 0, true, false }, { 0x20, 1, true, true },
		{ 0x00, 1, true, true }, { 0x10, 0, true, true } };

	frame_put_ethernet_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 53);
	expect_fragments(ETH_HLEN + 6, rows, sizeof rows / sizeof *rows, key_of_ipv4(IPPROTO_UDP));
}

TEST(fragments_of_ipv6_are_told_apart)
{
	static const struct fragment_row rows[] = { { 0, 0, false, false }, { 0, 6, false, false },
		{ 0, 1, true, false }, { 0, 8, true, true }, { 1, 0, true, true }, { 1, 1, true, true } };

	frame_put_ethernet(&frame, ETH_P_IPV6);
	frame_put_ipv6(&frame, IPPROTO_FRAGMENT);
	FRAME_PUT(&frame, "\x11\xff\x00\x00\x00\x00\x00\x07");	/* its second byte is no length */
	frame_put_udp(&frame, 53);
	expect_fragments(ETH_HLEN + 42, rows, sizeof rows / sizeof *rows, key_of_ipv6(IPPROTO_UDP));
}

TEST(extension_headers_have_a_limit)
{
	for (unsigned n = 6; n <= 7; n++) {
		struct dapl_eth_key expected = key_of_ipv6(n == 6 ? IPPROTO_TCP : IPPROTO_DSTOPTS);
		struct eth_headers h;

		set_up(NULL);
		frame_put_ethernet(&frame, ETH_P_IPV6);
		frame_put_ipv6(&frame, IPPROTO_DSTOPTS);
		for (unsigned i = 1; i < n; i++)
			FRAME_PUT(&frame, "\x3c\x00\x01\x04\x00\x00\x00\x00");
		FRAME_PUT(&frame, "\x06\x00\x01\x04\x00\x00\x00\x00");
		frame_put_udp(&frame, 80);
		if (n == 6)
			key_set_ports(&expected, 80);
		h = parse(&frame);
		assert_key(&h.outer, &expected);
	}
}

/* --- rules ------------------------------------------------------------------------------------------- */

/* Of a rule's two keys and masks, and of the headers. */
static uint8_t *byte_of_key(struct dapl_eth_rule *rule, size_t i)
{
	size_t size = sizeof rule->key;

	return (uint8_t *)(i < size ? &rule->key : &rule->inner_key) + i % size;
}

static uint8_t *byte_of_mask(struct dapl_eth_rule *rule, size_t i)
{
	size_t size = sizeof rule->mask;

	return (uint8_t *)(i < size ? &rule->mask : &rule->inner_mask) + i % size;
}

static uint8_t *byte_of_headers(struct eth_headers *headers, size_t i)
{
	size_t size = sizeof headers->outer;

	return (uint8_t *)(i < size ? &headers->outer : &headers->inner) + i % size;
}

enum { KEYS_SIZE = 2 * sizeof(struct dapl_eth_key) };

/* Each bit of outer and inner headers, with all other bits compared, too. */
TEST(bit_is_compared_if_it_is_in_the_mask)
{
	struct eth_headers headers;
	struct dapl_eth_rule rule;

	memset(&headers, 0, sizeof headers);
	memset(&rule, 0, sizeof rule);
	for (size_t i = 0; i < KEYS_SIZE; i++) {
		*byte_of_headers(&headers, i) = *byte_of_key(&rule, i) = (uint8_t)(i * 37);
		*byte_of_mask(&rule, i) = 255;
	}
	assert_true(eth_match_rule(&rule, &headers));
	for (size_t i = 0; i < 8 * KEYS_SIZE; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8), kept = *byte_of_key(&rule, i / 8);

		*byte_of_headers(&headers, i / 8) ^= bit;
		assert_false(eth_match_rule(&rule, &headers));
		*byte_of_mask(&rule, i / 8) ^= bit;
		*byte_of_key(&rule, i / 8) &= (uint8_t)~bit;
		assert_true(eth_match_rule(&rule, &headers));
		*byte_of_headers(&headers, i / 8) ^= bit;
		assert_true(eth_match_rule(&rule, &headers));
		*byte_of_mask(&rule, i / 8) ^= bit;
		*byte_of_key(&rule, i / 8) = kept;
	}
	assert_true(eth_match_rule(&rule, &headers));
}

TEST(rule_without_a_mask_matches_all)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE, .flags = ETH_ALL, .priority = 3, .tag = 9 };
	struct eth_headers headers;

	assert_true(eth_match_all(&rule));
	memset(&headers, 255, sizeof headers);
	assert_true(eth_match_rule(&rule, &headers));
	for (size_t i = 0; i < KEYS_SIZE; i++) {
		*byte_of_mask(&rule, i) = 0x10;
		assert_false(eth_match_all(&rule));
		*byte_of_mask(&rule, i) = 0;
	}
}

/* No frame can have the value. */
TEST(rule_with_a_value_outside_its_mask_matches_none)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE };
	struct eth_headers headers;

	memset(&headers, 255, sizeof headers);
	for (size_t i = 0; i < KEYS_SIZE; i++) {
		*byte_of_key(&rule, i) = 1;
		assert_false(eth_match_rule(&rule, &headers));
		assert_false(eth_match_all(&rule));
		*byte_of_key(&rule, i) = 0;
	}
}

UNIT_MAIN(NULL, NULL)
