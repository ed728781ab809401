/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_frames.c - what a NIC does with frames, for eth.c: steers them by flow specifications, fills in and verifies
 * checksums, cuts messages. It works on bytes and shares nothing with the library. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <linux/if_packet.h>
#include <string.h>
#include "eth.h"
#include "test/packet_tag.h"

/* --- flows: what drivers want of them ------------------------------------------------------ */

static size_t size_of(int type)
{
	switch (type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: return sizeof(struct ibv_flow_spec_eth);
	case IBV_FLOW_SPEC_IPV4_EXT: return sizeof(struct ibv_flow_spec_ipv4_ext);
	case IBV_FLOW_SPEC_IPV6: return sizeof(struct ibv_flow_spec_ipv6);
	case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP: return sizeof(struct ibv_flow_spec_tcp_udp);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL: return sizeof(struct ibv_flow_spec_tunnel);
	case IBV_FLOW_SPEC_GRE: return sizeof(struct ibv_flow_spec_gre);
	case IBV_FLOW_SPEC_MPLS: return sizeof(struct ibv_flow_spec_mpls);
	case IBV_FLOW_SPEC_ACTION_TAG: return sizeof(struct ibv_flow_spec_action_tag);
	case IBV_FLOW_SPEC_ACTION_DROP: return sizeof(struct ibv_flow_spec_action_drop);
	default: fake_wrong("flow specification of type 0x%x", type);
	}
}

/* Value and mask follow the header of a specification, aligned. */
static size_t filter_offset(int type)
{
	switch (type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: return offsetof(struct ibv_flow_spec_eth, val);
	case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP: return offsetof(struct ibv_flow_spec_tcp_udp, val);
	default: return offsetof(struct ibv_flow_spec_ipv6, val);
	}
}

static size_t filter_size(int type)
{
	switch (type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: return sizeof(struct ibv_flow_eth_filter);
	case IBV_FLOW_SPEC_IPV4_EXT: return sizeof(struct ibv_flow_ipv4_ext_filter);
	case IBV_FLOW_SPEC_IPV6: return sizeof(struct ibv_flow_ipv6_filter);
	case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP: return sizeof(struct ibv_flow_tcp_udp_filter);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL: return sizeof(struct ibv_flow_tunnel_filter);
	case IBV_FLOW_SPEC_GRE: return sizeof(struct ibv_flow_gre_filter);
	case IBV_FLOW_SPEC_MPLS: return sizeof(struct ibv_flow_mpls_filter);
	default: return 0;
	}
}

/* The kernel requires that a layer comes behind the one below it. */
static int rank_of(int type)
{
	int inner = type & IBV_FLOW_SPEC_INNER ? 100 : 0;

	switch (type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: return 1 + inner;
	case IBV_FLOW_SPEC_IPV4_EXT: case IBV_FLOW_SPEC_IPV6: return 2 + inner;
	case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP: return 3 + inner;
	case IBV_FLOW_SPEC_VXLAN_TUNNEL: case IBV_FLOW_SPEC_GRE: case IBV_FLOW_SPEC_MPLS: return 50;
	default: return 1000;
	}
}

static void check_bits(const struct ibv_flow_spec *spec)
{
	const uint8_t *value = (const uint8_t *)spec + filter_offset(spec->hdr.type);
	size_t n = filter_size(spec->hdr.type);

	for (size_t i = 0; i < n; i++)
		CHECK(!(value[i] & ~value[n + i]));
	if ((int)spec->hdr.type == IBV_FLOW_SPEC_VXLAN_TUNNEL)
		CHECK(ntohl(spec->tunnel.val.tunnel_id) < 1 << 24 && ntohl(spec->tunnel.mask.tunnel_id) < 1 << 24);
	if ((spec->hdr.type & ~IBV_FLOW_SPEC_INNER) == IBV_FLOW_SPEC_IPV6)
		CHECK(ntohl(spec->ipv6.mask.flow_label) < 1 << 20);
	if ((int)spec->hdr.type == IBV_FLOW_SPEC_ACTION_TAG)
		CHECK(spec->flow_tag.tag_id && spec->flow_tag.tag_id < 1 << 24);
}

