/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_group.c - what groups over libibverbs have of their own: rules that must say which headers are hashed, tables
 * that are replaced in steps. Runs in the machine (verbs.c); the library that stands in for the driver has its own
 * Toeplitz hash. */
#include "members.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static DAT_ETH_RULE of_version(uint8_t version)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_TAKE, .key.ip_version = version, .mask.ip_version = 0xff };

	return rule;
}

static DAT_ETH_RULE of_protocol(uint8_t version, uint8_t protocol)
{
	DAT_ETH_RULE rule = of_version(version);

	rule.key.protocol = protocol;
	rule.mask.protocol = 0xff;
	return rule;
}

static DAT_ETH_RULE of_no_ip(void)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_TAKE, .key.ether_type = htons(0x88b5), .mask.ether_type = 0xffff };

	return rule;
}

/* As with most adapters, a QP hashes one version of IP, and either TCP or UDP. Together the rules match all
 * frames. */
static void each_rule_is_hashed_by_its_headers(void)
{
	enum { FRAMES = 3000 };
	static const uint8_t protocols[] = { 6, 17, 132, 1 };
	DAT_ETH_GROUP_HANDLE group;
	DAT_ETH_RULE rule;

	setenv("FAKE_ETH", "joint", 1);
	open_members("4096");
	group = make_group();
	for (unsigned i = 0; i < 8; i++) {
		rule = of_protocol(i < 4 ? 4 : 6, protocols[i % 4]);
		add_rule(group, &rule);
	}
	rule = of_no_ip();
	add_rule(group, &rule);
	for (uint32_t i = 0; i < FRAMES; i++) {
		if (i % 1000 == 0) {
			collect_until(i);
			random_table();
			OK(dat_eth_group_set(group, table));
		}
		send_frame(i);
		if (i % 100 == 99)
			collect();
	}
	collect_until(FRAMES);
	wire_close(&w);
}

static void a_rule_of_several_hashes_is_refused(void)
{
	DAT_ETH_RULE any = wire_any(), ipv4 = of_version(4), udp = of_protocol(4, 17), partial = udp;
	DAT_ETH_GROUP_HANDLE ports, addresses;
	DAT_ETH_RULE_HANDLE handle;

	setenv("FAKE_ETH", "joint", 1);
	open_members("64");
	ports = make_group();
	FAILS(dat_eth_rule_add(ports, &any, &handle), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_rule_add(ports, &ipv4, &handle), DAT_MODEL_NOT_SUPPORTED);
	partial.mask.protocol = partial.key.protocol = 0x11;
	FAILS(dat_eth_rule_add(ports, &partial, &handle), DAT_MODEL_NOT_SUPPORTED);
	add_rule(ports, &udp);
	rss.fields = DAT_ETH_RSS_IP;
	addresses = make_group();
	FAILS(dat_eth_rule_add(addresses, &any, &handle), DAT_MODEL_NOT_SUPPORTED);
	ipv4.priority = 1;
	add_rule(addresses, &ipv4);
	wire_close(&w);
}

