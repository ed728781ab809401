/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_filter_rules.c - the rules that datcap makes of a capture filter: which part of the filter they express, and
 * that every frame that libpcap lets through matches one of them, also frames with odd bytes and frames that are cut
 * off. */
#include "tools/datcap/filter_rules.h"
#include <pcap/pcap.h>
#include <linux/if_ether.h>
#include "dapl/softeth/match.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/unit.h"

enum { FRAMES = 20000, SNAP = 65535 };

static const struct row {
	const char *filter, *expressed, *left;
	unsigned rules;
} rows[] = {
	{ "udp port 53", "udp port 53", "", 6 },
	{ "udp src port 12345", "udp src port 12345", "", 4 },
	{ "sctp dst port 53", "sctp dst port 53", "", 4 },
	{ "port 53", "port 53", "", 6 },
	{ "dst port 4791 and tcp", "dst port 4791 and tcp", "", 4 },
	{ "udp", "udp", "", 4 },
	{ "icmp", "icmp", "", 2 },
	{ "icmp6", "icmp6", "", 2 },
	{ "ip", "ip", "", 1 },
	{ "ip6", "ip6", "", 1 },
	{ "arp", "arp", "", 1 },
	{ "rarp", "rarp", "", 1 },
	{ "ip proto 17", "ip proto 17", "", 2 },
	{ "ip6 proto 6", "ip6 proto 6", "", 2 },
	{ "ether proto 0x1234", "ether proto 0x1234", "", 1 },
	{ "ether host 02:00:00:00:00:01", "ether host 02:00:00:00:00:01", "", 2 },
	{ "ether src 02:00:00:00:00:02", "ether src 02:00:00:00:00:02", "", 1 },
	{ "host 10.0.0.1", "host 10.0.0.1", "", 5 },
	{ "src 10.0.0.1", "src 10.0.0.1", "", 4 },
	{ "ip dst host 10.0.0.2", "ip dst host 10.0.0.2", "", 2 },
	{ "net 10.0.0.0/8", "net 10.0.0.0/8", "", 5 },
	{ "dst net 10.0.0.2/31", "dst net 10.0.0.2/31", "", 4 },
	{ "host fd00::1", "host fd00::1", "", 3 },
	{ "ip6 src net fd00::/16", "ip6 src net fd00::/16", "", 2 },
	{ "host 10.0.0.1 and udp port 53", "host 10.0.0.1 and udp port 53", "", 5 },
	{ "ether dst 02:00:00:00:00:01&&src host 10.0.0.1 and udp",
		"ether dst 02:00:00:00:00:01 and src host 10.0.0.1 and udp", "", 2 },
	{ "ip and ip[1] != 0", "ip", "ip[1] != 0", 1 },
	{ "udp and not port 53 and greater 30", "udp", "not port 53 and greater 30", 4 },
	{ "(udp or tcp) and dst host 10.0.0.2", "dst host 10.0.0.2", "(udp or tcp)", 4 },
	{ "! icmp && udp", "udp", "! icmp", 4 },
	{ "not udp and ip", "ip", "not udp", 1 },
	{ "host 10.0.0.1 and 10.0.0.2", "host 10.0.0.1", "10.0.0.2", 5 },
	/* nothing */
	{ "udp or arp", "", "udp or arp", 0 },
	{ "ip and udp or arp", "", "ip and udp or arp", 0 },
	{ "ip && udp || arp", "", "ip && udp || arp", 0 },
	{ "src and dst port 53", "", "src and dst port 53", 0 },
	{ "not src and dst port 53", "", "not src and dst port 53", 0 },
	{ "(udp)", "", "(udp)", 0 },
	{ "vlan", "", "vlan", 0 },
	{ "vlan and udp", "", "vlan and udp", 0 },
	{ "(vlan 5) and udp", "", "(vlan 5) and udp", 0 },
	{ "ether src 02:00:00:00:00:02 and vlan 5 and ip", "ether src 02:00:00:00:00:02", "vlan 5 and ip", 1 },
	{ "mpls and ip", "", "mpls and ip", 0 },
	{ "ip6 proto 44", "", "ip6 proto 44", 0 },
	{ "ether proto 0x8100", "", "ether proto 0x8100", 0 },
	{ "ether proto 40", "", "ether proto 40", 0 },
	{ "portrange 50-60", "", "portrange 50-60", 0 },
	{ "port 065", "", "port 065", 0 },
	{ "net 10", "", "net 10", 0 },
	{ "tcp[13] & 2 != 0", "", "tcp[13] & 2 != 0", 0 },
	{ "arp and udp", "", "arp and udp", 0 },
	{ "", "", "", 0 },
};

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Headers that the filters ask for; every other frame has some bytes changed, or is cut off. */
static struct frame random_frame(void)
{
	static const uint16_t types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_ARP, ETH_P_RARP, 0x1234,
		ETH_P_MPLS_UC, 40 };
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP, IPPROTO_ICMPV6,
		IPPROTO_HOPOPTS, IPPROTO_FRAGMENT };
	static const uint16_t ports[] = { 53, 4791, 12345, 1 };
	const unsigned kind = random_below(10) % (sizeof types / sizeof *types);
	struct frame f = { .length = 0 };

	frame_put_ethernet(&f, types[kind]);
	if (types[kind] == ETH_P_8021Q)
		FRAME_PUT(&f, "\x00\x05\x08\x00");
	if (types[kind] == ETH_P_ARP || types[kind] == ETH_P_RARP)
		FRAME_PUT(&f, "\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x02\x0a\x00\x00\x01"
			      "\x02\x00\x00\x00\x00\x01\x0a\x00\x00\x02");
	else if (kind == 1)
		frame_put_ipv6(&f, protocols[random_below(sizeof protocols)]);
	else
		frame_put_ipv4(&f, protocols[random_below(sizeof protocols)]);
	if (kind == 1 && f.bytes[20] == IPPROTO_FRAGMENT) {
		FRAME_PUT(&f, "\x00\x00\x00\x01\x00\x00\x00\x01");
		f.bytes[54] = protocols[random_below(5)];
	}
	frame_put_udp(&f, ports[random_below(4)]);
	FRAME_PUT(&f, "\x08\x00\x00\x00\x01\x02\x03\x00");
	if (random_below(2))
		return f;
	for (unsigned n = random_below(3); n; n--)
		f.bytes[random_below((uint32_t)f.length)] = (uint8_t)random_below(256);
	if (!random_below(4))
		f.length = ETH_HLEN + random_below((uint32_t)f.length - ETH_HLEN);
	return f;
}

