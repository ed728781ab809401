/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_match_tunnels.c - headers within VXLAN, Geneve, GRE, NVGRE and MPLS, as the parser of match.c reads them. The
 * tunnels' own headers are read by common/tunnel.c. */
#include <linux/if_ether.h>
#include "test/unit/softeth/parsed.h"
#include "test/unit/unit.h"

static struct frame frame;

UNIT_FIXTURE(set_up) { frame.length = 0; }

/* IPv4 and UDP around a tunnel's header. */
static struct dapl_eth_key put_udp_around(uint16_t port)
{
	struct dapl_eth_key key = key_of_ipv4(IPPROTO_UDP);

	frame_put_ethernet_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, port);
	key_set_ports(&key, port);
	return key;
}

/* A frame within a tunnel: UDP over IPv4. Returns its key. */
static struct dapl_eth_key put_inner_frame(void)
{
	struct dapl_eth_key key = key_of_ipv4(IPPROTO_UDP);

	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 99);
	key_set_ports(&key, 99);
	return key;
}

/* A packet within a tunnel, without an Ethernet header. */
static struct dapl_eth_key put_inner_ipv6(void)
{
	struct dapl_eth_key key = key_of_ipv6(IPPROTO_TCP);

	frame_put_ipv6(&frame, IPPROTO_TCP);
	frame_put_udp(&frame, 99);
	key_set_ports(&key, 99);
	key_clear_ethernet(&key);
	return key;
}

