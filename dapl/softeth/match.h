/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* match.h - header fields of a frame, and whether a rule matches them. Plain C over bytes, without state. */
#ifndef SOFTETH_MATCH_H
#define SOFTETH_MATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dapl/core/eth_device.h"

/* Headers that match.c skips before it reads on. The program of steer_headers.c skips as many, so both read the same
 * fields. */
enum {
	MATCH_TAGS = 2,			/* VLAN tags: one service tag, one customer tag */
	MATCH_EXTENSIONS = 6,		/* IPv6 extension headers */
	MATCH_LABELS = 8,		/* MPLS labels */
};

struct eth_headers {
	struct dapl_eth_key outer, inner;	/* inner: all 0 without a tunnel */
	bool outer_fragmented, inner_fragmented;	/* the packet is a fragment, be it the first */
};

/* A VLAN tag that the kernel has stripped; type 0: none. Host byte order. */
struct eth_tag {
	uint16_t type, tci;
};

/* Reads the headers of a frame. What is cut off or not known is 0. */
void eth_match_parse(const uint8_t *frame, size_t length, struct eth_tag stripped, struct eth_headers *headers);
bool eth_match_rule(const struct dapl_eth_rule *rule, const struct eth_headers *headers);
/* True if every frame matches, whatever its headers are. */
bool eth_match_all(const struct dapl_eth_rule *rule);

#endif
