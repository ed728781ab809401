/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_flow.c - flow specifications of rules: each field alone, masks, tunnels, inner headers, types, and rules
 * that flows cannot express. */
#include "dapl/verbs/eth_flow.h"
#include "test/unit/unit.h"

static struct dapl_eth_rule rule;
static struct hw_flow flow;

UNIT_FIXTURE(begin)
{
	memset(&rule, 0, sizeof rule);
	rule.mode = ETH_TAKE;
}

/* A field with a full mask. */
static void set(size_t offset, bool inner, const void *value, size_t n)
{
	memcpy((uint8_t *)(inner ? &rule.inner_key : &rule.key) + offset, value, n);
	memset((uint8_t *)(inner ? &rule.inner_mask : &rule.mask) + offset, 0xff, n);
}
#define FIELD(member, inner, ...) do { \
		const __typeof__(rule.key.member) v_ = __VA_ARGS__; \
		set(offsetof(struct dapl_eth_key, member), inner, &v_, sizeof v_); \
	} while (0)
#define BYTES(member, inner, text) set(offsetof(struct dapl_eth_key, member), inner, text, sizeof text - 1)

static void build(uint32_t tag)
{
	const char *why = hw_flow_build(&rule, 1, tag, &flow);

	if (why)
		fail_msg("refused: %s", why);
}

static void refused(const char *part)
{
	const char *why = hw_flow_build(&rule, 1, 0, &flow);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("refused because \"%s\", expected \"%s\"", why, part);
}

/* The n-th specification, which is of this type. The sizes lead to it, and all of them to the end. */
static const void *spec(int n, int type)
{
	const uint8_t *at = flow.specs, *end = (const uint8_t *)&flow.attr + flow.attr.size;
	const void *found = NULL;
	int count = 0;

	for (; at < end; at += ((const struct hw_spec_head *)at)->size, count++) {
		assert_true(((const struct hw_spec_head *)at)->size);
		if (count == n)
			found = at;
	}
	assert_ptr_equal(at, end);
	assert_int_equal(count, flow.attr.num_of_specs);
	assert_non_null(found);
	assert_int_equal(((const struct hw_spec_head *)found)->type, type);
	return found;
}

static void specs(int n) { assert_int_equal(flow.attr.num_of_specs, n); }

/* A filter must have exactly these bytes of value and mask; all others are 0. */
static void only(const void *s, size_t at, size_t filter, size_t offset, const void *value, size_t n)
{
	const uint8_t *val = (const uint8_t *)s + at, *mask = val + filter;

	for (size_t i = 0; i < filter; i++) {
		bool here = i >= offset && i < offset + n;

		assert_int_equal(mask[i], here ? 0xff : 0);
		assert_int_equal(val[i], here ? ((const uint8_t *)value)[i - offset] : 0);
	}
}
#define ONLY(s, filter, member, value, n) only(s, offsetof(struct { uint8_t head[6]; struct filter f; }, f), \
	sizeof(struct filter), offsetof(struct filter, member), value, n)

UNIT_TEST_WITH(a_rule_without_fields_is_one_empty_header, begin, NULL)
{
	const struct ibv_flow_spec_eth *eth;

	rule.priority = 7;
	build(0);
	specs(1);
	eth = spec(0, IBV_FLOW_SPEC_ETH);
	ONLY(eth, ibv_flow_eth_filter, dst_mac, "", 0);
	assert_int_equal(eth->size, sizeof *eth);
	assert_int_equal(flow.attr.type, IBV_FLOW_ATTR_NORMAL);
	assert_int_equal(flow.attr.priority, 7);
	assert_int_equal(flow.attr.port, 1);
	assert_int_equal(flow.attr.flags, 0);
	assert_int_equal(flow.attr.comp_mask, 0);
	assert_false(flow.partial);
}

