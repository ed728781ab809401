/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_steer.c - the program that takes frames from the kernel: that it reads headers as the matcher does, and which
 * rule decides. It runs in ebpf.c; test/eth/match.c runs random programs in the kernel. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include "dapl/softeth/match.h"
#include "dapl/softeth/steer.h"
#include "test/unit/softeth/ebpf.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/unit.h"

static struct frame frame;
static struct ebpf_frame seen;		/* the frame as the program sees it */
static struct bpf_code code;
static uint64_t counters[EBPF_COUNTERS][2];

static void frame_is_complete(void)
{
	seen = (struct ebpf_frame){ .bytes = frame.bytes, .length = frame.length, .type = PACKET_HOST };
}

static int set_up(void **state)
{
	memset(counters, 0, sizeof counters);
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 53);
	frame_is_complete();
	return bpf_code_begin(&code);
}

UNIT_FIXTURE(tear_down) { bpf_code_end(&code); }

/* An empty program. */
static void renew_code(void)
{
	memset(code.label_of, 0, (size_t)code.n * sizeof *code.label_of);
	code.n = code.label_count = 0;
}

static int run(const struct steer_rule *rules, unsigned n)
{
	renew_code();
	assert_int_equal(steer_make(&code, rules, n, EBPF_MAP), 0);
	return ebpf_run(&code, &seen, counters);
}

static int run_rule(const struct dapl_eth_rule *rule)
{
	const struct steer_rule only = { rule, 0, 0 };

	return run(&only, 1);
}

/* --- headers --------------------------------------------------------------------------------------------- */

/* The frame is dropped by the rule whose key is all that the matcher reads: so the program reads the same. */
static void assert_read_alike(void)
{
	const struct eth_tag tag = { seen.tagged ? ETH_P_8021Q : 0, seen.tci };
	struct dapl_eth_rule rule = { .mode = ETH_TAKE, .flags = ETH_ALL };
	struct eth_headers headers;

	eth_match_parse(seen.bytes, seen.length, tag, &headers);
	rule.key = headers.outer;
	rule.inner_key = headers.inner;
	memset(&rule.mask, 255, sizeof rule.mask);
	memset(&rule.inner_mask, 255, sizeof rule.inner_mask);
	assert_int_equal(run_rule(&rule), TCX_DROP_FRAME);
}

/* Whole, cut off at each byte, and with each bit changed. */
static void assert_all_read_alike(void)
{
	frame_is_complete();
	for (seen.length = 0; seen.length <= frame.length; seen.length++)
		assert_read_alike();
	seen.length = frame.length;
	for (size_t i = 0; i < 8 * frame.length; i++) {
		frame.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_read_alike();
		frame.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	seen.tagged = true;
	seen.tci = 0x2003;
	assert_read_alike();
}

static void begin_ipv4(uint8_t protocol)
{
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, protocol);
}

static void put_ports(void) { FRAME_PUT(&frame, "\x30\x39\x00\x50"); }

static void put_inner_frame(void)
{
	frame_put_ethernet(&frame, ETH_P_8021Q);
	FRAME_PUT(&frame, "\x00\x07\x08\x00");
	frame_put_ipv4(&frame, IPPROTO_TCP);
	put_ports();
}

static void put_inner_ipv6(void)
{
	frame_put_ipv6(&frame, IPPROTO_UDP);
	put_ports();
}

UNIT_CASE(tags_are_read_as_by_the_matcher)
{
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_8021AD);
	FRAME_PUT(&frame, "\x00\x07\x81\x00\x00\x09\x81\x00\x00\x0a\x08\x00");
	assert_all_read_alike();
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_8021Q);
	FRAME_PUT(&frame, "\xe0\x07\x81\x00\x00\x09\x08\x00");
	frame_put_ipv4(&frame, IPPROTO_SCTP);
	put_ports();
	assert_all_read_alike();
}

UNIT_CASE(ipv4_is_read_as_by_the_matcher)
{
	begin_ipv4(IPPROTO_TCP);
	frame.bytes[ETH_HLEN] = 0x47;
	FRAME_PUT(&frame, "\x01\x01\x01\x01\x01\x01\x01\x00");
	put_ports();
	assert_all_read_alike();
}

