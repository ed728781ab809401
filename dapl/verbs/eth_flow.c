/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_flow.c - makes flow specifications of libibverbs from a rule: layer by layer, outer headers, tunnel, inner
 * headers, action.
 *
 * A rule compares fields of a parsed frame, where a field that the frame lacks is 0. A flow compares bytes of
 * headers that are there. A rule for which both do not agree on every frame is refused, with the reason. */
#include "eth_flow.h"
#include "common/bytes.h"
#include "common/tunnel.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

enum {
	TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd,
	TYPE_MPLS = 0x8847, TYPE_MPLS_GROUP = 0x8848,
	GRE_HAS_KEY = GRE_FLAG_KEY << 8,
	VLAN_ID = 0xfff,
};
#define FLOW_LABEL 0xfffffu
#define VNI 0xffffffu
#define LABEL 0xfffffu

/* --- fields ------------------------------------------------------------------------------- */

static bool is_full(const void *at, size_t n)
{
	const uint8_t *p = at;

	for (size_t i = 0; i < n; i++)
		if (p[i] != 0xff)
			return false;
	return true;
}

#define ASKS(mask, member) (!bytes_are_zero(&(mask)->member, sizeof (mask)->member))

/* Copies a field to value and mask of a specification. */
static void put(struct hw_flow *flow, void *value, void *mask, const void *key, const void *key_mask, size_t n)
{
	memcpy(value, key, n);
	memcpy(mask, key_mask, n);
	flow->partial |= !bytes_are_zero(key_mask, n) && !is_full(key_mask, n);
}

/* A field of which only the bits `all` exist. */
static void put_bits(struct hw_flow *flow, uint32_t *value, uint32_t *mask, uint32_t key, uint32_t key_mask,
		     uint32_t all)
{
	*value = key;
	*mask = key_mask & all;
	flow->partial |= *mask && *mask != all;
}

static void *append(struct hw_flow *flow, int type, uint16_t size)
{
	struct hw_spec_head *spec = (void *)((uint8_t *)flow + flow->attr.size);

	memset(spec, 0, size);
	spec->type = (enum ibv_flow_spec_type)type;
	spec->size = size;
	flow->attr.size = (uint16_t)(flow->attr.size + size);
	flow->attr.num_of_specs++;
	return spec;
}

/* --- one header: Ethernet, IP, ports -------------------------------------------------------- */

struct header {
	const struct dapl_eth_key *key, *mask;
	int inner;			/* IBV_FLOW_SPEC_INNER or 0 */
	int version;			/* of IP, if the rule fixes it; else 0 */
	bool ip, ports;			/* the rule compares fields of these layers */
};

static bool asks_for_ip(const struct dapl_eth_key *mask)
{
	return ASKS(mask, ip_version) || ASKS(mask, protocol) || ASKS(mask, tos) || ASKS(mask, flow_label) ||
	       ASKS(mask, ip_src) || ASKS(mask, ip_dst);
}

static int version_of(const struct header *h)
{
	if (h->mask->ip_version == 0xff)
		return h->key->ip_version;
	if (h->mask->ether_type == 0xffff)
		return ntohs(h->key->ether_type) == TYPE_IPV4 ? 4 : ntohs(h->key->ether_type) == TYPE_IPV6 ? 6 : 0;
	return 0;
}

/* False if the rule compares fields that headers of its version do not have, or has no version. */
static bool fits_version(const struct header *h)
{
	if (h->version == 4)
		return bytes_are_zero(h->key->ip_src + 4, 12) && bytes_are_zero(h->key->ip_dst + 4, 12) &&
		       !h->key->flow_label;
	return h->version == 6;
}

static const char *check_ip(struct header *h)
{
	uint16_t type = h->version == 4 ? htons(TYPE_IPV4) : htons(TYPE_IPV6);

	if (!h->ip && !h->ports)
		return NULL;
	if (!fits_version(h))
		return "fields of IP headers need ip_version 4 or 6, with a full mask, and only fields of that version";
	if ((h->mask->ether_type & type) != h->key->ether_type)
		return "ether_type and ip_version exclude each other";
	if (h->ports && (h->mask->protocol != 0xff ||
			 (h->key->protocol != IPPROTO_TCP && h->key->protocol != IPPROTO_UDP)))
		return "ports need protocol TCP or UDP, with a full mask";
	return NULL;
}

