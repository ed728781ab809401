/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_table.c - the table of the static registry's entries, and its replacement (entry_table.h). */
#include "dat/entry_table.h"
#include <stdlib.h>
#include <string.h>

/* --- readings ----------------------------------------------------------------- */

struct reading *reading_make(bool with_soft, bool again)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	if (!reading)
		return NULL;
	reading->refs = 1;
	reading->sources.again = again;
	if (sources_read(&reading->sources, with_soft)) {
		free(reading);
		return NULL;
	}
	reading->repeated = calloc(reading->sources.conf.count + 1, sizeof(*reading->repeated));
	if (!reading->repeated) {
		reading_put(reading);
		return NULL;
	}
	return reading;
}

void reading_get(struct reading *reading)
{
	__atomic_add_fetch(&reading->refs, 1, __ATOMIC_RELAXED);
}

void reading_put(struct reading *reading)
{
	if (!reading || __atomic_sub_fetch(&reading->refs, 1, __ATOMIC_ACQ_REL))
		return;
	sources_free(&reading->sources);
	free(reading->repeated);
	free(reading);
}

/* --- keys ----------------------------------------------------------------------- */

bool same_key(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return a->dapl_version_major == b->dapl_version_major &&
	       a->dapl_version_minor == b->dapl_version_minor &&
	       !a->is_thread_safe == !b->is_thread_safe && !strcmp(a->ia_name, b->ia_name);
}

static struct entry **bucket_of(const struct entry_table *table, const char *name)
{
	unsigned hash = 5381;

	for (; *name; name++)
		hash = hash * 33 ^ (unsigned char)*name;
	return &table->buckets[hash & (table->bucket_count - 1)];
}

struct entry *table_first(const struct entry_table *table, const char *name)
{
	return table->count ? *bucket_of(table, name) : NULL;
}

struct entry *table_next(const struct entry_table *table, const DAT_PROVIDER_INFO *key,
			 struct entry *after)
{
	struct entry *e = after ? after->next_in_bucket : table_first(table, key->ia_name);

	for (; e; e = e->next_in_bucket)
		if (e->conf->is_default && same_key(&e->conf->info, key))
			return e;
	return NULL;
}

/* --- making --------------------------------------------------------------------- */

static struct entry *entry_make(struct reading *reading, const struct conf_entry *conf)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->conf = conf;
	e->reading = reading;
	reading_get(reading);
	return e;
}

static void entry_free(struct entry *e)
{
	reading_put(e->reading);
	free(e);
}

static void index_all(struct entry_table *table)
{
	memset(table->buckets, 0, table->bucket_count * sizeof(*table->buckets));
	for (size_t i = 0; i < table->count; i++) {
		struct entry *e = table->entries[i];
		struct entry **at = bucket_of(table, e->conf->info.ia_name);

		e->next_in_bucket = NULL;
		e->repeated = false;
		for (; *at; at = &(*at)->next_in_bucket)
			if ((*at)->conf->is_default &&
			    same_key(&(*at)->conf->info, &e->conf->info))
				e->repeated = true;
		*at = e;
		table->reading->repeated[i] = e->repeated;
	}
}

bool table_make(struct entry_table *table, struct reading *reading)
{
	const struct conf *conf = &reading->sources.conf;

	*table = (struct entry_table){ .bucket_count = 16 };
	while (table->bucket_count < 2 * conf->count)
		table->bucket_count *= 2;
	table->entries = calloc(conf->count + 1, sizeof(*table->entries));
	table->buckets = calloc(table->bucket_count, sizeof(*table->buckets));
	while (table->entries && table->buckets && table->count < conf->count) {
		struct entry *e = entry_make(reading, &conf->entries[table->count]);

		if (!e)
			break;
		table->entries[table->count++] = e;
	}
	if (!table->entries || !table->buckets || table->count < conf->count) {
		table_free(table);
		return false;
	}
	table->reading = reading;
	index_all(table);
	return true;
}

void table_free(struct entry_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		entry_free(table->entries[i]);
	free(table->entries);
	free(table->buckets);
	reading_put(table->reading);
	*table = (struct entry_table){ .reading = NULL };
}

/* --- replacing ------------------------------------------------------------------ */

static bool same_entry(const struct conf_entry *a, const struct conf_entry *b)
{
	return same_key(&a->info, &b->info) && a->is_default == b->is_default &&
	       !strcmp(a->library, b->library) && !strcmp(a->ia_params, b->ia_params);
}

/* The old entry takes the place of the new one that is the same, and its position in the files. */
static void move_entry(struct entry_table *table, size_t from, struct entry **place)
{
	struct entry *old = table->entries[from], *new = *place;
	struct reading *reading = old->reading;

	old->reading = new->reading;
	old->conf = new->conf;
	new->reading = reading;
	old->failure_reported = false;
	*place = old;
	table->entries[from] = NULL;
	entry_free(new);
}

/* For each new entry, moves the first equal old one that has not moved yet, whether or not that one is
 * loaded. */
static void move_all(struct entry_table *table, struct entry_table *fresh)
{
	for (size_t i = 0; i < fresh->count; i++)
		for (size_t j = 0; j < table->count; j++)
			if (table->entries[j] &&
			    same_entry(table->entries[j]->conf, fresh->entries[i]->conf)) {
				move_entry(table, j, &fresh->entries[i]);
				break;
			}
}

void table_replace(struct entry_table *table, struct entry_table *fresh)
{
	move_all(table, fresh);
	for (size_t j = 0; j < table->count; j++) {
		struct entry *old = table->entries[j];

		if (!old)
			continue;
		old->replaced = true;
		if (!old->loaded && !old->users)
			entry_free(old);	/* a loaded one is freed by its last user */
	}
	table->count = 0;
	table_free(table);
	*table = *fresh;
	*fresh = (struct entry_table){ .reading = NULL };
	index_all(table);
}

void entry_free_replaced(struct entry *entry)
{
	if (entry->replaced && !entry->loaded && !entry->users)
		entry_free(entry);
}
