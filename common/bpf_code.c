/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf_code.c - assembles eBPF programs. */
#include "common/bpf_code.h"
#include <errno.h>
#include <stdlib.h>

int bpf_code_begin(struct bpf_code *code)
{
	*code = (struct bpf_code){ .insns = calloc(BPF_LONGEST, sizeof *code->insns),
		.label_of = calloc(BPF_LONGEST, sizeof *code->label_of) };
	return code->insns && code->label_of ? 0 : ENOMEM;
}

void bpf_code_end(struct bpf_code *code)
{
	free(code->insns);
	free(code->label_of);
}

int bpf_label(struct bpf_code *code)
{
	if (code->label_count == BPF_LABELS) {
		code->failed = true;
		return 0;
	}
	code->labels[code->label_count] = -1;
	return code->label_count++;
}

void bpf_here(struct bpf_code *code, int label)
{
	code->labels[label] = code->n;
}

void bpf_emit(struct bpf_code *code, uint8_t op, int dst, int src, int off, int32_t imm)
{
	if (code->n == BPF_LONGEST) {
		code->failed = true;
		return;
	}
	code->insns[code->n++] = (struct bpf_insn){ .code = op, .dst_reg = (uint8_t)(dst & 15),
		.src_reg = (uint8_t)(src & 15), .off = (int16_t)off, .imm = imm };
}

void bpf_jump_if(struct bpf_code *code, uint8_t comparison, int dst, int32_t imm, int label)
{
	if (code->n < BPF_LONGEST)
		code->label_of[code->n] = (int16_t)(label + 1);
	bpf_emit(code, BPF_JMP32 | comparison | BPF_K, dst, 0, 0, imm);
}

void bpf_jump_if_null(struct bpf_code *code, int dst, int label)
{
	if (code->n < BPF_LONGEST)
		code->label_of[code->n] = (int16_t)(label + 1);
	bpf_emit(code, BPF_JMP | BPF_JEQ | BPF_K, dst, 0, 0, 0);
}

void bpf_jump(struct bpf_code *code, int label)
{
	if (code->n < BPF_LONGEST)
		code->label_of[code->n] = (int16_t)(label + 1);
	bpf_emit(code, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void bpf_load_map(struct bpf_code *code, int dst, int map_fd)
{
	bpf_emit(code, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, map_fd);
	bpf_emit(code, 0, 0, 0, 0, 0);
}

int bpf_resolve(struct bpf_code *code)
{
	if (code->failed)
		return E2BIG;
	for (int i = 0; i < code->n; i++)
		if (code->label_of[i])
			code->insns[i].off = (int16_t)(code->labels[code->label_of[i] - 1] - i - 1);
	return 0;
}
