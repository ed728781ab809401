/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spread.h - how a group distributes frames: the hash of a frame, and a table that names the member whose frame it is.
 *
 * Each member's socket sees each frame, with one time stamp, and each member decides whether the frame is
 * its own. So all must use the same table for a frame: a table begins at an instant, and the older one
 * applies to frames that came before (change.h). A table is announced before it begins, so that the
 * kernel's filters accept its frames. */
#ifndef SOFTETH_SPREAD_H
#define SOFTETH_SPREAD_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/softeth/match.h"

enum {
	SPREAD_TABLE_MAX = 1024,	/* entries; a filter has room for a bit of each */
	TOEPLITZ_KEY = 40,		/* bytes */
	TOEPLITZ_INPUT_MAX = 36,	/* bytes: two IPv6 addresses and two ports; the key ends there */
};

struct spread_table {
	struct spread_table *older;
	uint64_t from_ns;		/* atomic; UINT64_MAX: only announced */
	uint16_t owner[];
};

/* The tables change under the lock of groups (group.c). A thread reads them with the lock of a member's port held: a
 * table that is taken off the list is freed after all of these locks were taken once. */
struct eth_spread {
	unsigned refs;			/* atomic: the group, and rules of members */
	unsigned id;			/* groups of a port are looked at in this order */
	uint8_t key[TOEPLITZ_KEY];
	bool ports, inner;		/* hashes the ports; the headers within a tunnel */
	uint32_t size;			/* entries, a power of 2 */
	struct spread_table *newest;	/* atomic */
};

/* Makes a spread with one table, for all times. Returns NULL if there is no memory. */
struct eth_spread *spread_new(const struct dapl_eth_rss *rss);
void spread_get(struct eth_spread *spread);
void spread_put(struct eth_spread *spread);

/* The Toeplitz hash of receive side scaling: the input's bits select windows of 32 bits of the key, which are added
 * without carry. */
uint32_t spread_hash(const struct eth_spread *spread, const struct eth_headers *headers);
/* The 32 bits of the key from bit `offset` on, the highest bit of a byte first. */
uint32_t spread_window(const uint8_t key[TOEPLITZ_KEY], unsigned offset);
uint16_t spread_owner(const struct eth_spread *spread, uint32_t hash, uint64_t time);
/* Sets the bit of each entry of `member`, in all tables that are valid for frames since `since_ns`. Returns
 * true if there is more than one such table. */
bool spread_bits(const struct eth_spread *spread, uint16_t member, uint64_t since_ns,
		 uint32_t bits[SPREAD_TABLE_MAX / 32]);

bool spread_announce(struct eth_spread *spread, const uint16_t *owner);	/* false: no memory */
void spread_begin(struct eth_spread *spread, uint64_t now_ns);		/* the announced table */
/* These take tables off the list: the announced one; those that no frame since `since_ns` goes by. */
struct spread_table *spread_withdraw(struct eth_spread *spread);
struct spread_table *spread_outdated(struct eth_spread *spread, uint64_t since_ns);
void spread_free_tables(struct spread_table *table);

#endif
