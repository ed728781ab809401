/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cbpf.h - runs classic BPF programs without a kernel: the instructions that dapl/softeth/filter*.c use. A program
 * that the kernel would not accept, or that loads bytes behind the end of a frame, fails the case. */
#ifndef TEST_SOFTETH_CBPF_H
#define TEST_SOFTETH_CBPF_H
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* Jumps lie within the program, which ends with a return. */
void cbpf_assert_accepted(const struct sock_filter *code, unsigned n);
/* Returns what the program returns; `type` is PACKET_*. */
uint32_t cbpf_run(const struct sock_filter *code, unsigned n, const uint8_t *frame, size_t length, uint8_t type);

#endif