static struct dapl_eth_rule rule_of(const DAT_ETH_RULE *from)
{
	struct dapl_eth_rule rule = { .mode = 0 };

	memcpy(&rule.key, &from->key, sizeof rule.key);
	memcpy(&rule.mask, &from->mask, sizeof rule.mask);
	return rule;
}

static bool matches(const struct filter_rules *made, const struct frame *f)
{
	struct eth_headers headers;
	bool is = false;

	eth_match_parse(f->bytes, f->length, (struct eth_tag){ 0, 0 }, &headers);
	for (unsigned i = 0; i < made->n; i++) {
		const struct dapl_eth_rule rule = rule_of(&made->rules[i]);

		is |= eth_match_rule(&rule, &headers);
	}
	return is;
}

/* The exceptions of filter_rules.c. */
static bool ends_within_next_header(const struct frame *f)
{
	const bool is_ipv4 = f->bytes[12] == 8, is_fragment = !is_ipv4 && f->bytes[20] == IPPROTO_FRAGMENT;
	const size_t next = is_ipv4 ? 14 + (f->bytes[14] & 15) * 4u : 54;

	return f->length > next && f->length < next + (is_fragment ? 8 : 4);
}

UNIT_TEST(part_of_each_filter_is_expressed)
{
	struct filter_rules made;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		filter_rules_make(&made, rows[i].filter, true);
		assert_string_equal(made.expressed, rows[i].expressed);
		assert_string_equal(made.left, rows[i].left);
		assert_int_equal(made.n, rows[i].rules);
	}
}

UNIT_TEST(frames_that_pass_a_filter_match_its_rules)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, SNAP);
	struct bpf_program program;
	struct filter_rules made;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned passed = 0, rejected = 0;

		filter_rules_make(&made, rows[i].filter, true);
		if (!made.n)
			continue;
		assert_int_equal(pcap_compile(dead, &program, rows[i].filter, 1, PCAP_NETMASK_UNKNOWN), 0);
		for (int k = 0; k < FRAMES; k++) {
			const struct frame f = random_frame();
			const struct pcap_pkthdr header = { .caplen = (uint32_t)f.length, .len = (uint32_t)f.length };
			const bool passes = pcap_offline_filter(&program, &header, f.bytes),
				   is_matched = matches(&made, &f);

			if (passes && !is_matched && !ends_within_next_header(&f))
				fail_msg("%s: frame %d of %zu bytes matches no rule", rows[i].filter, k, f.length);
			passed += passes;
			rejected += !is_matched;
		}
		if (!passed || !rejected)
			fail_msg("%s: %u frames pass, %u match no rule", rows[i].filter, passed, rejected);
		pcap_freecode(&program);
	}
	pcap_close(dead);
}

/* Frames to other stations would match a rule for a destination. */
UNIT_TEST(destination_stays_in_the_filter_without_promiscuity)
{
	static const char filter[] = "ether dst 02:00:00:00:00:01 and ether src 02:00:00:00:00:02";
	struct filter_rules made;

	filter_rules_make(&made, filter, false);
	assert_string_equal(made.expressed, "ether src 02:00:00:00:00:02");
	assert_string_equal(made.left, "ether dst 02:00:00:00:00:01");
}

UNIT_TEST(long_filter_is_left_whole)
{
	char filter[4 * FILTER_TEXT_MAX] = "udp";
	struct filter_rules made;

	while (strlen(filter) <= FILTER_TEXT_MAX)
		strcat(filter, "&&udp");
	filter_rules_make(&made, filter, true);
	assert_int_equal(made.n, 0);
	filter[FILTER_TEXT_MAX / 2 - FILTER_TEXT_MAX / 2 % 5 - 2] = 0;	/* "udp&&...udp" */
	filter_rules_make(&made, filter, true);
	assert_int_equal(made.n, 4);
	assert_true(strlen(made.expressed) > strlen(filter));
}

UNIT_MAIN(NULL, NULL)
