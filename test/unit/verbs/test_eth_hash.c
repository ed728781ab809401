/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_hash.c - which headers a group's rule is hashed by, and the fields of each kind. */
#include "dapl/verbs/eth_hash.h"
#include "test/unit/unit.h"

#define IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define IPV6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define TCP (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define UDP (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define ALL (uint64_t)(IPV4 | IPV6 | TCP | UDP)
#define ADDRESSES (uint64_t)(IPV4 | IPV6)

/* -1: the rule does not say it. */
static struct dapl_eth_rule rule_of(int version, int protocol)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE };

	if (version >= 0) {
		rule.key.ip_version = (uint8_t)version;
		rule.mask.ip_version = 0xff;
	}
	if (protocol >= 0) {
		rule.key.protocol = (uint8_t)protocol;
		rule.mask.protocol = 0xff;
	}
	return rule;
}

static void assert_kind(const struct dapl_eth_rule *rule, uint64_t fields, enum hw_hash_kind expected)
{
	enum hw_hash_kind kind;

	assert_null(hw_hash_kind_of(rule, fields, &kind));
	assert_int_equal(kind, expected);
}

static void assert_none(const struct dapl_eth_rule *rule, uint64_t fields, const char *about)
{
	enum hw_hash_kind kind;
	const char *why = hw_hash_kind_of(rule, fields, &kind);

	assert_non_null(why);
	assert_non_null(strstr(why, about));
}

UNIT_TEST(version_and_protocol_name_the_hash)
{
	static const struct { int version, protocol; enum hw_hash_kind ports, addresses; } rows[] = {
		{ 4, 6, HASH_IPV4_TCP, HASH_IPV4 }, { 4, 17, HASH_IPV4_UDP, HASH_IPV4 },
		{ 4, 132, HASH_IPV4, HASH_IPV4 },
		{ 6, 6, HASH_IPV6_TCP, HASH_IPV6 }, { 6, 17, HASH_IPV6_UDP, HASH_IPV6 },
		{ 6, 58, HASH_IPV6, HASH_IPV6 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dapl_eth_rule rule = rule_of(rows[i].version, rows[i].protocol);

		assert_kind(&rule, ALL, rows[i].ports);
		assert_kind(&rule, ADDRESSES, rows[i].addresses);
	}
}

UNIT_TEST(an_ethernet_type_names_the_version)
{
	static const struct { uint16_t type; enum hw_hash_kind kind; } rows[] = {
		{ 0x0800, HASH_IPV4 }, { 0x86dd, HASH_IPV6 }, { 0x88b5, HASH_NONE }, { 0x8847, HASH_NONE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dapl_eth_rule rule = rule_of(-1, -1);

		rule.key.ether_type = htons(rows[i].type);
		rule.mask.ether_type = 0xffff;
		assert_kind(&rule, ADDRESSES, rows[i].kind);
		rule.mask.ether_type = htons(0xff00);
		assert_none(&rule, ADDRESSES, "ip_version");
	}
}

UNIT_TEST(a_tunnel_names_the_protocol)
{
	struct dapl_eth_rule rule = rule_of(4, -1);

	rule.mask.tunnel = 0xffffffff;
	rule.key.tunnel = ETH_VXLAN;
	assert_kind(&rule, ALL, HASH_IPV4_UDP);
	rule.key.tunnel = ETH_NVGRE;
	assert_kind(&rule, ALL, HASH_IPV4);
	rule.key.tunnel = ETH_GRE;
	assert_kind(&rule, ALL, HASH_IPV4);
}

UNIT_TEST(a_rule_that_names_no_such_tunnel_has_its_own_protocol)
{
	struct dapl_eth_rule rule = rule_of(4, 17);

	rule.key.tunnel = ETH_GRE;	/* not compared */
	assert_kind(&rule, ALL, HASH_IPV4_UDP);
	rule.mask.tunnel = 0xffffffff;
	rule.key.tunnel = ETH_MPLS;
	assert_kind(&rule, ALL, HASH_IPV4_UDP);
}

UNIT_TEST(rules_of_several_hashes_have_none)
{
	struct dapl_eth_rule any = rule_of(-1, -1), ipv4 = rule_of(4, -1), partial = rule_of(4, 6);

	assert_none(&any, ADDRESSES, "ip_version");
	assert_none(&ipv4, ALL, "protocol");
	assert_kind(&ipv4, ADDRESSES, HASH_IPV4);
	partial.mask.protocol = 0x0f;
	assert_none(&partial, ALL, "protocol");
	partial.mask.ip_version = 4;
	assert_none(&partial, ALL, "ip_version");
}

UNIT_TEST(each_hash_has_the_fields_of_its_headers)
{
	assert_int_equal(hw_hash_fields(HASH_JOINT, ALL), ALL);
	assert_int_equal(hw_hash_fields(HASH_JOINT, ADDRESSES), ADDRESSES);
	assert_int_equal(hw_hash_fields(HASH_NONE, ALL), 0);
	assert_int_equal(hw_hash_fields(HASH_IPV4, ALL), IPV4);
	assert_int_equal(hw_hash_fields(HASH_IPV4_TCP, ALL), IPV4 | TCP);
	assert_int_equal(hw_hash_fields(HASH_IPV4_UDP, ALL), IPV4 | UDP);
	assert_int_equal(hw_hash_fields(HASH_IPV6, ALL), IPV6);
	assert_int_equal(hw_hash_fields(HASH_IPV6_TCP, ALL), IPV6 | TCP);
	assert_int_equal(hw_hash_fields(HASH_IPV6_UDP, ALL), IPV6 | UDP);
}

UNIT_MAIN(NULL, NULL)
