/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stags.c - see stags.h. Removing an entry waits until every QP lock has been free once (quiesce); only then are the
 * entry and the consumer's memory released. So no thread touches memory after dereg_mr, at no cost to the data path. */
#include "dapl/soft/obj/stags.h"
#include "common/lock.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>

/* Waits until no thread uses the old contents of the table any more: a thread that looks up an STag
 * holds the lock of a QP. Afterwards no QP remembers a region. */
static void quiesce(struct dapl_device *dev)
{
	struct soft_qp *qp;

	dapl_mutex_lock(&dev->qps_lock);
	LIST_FOREACH(qp, &dev->qps, link) {
		dapl_mutex_lock(&qp->lock);
		qp->local = (struct soft_local){ 0 };
		dapl_mutex_unlock(&qp->lock);
	}
	dapl_mutex_unlock(&dev->qps_lock);
}

static struct soft_stags *stags_new(uint32_t buckets)
{
	struct soft_stags *table = calloc(1, sizeof *table + buckets * sizeof table->bucket[0]);

	if (table)
		table->mask = buckets - 1;
	return table;
}

static void stags_free(struct soft_stags *table)
{
	for (uint32_t i = 0; table && i <= table->mask; i++) {
		struct stag_entry *e = table->bucket[i], *next;

		for (; e; e = next) {
			next = e->next;
			free(e);
		}
	}
	free(table);
}

static bool stags_insert(struct soft_stags *table, uint32_t index, struct soft_region *region)
{
	struct stag_entry **bucket = &table->bucket[soft_stags_hash(index) & table->mask];
	struct stag_entry *e = malloc(sizeof *e);

	if (!e)
		return false;
	*e = (struct stag_entry){ .next = *bucket, .index = index, .region = region };
	__atomic_store_n(bucket, e, __ATOMIC_RELEASE);
	table->count++;
	return true;
}

/* Called with stags_lock held. A table that is too small is replaced by a copy: a reader sees the old or
 * the new table. */
static void stags_grow(struct dapl_device *dev)
{
	struct soft_stags *old = dev->stags, *table = stags_new(4 * (old->mask + 1));

	assert_held(&dev->stags_lock);
	for (uint32_t i = 0; table && i <= old->mask; i++)
		for (struct stag_entry *e = old->bucket[i]; e; e = e->next)
			if (!stags_insert(table, e->index, e->region)) {
				stags_free(table);
				return;		/* only makes lookups slower */
			}
	if (!table)
		return;
	__atomic_store_n(&dev->stags, table, __ATOMIC_RELEASE);
	quiesce(dev);
	stags_free(old);
}

int soft_stags_add(struct dapl_device *dev, struct soft_region *region)
{
	bool done;

	dapl_mutex_lock(&dev->stags_lock);
	if (dev->stags->count > 2 * dev->stags->mask)
		stags_grow(dev);
	do {
		region->stag = soft_random();
	} while (!(region->stag >> 8) || soft_stags_find(dev, region->stag));
	done = stags_insert(dev->stags, region->stag >> 8, region);
	if (done)
		dev->directory->publish(dev->shm.process, region);
	dapl_mutex_unlock(&dev->stags_lock);
	return done ? 0 : ENOMEM;
}

/* Three phases: unpublishes the STag under the lock, waits without a lock for those that found it before, frees the
 * entry. */
void soft_stags_remove(struct dapl_device *dev, uint32_t stag)
{
	struct soft_stags *table;
	struct stag_entry **link, *e;
	bool writable;

	dapl_mutex_lock(&dev->stags_lock);
	table = dev->stags;
	link = &table->bucket[soft_stags_hash(stag >> 8) & table->mask];
	while ((e = *link)->index != stag >> 8)
		link = &e->next;
	__atomic_store_n(link, e->next, __ATOMIC_RELEASE);
	table->count--;
	writable = dev->directory->withdraw(dev->shm.process, e->region);
	dapl_mutex_unlock(&dev->stags_lock);
	quiesce(dev);
	if (writable)
		dev->directory->wait_for_writers(dev);
	free(e);
}

int soft_stags_init(struct dapl_device *dev, const struct soft_directory *directory)
{
	dev->directory = directory;
	dev->stags = stags_new(STAGS_MIN);
	if (!dev->stags)
		return ENOMEM;
	dapl_mutex_init(&dev->stags_lock, RANK_SOFT_STAGS);
	return 0;
}

void soft_stags_fini(struct dapl_device *dev)
{
	stags_free(dev->stags);
}

void soft_stags_publish_all(struct dapl_device *dev, struct shm_process *process)
{
	dapl_mutex_lock(&dev->stags_lock);
	for (uint32_t i = 0; i <= dev->stags->mask; i++)
		for (struct stag_entry *e = dev->stags->bucket[i]; e; e = e->next)
			dev->directory->publish(process, e->region);
	__atomic_store_n(&dev->shm.process, process, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&dev->stags_lock);
}

void soft_stags_each(struct dapl_device *dev, void (*visit)(struct soft_region *region, void *arg), void *arg)
{
	dapl_mutex_lock(&dev->stags_lock);
	for (uint32_t i = 0; i <= dev->stags->mask; i++)
		for (struct stag_entry *e = dev->stags->bucket[i]; e; e = e->next)
			visit(e->region, arg);
	dapl_mutex_unlock(&dev->stags_lock);
}
