/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr_table.c - a hash table with chains under one lock. It doubles when it has more entries than
 * chains. Without memory for that it keeps its size: only speed is lost. */
#include "dat/lmr_table.h"
#include "dat/error.h"
#include "dat/lock.h"
#include <stdint.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	DAT_IA_HANDLE ia;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
};

enum { CHAINS_MIN = 64 };	/* a power of two, like all sizes */

static struct dat_mutex lock = DAT_MUTEX_INIT(RANK_DAT_LMRS);
static struct entry **chains;
static size_t chain_count, entry_count;

static struct entry **chain_of(struct entry **table, size_t count, DAT_IA_HANDLE ia,
			       DAT_LMR_CONTEXT context)
{
	uint64_t key = (uint64_t)(uintptr_t)ia << 32 | context;

	return &table[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (count - 1)];
}

/* Returns the link to the entry, or the end of its chain. */
static struct entry **find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context)
{
	struct entry **at = chain_of(chains, chain_count, ia, context);

	while (*at && ((*at)->ia != ia || (*at)->context != context))
		at = &(*at)->next;
	return at;
}

static bool grow(void)
{
	size_t count = chain_count ? 2 * chain_count : CHAINS_MIN;
	struct entry **table = calloc(count, sizeof *table);

	if (!table)
		return chain_count > 0;
	for (size_t i = 0; i < chain_count; i++) {
		while (chains[i]) {
			struct entry *e = chains[i], **to;

			chains[i] = e->next;
			to = chain_of(table, count, e->ia, e->context);
			e->next = *to;
			*to = e;
		}
	}
	free(chains);
	chains = table;
	chain_count = count;
	return true;
}

static bool add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr)
{
	struct entry **at, *e;

	if (entry_count >= chain_count && !grow())
		return false;
	at = find(ia, context);
	if (!*at) {
		e = malloc(sizeof *e);
		if (!e)
			return false;
		*e = (struct entry){ .ia = ia, .context = context };
		*at = e;
		entry_count++;
	}
	(*at)->lmr = lmr;
	return true;
}

static void unlink_entry(struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	free(e);
	entry_count--;
}

EXPORT DAT_RETURN dats_lmr_add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr)
{
	bool added;

	dat_mutex_lock(&lock);
	added = add(ia, context, lmr);
	dat_mutex_unlock(&lock);
	return added ? DAT_SUCCESS :
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

EXPORT void dats_lmr_remove(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr)
{
	dat_mutex_lock(&lock);
	if (entry_count) {
		struct entry **at = find(ia, context);

		if (*at && (*at)->lmr == lmr)
			unlink_entry(at);
	}
	dat_mutex_unlock(&lock);
}

EXPORT DAT_LMR_HANDLE dats_lmr_find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	dat_mutex_lock(&lock);
	if (entry_count) {
		struct entry *e = *find(ia, context);

		if (e)
			lmr = e->lmr;
	}
	dat_mutex_unlock(&lock);
	return lmr;
}

void lmr_table_drop(DAT_IA_HANDLE ia)
{
	dat_mutex_lock(&lock);
	for (size_t i = 0; entry_count && i < chain_count; i++) {
		struct entry **at = &chains[i];

		while (*at) {
			if ((*at)->ia == ia)
				unlink_entry(at);
			else
				at = &(*at)->next;
		}
	}
	dat_mutex_unlock(&lock);
}

void lmr_table_fork(bool begins)
{
	if (begins)
		dat_mutex_lock(&lock);
	else
		dat_mutex_unlock(&lock);
}

void lmr_table_fini(void)
{
	for (size_t i = 0; i < chain_count; i++)
		while (chains[i])
			unlink_entry(&chains[i]);
	free(chains);
	chains = NULL;
	chain_count = 0;
}