static const struct ibv_flow_spec *first_spec(const struct ibv_flow_attr *attr)
{
	return (const struct ibv_flow_spec *)(attr + 1);
}

static const struct ibv_flow_spec *next_spec(const struct ibv_flow_spec *spec)
{
	return (const struct ibv_flow_spec *)((const uint8_t *)spec + spec->hdr.size);
}

void fake_check_flow(const struct ibv_flow_attr *attr)
{
	const struct ibv_flow_spec *spec = first_spec(attr);
	size_t size = sizeof *attr;
	int rank = 0;

	CHECK(!attr->comp_mask && attr->port == 1);
	CHECK(!(attr->flags & ~IBV_FLOW_ATTR_FLAGS_DONT_TRAP));
	if (attr->type != IBV_FLOW_ATTR_NORMAL)
		CHECK(!attr->num_of_specs && !attr->flags);
	else
		CHECK(attr->num_of_specs && (int)spec->hdr.type == IBV_FLOW_SPEC_ETH);
	for (int i = 0; i < attr->num_of_specs; i++, spec = next_spec(spec)) {
		CHECK(spec->hdr.size == size_of(spec->hdr.type));
		CHECK(rank_of(spec->hdr.type) > rank);
		check_bits(spec);
		rank = rank_of(spec->hdr.type);
		size += spec->hdr.size;
	}
	CHECK(size == attr->size);
}

static bool is_uniform(const void *mask, size_t n)
{
	const uint8_t *m = mask;

	for (size_t i = 0; i < n; i++)
		if (m[i] != m[0] || (m[i] && m[i] != 0xff))
			return false;
	return true;
}

bool fake_flow_is_partial(const struct ibv_flow_attr *attr)
{
	const struct ibv_flow_spec *spec = first_spec(attr);

	for (int i = 0; i < attr->num_of_specs; i++, spec = next_spec(spec))
		switch (spec->hdr.type & ~IBV_FLOW_SPEC_INNER) {
		case IBV_FLOW_SPEC_ETH:
			if (!is_uniform(spec->eth.mask.dst_mac, 6) || !is_uniform(spec->eth.mask.src_mac, 6))
				return true;
			break;
		case IBV_FLOW_SPEC_IPV4_EXT:
			if (!is_uniform(&spec->ipv4_ext.mask.src_ip, 4) || !is_uniform(&spec->ipv4_ext.mask.dst_ip, 4))
				return true;
			break;
		case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP:
			if (!is_uniform(&spec->tcp_udp.mask.src_port, 2) ||
			    !is_uniform(&spec->tcp_udp.mask.dst_port, 2))
				return true;
			break;
		}
	return false;
}

/* --- flows against frames ------------------------------------------------------------------- */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void find_l4(struct headers *h)
{
	const uint8_t *ip = h->l3;
	size_t length;

	if (h->type == 0x0800 && ip + 20 <= h->end) {
		length = (size_t)(ip[0] & 15) * 4;
		h->protocol = ip[9];
		if (!(get16(ip + 6) & 0x1fff) && ip + length + 4 <= h->end)
			h->l4 = ip + length;
	} else if (h->type == 0x86dd && ip + 40 <= h->end) {
		h->protocol = ip[6];
		if (ip + 44 <= h->end)
			h->l4 = ip + 40;
	} else {
		h->l3 = NULL;
	}
}

bool fake_find_headers(const uint8_t *frame, const uint8_t *end, struct headers *h)
{
	const uint8_t *at = frame + 12;

	*h = (struct headers){ .ethernet = frame, .end = end };
	if (frame + 14 > end)
		return false;
	h->type = get16(at);
	for (int i = 0; i < 2 && (h->type == 0x8100 || h->type == 0x88a8) && at + 6 <= end; i++, at += 4) {
		if (!h->tagged)
			h->tci = get16(at + 2);
		h->tagged = true;
		h->type = get16(at + 4);
	}
	h->l3 = at + 2;
	if (h->type == 0x8847 || h->type == 0x8848)
		h->tunnel = h->l3;
	find_l4(h);
	if (h->l4 && h->protocol == 47)
		h->tunnel = h->l4;
	else if (h->l4 && h->protocol == 17 && h->l4 + 16 <= end)
		h->tunnel = h->l4 + 8;
	return true;
}

