/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.h - for the examples of raw Ethernet endpoints: opens an endpoint with a ring and with memory to send from, sends
 * and receives frames, and parses addresses. */
#ifndef RAW_H
#define RAW_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

struct raw {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, ready, sent;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_ETH_ATTR attr;		/* of the network device */
	uint8_t memory[65536];		/* registered */
};

/* A call that fails ends the program with one line and exit status 1. */
#define CHECK(call) raw_check(#call, (call))
void raw_check(const char *call, DAT_RETURN ret);

void raw_open(struct raw *raw, DAT_NAME_PTR ia);
void raw_close(struct raw *raw);
void raw_rule(struct raw *raw, const DAT_ETH_RULE *rule);
/* Waits for the next frame. The caller gives it back with dat_eth_release(). */
DAT_ETH_FRAME raw_next(struct raw *raw);
/* Posts the first `length` bytes of the memory as a send. */
void raw_post(struct raw *raw, DAT_SEG_LENGTH length, DAT_UINT64 cookie, const DAT_ETH_SEND *how);
/* Waits until one send has completed. A completion with an error ends the program. */
void raw_await(struct raw *raw);

/* Parse an address, or a decimal number from 1 to max. Return false if the text is something else. */
bool raw_mac(const char *text, uint8_t mac[6]);
bool raw_ipv4(const char *text, uint8_t ip[4]);
bool raw_number(const char *text, unsigned long long max, unsigned long long *number);

#endif