UNIT_CASE(ipv6_is_read_as_by_the_matcher)
{
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_IPV6);
	frame_put_ipv6(&frame, IPPROTO_HOPOPTS);
	FRAME_PUT(&frame,
		  "\x2b\x00\x01\x04\x00\x00\x00\x00\x3c\x01\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08");
	FRAME_PUT(&frame, "\x2c\x00\x01\x04\x00\x00\x00\x00\x06\xff\x00\x01\x00\x00\x00\x07");
	put_ports();
	assert_all_read_alike();
}

/* Of as many as are skipped, and one more. */
UNIT_CASE(extension_headers_and_labels_have_the_limits_of_the_matcher)
{
	for (int n = 6; n <= 7; n++) {
		frame.length = 0;
		frame_put_ethernet(&frame, ETH_P_IPV6);
		frame_put_ipv6(&frame, IPPROTO_DSTOPTS);
		for (int i = 1; i < n; i++)
			FRAME_PUT(&frame, "\x3c\x00\x01\x04\x00\x00\x00\x00");
		FRAME_PUT(&frame, "\x06\x00\x01\x04\x00\x00\x00\x00");
		put_ports();
		assert_all_read_alike();
	}
	for (int n = 8; n <= 9; n++) {
		frame.length = 0;
		frame_put_ethernet(&frame, ETH_P_MPLS_MC);
		for (int i = 1; i < n; i++)
			FRAME_PUT(&frame, "\x45\x00\x60\x40");
		FRAME_PUT(&frame, "\x45\x00\x61\x40");
		frame_put_ipv4(&frame, IPPROTO_TCP);
		put_ports();
		assert_all_read_alike();
	}
}

/* The keys are as long as the first bytes of a frame, and begin as 0. */
UNIT_CASE(long_frame_leaves_nothing_in_the_keys)
{
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_ARP);
	memset(frame.bytes + frame.length, 255, sizeof frame.bytes - frame.length);
	frame.length = sizeof frame.bytes;
	frame_is_complete();
	assert_read_alike();
}

UNIT_CASE(udp_tunnels_are_read_as_by_the_matcher)
{
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	put_inner_frame();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 6081);
	FRAME_PUT(&frame, "\x01\x00\x65\x58\x01\x02\x03\xff\x01\x02\x03\x04");
	put_inner_frame();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 6081);
	FRAME_PUT(&frame, "\x00\x00\x86\xdd\x01\x02\x03\xff");
	put_inner_ipv6();
	assert_all_read_alike();
}

/* A port of TCP is no tunnel's. */
UNIT_CASE(tcp_is_read_as_by_the_matcher)
{
	begin_ipv4(IPPROTO_TCP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	put_inner_frame();
	assert_all_read_alike();
}

UNIT_CASE(gre_is_read_as_by_the_matcher)
{
	begin_ipv4(IPPROTO_GRE);
	FRAME_PUT(&frame, "\xb0\x00\x65\x58\x00\x00\x00\x00\x01\x02\x03\x04\xaa\xbb\xcc\xdd");
	put_inner_frame();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_GRE);
	FRAME_PUT(&frame, "\x20\x00\x86\xdd\x01\x02\x03\x04");
	put_inner_ipv6();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_GRE);
	FRAME_PUT(&frame, "\x00\x00\x65\x58");
	put_inner_frame();
	assert_all_read_alike();
}

UNIT_CASE(labels_are_read_as_by_the_matcher)
{
	frame.length = 0;
	frame_put_ethernet(&frame, ETH_P_MPLS_UC);
	FRAME_PUT(&frame, "\x12\x34\x5e\x40\x00\x02\x01\x40");
	put_inner_ipv6();
	assert_all_read_alike();
}

UNIT_CASE(tunnel_within_a_tunnel_is_read_as_by_the_matcher)
{
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x04\x05\x06\xff");
	put_inner_frame();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	frame_put_ethernet(&frame, ETH_P_IP);
	frame_put_ipv4(&frame, IPPROTO_GRE);
	FRAME_PUT(&frame, "\x20\x00\x65\x58\x04\x05\x06\xff");
	put_inner_frame();
	assert_all_read_alike();
	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	frame_put_ethernet(&frame, ETH_P_MPLS_UC);
	FRAME_PUT(&frame, "\x12\x34\x5f\x40");
	frame_put_ipv4(&frame, IPPROTO_TCP);
	assert_all_read_alike();
}

/* --- rules -------------------------------------------------------------------------------------------------- */

static struct dapl_eth_rule of_port(uint16_t port, uint32_t mode)
{
	struct dapl_eth_rule rule = { .mode = mode };

