/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer_headers.c - the part of the program that reads the headers of a frame into two keys on its stack, as
 * eth_match_parse() does. The functions have the names and the order of those in match.c; in place of parse_tunnel()
 * there is a function for each kind of tunnel.
 *
 * A header that is cut off ends the reading: what was read until then is compared. All jumps go forward, and the loops
 * over VLAN tags, extension headers and labels are unrolled, so the kernel's verifier sees that the program ends. */
#include "dapl/softeth/steer_headers.h"
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>
#include "common/tunnel.h"
#include "dapl/softeth/match.h"

/* --- bytes of the frame ------------------------------------------------------------------------ */

/* The bytes at AT go to `to`; R0 is 0 unless they are cut off. */
static void load_bytes(struct steer *s, int to, int n)
{
	alu_register(s, BPF_MOV, R1, CTX);
	alu_register(s, BPF_MOV, R2, AT);
	alu_register(s, BPF_MOV, R3, FP);
	alu(s, BPF_ADD, R3, to);
	alu(s, BPF_MOV, R4, n);
	call(s, s->xdp ? FUNC_XDP_LOAD_BYTES : BPF_FUNC_skb_load_bytes);
}

static void take(struct steer *s, int n)
{
	load_bytes(s, HEADER, n);
	jump_if(s, BPF_JNE, R0, 0, s->match);
	alu(s, BPF_ADD, AT, n);
}

/* Passes R1 bytes. */
static void skip_r1(struct steer *s)
{
	alu_register(s, BPF_ADD, AT, R1);
	alu_register(s, BPF_MOV, R1, END);
	alu_register(s, BPF_SUB, R1, AT);
	jump_if(s, BPF_JSLT, R1, 0, s->match);
}

static void skip(struct steer *s, int n)
{
	alu(s, BPF_MOV, R1, n);
	skip_r1(s);
}

/* --- headers ----------------------------------------------------------------------------------- */

static void set_tunnel(struct steer *s, enum dapl_eth_tunnel tunnel)
{
	store_number(s, BPF_W, OUTER + FIELD(tunnel), (int)tunnel);
}

/* An id of 24 bits, in network byte order. */
static void set_tunnel_id(struct steer *s, int from)
{
	for (int i = 0; i < 3; i++)
		copy(s, BPF_B, OUTER + FIELD(tunnel_id) + 1 + i, from + i);
}

static void parse_tag(struct steer *s, int key, bool first, int typed)
{
	int tagged = bpf_label(s->code);

	jump_if(s, BPF_JEQ, TYPE, htons(ETH_P_8021Q), tagged);
	jump_if(s, BPF_JNE, TYPE, htons(ETH_P_8021AD), typed);
	bpf_here(s->code, tagged);
	take(s, 4);
	if (first)
		copy(s, BPF_H, key + FIELD(vlan_tci), HEADER);
	load(s, BPF_H, TYPE, HEADER + 2);
}

/* A tag that the kernel has stripped is the first. */
static void parse_stripped_tag(struct steer *s, int second)
{
	int none = bpf_label(s->code);

	load_context(s, R1, offsetof(struct __sk_buff, vlan_present));
	jump_if(s, BPF_JEQ, R1, 0, none);
	load_context(s, R1, offsetof(struct __sk_buff, vlan_tci));
	to_network(s, R1, 16);
	store(s, BPF_H, OUTER + FIELD(vlan_tci), R1);
	bpf_jump(s->code, second);
	bpf_here(s->code, none);
}

static void parse_ethernet(struct steer *s, int key)
{
	int typed = bpf_label(s->code), second = bpf_label(s->code);

	take(s, ETH_HLEN);
	copy_words(s, key, HEADER, 3);
	load(s, BPF_H, TYPE, HEADER + 12);
	if (key == OUTER && !s->xdp)	/* an XDP program does not learn of it */
		parse_stripped_tag(s, second);
	parse_tag(s, key, true, typed);
	bpf_here(s->code, second);
	for (int tags = 1; tags < MATCH_TAGS; tags++)
		parse_tag(s, key, false, typed);
	bpf_here(s->code, typed);
	store(s, BPF_H, key + FIELD(ether_type), TYPE);
}

static void parse_vxlan(struct steer *s)
{
	take(s, 8);
	load(s, BPF_B, R1, HEADER);
	alu(s, BPF_AND, R1, VXLAN_HAS_ID);
	jump_if(s, BPF_JEQ, R1, 0, s->match);
	set_tunnel(s, ETH_VXLAN);
	set_tunnel_id(s, HEADER + 4);
	bpf_jump(s->code, s->inner_ethernet);
}

