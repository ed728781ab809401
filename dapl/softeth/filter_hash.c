/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter_hash.c - the hash of a group (spread.c) as classic BPF. Frames whose hash would take too many
 * instructions are accepted: those with a VLAN tag in their bytes, IPv4 options, IPv6 extension headers, or
 * a tunnel whose inner headers are hashed.
 *
 * The input goes to the memory words 0 to 8, 0 where there is none: a bit that is 0 adds nothing. The hash is in X.
 * It is computed bit by bit without jumps: bits are random, and a jump that is predicted wrong costs more. */
#include <linux/if_ether.h>
#include <netinet/in.h>
#include "common/tunnel.h"
#include "dapl/softeth/filter_hash.h"
#include "dapl/softeth/spread.h"

enum {
	ACCEPT = 255, HASH = 254,	/* jump targets, until the reading part is complete */
	L3 = ETH_HLEN, V4 = L3 + 20, V6 = L3 + 40,	/* offsets of IP, and behind it */
	PORTS_V4 = 2, PORTS_V6 = 8, WORDS = 9,	/* memory words */
	IS_SHORT = 9, INDEX = 10,	/* memory words: only the first 3 words are not 0; the table's entry */
};

struct hash_code {
	struct sock_filter *code;
	unsigned n;
};

static void emit(struct hash_code *c, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	c->code[c->n++] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

static void load(struct hash_code *c, uint16_t size, uint32_t offset)
{
	emit(c, BPF_LD | size | BPF_ABS, offset, 0, 0);
}

static void jump_if(struct hash_code *c, uint16_t comparison, uint32_t k, uint8_t yes, uint8_t no)
{
	emit(c, BPF_JMP | comparison | BPF_K, k, yes, no);
}

static void need_length(struct hash_code *c, uint32_t length)
{
	emit(c, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
	jump_if(c, BPF_JGE, length, 0, ACCEPT);
}

static void set_word(struct hash_code *c, uint32_t word, uint32_t value)
{
	emit(c, BPF_LD | BPF_IMM, value, 0, 0);
	emit(c, BPF_ST, word, 0, 0);
}

static void copy_words(struct hash_code *c, uint32_t word, uint32_t offset, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		load(c, BPF_W, offset + 4 * i);
		emit(c, BPF_ST, word + i, 0, 0);
	}
}

/* --- reading the input ------------------------------------------------------------------------ */

/* The protocol is in A, its header at `l4`. */
static void read_ports(struct hash_code *c, const struct filter_part *part, uint32_t l4, uint32_t word)
{
	if (part->inner)
		jump_if(c, BPF_JEQ, IPPROTO_GRE, ACCEPT, 0);
	jump_if(c, BPF_JEQ, IPPROTO_TCP, 1, 0);
	jump_if(c, BPF_JEQ, IPPROTO_UDP, 0, HASH);
	need_length(c, l4 + 4);
	if (part->inner) {	/* ports of TCP with these numbers are accepted, too */
		load(c, BPF_H, l4 + 2);
		jump_if(c, BPF_JEQ, PORT_VXLAN, ACCEPT, 0);
		jump_if(c, BPF_JEQ, PORT_GENEVE, ACCEPT, 0);
	}
	if (part->ports)
		copy_words(c, word, l4, 1);
	emit(c, BPF_LD | BPF_IMM, 0, 0, 0);
	jump_if(c, BPF_JEQ, 0, HASH, HASH);
}

static void read_ipv4(struct hash_code *c, const struct filter_part *part)
{
	need_length(c, V4);
	load(c, BPF_B, L3);
	jump_if(c, BPF_JEQ, 0x45, 0, ACCEPT);
	copy_words(c, 0, L3 + 12, 2);
	load(c, BPF_H, L3 + 6);
	jump_if(c, BPF_JSET, 0x3fff, HASH, 0);
	load(c, BPF_B, L3 + 9);
	read_ports(c, part, V4, PORTS_V4);
}

static void read_ipv6(struct hash_code *c, const struct filter_part *part)
{
	static const uint8_t extensions[] = { IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT, IPPROTO_DSTOPTS };

	need_length(c, V6);
	load(c, BPF_B, L3);
	emit(c, BPF_ALU | BPF_RSH | BPF_K, 4, 0, 0);
	jump_if(c, BPF_JEQ, 6, 0, ACCEPT);
	set_word(c, IS_SHORT, 0);
	copy_words(c, 0, L3 + 8, 8);
	load(c, BPF_B, L3 + 6);
	for (unsigned i = 0; i < sizeof extensions; i++)
		jump_if(c, BPF_JEQ, extensions[i], ACCEPT, 0);
	read_ports(c, part, V6, PORTS_V6);
}

/* Replaces the targets of jumps by distances. */
static void resolve(struct hash_code *c, unsigned accept)
{
	for (unsigned i = 0; i < accept; i++) {
		struct sock_filter *f = &c->code[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		f->jt = f->jt == ACCEPT ? accept - i - 1 : f->jt == HASH ? accept - i : f->jt;
		f->jf = f->jf == ACCEPT ? accept - i - 1 : f->jf == HASH ? accept - i : f->jf;
	}
}

static void read_input(struct hash_code *c, const struct filter_part *part, uint32_t snap)
{
	unsigned ipv4;

	for (uint32_t i = 0; i < WORDS; i++)
		set_word(c, i, 0);
	set_word(c, IS_SHORT, 1);
	need_length(c, ETH_HLEN);
	load(c, BPF_H, 12);
	jump_if(c, BPF_JEQ, ETH_P_8021Q, ACCEPT, 0);
	jump_if(c, BPF_JEQ, ETH_P_8021AD, ACCEPT, 0);
	if (part->inner) {
		jump_if(c, BPF_JEQ, ETH_P_MPLS_UC, ACCEPT, 0);
		jump_if(c, BPF_JEQ, ETH_P_MPLS_MC, ACCEPT, 0);
	}
	ipv4 = c->n;
	jump_if(c, BPF_JEQ, ETH_P_IP, 0, 0);
	read_ipv4(c, part);
	c->code[ipv4].jf = (uint8_t)(c->n - ipv4 - 1);
	jump_if(c, BPF_JEQ, ETH_P_IPV6, 0, HASH);
	read_ipv6(c, part);
	emit(c, BPF_RET | BPF_K, snap, 0, 0);
	resolve(c, c->n - 1);
}

/* --- the hash, and the entry -------------------------------------------------------------------- */

static void add_word(struct hash_code *c, const uint8_t *key, uint32_t word)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		emit(c, BPF_LD | BPF_MEM, word, 0, 0);
		if (bit < 31)
			emit(c, BPF_ALU | BPF_RSH | BPF_K, 31 - bit, 0, 0);
		if (bit)
			emit(c, BPF_ALU | BPF_AND | BPF_K, 1, 0, 0);
		emit(c, BPF_ALU | BPF_MUL | BPF_K, spread_window(key, word * 32 + bit), 0, 0);
		emit(c, BPF_ALU | BPF_XOR | BPF_X, 0, 0, 0);
		emit(c, BPF_MISC | BPF_TAX, 0, 0, 0);
	}
}