	rule.mask.port_dst = 0xffff;
	rule.key.port_dst = htons(port);
	return rule;
}

/* Bits that are in no mask may differ. */
UNIT_CASE(bit_is_compared_if_it_is_in_the_mask)
{
	enum { SIZE = sizeof(struct dapl_eth_key) };
	struct eth_headers headers;

	begin_ipv4(IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\x00\x00\x00\x01\x02\x03\xff");
	put_inner_frame();
	frame_is_complete();
	eth_match_parse(frame.bytes, frame.length, (struct eth_tag){ 0, 0 }, &headers);
	for (size_t i = 0; i < 16 * SIZE; i++) {
		bool inner = i >= 8 * SIZE;
		size_t at = i / 8 % SIZE;
		uint8_t bit = (uint8_t)(1 << i % 8), found = ((uint8_t *)(inner ? &headers.inner : &headers.outer))[at];
		struct dapl_eth_rule rule = { .mode = ETH_TAKE };

		((uint8_t *)(inner ? &rule.inner_mask : &rule.mask))[at] = bit;
		((uint8_t *)(inner ? &rule.inner_key : &rule.key))[at] = found & bit;
		assert_int_equal(run_rule(&rule), TCX_DROP_FRAME);
		((uint8_t *)(inner ? &rule.inner_key : &rule.key))[at] ^= bit;
		assert_int_equal(run_rule(&rule), TCX_NEXT_PROGRAM);
	}
}

UNIT_CASE(frame_goes_on_unless_its_rule_takes_it)
{
	static const struct {
		uint32_t mode;
		int verdict;
	} rows[] = { { ETH_COPY, TCX_NEXT_PROGRAM }, { ETH_TAKE, TCX_DROP_FRAME }, { ETH_DROP, TCX_DROP_FRAME } };

	assert_int_equal(run(NULL, 0), TCX_NEXT_PROGRAM);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct dapl_eth_rule rule = of_port(53, rows[i].mode), other = of_port(54, rows[i].mode);

		assert_int_equal(run_rule(&rule), rows[i].verdict);
		assert_int_equal(run_rule(&other), TCX_NEXT_PROGRAM);
	}
}

UNIT_CASE(first_rule_that_matches_decides)
{
	const struct dapl_eth_rule take = of_port(53, ETH_TAKE), copy = of_port(53, ETH_COPY),
				   drop = of_port(53, ETH_DROP), other = of_port(54, ETH_COPY);
	const struct steer_rule copied[] = { { &other, 0, 0 }, { &copy, 0, 0 }, { &take, 0, 0 }, { &drop, 0, 0 } };
	const struct steer_rule taken[] = { { &take, 0, 0 }, { &drop, 0, 0 }, { &copy, 0, 0 } };

	assert_int_equal(run(copied, 4), TCX_NEXT_PROGRAM);
	assert_int_equal(run(taken, 3), TCX_DROP_FRAME);
	assert_int_equal(counters[0][0], 0);
}

UNIT_CASE(dropped_frames_are_counted_at_their_rule)
{
	const struct dapl_eth_rule drop = of_port(53, ETH_DROP), other = of_port(54, ETH_DROP);
	const struct steer_rule rules[] = { { &other, 1, 0 }, { &drop, 2, 0 } };

	assert_int_equal(run(rules, 2), TCX_DROP_FRAME);
	seen.length--;		/* still with its ports */
	assert_int_equal(run(rules, 2), TCX_DROP_FRAME);
	for (unsigned i = 0; i < EBPF_COUNTERS; i++) {
		assert_int_equal(counters[i][0], i == 2 ? 2 : 0);
		assert_int_equal(counters[i][1], i == 2 ? 2 * frame.length - 1 : 0);
	}
}

/* A number that the map does not have: the frame is dropped all the same. */
UNIT_CASE(frame_without_a_counter_is_dropped)
{
	const struct dapl_eth_rule drop = of_port(53, ETH_DROP);
	const struct steer_rule rule = { &drop, EBPF_COUNTERS, 0 };

	assert_int_equal(run(&rule, 1), TCX_DROP_FRAME);
}

