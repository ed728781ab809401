/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* members.h - endpoints of a group, random frames, and the endpoint to which each frame belongs. Hash and table are computed here
 * once more, from the fields that a frame was made of. */
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
	uint8_t input[36];	/* of the hash */
	size_t addresses, all;	/* bytes of it */
};

extern struct wire w;
extern DAT_EP_HANDLE eps[MEMBERS];
extern uint16_t table[TABLE];
extern DAT_ETH_RSS rss;
extern unsigned received, from_member[MEMBERS];

void members_seed(void);		/* prints it */
void random_bytes(uint8_t *at, size_t n);
void random_table(void);
void open_members(const char *frames);	/* rings, or "": posted receives. Key and table are random */
DAT_ETH_GROUP_HANDLE make_group(void);
DAT_ETH_RULE_HANDLE add_rule(DAT_HANDLE at, const DAT_ETH_RULE *rule);

struct made make_frame(uint32_t number);
int made_owner(const struct made *m, uint32_t *hash);	/* by hash and table as they are now */
void send_frame(uint32_t number);	/* its hash and endpoint are checked when it comes */
/* Takes what has come to the rings; each frame comes once, and to its endpoint. */
void collect(void);
void collect_until(unsigned expected);

#endif
