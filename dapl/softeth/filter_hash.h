/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter_hash.h - the hash of a group as classic BPF (filter_hash.c). Plain C, without state. */
#ifndef SOFTETH_FILTER_HASH_H
#define SOFTETH_FILTER_HASH_H
#include "dapl/softeth/filter.h"

enum { ETH_FILTER_HASH_MAX = 2048 };	/* instructions */

/* Instructions that return `snap` if the hash of the frame selects an entry of the port, or cannot be computed here,
 * and go on behind them if not. Returns their number. */
unsigned eth_filter_hash(struct sock_filter code[ETH_FILTER_HASH_MAX], const struct filter_part *part, uint32_t snap);

#endif
