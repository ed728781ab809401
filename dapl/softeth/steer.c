/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer.c - compiles rules to eBPF. The program compares the keys that steer_headers.c has read with each rule, counts,
 * and says what becomes of the frame. */
#include "dapl/softeth/steer.h"
#include <linux/if_packet.h>
#include <string.h>
#include "dapl/softeth/steer_headers.h"

static void compare_key(struct steer *s, int at, const struct dapl_eth_key *key, const struct dapl_eth_key *mask,
			int next)
{
	for (int i = 0; i < (int)KEY_SIZE; i += 4) {
		uint32_t k, m;

		memcpy(&k, (const uint8_t *)key + i, 4);
		memcpy(&m, (const uint8_t *)mask + i, 4);
		if (!m)
			continue;
		load(s, BPF_W, R1, at + i);
		bpf_emit(s->code, BPF_ALU | BPF_AND | BPF_K, R1, 0, 0, (int32_t)m);
		jump_if(s, BPF_JNE, R1, (int32_t)k, next);
	}
}

static void count(struct steer *s, int counters, uint32_t entry)
{
	int none = bpf_label(s->code);

	store_number(s, BPF_W, COUNTER, (int32_t)entry);
	bpf_load_map(s->code, R1, counters);
	alu_register(s, BPF_MOV, R2, FP);
	alu(s, BPF_ADD, R2, COUNTER);
	call(s, BPF_FUNC_map_lookup_elem);
	bpf_emit(s->code, BPF_JMP | BPF_JNE | BPF_K, R0, 0, 1, 0);
	bpf_jump(s->code, none);
	alu(s, BPF_MOV, R1, 1);
	bpf_emit(s->code, BPF_STX | BPF_XADD | BPF_DW, R0, R1, 0, 0);
	bpf_emit(s->code, BPF_STX | BPF_XADD | BPF_DW, R0, END, 8, 0);
	bpf_here(s->code, none);
}

static void leave(struct steer *s, int verdict)
{
	alu(s, BPF_MOV, R0, verdict);
	bpf_emit(s->code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Writes the mark in front of the frame, if the driver has room for it, and gives the frame to the socket of its
 * queue. The kernel's stack gets it where there is none. */
static void give_to_socket(struct steer *s)
{
	const int size = sizeof(struct steer_mark);
	int unmarked = bpf_label(s->code);

	bpf_here(s->code, s->take);
	alu_register(s, BPF_MOV, R1, CTX);
	alu(s, BPF_MOV, R2, -size);
	call(s, BPF_FUNC_xdp_adjust_meta);
	jump_if(s, BPF_JNE, R0, 0, unmarked);
	call(s, FUNC_KTIME_GET_TAI_NS);
	load_context(s, R2, offsetof(struct xdp_md, data_meta));
	load_context(s, R3, offsetof(struct xdp_md, data));
	alu_register(s, BPF_MOV, R1, R2);
	alu(s, BPF_ADD, R1, size);
	bpf_emit(s->code, BPF_JMP | BPF_JGT | BPF_X, R1, R3, 2, 0);	/* never; the verifier wants it */
	bpf_emit(s->code, BPF_STX | BPF_DW | BPF_MEM, R2, R0, offsetof(struct steer_mark, time), 0);
	bpf_emit(s->code, BPF_STX | BPF_W | BPF_MEM, R2, TYPE, offsetof(struct steer_mark, rule), 0);
	bpf_here(s->code, unmarked);
	bpf_load_map(s->code, R1, s->xdp->sockets);
	load_context(s, R2, offsetof(struct xdp_md, rx_queue_index));
	alu(s, BPF_MOV, R3, XDP_PASS);
	call(s, BPF_FUNC_redirect_map);
	bpf_emit(s->code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void end_frame(struct steer *s, const struct steer_rule *r)
{
	if (!s->xdp) {
		leave(s, r->rule->mode == ETH_COPY ? TCX_NEXT_PROGRAM : TCX_DROP_FRAME);
	} else if (r->rule->mode == ETH_DROP) {
		leave(s, XDP_DROP);
	} else {
		alu(s, BPF_MOV, TYPE, (int32_t)r->number);
		bpf_jump(s->code, s->take);
		s->takes = true;
	}
}

/* TYPE: the kind of frame, PACKET_*. `behind`: the end of the group's rules. Returns false if every frame matches:
 * then no code may follow, up to that end. */
static bool try_rule(struct steer *s, const struct steer_rule *r, int counters, int behind)
{
	static const uint8_t none[6];
	const struct dapl_eth_rule *rule = r->rule;
	int next = bpf_label(s->code), begin = s->code->n;
	bool conditional;

	if (!(rule->flags & ETH_ALL) && !memcmp(rule->mask.dst, none, 6))
		jump_if(s, BPF_JEQ, TYPE, PACKET_OTHERHOST, next);
	compare_key(s, OUTER, &rule->key, &rule->mask, next);
	compare_key(s, INNER, &rule->inner_key, &rule->inner_mask, next);
	conditional = s->code->n != begin;
	if (rule->mode == ETH_DROP)
		count(s, counters, r->number);
	if (rule->mode == ETH_COPY && r->group)
		bpf_jump(s->code, behind);
	else
		end_frame(s, r);
	bpf_here(s->code, next);
	return conditional;
}

/* Compiles the port's own rules, or those of a group. Returns how many rules these are. *done: no frame
 * reaches the next rules. */
static unsigned try_group(struct steer *s, const struct steer_rule *rules, unsigned n, int counters, bool *done)
{
	int behind = bpf_label(s->code);
	bool reached = true, copied = false;
	unsigned i = 0;

	for (; i < n && rules[i].group == rules[0].group; i++) {
		if (!reached)
			continue;
		copied |= rules[i].group && rules[i].rule->mode == ETH_COPY;
		reached = try_rule(s, &rules[i], counters, behind);
	}
	bpf_here(s->code, behind);
	*done = !reached && !copied;
	return i;
}

static int make(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters,
		const struct steer_xdp *xdp)
{
	struct steer s = { .code = code, .match = bpf_label(code), .inner_ethernet = bpf_label(code),
		.inner_type = bpf_label(code), .take = bpf_label(code), .xdp = xdp };
	bool done = false;

	steer_headers(&s);
	for (unsigned i = 0; i < n && !done;)
		i += try_group(&s, rules + i, n - i, counters, &done);
	if (!done)
		leave(&s, xdp ? XDP_PASS : TCX_NEXT_PROGRAM);
	if (s.takes)
		give_to_socket(&s);
	return bpf_resolve(code);
}

int steer_make(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters)
{
	return make(code, rules, n, counters, NULL);
}

int steer_make_xdp(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters,
		   const struct steer_xdp *xdp)
{
	return make(code, rules, n, counters, xdp);
}