static void hashes_of_inner_headers_are_refused(void)
{
	DAT_ETH_GROUP_HANDLE group;

	rss.fields |= DAT_ETH_RSS_INNER;
	open_members("64");
	FAILS(dat_eth_group_create(w.ia, MEMBERS, eps, &rss, &group), DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

/* Frames without flow tags cannot be counted for their rule. */
static void a_rule_without_a_flow_tag_is_refused(void)
{
	DAT_ETH_RULE all = { .mode = DAT_ETH_TAKE, .flags = DAT_ETH_ALL };
	DAT_ETH_RULE_HANDLE handle;

	open_members("64");
	FAILS(dat_eth_rule_add(make_group(), &all, &handle), DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

/* Rules of two groups and of an endpoint, each with its own count and tag. */
static void frames_have_the_tag_of_their_groups_rule(void)
{
	DAT_ETH_RULE udp = of_protocol(4, 17), tcp = of_protocol(4, 6), none = of_no_ip();
	DAT_ETH_RULE_HANDLE rules[3];
	DAT_ETH_GROUP_HANDLE first;
	uint8_t frame[200];
	DAT_ETH_FRAME got;
	DAT_UINT64 frames;

	open_members("64");
	for (int i = 0; i < TABLE; i++)
		table[i] = 1;
	first = make_group();
	udp.tag = 11, tcp.tag = 12, none.tag = 13;
	rules[0] = add_rule(first, &udp);
	rules[1] = add_rule(make_group(), &tcp);
	rules[2] = add_rule(eps[1], &none);
	w.ep = eps[1];
	for (DAT_UINT32 i = 0; i < 3; i++) {
		size_t length = i == 0 ? wire_udp(&w, frame, "10.77.0.1", 5000, 20) :
			i == 1 ? wire_tcp(&w, frame, 14, 4, 20) + 20 : wire_frame(&w, frame, 60, 0);

		wire_send(&w, frame, length);
		EXPECT(wire_poll(&w, &got, 1) == 1 && got.tag == 11 + i && got.wire_length == length);
		OK(dat_eth_release(w.ep, 1));
		OK(dat_eth_rule_query(rules[i], NULL, &frames, NULL));
		EXPECT(frames == 1);
	}
	OK(dat_eth_group_free(first));
	wire_udp(&w, frame, "10.77.0.1", 5000, 20);
	wire_send(&w, frame, 62);
	wire_tcp(&w, frame, 14, 4, 20);
	wire_send(&w, frame, 74);
	EXPECT(wire_poll(&w, &got, 1) == 1 && got.tag == 12);
	wire_close(&w);
}

/* --- tables that change -------------------------------------------------------------------- */

enum { LOAD = 4000 };
static bool sent;		/* atomic: all of them */

static void *send_load(void *none)
{
	struct made m = make_frame(0);

	for (uint32_t i = 0; i < LOAD; i++) {
		memcpy(m.frame + SOURCE + 2, &i, sizeof i);
		random_bytes(m.frame + 26, 8);
		wire_send(&w, m.frame, m.length);
	}
	__atomic_store_n(&sent, true, __ATOMIC_RELEASE);
	return none;
}

/* A table is replaced in two steps: frames may be lost between them, but collect() fails if one comes twice. */
static void a_changing_table_gives_no_frame_twice(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_GROUP_HANDLE group;
	pthread_t sender;
	unsigned before;

	open_members("4096");
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(!(attr.caps & DAT_ETH_CAP_RSS_LOSSLESS));
	group = make_group();
	add_rule(group, &any);
	pthread_create(&sender, NULL, send_load, NULL);
	while (!__atomic_load_n(&sent, __ATOMIC_ACQUIRE)) {
		random_table();
		OK(dat_eth_group_set(group, table));
		collect();
	}
	pthread_join(sender, NULL);
	usleep(100000);
	collect();
	before = received;
	EXPECT(before <= LOAD);
	for (uint32_t i = 0; i < 100; i++)
		send_frame(LOAD + i);
	collect_until(before + 100);
	wire_close(&w);
}

/* The table names an endpoint that is freed: its frames are lost, those of the others come. */
static void frames_of_a_member_that_left_are_lost(void)
{
	DAT_ETH_RULE any = wire_any();
	struct made m;
	uint32_t hash;
	unsigned expected = 0;

	open_members("4096");
	add_rule(make_group(), &any);
	OK(dat_ep_free(eps[3]));
	eps[3] = eps[0];		/* for collect(), which asks all */
	for (uint32_t i = 0; i < 400; i++) {
		m = make_frame(i);
		expected += made_owner(&m, &hash) != 3;
		wire_send(&w, m.frame, m.length);
	}
	collect_until(expected);
	EXPECT(expected < 400);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(each_rule_is_hashed_by_its_headers),
		CASE(a_rule_of_several_hashes_is_refused),
		CASE(hashes_of_inner_headers_are_refused),
		CASE(a_rule_without_a_flow_tag_is_refused),
		CASE(frames_have_the_tag_of_their_groups_rule),
		CASE(a_changing_table_gives_no_frame_twice),
		CASE(frames_of_a_member_that_left_are_lost),
	};

	if (wire_on_soft() || !wire_possible())
		return WIRE_SKIPPED;
	members_seed();
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