static bool same(const void *frame, const void *value, const void *mask, size_t n)
{
	const uint8_t *f = frame, *v = value, *m = mask;

	for (size_t i = 0; i < n; i++)
		if ((f[i] & m[i]) != v[i])
			return false;
	return true;
}

static bool ethernet_matches(const struct ibv_flow_spec_eth *spec, const struct headers *h)
{
	uint16_t type = htons(h->type), tci = htons(h->tci);

	return h->ethernet && same(h->ethernet, spec->val.dst_mac, spec->mask.dst_mac, 6) &&
	       same(h->ethernet + 6, spec->val.src_mac, spec->mask.src_mac, 6) &&
	       same(&type, &spec->val.ether_type, &spec->mask.ether_type, 2) && (!spec->mask.vlan_tag || h->tagged) &&
	       same(&tci, &spec->val.vlan_tag, &spec->mask.vlan_tag, 2);
}

static bool ipv4_matches(const struct ibv_flow_spec_ipv4_ext *spec, const struct headers *h)
{
	return h->l3 && h->type == 0x0800 && same(h->l3 + 12, &spec->val.src_ip, &spec->mask.src_ip, 4) &&
	       same(h->l3 + 16, &spec->val.dst_ip, &spec->mask.dst_ip, 4) &&
	       same(h->l3 + 9, &spec->val.proto, &spec->mask.proto, 1) &&
	       same(h->l3 + 1, &spec->val.tos, &spec->mask.tos, 1);
}

static bool ipv6_matches(const struct ibv_flow_spec_ipv6 *spec, const struct headers *h)
{
	uint32_t first;
	uint8_t class;

	if (!h->l3 || h->type != 0x86dd)
		return false;
	memcpy(&first, h->l3, 4);
	class = (uint8_t)(ntohl(first) >> 20);
	return same(h->l3 + 8, spec->val.src_ip, spec->mask.src_ip, 16) &&
	       same(h->l3 + 24, spec->val.dst_ip, spec->mask.dst_ip, 16) &&
	       same(&first, &spec->val.flow_label, &spec->mask.flow_label, 4) &&
	       same(&h->protocol, &spec->val.next_hdr, &spec->mask.next_hdr, 1) &&
	       same(&class, &spec->val.traffic_class, &spec->mask.traffic_class, 1);
}

static bool ports_match(const struct ibv_flow_spec_tcp_udp *spec, const struct headers *h, int protocol)
{
	return h->l4 && h->protocol == protocol && same(h->l4, &spec->val.src_port, &spec->mask.src_port, 2) &&
	       same(h->l4 + 2, &spec->val.dst_port, &spec->mask.dst_port, 2);
}

static bool vxlan_matches(const struct ibv_flow_spec_tunnel *spec, const struct headers *h)
{
	uint8_t vni[4] = { 0 };

	if (!h->tunnel || h->protocol != 17 || get16(h->l4 + 2) != 4789)
		return false;
	memcpy(vni + 1, h->tunnel + 4, 3);
	return same(vni, &spec->val.tunnel_id, &spec->mask.tunnel_id, 4);
}

static bool gre_matches(const struct ibv_flow_spec_gre *spec, const struct headers *h)
{
	return h->tunnel && h->protocol == 47 && h->tunnel + 8 <= h->end &&
	       same(h->tunnel, &spec->val.c_ks_res0_ver, &spec->mask.c_ks_res0_ver, 2) &&
	       same(h->tunnel + 2, &spec->val.protocol, &spec->mask.protocol, 2) &&
	       same(h->tunnel + 4, &spec->val.key, &spec->mask.key, 4);
}

