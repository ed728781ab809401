/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf.h - eBPF programs made at run time: an assembler with labels, and the system calls to load a program,
 * to count in a map, and to attach it to the ingress of a network device (tcx, Linux 6.6) or before its stack (XDP).
 * steer.c decides what a program does. */
#ifndef SOFTETH_BPF_H
#define SOFTETH_BPF_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	BPF_LABELS = 400,
	BPF_LONGEST = 32000,		/* instructions: jumps reach 32767 */
	TCX_NEXT_PROGRAM = -1, TCX_DROP_FRAME = 2,	/* what a program returns */
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
void bpf_jump(struct bpf_code *code, int label);
void bpf_load_map(struct bpf_code *code, int dst, int map_fd);
/* Replaces the labels of jumps by distances. Returns 0, or E2BIG if the program is too long. */
int bpf_resolve(struct bpf_code *code);

/* These return a descriptor or a negative errno. */
int bpf_load_program(enum bpf_prog_type type, const struct bpf_insn *insns, int n);
int bpf_create_counters(uint32_t entries);		/* of two numbers each */
int bpf_create_sockets(uint32_t entries);		/* a map of AF_XDP sockets */
/* Both attach until the descriptor is closed, or the process ends. XDP goes into the driver if that can run it. */
int bpf_attach_ingress(int program, int interface);
int bpf_attach_xdp(int program, int interface);
/* These return 0 or a positive errno. */
int bpf_replace(int link, int program);
int bpf_set_socket(int map, uint32_t entry, int socket);
int bpf_read_counters(int map, uint32_t entry, uint64_t counters[2]);
int bpf_clear_counters(int map, uint32_t entry);
/* Returns true if the kernel has tcx. */
bool bpf_has_tcx(void);

#endif