static void assert_tunnel(struct dapl_eth_key outer, enum dapl_eth_tunnel tunnel, uint32_t id,
			  const struct dapl_eth_key *inner)
{
	struct eth_headers h = parse(&frame);

	outer.tunnel = tunnel;
	outer.tunnel_id = htonl(id);
	assert_key(&h.outer, &outer);
	assert_key(&h.inner, inner);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(vxlan_carries_a_frame)
{
	struct dapl_eth_key outer = put_udp_around(4789), inner;

	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	inner = put_inner_frame();
	assert_tunnel(outer, ETH_VXLAN, 0x010203, &inner);
}

TEST(geneve_carries_a_frame_or_a_packet_behind_its_options)
{
	struct dapl_eth_key outer = put_udp_around(6081), inner;

	FRAME_PUT(&frame, "\x02\x00\x65\x58\x01\x02\x03\xff\x01\x02\x03\x04\x05\x06\x07\x08");
	inner = put_inner_frame();
	assert_tunnel(outer, ETH_GENEVE, 0x010203, &inner);
	set_up(NULL);
	put_udp_around(6081);
	FRAME_PUT(&frame, "\x00\x00\x86\xdd\x01\x02\x03\xff");
	inner = put_inner_ipv6();
	assert_tunnel(outer, ETH_GENEVE, 0x010203, &inner);
}

TEST(gre_carries_a_packet_or_a_frame)
{
	struct dapl_eth_key outer = key_of_ipv4(IPPROTO_GRE), inner;

	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x30\x00\x86\xdd\x01\x02\x03\x04\xaa\xbb\xcc\xdd");
	inner = put_inner_ipv6();
	assert_tunnel(outer, ETH_GRE, 0x01020304, &inner);
	set_up(NULL);
	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x00\x00\x65\x58");
	inner = put_inner_frame();
	assert_tunnel(outer, ETH_GRE, 0, &inner);
	set_up(NULL);
	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x20\x00\x65\x58\x01\x02\x03\x04");
	inner = put_inner_frame();
	assert_tunnel(outer, ETH_NVGRE, 0x010203, &inner);
}

TEST(labels_carry_a_packet)
{
	struct dapl_eth_key outer = key_of_ethernet(ETH_P_MPLS_UC), inner;

	frame_put_ethernet(&frame, ETH_P_MPLS_UC);
	FRAME_PUT(&frame, "\x12\x34\x5e\x40\x00\x02\x01\x40");
	inner = put_inner_ipv6();
	assert_tunnel(outer, ETH_MPLS, 0x12345, &inner);
	set_up(NULL);
	frame_put_ethernet(&frame, ETH_P_MPLS_MC);
	FRAME_PUT(&frame, "\x12\x34\x5f\x40");
	frame_put_ipv4(&frame, IPPROTO_TCP);
	frame_put_udp(&frame, 99);
	inner = key_of_ipv4(IPPROTO_TCP);
	key_set_ports(&inner, 99);
	key_clear_ethernet(&inner);
	outer.ether_type = htons(ETH_P_MPLS_MC);
	assert_tunnel(outer, ETH_MPLS, 0x12345, &inner);
	frame.bytes[ETH_HLEN + 4] = 0x05;	/* a pseudowire's control word, perhaps */
	assert_tunnel(outer, ETH_MPLS, 0x12345, &no_headers);
}

TEST(labels_have_a_limit)
{
	struct dapl_eth_key outer = key_of_ethernet(ETH_P_MPLS_UC), inner;

	for (unsigned n = 8; n <= 9; n++) {
		set_up(NULL);
		frame_put_ethernet(&frame, ETH_P_MPLS_UC);
		for (unsigned i = 1; i < n; i++)
			FRAME_PUT(&frame, "\x45\x01\x60\x40");	/* begins as an IPv4 header does */
		FRAME_PUT(&frame, "\x45\x01\x61\x40");
		inner = put_inner_ipv6();
		assert_tunnel(outer, ETH_MPLS, 0x45016, n == 8 ? &inner : &no_headers);
	}
}

/* Another version, another port, no flag that says so, or TCP. */
TEST(what_only_looks_like_a_tunnel_is_none)
{
	static const struct { uint8_t protocol; uint16_t port; const char *header; } rows[] = {
		{ IPPROTO_UDP, 4789, "\x00\x00\x00\x00\x01\x02\x03\x00" },
		{ IPPROTO_UDP, 4790, "\x08\x00\x00\x00\x01\x02\x03\x00" },
		{ IPPROTO_UDP, 6081, "\x40\x00\x65\x58\x01\x02\x03\x00" },
		{ IPPROTO_TCP, 4789, "\x08\x00\x00\x00\x01\x02\x03\x00" },
	};
	struct dapl_eth_key expected;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		frame_put_ethernet_ipv4(&frame, rows[i].protocol);
		frame_put_udp(&frame, rows[i].port);
		frame_put(&frame, rows[i].header, 8);
		put_inner_frame();
		expected = key_of_ipv4(rows[i].protocol);
		key_set_ports(&expected, rows[i].port);
		assert_tunnel(expected, ETH_NO_TUNNEL, 0, &no_headers);
	}
	set_up(NULL);
	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x20\x01\x65\x58\x01\x02\x03\x00");
	put_inner_frame();
	assert_tunnel(key_of_ipv4(IPPROTO_GRE), ETH_NO_TUNNEL, 0, &no_headers);
}