static bool mpls_matches(const struct ibv_flow_spec_mpls *spec, const struct headers *h)
{
	return (h->type == 0x8847 || h->type == 0x8848) && h->l3 == NULL && h->tunnel && h->tunnel + 4 <= h->end &&
	       same(h->tunnel, &spec->val.label, &spec->mask.label, 4);
}

/* The headers within the tunnel of `outer`. */
static bool find_inner(const struct headers *outer, struct headers *inner)
{
	const uint8_t *t = outer->tunnel;

	if (!t)
		return false;
	if (outer->protocol == 17)
		return fake_find_headers(t + 8, outer->end, inner);
	*inner = (struct headers){ .end = outer->end };
	if (outer->protocol == 47) {
		inner->l3 = t + (get16(t) & 0x2000 ? 8 : 4);
		inner->type = get16(t + 2);
		if (inner->type == 0x6558)
			return fake_find_headers(inner->l3, outer->end, inner);
	} else {
		inner->l3 = t + 4;
		inner->type = t[4] >> 4 == 4 ? 0x0800 : 0x86dd;
	}
	find_l4(inner);
	return true;
}

static bool spec_matches(const struct ibv_flow_spec *spec, const struct headers *h)
{
	switch (spec->hdr.type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: return ethernet_matches(&spec->eth, h);
	case IBV_FLOW_SPEC_IPV4_EXT: return ipv4_matches(&spec->ipv4_ext, h);
	case IBV_FLOW_SPEC_IPV6: return ipv6_matches(&spec->ipv6, h);
	case IBV_FLOW_SPEC_TCP: return ports_match(&spec->tcp_udp, h, 6);
	case IBV_FLOW_SPEC_UDP: return ports_match(&spec->tcp_udp, h, 17);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL: return vxlan_matches(&spec->tunnel, h);
	case IBV_FLOW_SPEC_GRE: return gre_matches(&spec->gre, h);
	case IBV_FLOW_SPEC_MPLS: return mpls_matches(&spec->mpls, h);
	default: return true;	/* an action */
	}
}

bool fake_flow_matches(const struct ibv_flow_attr *attr, const uint8_t *frame, size_t length)
{
	const struct ibv_flow_spec *spec = first_spec(attr);
	struct headers outer, inner = { .l3 = NULL };

	if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT)
		return frame[0] & 1;
	if (!fake_find_headers(frame, frame + length, &outer))
		return false;
	find_inner(&outer, &inner);
	for (int i = 0; i < attr->num_of_specs; i++, spec = next_spec(spec))
		if (!spec_matches(spec, spec->hdr.type & IBV_FLOW_SPEC_INNER ? &inner : &outer))
			return false;
	return true;
}

static const struct ibv_flow_spec *find_spec(const struct ibv_flow_attr *attr, int type)
{
	const struct ibv_flow_spec *spec = first_spec(attr);

	for (int i = 0; i < attr->num_of_specs; i++, spec = next_spec(spec))
		if ((int)spec->hdr.type == type)
			return spec;
	return NULL;
}

bool fake_flow_names_station(const struct ibv_flow_attr *attr)
{
	static const uint8_t none[6];
	const struct ibv_flow_spec *spec = find_spec(attr, IBV_FLOW_SPEC_ETH);

	return spec && memcmp(spec->eth.mask.dst_mac, none, 6);
}

uint32_t fake_flow_tag(const struct ibv_flow_attr *attr)
{
	const struct ibv_flow_spec *spec = find_spec(attr, IBV_FLOW_SPEC_ACTION_TAG);

	return spec ? spec->flow_tag.tag_id : 0;
}

bool fake_flow_drops(const struct ibv_flow_attr *attr)
{
	return find_spec(attr, IBV_FLOW_SPEC_ACTION_DROP);
}

/* --- checksums and segments ---------------------------------------------------------------------- */