static const char *read_header(struct header *h, const struct dapl_eth_key *key, const struct dapl_eth_key *mask,
			       bool inner)
{
	*h = (struct header){ .key = key, .mask = mask, .inner = inner ? IBV_FLOW_SPEC_INNER : 0,
		.ip = asks_for_ip(mask), .ports = ASKS(mask, port_src) || ASKS(mask, port_dst) };
	h->version = version_of(h);
	if (mask->fragment)
		return "flows cannot tell fragments";
	if (mask->vlan_tci && !key->vlan_tci)
		return "flows cannot tell frames without a VLAN tag from others";
	return check_ip(h);
}

static void add_ethernet(struct hw_flow *flow, const struct header *h)
{
	struct ibv_flow_spec_eth *spec = append(flow, h->inner | IBV_FLOW_SPEC_ETH, sizeof *spec);
	uint16_t full = 0xffff, type = htons(h->version == 4 ? TYPE_IPV4 : TYPE_IPV6);

	put(flow, spec->val.dst_mac, spec->mask.dst_mac, h->key->dst, h->mask->dst, 6);
	put(flow, spec->val.src_mac, spec->mask.src_mac, h->key->src, h->mask->src, 6);
	if (h->ip || h->ports)
		put(flow, &spec->val.ether_type, &spec->mask.ether_type, &type, &full, 2);
	else
		put(flow, &spec->val.ether_type, &spec->mask.ether_type, &h->key->ether_type, &h->mask->ether_type, 2);
	spec->val.vlan_tag = h->key->vlan_tci;
	spec->mask.vlan_tag = h->mask->vlan_tci;
	flow->partial |= h->mask->vlan_tci && h->mask->vlan_tci != 0xffff && h->mask->vlan_tci != htons(VLAN_ID);
}

static void add_ipv4(struct hw_flow *flow, const struct header *h)
{
	struct ibv_flow_spec_ipv4_ext *spec = append(flow, h->inner | IBV_FLOW_SPEC_IPV4_EXT, sizeof *spec);

	put(flow, &spec->val.src_ip, &spec->mask.src_ip, h->key->ip_src, h->mask->ip_src, 4);
	put(flow, &spec->val.dst_ip, &spec->mask.dst_ip, h->key->ip_dst, h->mask->ip_dst, 4);
	put(flow, &spec->val.proto, &spec->mask.proto, &h->key->protocol, &h->mask->protocol, 1);
	put(flow, &spec->val.tos, &spec->mask.tos, &h->key->tos, &h->mask->tos, 1);
}

static void add_ipv6(struct hw_flow *flow, const struct header *h)
{
	struct ibv_flow_spec_ipv6 *spec = append(flow, h->inner | IBV_FLOW_SPEC_IPV6, sizeof *spec);

	put(flow, spec->val.src_ip, spec->mask.src_ip, h->key->ip_src, h->mask->ip_src, 16);
	put(flow, spec->val.dst_ip, spec->mask.dst_ip, h->key->ip_dst, h->mask->ip_dst, 16);
	put_bits(flow, &spec->val.flow_label, &spec->mask.flow_label, h->key->flow_label, h->mask->flow_label,
		 htonl(FLOW_LABEL));
	put(flow, &spec->val.next_hdr, &spec->mask.next_hdr, &h->key->protocol, &h->mask->protocol, 1);
	put(flow, &spec->val.traffic_class, &spec->mask.traffic_class, &h->key->tos, &h->mask->tos, 1);
}

static void add_ports(struct hw_flow *flow, const struct header *h)
{
	int type = h->key->protocol == IPPROTO_TCP ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP;
	struct ibv_flow_spec_tcp_udp *spec = append(flow, h->inner | type, sizeof *spec);

	put(flow, &spec->val.src_port, &spec->mask.src_port, &h->key->port_src, &h->mask->port_src, 2);
	put(flow, &spec->val.dst_port, &spec->mask.dst_port, &h->key->port_dst, &h->mask->port_dst, 2);
}

static void add_header(struct hw_flow *flow, const struct header *h, bool ethernet)
{
	if (ethernet)
		add_ethernet(flow, h);
	if ((h->ip || h->ports) && h->version == 4)
		add_ipv4(flow, h);
	else if (h->ip || h->ports)
		add_ipv6(flow, h);
	if (h->ports)
		add_ports(flow, h);
}

/* --- tunnels ------------------------------------------------------------------------------------ */

/* Adds to an outer header what the tunnel implies: the protocol, and the port unless it is 0. Returns why
 * the header contradicts that, or NULL. */
static const char *add_implied(struct dapl_eth_key *key, struct dapl_eth_key *mask, uint8_t protocol, uint16_t port)
{
	if ((key->protocol ^ protocol) & mask->protocol || (key->port_dst ^ htons(port)) & mask->port_dst)
		return "protocol or port_dst are not those of the tunnel";
	key->protocol = protocol;
	mask->protocol = 0xff;
	if (port) {
		key->port_dst = htons(port);
		mask->port_dst = 0xffff;
	}
	return NULL;
}

