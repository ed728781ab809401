/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_table.c - the hash table of what belongs to verbs objects (object_table.h). */
#include "object_table.h"
#include "common/lock.h"
#include <stdint.h>

enum { BUCKETS = 256 };

static struct dapl_mutex table_lock = DAPL_MUTEX_INIT(RANK_OBJECT_TABLE);	/* guards what follows */
static struct object_entry *table[BUCKETS];

static struct object_entry **bucket_of(const void *object)
{
	uint64_t x = (uintptr_t)object;

	return &table[(x * 0x9e3779b97f4a7c15ull >> 32) % BUCKETS];
}

struct object_entry *object_table_find(const void *object)
{
	struct object_entry *e;

	dapl_mutex_lock(&table_lock);
	for (e = *bucket_of(object); e && e->object != object; e = e->next)
		;
	dapl_mutex_unlock(&table_lock);
	return e;
}

void object_table_add(struct object_entry *e, const void *object)
{
	struct object_entry **bucket = bucket_of(object);

	e->object = object;
	dapl_mutex_lock(&table_lock);
	e->next = *bucket;
	*bucket = e;
	dapl_mutex_unlock(&table_lock);
}

struct object_entry *object_table_remove(const void *object)
{
	struct object_entry **e, *found;

	dapl_mutex_lock(&table_lock);
	for (e = bucket_of(object); *e && (*e)->object != object; e = &(*e)->next)
		;
	found = *e;
	if (found)
		*e = found->next;
	dapl_mutex_unlock(&table_lock);
	return found;
}