UNIT_TEST(each_ethernet_field_is_matched_alone)
{
	begin(state);
	BYTES(dst, false, "\x01\x02\x03\x04\x05\x06");
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, dst_mac, "\x01\x02\x03\x04\x05\x06", 6);
	begin(state);
	BYTES(src, false, "\x01\x02\x03\x04\x05\x06");
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, src_mac, "\x01\x02\x03\x04\x05\x06", 6);
	begin(state);
	BYTES(ether_type, false, "\x88\xb5");
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, ether_type, "\x88\xb5", 2);
	begin(state);
	BYTES(vlan_tci, false, "\x20\x05");
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, vlan_tag, "\x20\x05", 2);
	specs(1);
}

UNIT_TEST_WITH(a_vlan_id_is_a_full_mask, begin, NULL)
{
	const struct ibv_flow_spec_eth *eth;

	rule.key.vlan_tci = htons(5);
	rule.mask.vlan_tci = htons(0xfff);
	build(0);
	eth = spec(0, IBV_FLOW_SPEC_ETH);
	assert_int_equal(eth->val.vlan_tag, htons(5));
	assert_int_equal(eth->mask.vlan_tag, htons(0xfff));
	assert_false(flow.partial);
}

static void ip(void **state, uint8_t version)
{
	begin(state);
	FIELD(ip_version, false, version);
}

UNIT_TEST(each_ipv4_field_is_matched_alone)
{
	ip(state, 4);
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, ether_type, "\x08\x00", 2);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, proto, "", 0);
	ip(state, 4);
	BYTES(ip_src, false, "\x0a\x00\x00\x01");
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, src_ip, "\x0a\x00\x00\x01", 4);
	ip(state, 4);
	BYTES(ip_dst, false, "\xef\x01\x02\x03\0\0\0\0\0\0\0\0\0\0\0\0");
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, dst_ip, "\xef\x01\x02\x03", 4);
	ip(state, 4);
	FIELD(tos, false, 0x28);
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, tos, "\x28", 1);
	ip(state, 4);
	FIELD(protocol, false, IPPROTO_ICMP);
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, proto, "\x01", 1);
	specs(2);
}

UNIT_TEST(each_ipv6_field_is_matched_alone)
{
	static const char address[] = "\xfd\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e";
	const struct ibv_flow_spec_ipv6 *v6;

	ip(state, 6);
	BYTES(ip_src, false, address);
	build(0);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, ether_type, "\x86\xdd", 2);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, src_ip, address, 16);
	ip(state, 6);
	BYTES(ip_dst, false, address);
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, dst_ip, address, 16);
	ip(state, 6);
	FIELD(tos, false, 0x28);
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, traffic_class, "\x28", 1);
	ip(state, 6);
	FIELD(protocol, false, IPPROTO_ICMPV6);
	build(0);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, next_hdr, "\x3a", 1);
	ip(state, 6);
	FIELD(flow_label, false, htonl(0xabcde));
	build(0);
	v6 = spec(1, IBV_FLOW_SPEC_IPV6);
	assert_int_equal(v6->val.flow_label, htonl(0xabcde));
	assert_int_equal(v6->mask.flow_label, htonl(0xfffff));	/* the field has 20 bits */
	assert_false(flow.partial);
}

UNIT_TEST(each_port_is_matched_alone)
{
	for (int tcp = 0; tcp < 2; tcp++)
		for (int dst = 0; dst < 2; dst++) {
			int type = tcp ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP;

			ip(state, dst ? 4 : 6);
			FIELD(protocol, false, tcp ? IPPROTO_TCP : IPPROTO_UDP);
			if (dst) {
				BYTES(port_dst, false, "\x12\x34");
				build(0);
				ONLY(spec(2, type), ibv_flow_tcp_udp_filter, dst_port, "\x12\x34", 2);
			} else {
				BYTES(port_src, false, "\x12\x34");
				build(0);
				ONLY(spec(2, type), ibv_flow_tcp_udp_filter, src_port, "\x12\x34", 2);
			}
			specs(3);
		}
}

