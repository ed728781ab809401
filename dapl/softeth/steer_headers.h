/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer_headers.h - a frame to keys, and what this part of the compiler shares with steer.c: the program that is being
 * made, its use of the stack and of registers, and a function for each kind of instruction. Their names are short,
 * since the callers read like assembly. */
#ifndef SOFTETH_STEER_HEADERS_H
#define SOFTETH_STEER_HEADERS_H
#include <stddef.h>
#include "dapl/softeth/steer.h"

enum {
	/* the stack, from the frame pointer */
	KEY_SIZE = sizeof(struct dapl_eth_key),
	INNER = -72, OUTER = -144,	/* the keys */
	HEADER = -192,			/* up to 40 bytes of a header */
	GRE = -200, GRE_KEY = -208,	/* flags and type, key */
	COUNTER = -216,
};
/* Registers. Those from CTX on are kept over calls. AT: offset in the frame, END: its length, TYPE: what the next
 * header is, FP: the frame pointer. */
enum { R0, R1, R2, R3, R4, CTX = 6, AT, TYPE, END, FP };
/* enum bpf_func_id; older headers lack them. */
enum { FUNC_XDP_GET_BUFF_LEN = 188, FUNC_XDP_LOAD_BYTES = 189, FUNC_KTIME_GET_TAI_NS = 208 };

#define FIELD(name) ((int)offsetof(struct dapl_eth_key, name))

struct steer {
	struct bpf_code *code;
	int match;			/* label: the headers are read */
	int inner_ethernet, inner_type;	/* labels: headers within a tunnel begin; TYPE says which */
	const struct steer_xdp *xdp;	/* NULL: for the ingress */
	int take;			/* XDP, label: a rule takes the frame; TYPE is its number */
	bool takes;			/* there is a jump to it */
};

static inline void load(struct steer *s, int size, int dst, int offset)	/* from the stack */
{
	bpf_emit(s->code, (uint8_t)(BPF_LDX | size | BPF_MEM), dst, FP, offset, 0);
}

static inline void store(struct steer *s, int size, int offset, int src)
{
	bpf_emit(s->code, (uint8_t)(BPF_STX | size | BPF_MEM), FP, src, offset, 0);
}

static inline void store_number(struct steer *s, int size, int offset, int32_t number)
{
	bpf_emit(s->code, (uint8_t)(BPF_ST | size | BPF_MEM), FP, 0, offset, number);
}

static inline void alu(struct steer *s, int op, int dst, int32_t number)
{
	bpf_emit(s->code, (uint8_t)(BPF_ALU64 | op | BPF_K), dst, 0, 0, number);
}

static inline void alu_register(struct steer *s, int op, int dst, int src)
{
	bpf_emit(s->code, (uint8_t)(BPF_ALU64 | op | BPF_X), dst, src, 0, 0);
}

static inline void jump_if(struct steer *s, int comparison, int dst, int32_t number, int label)
{
	bpf_jump_if(s->code, (uint8_t)comparison, dst, number, label);
}

static inline void copy(struct steer *s, int size, int to, int from)
{
	load(s, size, R1, from);
	store(s, size, to, R1);
}

static inline void copy_words(struct steer *s, int to, int from, int words)
{
	for (int i = 0; i < words; i++)
		copy(s, BPF_W, to + 4 * i, from + 4 * i);
}

static inline void to_network(struct steer *s, int dst, int bits)
{
	bpf_emit(s->code, BPF_ALU | BPF_END | BPF_TO_BE, dst, 0, 0, bits);
}

static inline void load_context(struct steer *s, int dst, int offset)	/* 32 bits */
{
	bpf_emit(s->code, BPF_LDX | BPF_W | BPF_MEM, dst, CTX, offset, 0);
}

static inline void call(struct steer *s, int function)
{
	bpf_emit(s->code, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* Adds the code that reads a frame: then the keys are on the stack, and TYPE is the kind of frame, PACKET_*. It begins
 * the program. */
void steer_headers(struct steer *s);

#endif
