/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ebpf.h - runs eBPF programs without a kernel: the instructions and helpers that dapl/softeth/steer*.c and the
 * hash of tools/sock/option.c use, and what
 * the kernel's verifier wants of them. A violation fails the case. */
#ifndef TEST_SOFTETH_EBPF_H
#define TEST_SOFTETH_EBPF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dapl/softeth/bpf.h"

enum { EBPF_MAP = 7, EBPF_COUNTERS = 4 };	/* the descriptor of the only map, and its entries */

struct ebpf_frame {
	const uint8_t *bytes;
	size_t length;
	uint32_t type;				/* PACKET_* */
	bool tagged;				/* the kernel has stripped a tag */
	uint16_t tci;				/* of it; host byte order */
};

/* Returns what the program returns. */
int ebpf_run(const struct bpf_code *code, const struct ebpf_frame *frame, uint64_t counters[EBPF_COUNTERS][2]);
/* Jumps only go forward, and each instruction can be reached. */
void ebpf_assert_accepted(const struct bpf_code *code);

#endif
