/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_filter.c - the kernel's filter for rules (dapl/softeth/filter.c): it accepts each frame that eth_match_rule()
 * does, as few others as it can, and reads nothing behind the end of a frame. The hash of groups is
 * test_filter_hash.c's. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include "dapl/softeth/filter.h"
#include "test/unit/softeth/cbpf.h"
#include "test/unit/softeth/parsed.h"
#include "test/unit/unit.h"

enum { SNAP = 1234, MANY = 200, PORT = 4791 };

static struct sock_filter code[ETH_FILTER_MAX + 1];	/* cbpf_assert_accepted() sees if the last is used */

static uint32_t run(const struct dapl_eth_rule *const *rules, unsigned n, const struct frame *f, size_t length,
		    uint8_t type)
{
	unsigned size = eth_filter_make(code, rules, n, SNAP);

	cbpf_assert_accepted(code, size);
	return cbpf_run(code, size, f->bytes, length, type);
}

/* Whether a frame for this host is let through. */
static bool accepts_cut(const struct dapl_eth_rule *rule, const struct frame *f, size_t length)
{
	uint32_t kept = run(&rule, 1, f, length, PACKET_HOST);

	assert_true(kept == SNAP || !kept);
	return kept;
}

static bool accepts(const struct dapl_eth_rule *rule, const struct frame *f) { return accepts_cut(rule, f, f->length); }

/* The parts of a key that the filter compares one by one. */
#define PART(field, at, size) { offsetof(struct dapl_eth_key, field) + (at), size }
static const struct { size_t offset, size; } parts[] = {
	PART(dst, 0, 4), PART(dst, 4, 2), PART(src, 0, 4), PART(src, 4, 2), PART(ether_type, 0, 2), PART(tos, 0, 1),
	PART(protocol, 0, 1), PART(flow_label, 0, 4), PART(ip_src, 0, 4), PART(ip_src, 4, 4), PART(ip_src, 8, 4),
	PART(ip_src, 12, 4), PART(ip_dst, 0, 4), PART(ip_dst, 4, 4), PART(ip_dst, 8, 4), PART(ip_dst, 12, 4),
	PART(port_src, 0, 2), PART(port_dst, 0, 2),
};
enum { PARTS = sizeof parts / sizeof *parts };

/* A rule for a part of what the frame has. */
static struct dapl_eth_rule rule_of(const struct frame *f, size_t part, uint8_t mask)
{
	const struct dapl_eth_key found = parse(f).outer;
	struct dapl_eth_rule rule = { .mode = ETH_COPY };
	uint8_t *key = (uint8_t *)&rule.key + parts[part].offset, *wanted = (uint8_t *)&rule.mask + parts[part].offset;

	rule.key.ip_version = found.ip_version;
	rule.mask.ip_version = 0xff;
	for (size_t i = 0; i < parts[part].size; i++) {
		wanted[i] = mask;
		key[i] = ((const uint8_t *)&found)[parts[part].offset + i] & mask;
	}
	return rule;
}

/* A key of 0 is not tested, since a field that is cut off is 0, too. */
static bool is_tested(const struct dapl_eth_rule *rule, size_t part)
{
	static const uint8_t none[4];

	return memcmp((const uint8_t *)&rule->key + parts[part].offset, none, parts[part].size) != 0;
}

/* --- fields ------------------------------------------------------------------------------------------- */

/* Bytes that decide which headers there are, so that the filter cannot or need not know all of them: the Ethernet
 * type, the length of the IPv4 header, what is behind the IPv6 header, the place of a fragment; for ports the
 * protocol. */
static bool is_structure(size_t byte, size_t part)
{
	return byte == 12 || byte == 13 || byte == 14 || byte == 20 || byte == 21 ||
	       (byte == 23 && parts[part].offset >= offsetof(struct dapl_eth_key, port_src));
}