static const char *check_tunnel(struct dapl_eth_key *key, struct dapl_eth_key *mask, const struct header *inner)
{
	uint16_t type = ntohs(key->ether_type);

	switch (key->tunnel) {
	case ETH_VXLAN:
		return ntohl(key->tunnel_id) > VNI ? "tunnel_id has more than 24 bits" :
			add_implied(key, mask, IPPROTO_UDP, PORT_VXLAN);
	case ETH_NVGRE:
		return ntohl(key->tunnel_id) > VNI ? "tunnel_id has more than 24 bits" :
			add_implied(key, mask, IPPROTO_GRE, 0);
	case ETH_GRE:
		if (!inner->version)
			return "GRE needs ip_version of inner_key: flows cannot tell it from NVGRE";
		if (mask->tunnel_id && !key->tunnel_id)
			return "flows cannot tell a GRE header without a key";
		return add_implied(key, mask, IPPROTO_GRE, 0);
	case ETH_MPLS:
		if (mask->ether_type != 0xffff || (type != TYPE_MPLS && type != TYPE_MPLS_GROUP))
			return "MPLS needs ether_type 0x8847 or 0x8848, with a full mask";
		return ntohl(key->tunnel_id) > LABEL ? "tunnel_id has more than 20 bits" : NULL;
	default:
		return "flows have no specification for this tunnel";
	}
}

static void add_vxlan(struct hw_flow *flow, const struct dapl_eth_key *key, const struct dapl_eth_key *mask)
{
	struct ibv_flow_spec_tunnel *spec = append(flow, IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof *spec);

	put_bits(flow, &spec->val.tunnel_id, &spec->mask.tunnel_id, key->tunnel_id, mask->tunnel_id, htonl(VNI));
}

/* The VSID is the upper part of the key. */
static void add_nvgre(struct hw_flow *flow, const struct dapl_eth_key *key, const struct dapl_eth_key *mask)
{
	struct ibv_flow_spec_gre *spec = append(flow, IBV_FLOW_SPEC_GRE, sizeof *spec);

	spec->val.c_ks_res0_ver = spec->mask.c_ks_res0_ver = htons(GRE_HAS_KEY);
	spec->val.protocol = htons(TYPE_BRIDGING);
	spec->mask.protocol = 0xffff;
	put_bits(flow, &spec->val.key, &spec->mask.key, htonl(ntohl(key->tunnel_id) << 8),
		 htonl(ntohl(mask->tunnel_id) << 8), htonl(VNI << 8));
}

static void add_gre(struct hw_flow *flow, const struct dapl_eth_key *key, const struct dapl_eth_key *mask, int version)
{
	struct ibv_flow_spec_gre *spec = append(flow, IBV_FLOW_SPEC_GRE, sizeof *spec);

	if (mask->tunnel_id)
		spec->val.c_ks_res0_ver = spec->mask.c_ks_res0_ver = htons(GRE_HAS_KEY);
	spec->val.protocol = htons(version == 4 ? TYPE_IPV4 : TYPE_IPV6);
	spec->mask.protocol = 0xffff;
	put(flow, &spec->val.key, &spec->mask.key, &key->tunnel_id, &mask->tunnel_id, 4);
}

/* The label is the upper part of a stack entry. */
static void add_mpls(struct hw_flow *flow, const struct dapl_eth_key *key, const struct dapl_eth_key *mask)
{
	struct ibv_flow_spec_mpls *spec = append(flow, IBV_FLOW_SPEC_MPLS, sizeof *spec);

	put_bits(flow, &spec->val.label, &spec->mask.label, htonl(ntohl(key->tunnel_id) << 12),
		 htonl(ntohl(mask->tunnel_id) << 12), htonl(LABEL << 12));
}

static void add_tunnel(struct hw_flow *flow, const struct dapl_eth_key *key, const struct dapl_eth_key *mask,
		       int inner_version)
{
	if (key->tunnel == ETH_VXLAN)
		add_vxlan(flow, key, mask);
	else if (key->tunnel == ETH_NVGRE)
		add_nvgre(flow, key, mask);
	else if (key->tunnel == ETH_GRE)
		add_gre(flow, key, mask, inner_version);
	else
		add_mpls(flow, key, mask);
}

/* Whether the frame within the tunnel begins with an Ethernet header. */
static bool carries_ethernet(uint32_t tunnel)
{
	return tunnel == ETH_VXLAN || tunnel == ETH_NVGRE;
}