UNIT_TEST(partial_masks_are_told)
{
	static const size_t fields[] = {
		offsetof(struct dapl_eth_key, dst),      offsetof(struct dapl_eth_key, src),
		offsetof(struct dapl_eth_key, ip_src),   offsetof(struct dapl_eth_key, ip_dst),
		offsetof(struct dapl_eth_key, tos),      offsetof(struct dapl_eth_key, port_src),
		offsetof(struct dapl_eth_key, port_dst), offsetof(struct dapl_eth_key, vlan_tci)
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		ip(state, 4);
		FIELD(protocol, false, IPPROTO_UDP);
		build(0);
		assert_false(flow.partial);
		((uint8_t *)&rule.key)[fields[i]] = 0x40;
		((uint8_t *)&rule.mask)[fields[i]] = 0xc0;
		build(0);
		assert_true(flow.partial);
	}
	ip(state, 6);
	rule.key.flow_label = rule.mask.flow_label = htonl(0x80000);
	build(0);
	assert_true(flow.partial);
	ip(state, 4);
	rule.mask.ether_type = rule.key.ether_type = htons(0x0800);
	build(0);		/* says no more than ip_version */
	assert_false(flow.partial);
}

UNIT_TEST(a_vxlan_rule_with_inner_headers)
{
	const struct ibv_flow_spec_tunnel *tunnel;
	const struct ibv_flow_spec_eth *inner;

	ip(state, 4);
	FIELD(tunnel, false, ETH_VXLAN);
	FIELD(tunnel_id, false, htonl(0x123456));
	BYTES(dst, true, "\x01\x02\x03\x04\x05\x06");
	FIELD(ip_version, true, 6);
	FIELD(protocol, true, IPPROTO_TCP);
	BYTES(port_dst, true, "\x00\x50");
	build(9);
	specs(8);
	ONLY(spec(0, IBV_FLOW_SPEC_ETH), ibv_flow_eth_filter, ether_type, "\x08\x00", 2);
	ONLY(spec(1, IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, proto, "\x11", 1);
	ONLY(spec(2, IBV_FLOW_SPEC_UDP), ibv_flow_tcp_udp_filter, dst_port, "\x12\xb5", 2);
	tunnel = spec(3, IBV_FLOW_SPEC_VXLAN_TUNNEL);
	assert_int_equal(tunnel->val.tunnel_id, htonl(0x123456));
	assert_int_equal(tunnel->mask.tunnel_id, htonl(0xffffff));	/* drivers refuse more than 24 bits */
	inner = spec(4, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH);
	assert_memory_equal(inner->val.dst_mac, "\x01\x02\x03\x04\x05\x06", 6);
	ONLY(spec(5, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, next_hdr, "\x06", 1);
	ONLY(spec(6, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_TCP), ibv_flow_tcp_udp_filter, dst_port, "\x00\x50", 2);
	assert_int_equal(((const struct ibv_flow_spec_action_tag *)spec(7, IBV_FLOW_SPEC_ACTION_TAG))->tag_id, 9);
	assert_true(flow.tagged);
	assert_false(flow.partial);
}

UNIT_TEST(nvgre_and_gre_are_matched_by_the_same_key)
{
	const struct ibv_flow_spec_gre *gre;

	ip(state, 4);
	FIELD(tunnel, false, ETH_NVGRE);
	FIELD(tunnel_id, false, htonl(0x123456));
	build(0);
	specs(3);
	gre = spec(2, IBV_FLOW_SPEC_GRE);
	assert_int_equal(gre->val.protocol, htons(0x6558));
	assert_int_equal(gre->val.key, htonl(0x12345600));	/* the VSID is in front of the flow id */
	assert_int_equal(gre->mask.key, htonl(0xffffff00));
	assert_int_equal(gre->mask.c_ks_res0_ver, htons(0x2000));
	assert_false(flow.partial);
	ip(state, 6);
	FIELD(tunnel, false, ETH_GRE);
	FIELD(tunnel_id, false, htonl(0x12345678));
	FIELD(ip_version, true, 4);
	BYTES(ip_src, true, "\x0a\x00\x00\x01");
	build(0);
	specs(4);	/* no Ethernet header within */
	ONLY(spec(1, IBV_FLOW_SPEC_IPV6), ibv_flow_ipv6_filter, next_hdr, "\x2f", 1);
	gre = spec(2, IBV_FLOW_SPEC_GRE);
	assert_int_equal(gre->val.protocol, htons(0x0800));
	assert_int_equal(gre->val.key, htonl(0x12345678));
	assert_int_equal(gre->mask.key, 0xffffffff);
	ONLY(spec(3, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_IPV4_EXT), ibv_flow_ipv4_ext_filter, src_ip,
	     "\x0a\x00\x00\x01", 4);
}

UNIT_TEST(mpls_labels_are_matched)
{
	const struct ibv_flow_spec_mpls *m;

	begin(state);
	FIELD(tunnel, false, ETH_MPLS);
	FIELD(tunnel_id, false, htonl(0x12345));
	refused("ether_type");
	FIELD(ether_type, false, htons(0x8847));
	build(0);
	specs(2);
	m = spec(1, IBV_FLOW_SPEC_MPLS);
	assert_int_equal(m->val.label, htonl(0x12345000));	/* above class, bottom of stack and time to live */
	assert_int_equal(m->mask.label, htonl(0xfffff000));
}

UNIT_TEST(modes_and_flags_choose_the_type)
{
	begin(state);
	rule.flags = ETH_ALL;
	build(3);
	assert_int_equal(flow.attr.type, IBV_FLOW_ATTR_ALL_DEFAULT);
	specs(0);
	assert_false(flow.tagged);
	rule.flags = ETH_ALL_MULTICAST;
	build(3);
	assert_int_equal(flow.attr.type, IBV_FLOW_ATTR_MC_DEFAULT);
	rule.mode = ETH_COPY;
	rule.flags = ETH_ALL | ETH_EGRESS;
	build(3);
	assert_int_equal(flow.attr.type, IBV_FLOW_ATTR_SNIFFER);
	assert_int_equal(flow.attr.flags, 0);
	rule.flags = ETH_ALL;
	build(3);
	assert_int_equal(flow.attr.type, IBV_FLOW_ATTR_NORMAL);
	assert_int_equal(flow.attr.flags, IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	rule.mode = ETH_DROP;
	build(3);
	specs(2);
	spec(1, IBV_FLOW_SPEC_ACTION_DROP);
	assert_false(flow.tagged);
}

UNIT_TEST(what_flows_cannot_express_is_refused)
{
	begin(state);
	FIELD(tos, false, 4);
	refused("ip_version");
	ip(state, 5);
	refused("ip_version");
	ip(state, 4);
	FIELD(flow_label, false, htonl(1));
	refused("that version");
	ip(state, 4);
	FIELD(ether_type, false, htons(0x86dd));
	refused("exclude");
	ip(state, 4);
	FIELD(fragment, false, 0);
	refused("fragments");
	ip(state, 4);
	FIELD(port_dst, false, htons(80));
	refused("TCP or UDP");
	FIELD(protocol, false, IPPROTO_SCTP);
	refused("TCP or UDP");
	begin(state);
	FIELD(vlan_tci, false, 0);
	refused("VLAN");
	ip(state, 4);
	FIELD(tunnel, false, ETH_GENEVE);
	refused("no specification");
	ip(state, 4);
	FIELD(tunnel, false, ETH_NO_TUNNEL);
	refused("kind of tunnel");
	begin(state);
	BYTES(dst, true, "\x01\x02\x03\x04\x05\x06");
	refused("kind of tunnel");
	ip(state, 4);
	FIELD(tunnel, false, ETH_GRE);
	refused("NVGRE");
	FIELD(ip_version, true, 4);
	FIELD(tunnel_id, false, 0);
	refused("without a key");
	ip(state, 4);
	FIELD(tunnel, false, ETH_VXLAN);
	FIELD(protocol, false, IPPROTO_TCP);
	refused("not those of the tunnel");
	begin(state);
	FIELD(tunnel, false, ETH_VXLAN);
	refused("ip_version");
	ip(state, 4);
	FIELD(tunnel, false, ETH_VXLAN);
	FIELD(tunnel, true, ETH_VXLAN);
	refused("within a tunnel");
	begin(state);
	rule.priority = 65536;
	refused("priority");
	begin(state);
	rule.mode = ETH_COPY;
	rule.flags = ETH_EGRESS;
	refused("outgoing");
}

UNIT_MAIN(NULL, NULL)