static uint32_t sum_of(const uint8_t *at, size_t length, uint32_t sum)
{
	for (size_t i = 0; i < length; i++) {
		sum += i & 1 ? at[i] : (uint32_t)at[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* Of TCP or UDP with its pseudo header. `length`: of both. */
static uint32_t sum_l4(const struct headers *h, size_t *length)
{
	bool is_ipv4 = h->type == 0x0800;

	*length = is_ipv4 ? (size_t)(get16(h->l3 + 2) - (h->l4 - h->l3)) : get16(h->l3 + 4);
	return sum_of(h->l4, *length, sum_of(h->l3 + (is_ipv4 ? 12 : 8), is_ipv4 ? 8 : 32,
					     (uint32_t)*length + h->protocol));
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static bool has_l4_checksum(const struct headers *h)
{
	return h->l4 && (h->protocol == 6 || h->protocol == 17) && !(h->type == 0x0800 && get16(h->l3 + 6) & 0x3fff);
}

void fake_fill_checksums(uint8_t *frame, size_t length)
{
	struct headers h;
	size_t n;

	CHECK(fake_find_headers(frame, frame + length, &h) && h.l3);
	if (h.type == 0x0800) {
		uint8_t *ip = frame + (h.l3 - frame);

		put16(ip + 10, 0);
		put16(ip + 10, ~sum_of(ip, (size_t)(ip[0] & 15) * 4, 0));
	}
	if (has_l4_checksum(&h)) {
		uint8_t *at = frame + (h.l4 - frame) + (h.protocol == 6 ? 16 : 6);

		put16(at, 0);
		put16(at, ~sum_l4(&h, &n));
		if (h.protocol == 17 && !at[0] && !at[1])
			put16(at, 0xffff);
	}
}

bool fake_checksums_are_right(const uint8_t *frame, size_t length)
{
	struct headers h;
	size_t n;

	return fake_find_headers(frame, frame + length, &h) && h.l3 && h.type == 0x0800 &&
	       sum_of(h.l3, (size_t)(h.l3[0] & 15) * 4, 0) == 0xffff && has_l4_checksum(&h) && sum_l4(&h, &n) == 0xffff;
}

size_t fake_segment(uint8_t *frame, const uint8_t *header, size_t header_length, const uint8_t *payload,
		    size_t payload_length, size_t mss, unsigned n)
{
	size_t offset = n * mss, some;
	struct headers h;
	uint32_t sequence;
	uint8_t *ip, *tcp;

	if (offset >= payload_length)
		return 0;
	some = payload_length - offset < mss ? payload_length - offset : mss;
	memcpy(frame, header, header_length);
	memcpy(frame + header_length, payload + offset, some);
	CHECK(fake_find_headers(frame, frame + header_length, &h) && h.l4 && h.protocol == 6);
	ip = frame + (h.l3 - frame);
	tcp = frame + (h.l4 - frame);
	if (h.type == 0x0800) {
		put16(ip + 2, (uint32_t)(header_length + some - (size_t)(ip - frame)));
		put16(ip + 4, get16(ip + 4) + n);
	} else {
		put16(ip + 4, (uint32_t)(header_length + some - (size_t)(ip - frame) - 40));
	}
	memcpy(&sequence, tcp + 4, 4);
	sequence = htonl(ntohl(sequence) + (uint32_t)offset);
	memcpy(tcp + 4, &sequence, 4);
	if (offset + some < payload_length)
		tcp[13] &= (uint8_t)~0x09;
	fake_fill_checksums(frame, header_length + some);
	return header_length + some;
}

/* By the definition: one bit at a time, the lowest first. */
void fake_append_fcs(uint8_t *frame, size_t length)
{
	uint32_t crc = ~0u;

	for (size_t bit = 0; bit < 8 * length; bit++) {
		uint32_t odd = (crc ^ frame[bit / 8] >> bit % 8) & 1;

		crc = crc >> 1 ^ (odd ? 0xedb88320 : 0);
	}
	for (int i = 0; i < FCS; i++)
		frame[length + (size_t)i] = (uint8_t)(~crc >> 8 * i);
}

/* A QP without the offload that strips tags has them in its frames. */
size_t fake_insert_tag(uint8_t *frame, size_t length, struct msghdr *message)
{
	return packet_insert_tag(frame, length, message);
}