/* They come to the device while it is promiscuous for any program. */
UNIT_CASE(frame_for_another_host_needs_a_rule_that_asks_for_it)
{
	static const uint32_t types[] = { PACKET_HOST, PACKET_BROADCAST, PACKET_MULTICAST, PACKET_OTHERHOST };
	struct dapl_eth_rule plain = of_port(53, ETH_TAKE), all = plain, addressed = plain, of_source = plain;

	all.flags = ETH_ALL;
	addressed.mask.dst[5] = 255;
	addressed.key.dst[5] = 1;
	of_source.mask.src[5] = 255;
	of_source.key.src[5] = 2;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		int verdict = types[i] == PACKET_OTHERHOST ? TCX_NEXT_PROGRAM : TCX_DROP_FRAME;

		seen.type = types[i];
		assert_int_equal(run_rule(&plain), verdict);
		assert_int_equal(run_rule(&of_source), verdict);
		assert_int_equal(run_rule(&all), TCX_DROP_FRAME);
		assert_int_equal(run_rule(&addressed), TCX_DROP_FRAME);
	}
}

/* --- groups -------------------------------------------------------------------------------------------------- */

/* Which member gets the frame is not known here, so it may be one that another group gives to this port. */
UNIT_CASE(frame_that_a_group_copies_may_be_taken_by_another)
{
	const struct dapl_eth_rule copy = of_port(53, ETH_COPY), take = of_port(53, ETH_TAKE);
	const struct steer_rule one[] = { { &copy, 0, 1 }, { &take, 0, 1 } };
	const struct steer_rule two[] = { { &copy, 0, 1 }, { &take, 0, 2 } };
	const struct steer_rule own[] = { { &copy, 0, 0 }, { &take, 0, 2 } };
	const struct steer_rule both_copy[] = { { &copy, 0, 1 }, { &copy, 0, 2 } };

	assert_int_equal(run(one, 2), TCX_NEXT_PROGRAM);
	assert_int_equal(run(two, 2), TCX_DROP_FRAME);
	assert_int_equal(run(own, 2), TCX_NEXT_PROGRAM);
	assert_int_equal(run(both_copy, 2), TCX_NEXT_PROGRAM);
}

UNIT_CASE(frame_of_no_rule_of_a_group_goes_to_the_next)
{
	const struct dapl_eth_rule other = of_port(54, ETH_TAKE), take = of_port(53, ETH_TAKE);
	const struct steer_rule rules[] = { { &other, 0, 0 }, { &other, 0, 1 }, { &other, 0, 2 }, { &take, 0, 2 } };

	assert_int_equal(run(rules, 4), TCX_DROP_FRAME);
	assert_int_equal(run(rules, 3), TCX_NEXT_PROGRAM);
}

/* --- what the kernel accepts ------------------------------------------------------------------------------------- */

/* The kernel refuses a program with instructions that nothing reaches, as those behind a rule that matches every
 * frame. */
UNIT_CASE(programs_have_no_dead_instructions)
{
	static const unsigned groups[][4] = { { 0, 0, 0, 0 }, { 0, 1, 1, 2 }, { 1, 1, 2, 2 }, { 0, 0, 0, 3 },
		{ 1, 2, 3, 4 } };
	const struct dapl_eth_rule some = of_port(53, ETH_DROP);
	struct dapl_eth_rule modes[3] = { { .mode = ETH_COPY, .flags = ETH_ALL },
		{ .mode = ETH_TAKE, .flags = ETH_ALL },
		{ .mode = ETH_DROP, .flags = ETH_ALL } };

	for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
		for (unsigned kinds = 0; kinds < 256; kinds++) {
			struct steer_rule rules[4];

			for (unsigned i = 0; i < 4; i++) {
				unsigned kind = kinds >> 2 * i & 3;

				rules[i] = (struct steer_rule){ kind == 3 ? &some : &modes[kind], i, groups[g][i] };
			}
			run(rules, 4);
			ebpf_assert_accepted(&code);
		}
}

UNIT_CASE(rules_of_a_full_port_fit)
{
	enum { MANY = 64, TOO_MANY = 400 };
	static struct steer_rule rules[TOO_MANY];
	struct dapl_eth_rule rule = { .mode = ETH_DROP };

	memset(&rule.mask, 255, sizeof rule.mask);
	memset(&rule.inner_mask, 255, sizeof rule.inner_mask);
	for (unsigned i = 0; i < TOO_MANY; i++)
		rules[i] = (struct steer_rule){ &rule, 0, i };
	assert_int_equal(run(rules, MANY), TCX_NEXT_PROGRAM);
	ebpf_assert_accepted(&code);
	renew_code();
	assert_int_equal(steer_make(&code, rules, TOO_MANY, EBPF_MAP), E2BIG);
}

UNIT_MAIN(NULL, NULL)