static bool asks_for_ethernet(const struct dapl_eth_key *mask)
{
	return ASKS(mask, dst) || ASKS(mask, src) || ASKS(mask, ether_type) || ASKS(mask, vlan_tci);
}

static const char *build_tunnel(const struct dapl_eth_rule *rule, struct hw_flow *flow)
{
	struct dapl_eth_key key = rule->key, mask = rule->mask;
	struct header outer, inner;
	const char *wrong = read_header(&inner, &rule->inner_key, &rule->inner_mask, true);

	if (mask.tunnel != 0xffffffff)
		return "tunnel needs a full mask";
	if (wrong || (wrong = check_tunnel(&key, &mask, &inner)))
		return wrong;
	if (rule->inner_mask.tunnel || rule->inner_mask.tunnel_id)
		return "flows do not see a tunnel within a tunnel";
	if (asks_for_ethernet(&rule->inner_mask) && !carries_ethernet(key.tunnel))
		return "there is no Ethernet header within this tunnel";
	if ((wrong = read_header(&outer, &key, &mask, false)))
		return wrong;
	add_header(flow, &outer, true);
	add_tunnel(flow, &key, &mask, inner.version);
	if (!bytes_are_zero(&rule->inner_mask, sizeof rule->inner_mask))
		add_header(flow, &inner, carries_ethernet(key.tunnel));
	return NULL;
}

static const char *build_plain(const struct dapl_eth_rule *rule, struct hw_flow *flow)
{
	const char *wrong;
	struct header outer;

	if (rule->mask.tunnel || rule->mask.tunnel_id || !bytes_are_zero(&rule->inner_mask, sizeof rule->inner_mask))
		return "tunnel_id and inner_key need the kind of tunnel";
	if ((wrong = read_header(&outer, &rule->key, &rule->mask, false)))
		return wrong;
	add_header(flow, &outer, true);
	return NULL;
}

/* --- the whole ------------------------------------------------------------------------------------- */

static bool is_empty(const struct dapl_eth_rule *rule)
{
	return bytes_are_zero(&rule->mask, sizeof rule->mask) &&
	       bytes_are_zero(&rule->inner_mask, sizeof rule->inner_mask);
}

/* A rule that compares no fields may be of a type that needs no specification. */
static enum ibv_flow_attr_type type_of(const struct dapl_eth_rule *rule)
{
	if (!is_empty(rule))
		return IBV_FLOW_ATTR_NORMAL;
	if (rule->mode == ETH_COPY)
		return (rule->flags & ETH_EGRESS) && (rule->flags & ETH_ALL) ?
			IBV_FLOW_ATTR_SNIFFER : IBV_FLOW_ATTR_NORMAL;
	if (rule->mode == ETH_TAKE && (rule->flags & ETH_ALL))
		return IBV_FLOW_ATTR_ALL_DEFAULT;
	if (rule->mode == ETH_TAKE && (rule->flags & ETH_ALL_MULTICAST))
		return IBV_FLOW_ATTR_MC_DEFAULT;
	return IBV_FLOW_ATTR_NORMAL;
}

static void add_action(struct hw_flow *flow, uint32_t mode, uint32_t tag)
{
	struct ibv_flow_spec_action_tag *spec;

	if (mode == ETH_DROP) {
		append(flow, IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop));
	} else if (tag) {
		spec = append(flow, IBV_FLOW_SPEC_ACTION_TAG, sizeof *spec);
		spec->tag_id = tag;
		flow->tagged = true;
	}
}

const char *hw_flow_build(const struct dapl_eth_rule *rule, uint8_t port, uint32_t tag, struct hw_flow *flow)
{
	const char *wrong;

	_Static_assert(!offsetof(struct hw_flow, attr) &&
		       offsetof(struct hw_flow, specs) == sizeof(struct ibv_flow_attr), "specifications follow");
	memset(flow, 0, sizeof *flow);
	flow->attr.size = sizeof flow->attr;
	flow->attr.port = port;
	flow->attr.type = type_of(rule);
	if (rule->priority > 0xffff)
		return "priority has more than 16 bits";
	flow->attr.priority = (uint16_t)rule->priority;
	if (flow->attr.type != IBV_FLOW_ATTR_NORMAL)
		return NULL;
	if (rule->flags & ETH_EGRESS)
		return "outgoing frames are copied only with all others: ALL and no fields";
	if (rule->mode == ETH_COPY)
		flow->attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	wrong = rule->key.tunnel ? build_tunnel(rule, flow) : build_plain(rule, flow);
	if (!wrong)
		add_action(flow, rule->mode, tag);
	return wrong;
}