static void parse_geneve(struct steer *s)
{
	take(s, 8);
	load(s, BPF_B, R1, HEADER);
	alu(s, BPF_AND, R1, GENEVE_VERSION);
	jump_if(s, BPF_JNE, R1, 0, s->match);
	set_tunnel(s, ETH_GENEVE);
	set_tunnel_id(s, HEADER + 4);
	load(s, BPF_B, R1, HEADER);
	alu(s, BPF_AND, R1, GENEVE_OPTIONS);
	alu(s, BPF_LSH, R1, 2);
	skip_r1(s);
	load(s, BPF_H, TYPE, HEADER + 2);
	jump_if(s, BPF_JEQ, TYPE, htons(TYPE_BRIDGING), s->inner_ethernet);
	bpf_jump(s->code, s->inner_type);
}

static void if_gre_flag(struct steer *s, int flag, int otherwise)
{
	load(s, BPF_B, R1, GRE);
	alu(s, BPF_AND, R1, flag);
	jump_if(s, BPF_JEQ, R1, 0, otherwise);
}

static void parse_gre(struct steer *s)
{
	int no_checksum = bpf_label(s->code), no_key = bpf_label(s->code), no_sequence = bpf_label(s->code);
	int plain = bpf_label(s->code), without = bpf_label(s->code);

	take(s, 4);
	copy(s, BPF_W, GRE, HEADER);
	load(s, BPF_H, R1, HEADER);
	alu(s, BPF_AND, R1, htons(GRE_FLAG_ROUTING << 8 | GRE_VERSION));
	jump_if(s, BPF_JNE, R1, 0, s->match);
	if_gre_flag(s, GRE_FLAG_CHECKSUM, no_checksum);
	skip(s, 4);
	bpf_here(s->code, no_checksum);
	store_number(s, BPF_W, GRE_KEY, 0);
	if_gre_flag(s, GRE_FLAG_KEY, no_key);
	take(s, 4);
	copy(s, BPF_W, GRE_KEY, HEADER);
	bpf_here(s->code, no_key);
	if_gre_flag(s, GRE_FLAG_SEQUENCE, no_sequence);
	skip(s, 4);
	bpf_here(s->code, no_sequence);
	load(s, BPF_H, TYPE, GRE + 2);
	jump_if(s, BPF_JNE, TYPE, htons(TYPE_BRIDGING), plain);
	if_gre_flag(s, GRE_FLAG_KEY, plain);
	set_tunnel(s, ETH_NVGRE);
	set_tunnel_id(s, GRE_KEY);
	bpf_jump(s->code, s->inner_ethernet);
	bpf_here(s->code, plain);
	set_tunnel(s, ETH_GRE);
	if_gre_flag(s, GRE_FLAG_KEY, without);
	copy(s, BPF_W, OUTER + FIELD(tunnel_id), GRE_KEY);
	bpf_here(s->code, without);
	jump_if(s, BPF_JEQ, TYPE, htons(TYPE_BRIDGING), s->inner_ethernet);
	bpf_jump(s->code, s->inner_type);
}

/* Of the outer headers only: what is behind labels within a tunnel is not looked at. */
static void parse_mpls(struct steer *s)
{
	int bottom = bpf_label(s->code), not_4 = bpf_label(s->code);

	for (int i = 0; i < MATCH_LABELS; i++) {
		take(s, 4);
		if (!i) {
			load(s, BPF_W, R1, HEADER);
			to_network(s, R1, 32);	/* and back: host byte order */
			alu(s, BPF_RSH, R1, 12);
			to_network(s, R1, 32);
			store(s, BPF_W, OUTER + FIELD(tunnel_id), R1);
			set_tunnel(s, ETH_MPLS);
		}
		load(s, BPF_B, R1, HEADER + 2);
		alu(s, BPF_AND, R1, 1);
		jump_if(s, BPF_JNE, R1, 0, bottom);
	}
	bpf_jump(s->code, s->match);
	bpf_here(s->code, bottom);
	load_bytes(s, HEADER, 1);
	jump_if(s, BPF_JNE, R0, 0, s->match);
	load(s, BPF_B, R1, HEADER);
	alu(s, BPF_RSH, R1, 4);
	alu(s, BPF_MOV, TYPE, htons(ETH_P_IP));
	jump_if(s, BPF_JNE, R1, 4, not_4);
	bpf_jump(s->code, s->inner_type);
	bpf_here(s->code, not_4);
	jump_if(s, BPF_JNE, R1, 6, s->match);
	alu(s, BPF_MOV, TYPE, htons(ETH_P_IPV6));
	bpf_jump(s->code, s->inner_type);
}

