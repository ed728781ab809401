/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf_code.h - an assembler with labels for eBPF programs that are made at run time. Not responsible for: loading and
 * attaching them. */
#ifndef COMMON_BPF_CODE_H
#define COMMON_BPF_CODE_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	BPF_LABELS = 400,
	BPF_LONGEST = 32000,		/* instructions: jumps reach 32767 */
};

struct bpf_code {
	struct bpf_insn *insns;		/* BPF_LONGEST of them */
	int16_t *label_of;		/* of each instruction that jumps: its label + 1; else 0 */
	int n;
	int labels[BPF_LABELS];		/* where; -1: not yet */
	int label_count;
	bool failed;			/* too long, or too many labels */
};

/* Returns 0 or ENOMEM. bpf_code_end() is called in both cases. */
int bpf_code_begin(struct bpf_code *code);
void bpf_code_end(struct bpf_code *code);
int bpf_label(struct bpf_code *code);			/* makes a label, for a place that bpf_here() sets */
void bpf_here(struct bpf_code *code, int label);
void bpf_emit(struct bpf_code *code, uint8_t op, int dst, int src, int off, int32_t imm);
/* Jumps to `label` if the comparison of `dst` holds; 32 bits. */
void bpf_jump_if(struct bpf_code *code, uint8_t comparison, int dst, int32_t imm, int label);
/* Jumps if the 64 bits of `dst` are 0, as a pointer to nothing is. */
void bpf_jump_if_null(struct bpf_code *code, int dst, int label);
void bpf_jump(struct bpf_code *code, int label);
void bpf_load_map(struct bpf_code *code, int dst, int map_fd);
/* Replaces the labels of jumps by distances. Returns 0, or E2BIG if the program is too long. */
int bpf_resolve(struct bpf_code *code);

#endif