TEST(tunnel_within_a_tunnel_is_not_entered)
{
	struct dapl_eth_key outer = put_udp_around(4789), inner = key_of_ipv4(IPPROTO_UDP);

	key_set_ports(&inner, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	put_udp_around(4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x09\x09\x09\x00");
	put_inner_frame();
	assert_tunnel(outer, ETH_VXLAN, 0x010203, &inner);

	set_up(NULL);
	put_udp_around(4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x20\x00\x65\x58\x09\x09\x09\x09");
	inner = key_of_ipv4(IPPROTO_GRE);
	assert_tunnel(outer, ETH_VXLAN, 0x010203, &inner);

	set_up(NULL);
	put_udp_around(4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	frame_put_ethernet(&frame, ETH_P_MPLS_UC);
	FRAME_PUT(&frame, "\x12\x34\x5f\x40");
	frame_put_ipv4(&frame, IPPROTO_TCP);
	inner = key_of_ethernet(ETH_P_MPLS_UC);
	assert_tunnel(outer, ETH_VXLAN, 0x010203, &inner);
}

TEST(fragments_within_a_tunnel_are_told_apart)
{
	size_t inner;
	struct eth_headers h;

	put_udp_around(4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	inner = frame.length;
	put_inner_frame();
	frame.bytes[inner + ETH_HLEN + 6] = 0x20;
	h = parse(&frame);
	assert_false(h.outer_fragmented);
	assert_true(h.inner_fragmented);
	assert_int_equal(h.inner.port_dst, htons(99));
	frame.bytes[inner + ETH_HLEN + 7] = 1;
	h = parse(&frame);
	assert_int_equal(h.inner.fragment, 1);
	assert_int_equal(h.inner.port_dst, 0);
	assert_int_equal(h.outer.fragment, 0);
}

TEST(stripped_tag_is_not_one_of_the_inner_frame)
{
	struct eth_headers h;

	frame_put_ethernet_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	frame_put_ethernet(&frame, ETH_P_8021Q);
	FRAME_PUT(&frame, "\x00\x07\x81\x00\x00\x09\x08\x00");
	h = parse_cut(&frame, frame.length, (struct eth_tag){ ETH_P_8021AD, 3 });
	assert_int_equal(h.outer.vlan_tci, htons(3));
	assert_int_equal(h.inner.vlan_tci, htons(7));
	assert_int_equal(h.inner.ether_type, htons(ETH_P_IP));
}

/* --- frames that are cut off ------------------------------------------------------------------------- */

static void put_ports_only(void) { FRAME_PUT(&frame, "\x30\x39\x00\x63"); }

TEST(header_that_is_cut_off_is_0)
{
	put_udp_around(4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\x00");
	frame_put_ethernet(&frame, ETH_P_8021Q);
	FRAME_PUT(&frame, "\x00\x07\x86\xdd");
	frame_put_ipv6(&frame, IPPROTO_FRAGMENT);
	FRAME_PUT(&frame, "\x3c\x00\x00\x01\x00\x00\x00\x07\x11\x00\x01\x04\x00\x00\x00\x00");
	put_ports_only();
	assert_parts(&frame);

	set_up(NULL);
	frame_put_ethernet(&frame, ETH_P_8021AD);
	FRAME_PUT(&frame, "\x00\x07\x81\x00\x00\x09\x88\x47\x12\x34\x5e\x40\x00\x02\x01\x40\x46");
	frame.length--;
	frame_put_ipv4(&frame, IPPROTO_TCP);
	frame.bytes[frame.length - 20] = 0x46;
	FRAME_PUT(&frame, "\x01\x01\x01\x00");
	put_ports_only();
	assert_parts(&frame);

	set_up(NULL);
	frame_put_ethernet_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\xb0\x00\x65\x58\x00\x00\x00\x00\x01\x02\x03\x04\xaa\xbb\xcc\xdd");
	frame_put_ethernet_ipv4(&frame, IPPROTO_TCP);
	put_ports_only();
	assert_parts(&frame);
}

/* Where each header of the frame is complete; a byte less, and what it says is not known. */
TEST(headers_are_read_once_they_are_complete)
{
	static const struct { size_t length, offset; } rows[] = {
#define UNTIL(length, key, field) { length, offsetof(struct eth_headers, key.field) }
		UNTIL(14, outer, dst[0]), UNTIL(34, outer, ip_version), UNTIL(38, outer, port_src),
		UNTIL(50, outer, tunnel_id), UNTIL(68, inner, dst[0]), UNTIL(88, inner, ip_version),
		UNTIL(92, inner, port_dst),
#undef UNTIL
	};

	put_udp_around(6081);
	FRAME_PUT(&frame, "\x01\x00\x65\x58\x01\x02\x03\x00\x01\x02\x03\x04");	/* a word of options */
	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, IPPROTO_TCP);
	put_ports_only();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct eth_headers less = parse_cut(&frame, rows[i].length - 1, (struct eth_tag){ 0, 0 });
		struct eth_headers enough = parse_cut(&frame, rows[i].length, (struct eth_tag){ 0, 0 });

		const uint8_t *without = (const uint8_t *)&less, *with = (const uint8_t *)&enough;

		assert_int_equal(without[rows[i].offset] | without[rows[i].offset + 1], 0);
		assert_int_not_equal(with[rows[i].offset] | with[rows[i].offset + 1], 0);
	}
}

UNIT_MAIN(NULL, NULL)