static void parse_ports(struct steer *s, int key)
{
	int not_gre = bpf_label(s->code), ports = bpf_label(s->code), not_vxlan = bpf_label(s->code);

	load(s, BPF_B, R1, key + FIELD(protocol));
	if (key == OUTER) {
		jump_if(s, BPF_JNE, R1, IPPROTO_GRE, not_gre);
		parse_gre(s);
		bpf_here(s->code, not_gre);
	}
	jump_if(s, BPF_JEQ, R1, IPPROTO_TCP, ports);
	jump_if(s, BPF_JEQ, R1, IPPROTO_UDP, ports);
	jump_if(s, BPF_JNE, R1, IPPROTO_SCTP, s->match);
	bpf_here(s->code, ports);
	take(s, 4);
	copy_words(s, key + FIELD(port_src), HEADER, 1);
	if (key == INNER) {
		bpf_jump(s->code, s->match);
		return;
	}
	load(s, BPF_B, R1, key + FIELD(protocol));
	jump_if(s, BPF_JNE, R1, IPPROTO_UDP, s->match);
	skip(s, 4);
	load(s, BPF_H, TYPE, key + FIELD(port_dst));
	jump_if(s, BPF_JNE, TYPE, htons(PORT_VXLAN), not_vxlan);
	parse_vxlan(s);
	bpf_here(s->code, not_vxlan);
	jump_if(s, BPF_JNE, TYPE, htons(PORT_GENEVE), s->match);
	parse_geneve(s);
}

static void parse_ipv4(struct steer *s, int key)
{
	int whole = bpf_label(s->code);

	take(s, 20);
	load(s, BPF_B, R1, HEADER);
	alu(s, BPF_RSH, R1, 4);
	jump_if(s, BPF_JNE, R1, 4, s->match);
	load(s, BPF_B, TYPE, HEADER);
	alu(s, BPF_AND, TYPE, 15);
	jump_if(s, BPF_JLT, TYPE, 5, s->match);
	store_number(s, BPF_B, key + FIELD(ip_version), 4);
	copy(s, BPF_B, key + FIELD(tos), HEADER + 1);
	copy(s, BPF_B, key + FIELD(protocol), HEADER + 9);
	copy_words(s, key + FIELD(ip_src), HEADER + 12, 1);
	copy_words(s, key + FIELD(ip_dst), HEADER + 16, 1);
	load(s, BPF_H, R1, HEADER + 6);
	alu(s, BPF_AND, R1, htons(0x1fff));
	jump_if(s, BPF_JEQ, R1, 0, whole);
	store_number(s, BPF_B, key + FIELD(fragment), 1);
	bpf_jump(s->code, s->match);
	bpf_here(s->code, whole);
	alu_register(s, BPF_MOV, R1, TYPE);
	alu(s, BPF_LSH, R1, 2);
	alu(s, BPF_SUB, R1, 20);
	skip_r1(s);
	parse_ports(s, key);
}

/* TYPE: the header that is next. */
static void parse_extension(struct steer *s, int key, int last)
{
	int extension = bpf_label(s->code), no_fragment = bpf_label(s->code), done = bpf_label(s->code);

	jump_if(s, BPF_JEQ, TYPE, IPPROTO_HOPOPTS, extension);
	jump_if(s, BPF_JEQ, TYPE, IPPROTO_ROUTING, extension);
	jump_if(s, BPF_JEQ, TYPE, IPPROTO_DSTOPTS, extension);
	jump_if(s, BPF_JNE, TYPE, IPPROTO_FRAGMENT, last);
	bpf_here(s->code, extension);
	take(s, 8);
	jump_if(s, BPF_JNE, TYPE, IPPROTO_FRAGMENT, no_fragment);
	store_number(s, BPF_B, key + FIELD(fragment), 0);
	load(s, BPF_H, R1, HEADER + 2);
	alu(s, BPF_AND, R1, htons(0xfff8));
	jump_if(s, BPF_JEQ, R1, 0, done);
	store_number(s, BPF_B, key + FIELD(fragment), 1);
	bpf_jump(s->code, done);
	bpf_here(s->code, no_fragment);
	load(s, BPF_B, R1, HEADER + 1);
	alu(s, BPF_LSH, R1, 3);
	skip_r1(s);
	bpf_here(s->code, done);
	load(s, BPF_B, TYPE, HEADER);
}

