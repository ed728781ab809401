/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter.c - compiles rules to classic BPF. The program has a block for each rule: tests, each of which
 * jumps to the next block when it fails, and a return that accepts the frame.
 *
 * A load beyond the end of the frame rejects the frame whatever the other rules say, so each load is
 * preceded by a test of the length. A field that is cut off reads as 0 in eth_match_parse(); so only fields whose
 * key is not 0 are tested. Frames with a VLAN tag in their bytes, or with IPv6 extension headers, are
 * accepted. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/softeth/filter.h"
#include "common/bytes.h"
#include "dapl/softeth/filter_hash.h"

enum {
	FAIL = 254, PASS = 255,		/* jump targets, until the block is complete */
	BLOCK_MAX = 96,			/* instructions of a rule; more than rule_block() makes */
	L3 = ETH_HLEN,			/* offset of the IP header */
};

struct block {
	struct sock_filter code[BLOCK_MAX];
	unsigned n;
};

static void emit(struct block *b, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	b->code[b->n++] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

static void load(struct block *b, uint16_t size, uint32_t offset)
{
	emit(b, BPF_LD | size | BPF_ABS, offset, 0, 0);
}

static void need_length(struct block *b, uint32_t length)
{
	emit(b, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
	emit(b, BPF_JMP | BPF_JGE | BPF_K, length, 0, FAIL);
}

/* Fails unless the accumulator, masked, equals the key. */
static void compare(struct block *b, uint32_t key, uint32_t mask, uint32_t all)
{
	if (mask != all)
		emit(b, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	emit(b, BPF_JMP | BPF_JEQ | BPF_K, key, 0, FAIL);
}

static uint32_t big_endian(const uint8_t *p, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | *p++;
	return value;
}

/* `bytes` of 1, 2 or 4 at this offset. The length of the frame was tested. */
static void field(struct block *b, uint32_t offset, unsigned bytes, const void *key, const void *mask)
{
	static const uint16_t size[] = { [1] = BPF_B, [2] = BPF_H, [4] = BPF_W };
	static const uint32_t all[] = { [1] = 0xff, [2] = 0xffff, [4] = 0xffffffff };
	uint32_t k = big_endian(key, bytes);

	if (!k)
		return;
	load(b, size[bytes], offset);
	compare(b, k, big_endian(mask, bytes), all[bytes]);
}

static void packet_type(struct block *b, const struct dapl_eth_rule *rule)
{
	bool others = (rule->flags & ETH_ALL) || !bytes_are_zero(rule->mask.dst, 6);

	if ((rule->flags & ETH_EGRESS) && others)
		return;
	load(b, BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	if (!(rule->flags & ETH_EGRESS))
		emit(b, BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, FAIL, 0);
	if (!others)
		emit(b, BPF_JMP | BPF_JEQ | BPF_K, PACKET_OTHERHOST, FAIL, 0);
}

static void addresses(struct block *b, const struct dapl_eth_rule *rule)
{
	if (bytes_are_zero(rule->key.dst, 12))
		return;
	need_length(b, ETH_HLEN);
	field(b, 0, 4, rule->key.dst, rule->mask.dst);
	field(b, 4, 2, rule->key.dst + 4, rule->mask.dst + 4);
	field(b, 6, 4, rule->key.src, rule->mask.src);
	field(b, 10, 2, rule->key.src + 4, rule->mask.src + 4);
}

static bool has_ports(const struct dapl_eth_key *key)
{
	return key->port_src || key->port_dst;
}

/* Compares a port. X holds the length of the IP header. */
static void port(struct block *b, uint32_t offset, uint16_t key, uint16_t mask)
{
	if (!key)
		return;
	emit(b, BPF_LD | BPF_H | BPF_IND, L3 + offset, 0, 0);
	compare(b, ntohs(key), ntohs(mask), 0xffff);
}

static void ports(struct block *b, const struct dapl_eth_rule *rule)
{
	emit(b, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
	emit(b, BPF_JMP | BPF_JGE | BPF_X, 0, 0, FAIL);	/* the difference has no sign */
	emit(b, BPF_ALU | BPF_SUB | BPF_X, 0, 0, 0);
	emit(b, BPF_JMP | BPF_JGE | BPF_K, L3 + 4, 0, FAIL);
	port(b, 0, rule->key.port_src, rule->mask.port_src);
	port(b, 2, rule->key.port_dst, rule->mask.port_dst);
}

static void ipv4(struct block *b, const struct dapl_eth_rule *rule)
{
	need_length(b, L3 + 20);
	field(b, L3 + 1, 1, &rule->key.tos, &rule->mask.tos);
	field(b, L3 + 9, 1, &rule->key.protocol, &rule->mask.protocol);
	field(b, L3 + 12, 4, rule->key.ip_src, rule->mask.ip_src);
	field(b, L3 + 16, 4, rule->key.ip_dst, rule->mask.ip_dst);
	if (!has_ports(&rule->key))
		return;
	load(b, BPF_H, L3 + 6);		/* only the first fragment has ports */
	emit(b, BPF_JMP | BPF_JSET | BPF_K, 0x1fff, FAIL, 0);
	emit(b, BPF_LDX | BPF_B | BPF_MSH, L3, 0, 0);
	ports(b, rule);
}

/* Accumulator: the type of the header behind the IPv6 header. */
static void pass_extensions(struct block *b)
{
	static const uint8_t headers[] = { IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT,
		IPPROTO_DSTOPTS };

	load(b, BPF_B, L3 + 6);
	for (size_t i = 0; i < sizeof headers; i++)
		emit(b, BPF_JMP | BPF_JEQ | BPF_K, headers[i], PASS, 0);
}

static void ipv6(struct block *b, const struct dapl_eth_rule *rule)
{
	need_length(b, L3 + 40);
	for (unsigned i = 0; i < 16; i += 4) {
		field(b, L3 + 8 + i, 4, rule->key.ip_src + i, rule->mask.ip_src + i);
		field(b, L3 + 24 + i, 4, rule->key.ip_dst + i, rule->mask.ip_dst + i);
	}
	if (rule->key.tos) {
		load(b, BPF_W, L3);
		compare(b, (uint32_t)rule->key.tos << 20, (uint32_t)rule->mask.tos << 20, 0);
	}
	if (rule->key.flow_label) {
		load(b, BPF_W, L3);
		compare(b, ntohl(rule->key.flow_label), ntohl(rule->mask.flow_label) & 0xfffff, 0);
	}
	if (!rule->key.protocol && !has_ports(&rule->key))
		return;
	pass_extensions(b);
	field(b, L3 + 6, 1, &rule->key.protocol, &rule->mask.protocol);
	if (!has_ports(&rule->key))
		return;
	emit(b, BPF_LDX | BPF_W | BPF_IMM, 40, 0, 0);
	ports(b, rule);
}

/* The version that the rule fixes; 0: none. */
static unsigned ip_version(const struct dapl_eth_rule *rule)
{
	return rule->mask.ip_version == 0xff ? rule->key.ip_version : 0;
}

/* A rule for frames of an EtherType of IP without a header of that version: eth_match_parse() leaves the version 0
 * where the header is cut off or wrong. The other frames of the type are rejected. */
static void unreadable_ip(struct block *b, const struct dapl_eth_rule *rule)
{
	const bool is_ipv6 = rule->key.ether_type == htons(ETH_P_IPV6);

	if (rule->mask.ip_version != 0xff || rule->key.ip_version || rule->mask.ether_type != 0xffff ||
	    (!is_ipv6 && rule->key.ether_type != htons(ETH_P_IP)))
		return;
	emit(b, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
	emit(b, BPF_JMP | BPF_JGE | BPF_K, is_ipv6 ? L3 + 40 : L3 + 20, 0, PASS);
	load(b, BPF_B, L3);		/* 0x45 to 0x4f, or 0x60 to 0x6f, are readable */
	emit(b, BPF_JMP | BPF_JGE | BPF_K, is_ipv6 ? 0x70 : 0x50, PASS, 0);
	emit(b, BPF_JMP | BPF_JGE | BPF_K, is_ipv6 ? 0x60 : 0x45, FAIL, 0);
}

static void network(struct block *b, const struct dapl_eth_rule *rule)
{
	unsigned version = ip_version(rule);

	if (!rule->key.ether_type && version != 4 && version != 6)
		return;
	need_length(b, ETH_HLEN);
	load(b, BPF_H, 12);
	emit(b, BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021Q, PASS, 0);
	emit(b, BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021AD, PASS, 0);
	if (version == 4 || version == 6)
		emit(b, BPF_JMP | BPF_JEQ | BPF_K, version == 4 ? ETH_P_IP : ETH_P_IPV6, 0, FAIL);
	if (rule->key.ether_type)
		compare(b, ntohs(rule->key.ether_type), ntohs(rule->mask.ether_type), 0xffff);
	if (version == 4)
		ipv4(b, rule);
	else if (version == 6)
		ipv6(b, rule);
	else
		unreadable_ip(b, rule);
}

/* The targets become distances: PASS the return at the end, FAIL what follows it. */
static void resolve(struct block *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct sock_filter *f = &b->code[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		f->jt = f->jt == PASS ? b->n - 1 - i - 1 : f->jt == FAIL ? b->n - i - 1 : f->jt;
		f->jf = f->jf == PASS ? b->n - 1 - i - 1 : f->jf == FAIL ? b->n - i - 1 : f->jf;
	}
}

/* `accept`: the last instruction. */
static void rule_block(struct block *b, const struct dapl_eth_rule *rule, struct sock_filter accept)
{
	b->n = 0;
	packet_type(b, rule);
	addresses(b, rule);
	network(b, rule);
	emit(b, accept.code, accept.k, 0, 0);
	resolve(b);
}

void eth_filter_begin(struct eth_filter *filter, struct sock_filter *code, uint32_t snap)
{
	*filter = (struct eth_filter){ .code = code, .snap = snap };
}

/* Leaves room for the last instruction. */
static void append(struct eth_filter *filter, const struct sock_filter *code, unsigned n)
{
	if (filter->n + n + 1 > ETH_FILTER_MAX) {
		filter->full = true;
		return;
	}
	memcpy(filter->code + filter->n, code, n * sizeof *code);
	filter->n += n;
}

static void add_own(struct eth_filter *filter, const struct filter_part *part)
{
	const struct sock_filter accept = BPF_STMT(BPF_RET | BPF_K, filter->snap);
	struct block block;

	for (unsigned i = 0; i < part->n; i++) {
		rule_block(&block, part->rules[i], accept);
		append(filter, block.code, block.n);
	}
}

/* A rule that matches jumps to the hash, which follows the rules once. */
static void add_group(struct eth_filter *filter, const struct filter_part *part)
{
	struct sock_filter jump = BPF_STMT(BPF_JMP | BPF_JA, 0), *hash = malloc(ETH_FILTER_HASH_MAX * sizeof *hash);
	unsigned n, first = filter->n, end = first;
	struct block block;

	if (!hash) {
		filter->full = true;
		return;
	}
	n = eth_filter_hash(hash, part, filter->snap);
	for (unsigned i = 0; i < part->n; i++) {
		rule_block(&block, part->rules[i], jump);
		end += block.n;
	}
	for (unsigned i = 0; i < part->n && !filter->full; i++) {
		rule_block(&block, part->rules[i], jump);
		block.code[block.n - 1].k = end - (filter->n + block.n) + 1;
		append(filter, block.code, block.n);
	}
	jump.k = n;
	append(filter, &jump, 1);
	append(filter, hash, n);
	free(hash);
}

void eth_filter_add(struct eth_filter *filter, const struct filter_part *part)
{
	if (!part->key)
		add_own(filter, part);
	else if (part->n)
		add_group(filter, part);
}

unsigned eth_filter_end(struct eth_filter *filter)
{
	if (filter->full)
		filter->n = 0;
	filter->code[filter->n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, filter->full ? filter->snap : 0);
	return filter->n;
}

unsigned eth_filter_make(struct sock_filter program[ETH_FILTER_MAX], const struct dapl_eth_rule *const *rules,
			 unsigned n, uint32_t snap)
{
	struct filter_part part = { .rules = rules, .n = n };
	struct eth_filter filter;

	eth_filter_begin(&filter, program, snap);
	eth_filter_add(&filter, &part);
	return eth_filter_end(&filter);
}
