/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter.h - a classic BPF program for a set of rules, so that the kernel keeps most of what no rule wants from
 * being copied. It lets every frame through that a rule matches, and some more: eth_matches() decides. */
#ifndef SOFTETH_FILTER_H
#define SOFTETH_FILTER_H
#include <linux/filter.h>
#include <stdint.h>
#include "dapl/core/eth_device.h"

enum { ETH_FILTER_MAX = 4096 };		/* instructions; the kernel's limit */

/* Writes the program; returns the number of instructions. `snap`: bytes of a frame that are kept. */
unsigned eth_filter_make(struct sock_filter program[ETH_FILTER_MAX], const struct dapl_eth_rule *const *rules,
			 unsigned n, uint32_t snap);

#endif