static void parse_ipv6(struct steer *s, int key)
{
	int last = bpf_label(s->code);

	take(s, 40);
	load(s, BPF_B, R1, HEADER);
	alu_register(s, BPF_MOV, R2, R1);
	alu(s, BPF_RSH, R2, 4);
	jump_if(s, BPF_JNE, R2, 6, s->match);
	store_number(s, BPF_B, key + FIELD(ip_version), 6);
	alu(s, BPF_LSH, R1, 4);
	load(s, BPF_B, R2, HEADER + 1);
	alu(s, BPF_RSH, R2, 4);
	alu_register(s, BPF_OR, R1, R2);
	store(s, BPF_B, key + FIELD(tos), R1);
	load(s, BPF_W, R1, HEADER);
	alu(s, BPF_AND, R1, (int32_t)htonl(0xfffff));
	store(s, BPF_W, key + FIELD(flow_label), R1);
	copy_words(s, key + FIELD(ip_src), HEADER + 8, 4);
	copy_words(s, key + FIELD(ip_dst), HEADER + 24, 4);
	load(s, BPF_B, TYPE, HEADER + 6);
	for (int i = 0; i < MATCH_EXTENSIONS; i++)
		parse_extension(s, key, last);
	bpf_here(s->code, last);
	store(s, BPF_B, key + FIELD(protocol), TYPE);
	load(s, BPF_B, R1, key + FIELD(fragment));
	jump_if(s, BPF_JNE, R1, 0, s->match);
	parse_ports(s, key);
}

static void parse_type(struct steer *s, int key)
{
	int not_ipv4 = bpf_label(s->code), not_ipv6 = bpf_label(s->code), mpls = bpf_label(s->code);

	jump_if(s, BPF_JNE, TYPE, htons(ETH_P_IP), not_ipv4);
	parse_ipv4(s, key);
	bpf_here(s->code, not_ipv4);
	jump_if(s, BPF_JNE, TYPE, htons(ETH_P_IPV6), not_ipv6);
	parse_ipv6(s, key);
	bpf_here(s->code, not_ipv6);
	if (key == INNER) {
		bpf_jump(s->code, s->match);
		return;
	}
	jump_if(s, BPF_JEQ, TYPE, htons(ETH_P_MPLS_UC), mpls);
	jump_if(s, BPF_JNE, TYPE, htons(ETH_P_MPLS_MC), s->match);
	bpf_here(s->code, mpls);
	parse_mpls(s);
}

/* Clears both keys by a load that fails. So the verifier has no known values of them, and does not check
 * the rules again for each path that leads to them. With XDP such a load leaves the keys as they are. Then the index of
 * the network device is compared with itself, which is 0 and not known to the verifier, either. */
static void clear_keys(struct steer *s)
{
	if (s->xdp) {
		load_context(s, R1, offsetof(struct xdp_md, ingress_ifindex));
		bpf_emit(s->code, BPF_ALU | BPF_XOR | BPF_K, R1, 0, 0, s->xdp->index);
		for (int at = OUTER; at < 0; at += 4)
			store(s, BPF_W, at, R1);
	} else {
		alu(s, BPF_MOV, AT, -1);
		load_bytes(s, OUTER, -OUTER);
	}
	alu(s, BPF_MOV, AT, 0);
}

static void load_length(struct steer *s)
{
	if (!s->xdp) {
		load_context(s, END, offsetof(struct __sk_buff, len));
		return;
	}
	alu_register(s, BPF_MOV, R1, CTX);
	call(s, FUNC_XDP_GET_BUFF_LEN);
	alu_register(s, BPF_MOV, END, R0);
}

/* TYPE: the kind of frame, PACKET_*. XDP comes before the kernel looks at the address. */
static void load_kind(struct steer *s)
{
	int other = bpf_label(s->code), done = bpf_label(s->code);
	int32_t first;
	uint16_t last;

	if (!s->xdp) {
		load_context(s, TYPE, offsetof(struct __sk_buff, pkt_type));
		return;
	}
	memcpy(&first, s->xdp->address, 4);
	memcpy(&last, s->xdp->address + 4, 2);
	alu(s, BPF_MOV, TYPE, PACKET_HOST);
	load(s, BPF_B, R1, OUTER + FIELD(dst));
	alu(s, BPF_AND, R1, 1);
	jump_if(s, BPF_JNE, R1, 0, done);
	load(s, BPF_W, R1, OUTER + FIELD(dst));
	jump_if(s, BPF_JNE, R1, first, other);
	load(s, BPF_H, R1, OUTER + FIELD(dst) + 4);
	jump_if(s, BPF_JEQ, R1, last, done);
	bpf_here(s->code, other);
	alu(s, BPF_MOV, TYPE, PACKET_OTHERHOST);
	bpf_here(s->code, done);
}

void steer_headers(struct steer *s)
{
	alu_register(s, BPF_MOV, CTX, R1);
	load_length(s);
	clear_keys(s);
	parse_ethernet(s, OUTER);
	parse_type(s, OUTER);
	bpf_here(s->code, s->inner_ethernet);
	parse_ethernet(s, INNER);
	bpf_here(s->code, s->inner_type);
	parse_type(s, INNER);
	bpf_here(s->code, s->match);
	load_kind(s);
}