UNIT_TEST(frames_of_a_rule_are_accepted_and_others_rejected)
{
	static const uint8_t masks[] = { 0xff, 0xf0, 0x3c };

	for (size_t i = 0; i < 2 * sizeof masks * PARTS; i++) {
		size_t part = i % PARTS;
		struct frame f = frame_over(i / PARTS % 2 ? 4 : 6, IPPROTO_UDP, PORT);
		const struct dapl_eth_rule rule = rule_of(&f, part, masks[i / PARTS / 2]);

		assert_true(accepts(&rule, &f));
		for (size_t bit = 0; bit < 8 * f.length; bit++) {
			struct eth_headers headers;

			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			headers = parse(&f);
			if (eth_match_rule(&rule, &headers))
				assert_true(accepts(&rule, &f));
			else if (is_tested(&rule, part) && !is_structure(bit / 8, part))
				assert_false(accepts(&rule, &f));
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* cbpf_run() fails if a byte behind the end is read. */
UNIT_TEST(cut_frame_is_accepted_only_if_it_may_match)
{
	for (size_t i = 0; i < 2 * PARTS; i++) {
		const struct frame f = frame_over(i / PARTS ? 4 : 6, IPPROTO_UDP, PORT);
		const struct dapl_eth_rule rule = rule_of(&f, i % PARTS, 0xff);

		for (size_t length = 0; length < f.length; length++) {
			const struct eth_headers headers = parse_cut(&f, length);
			bool matches = eth_match_rule(&rule, &headers);

			if (matches || is_tested(&rule, i % PARTS))
				assert_int_equal(accepts_cut(&rule, &f, length), matches);
		}
	}
}

/* Each first byte of the IP header, and each length of the frame. */
UNIT_TEST(unreadable_ip_headers_are_accepted_and_readable_ones_rejected)
{
	for (int version = 4; version <= 6; version += 2) {
		struct frame f = frame_over(version, IPPROTO_UDP, PORT);
		struct dapl_eth_rule rule = { .mode = ETH_COPY };

		rule.key.ether_type = htons(version == 4 ? ETH_P_IP : ETH_P_IPV6);
		rule.mask.ether_type = 0xffff;
		rule.mask.ip_version = 0xff;
		for (unsigned first = 0; first < 256; first++) {
			f.bytes[ETH_HLEN] = (uint8_t)first;
			for (size_t length = 0; length <= f.length; length++) {
				const struct eth_headers headers = parse_cut(&f, length);

				assert_int_equal(accepts_cut(&rule, &f, length), eth_match_rule(&rule, &headers));
			}
		}
		rule.mask.ether_type = htons(0xff00);	/* not a type alone */
		rule.key.ether_type &= htons(0xff00);
		f.bytes[13] ^= 1;
		f.bytes[ETH_HLEN] = version == 4 ? 0x45 : 0x60;
		assert_true(accepts(&rule, &f));
	}
}

UNIT_TEST(ports_are_found_behind_ipv4_options_in_first_fragments_only)
{
	struct frame f = { .length = 0 };
	struct dapl_eth_rule rule = { .mode = ETH_COPY };

	frame_put_ethernet_ipv4(&f, IPPROTO_UDP);
	f.bytes[ETH_HLEN] = 0x46;
	FRAME_PUT(&f, "\x01\x01\x01\x01");
	frame_put_udp(&f, PORT);
	rule.key.ip_version = 4;
	rule.mask.ip_version = 0xff;
	rule.key.port_dst = htons(PORT);
	rule.mask.port_dst = 0xffff;
	assert_true(accepts(&rule, &f));
	f.bytes[20] = 0x20;		/* more fragments */
	assert_true(accepts(&rule, &f));
	f.bytes[21] = 1;		/* and not the first */
	assert_false(accepts(&rule, &f));
}

UNIT_TEST(headers_that_the_filter_does_not_read_are_let_through)
{
	static const uint8_t extensions[] = { IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT, IPPROTO_DSTOPTS };
	static const uint16_t tags[] = { ETH_P_8021Q, ETH_P_8021AD };
	struct frame six = frame_over(6, IPPROTO_UDP, PORT);
	const struct dapl_eth_rule rule = rule_of(&six, PARTS - 1, 0xff), of_protocol = rule_of(&six, 6, 0xff);

	for (size_t i = 0; i < sizeof extensions; i++) {
		struct frame f = six;

		f.bytes[20] = extensions[i];
		assert_true(accepts(&rule, &f));
		assert_true(accepts(&of_protocol, &f));
	}
	six.bytes[20] = IPPROTO_TCP;
	assert_false(accepts(&of_protocol, &six));
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
		struct frame f = six;

		f.bytes[12] = (uint8_t)(tags[i] >> 8);
		f.bytes[13] = (uint8_t)tags[i];
		assert_true(accepts(&rule, &f));
	}
}

UNIT_TEST(rule_for_a_version_rejects_other_types)
{
	const struct frame four = frame_over(4, IPPROTO_UDP, PORT), six = frame_over(6, IPPROTO_UDP, PORT);
	struct dapl_eth_rule rule = { .mode = ETH_COPY };
	struct frame arp = { .length = 0 };

	frame_put_ethernet(&arp, ETH_P_ARP);
	rule.key.ip_version = 4;
	rule.mask.ip_version = 0xff;
	assert_true(accepts(&rule, &four));
	assert_false(accepts(&rule, &six));
	assert_false(accepts(&rule, &arp));
	rule.mask.ip_version = 4;	/* a bit that both versions have */
	assert_true(accepts(&rule, &four));
	assert_true(accepts(&rule, &six));
	rule = (struct dapl_eth_rule){ .mode = ETH_COPY };
	rule.key.ether_type = htons(ETH_P_ARP);
	rule.mask.ether_type = 0xffff;
	assert_true(accepts(&rule, &arp));
	assert_false(accepts(&rule, &four));
}

/* --- directions ------------------------------------------------------------------------------------------ */

UNIT_TEST(direction_and_host_are_those_of_the_rule)
{
	static const struct { uint32_t flags; bool names_dst, other_host, outgoing; } rows[] = {
		{ 0, false, false, false }, { ETH_ALL, false, true, false }, { ETH_EGRESS, false, false, true },
		{ ETH_ALL | ETH_EGRESS, false, true, true }, { 0, true, true, false }, { ETH_EGRESS, true, true, true },
	};
	const struct frame f = frame_over(4, IPPROTO_UDP, PORT);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct dapl_eth_rule of_dst = rule_of(&f, 0, 0xff), none = { .mode = ETH_COPY };
		struct dapl_eth_rule rule = rows[i].names_dst ? of_dst : none;
		const struct dapl_eth_rule *all = &rule;

		rule.flags = rows[i].flags;
		assert_int_equal(run(&all, 1, &f, f.length, PACKET_HOST), SNAP);
		assert_int_equal(run(&all, 1, &f, f.length, PACKET_MULTICAST), SNAP);
		assert_int_equal(run(&all, 1, &f, f.length, PACKET_OTHERHOST), rows[i].other_host ? SNAP : 0);
		assert_int_equal(run(&all, 1, &f, f.length, PACKET_OUTGOING), rows[i].outgoing ? SNAP : 0);
	}
}

/* --- several rules ----------------------------------------------------------------------------------------- */

UNIT_TEST(no_rules_accept_nothing_too_many_accept_all)
{
	const struct frame four = frame_over(4, IPPROTO_UDP, PORT);
	const struct dapl_eth_rule rule = rule_of(&four, PARTS - 1, 0xff);
	const struct dapl_eth_rule *rules[MANY];
	struct frame arp = { .length = 0 };
	unsigned fit = 0;

	frame_put_ethernet(&arp, ETH_P_ARP);
	assert_int_equal(run(NULL, 0, &four, four.length, PACKET_HOST), 0);
	for (unsigned i = 0; i < MANY; i++)
		rules[i] = &rule;
	while (!run(rules, fit + 1, &arp, arp.length, PACKET_HOST))
		fit++;
	assert_in_range(fit, 64, MANY - 2);	/* as many as a port may have, and there is a limit */
	assert_int_equal(run(rules, fit, &four, four.length, PACKET_HOST), SNAP);
	assert_int_equal(run(rules, MANY, &arp, arp.length, PACKET_HOST), SNAP);
}

/* A rule for everything is one instruction, and the program has one of its own. */
UNIT_TEST(program_that_just_fits_is_complete)
{
	static const struct dapl_eth_rule all = { .mode = ETH_COPY, .flags = ETH_ALL | ETH_EGRESS };
	static const struct dapl_eth_rule *rules[ETH_FILTER_MAX];

	for (unsigned i = 0; i < ETH_FILTER_MAX; i++)
		rules[i] = &all;
	assert_int_equal(eth_filter_make(code, rules, ETH_FILTER_MAX - 1, SNAP), ETH_FILTER_MAX);
	cbpf_assert_accepted(code, ETH_FILTER_MAX);
	assert_int_equal(eth_filter_make(code, rules, ETH_FILTER_MAX, SNAP), 1);
	assert_int_equal(code[0].k, SNAP);
}

UNIT_MAIN(NULL, NULL)