static void compute(struct hash_code *c, const struct filter_part *part)
{
	unsigned skip;

	emit(c, BPF_LDX | BPF_IMM, 0, 0, 0);
	for (uint32_t word = 0; word <= PORTS_V4; word++)
		add_word(c, part->key, word);
	emit(c, BPF_LD | BPF_MEM, IS_SHORT, 0, 0);
	jump_if(c, BPF_JEQ, 0, 1, 0);
	skip = c->n;
	emit(c, BPF_JMP | BPF_JA, 0, 0, 0);
	for (uint32_t word = PORTS_V4 + 1; word < WORDS; word++)
		add_word(c, part->key, word);
	c->code[skip].k = c->n - skip - 1;
}

/* A holds 32 bits of the table, X the number of one. */
static void test_bit(struct hash_code *c, uint32_t snap)
{
	emit(c, BPF_ALU | BPF_RSH | BPF_X, 0, 0, 0);
	jump_if(c, BPF_JSET, 1, 0, 1);
	emit(c, BPF_RET | BPF_K, snap, 0, 0);
}

static void look_up(struct hash_code *c, const struct filter_part *part, uint32_t snap)
{
	uint32_t words = (part->size + 31) / 32;

	emit(c, BPF_MISC | BPF_TXA, 0, 0, 0);
	emit(c, BPF_ALU | BPF_AND | BPF_K, part->size - 1, 0, 0);
	emit(c, BPF_ST, INDEX, 0, 0);
	emit(c, BPF_ALU | BPF_AND | BPF_K, 31, 0, 0);
	emit(c, BPF_MISC | BPF_TAX, 0, 0, 0);
	emit(c, BPF_LD | BPF_MEM, INDEX, 0, 0);
	emit(c, BPF_ALU | BPF_RSH | BPF_K, 5, 0, 0);
	for (uint32_t i = 0; i + 1 < words; i++) {
		jump_if(c, BPF_JEQ, i, 0, 2);
		emit(c, BPF_LD | BPF_IMM, part->bits[i], 0, 0);
		emit(c, BPF_JMP | BPF_JA, 3 * (words - 2 - i) + 1, 0, 0);
	}
	emit(c, BPF_LD | BPF_IMM, part->bits[words - 1], 0, 0);
	test_bit(c, snap);
}

unsigned eth_filter_hash(struct sock_filter code[ETH_FILTER_HASH_MAX], const struct filter_part *part, uint32_t snap)
{
	struct hash_code c = { code, 0 };

	read_input(&c, part, snap);
	compute(&c, part);
	look_up(&c, part, snap);
	return c.n;
}
