/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spread.c - the hash of a frame, and the tables of a group. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/softeth/spread.h"

/* --- life --------------------------------------------------------------------------------- */

static struct spread_table *new_table(const uint16_t *owner, uint32_t size, uint64_t from_ns)
{
	struct spread_table *table = malloc(sizeof *table + size * sizeof *owner);

	if (!table)
		return NULL;
	table->older = NULL;
	table->from_ns = from_ns;
	memcpy(table->owner, owner, size * sizeof *owner);
	return table;
}

struct eth_spread *spread_new(const struct dapl_eth_rss *rss)
{
	static unsigned count;
	struct eth_spread *spread = calloc(1, sizeof *spread);

	if (!spread)
		return NULL;
	if (!(spread->newest = new_table(rss->table, rss->size, 0))) {
		free(spread);
		return NULL;
	}
	spread->refs = 1;
	spread->id = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	memcpy(spread->key, rss->hash.rx_hash_key, sizeof spread->key);
	spread->ports = (rss->hash.rx_hash_fields_mask & IBV_RX_HASH_SRC_PORT_TCP) != 0;
	spread->inner = (rss->hash.rx_hash_fields_mask & IBV_RX_HASH_INNER) != 0;
	spread->size = rss->size;
	return spread;
}

void spread_get(struct eth_spread *spread)
{
	__atomic_add_fetch(&spread->refs, 1, __ATOMIC_RELAXED);
}

void spread_free_tables(struct spread_table *table)
{
	struct spread_table *older;

	for (; table; table = older) {
		older = table->older;
		free(table);
	}
}

void spread_put(struct eth_spread *spread)
{
	if (__atomic_sub_fetch(&spread->refs, 1, __ATOMIC_ACQ_REL))
		return;
	spread_free_tables(spread->newest);
	free(spread);
}

/* --- frames ------------------------------------------------------------------------------- */

uint32_t spread_window(const uint8_t key[TOEPLITZ_KEY], unsigned offset)
{
	uint64_t bits = 0;

	for (unsigned i = offset / 8; i < offset / 8 + 5; i++)
		bits = bits << 8 | (i < TOEPLITZ_KEY ? key[i] : 0);
	return (uint32_t)(bits >> (8 - offset % 8));
}

/* HOT: once for each frame of a group. Without a branch: the bits are random. */
static uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY], const uint8_t *input, size_t length)
{
	uint32_t hash = 0;
	uint64_t bits = 0;	/* the window of the byte's first bit, and the 8 bits behind it */

	for (size_t i = 0; i < 5; i++)
		bits = bits << 8 | key[i];
	for (size_t i = 0; i < length; i++) {
		for (unsigned bit = 0; bit < 8; bit++)
			hash ^= (uint32_t)(bits >> (8 - bit)) & -((uint32_t)input[i] >> (7 - bit) & 1);
		bits = bits << 8 | (i + 5 < TOEPLITZ_KEY ? key[i + 5] : 0);
	}
	return hash;
}

static size_t put(uint8_t *input, size_t length, const void *field, size_t size)
{
	memcpy(input + length, field, size);
	return length + size;
}

/* All fragments of a packet have the same hash, so their ports and what is within them are not looked at. */
uint32_t spread_hash(const struct eth_spread *spread, const struct eth_headers *h)
{
	bool inner = spread->inner && h->outer.tunnel && !h->outer_fragmented;
	const struct dapl_eth_key *key = inner ? &h->inner : &h->outer;
	bool fragmented = inner ? h->inner_fragmented : h->outer_fragmented;
	size_t address = key->ip_version == 4 ? 4 : 16, length;
	uint8_t input[TOEPLITZ_INPUT_MAX];

	if (!key->ip_version)
		return 0;
	length = put(input, 0, key->ip_src, address);
	length = put(input, length, key->ip_dst, address);
	if (spread->ports && !fragmented && (key->protocol == IPPROTO_TCP || key->protocol == IPPROTO_UDP)) {
		length = put(input, length, &key->port_src, 2);
		length = put(input, length, &key->port_dst, 2);
	}
	return toeplitz_hash(spread->key, input, length);
}

static struct spread_table *newest(const struct eth_spread *spread)
{
	return __atomic_load_n(&spread->newest, __ATOMIC_ACQUIRE);
}

static struct spread_table *older(const struct spread_table *table)
{
	return __atomic_load_n(&table->older, __ATOMIC_ACQUIRE);
}

static uint64_t from(const struct spread_table *table)
{
	return __atomic_load_n(&table->from_ns, __ATOMIC_RELAXED);
}

uint16_t spread_owner(const struct eth_spread *spread, uint32_t hash, uint64_t time)
{
	const struct spread_table *table = newest(spread), *next;

	while (time < from(table) && (next = older(table)))
		table = next;
	return table->owner[hash & (spread->size - 1)];
}

/* --- tables ------------------------------------------------------------------------------- */

bool spread_bits(const struct eth_spread *spread, uint16_t member, uint64_t since_ns,
		 uint32_t bits[SPREAD_TABLE_MAX / 32])
{
	const struct spread_table *first = newest(spread), *table = first, *next;

	memset(bits, 0, SPREAD_TABLE_MAX / 8);
	for (;; table = next) {
		for (uint32_t i = 0; i < spread->size; i++)
			if (table->owner[i] == member)
				bits[i / 32] |= (uint32_t)1 << i % 32;
		if (from(table) < since_ns || !(next = older(table)))
			return table != first;
	}
}

bool spread_announce(struct eth_spread *spread, const uint16_t *owner)
{
	struct spread_table *table = new_table(owner, spread->size, UINT64_MAX);

	if (!table)
		return false;
	table->older = spread->newest;
	__atomic_store_n(&spread->newest, table, __ATOMIC_RELEASE);
	return true;
}

void spread_begin(struct eth_spread *spread, uint64_t now_ns)
{
	__atomic_store_n(&spread->newest->from_ns, now_ns, __ATOMIC_RELAXED);
}

struct spread_table *spread_withdraw(struct eth_spread *spread)
{
	struct spread_table *table = spread->newest;

	__atomic_store_n(&spread->newest, table->older, __ATOMIC_RELEASE);
	return table;
}

struct spread_table *spread_outdated(struct eth_spread *spread, uint64_t since_ns)
{
	struct spread_table *table = spread->newest, *outdated;

	while (table->older && from(table) >= since_ns)
		table = table->older;
	outdated = table->older;
	__atomic_store_n(&table->older, NULL, __ATOMIC_RELEASE);
	return outdated;
}
