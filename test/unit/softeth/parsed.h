/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parsed.h - frames as the parser reads them, and the keys that it should find in headers of frames.h. */
#ifndef TEST_SOFTETH_PARSED_H
#define TEST_SOFTETH_PARSED_H
#include "dapl/softeth/match.h"
#include "test/unit/softeth/frames.h"

/* The first `length` bytes of the frame, in memory that ends behind them: a sanitizer sees if the parser reads on. */
struct eth_headers parse_cut(const struct frame *f, size_t length);
struct eth_headers parse(const struct frame *f);
void assert_key(const struct dapl_eth_key *found, const struct dapl_eth_key *expected);

struct dapl_eth_key key_of_ipv4(uint8_t protocol);	/* behind the Ethernet header of frames.h, as key_of_ipv6() */
struct dapl_eth_key key_of_ipv6(uint8_t protocol);
void key_set_ports(struct dapl_eth_key *key, uint16_t to);

#endif
