/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf.h - eBPF programs of a port: the system calls to load a program, to count in a map, and to attach it to the
 * ingress of a network device (tcx, Linux 6.6) or before its stack (XDP). steer.c decides what a program does. */
#ifndef SOFTETH_BPF_H
#define SOFTETH_BPF_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/bpf_code.h"

enum { TCX_NEXT_PROGRAM = -1, TCX_DROP_FRAME = 2 };	/* what a program returns */

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
