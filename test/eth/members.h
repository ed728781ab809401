/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* members.h - endpoints of a group, random frames, and the endpoint to which each frame belongs. Hash and
 * table are computed here once more, from the fields that a frame was made of. */
#ifndef TEST_ETH_MEMBERS_H
#define TEST_ETH_MEMBERS_H
#include "wire.h"

enum {
	MEMBERS = 4, TABLE = 128, MOST = 20000,
	SOURCE = 6,		/* a frame's number is in its source address, behind two bytes */
};

struct made {
	uint8_t frame[400];
	size_t length;
	uint8_t input[36];	/* of the hash: addresses, then ports */
	size_t addresses, all;	/* bytes of the input: those of the addresses alone, and all */
};

extern struct wire w;
extern DAT_EP_HANDLE eps[MEMBERS];
extern uint16_t table[TABLE];
extern DAT_ETH_RSS rss;
extern unsigned received, from_member[MEMBERS];

void members_seed(void);		/* seeds the random numbers, and prints the seed */
void random_bytes(uint8_t *at, size_t n);
void random_table(void);
/* Opens the endpoints of a group: with rings of so many frames, or "" for posted receives. Key and table are
 * random. */
void open_members(const char *frames);
DAT_ETH_GROUP_HANDLE make_group(void);
DAT_ETH_RULE_HANDLE add_rule(DAT_HANDLE at, const DAT_ETH_RULE *rule);

struct made make_frame(uint32_t number);
int made_owner(const struct made *m, uint32_t *hash);	/* the endpoint, by the present key and table */
void send_frame(uint32_t number);	/* collect() checks its hash and its endpoint */
/* Takes the frames that have come to the rings. Fails if a frame comes twice, or to another endpoint than
 * its own. */
void collect(void);
void collect_until(unsigned expected);	/* fails unless exactly so many frames come */

#endif
