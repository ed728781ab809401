/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter.h - a classic BPF program for a set of rules, so that the kernel does not copy most of the frames
 * that no rule matches. It accepts every frame that a rule matches, and some more: eth_match_rule() decides. */
#ifndef SOFTETH_FILTER_H
#define SOFTETH_FILTER_H
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include "dapl/core/eth_device.h"
#include "dapl/softeth/spread.h"

enum { ETH_FILTER_MAX = 4096 };		/* instructions; the kernel's limit */

/* Rules of one place: the port's own, or those of a group. Of the frames that a group's rules match, only
 * some are the port's. */
struct filter_part {
	const struct dapl_eth_rule *const *rules;
	unsigned n;
	const uint8_t *key;		/* of the hash; NULL: the port's own rules */
	bool ports, inner;
	uint32_t size;			/* entries of the table */
	uint32_t bits[SPREAD_TABLE_MAX / 32];	/* the entries that are the port's */
};

struct eth_filter {
	struct sock_filter *code;	/* ETH_FILTER_MAX instructions */
	unsigned n;
	uint32_t snap;
	bool full;			/* it did not fit: the program accepts all frames */
};

/* `snap`: bytes of a frame that are kept. */
void eth_filter_begin(struct eth_filter *filter, struct sock_filter *code, uint32_t snap);
void eth_filter_add(struct eth_filter *filter, const struct filter_part *part);
unsigned eth_filter_end(struct eth_filter *filter);	/* the number of instructions */

/* Makes the program for rules of a port's own. Returns the number of instructions. */
unsigned eth_filter_make(struct sock_filter program[ETH_FILTER_MAX], const struct dapl_eth_rule *const *rules,
			 unsigned n, uint32_t snap);

#endif
