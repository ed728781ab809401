/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stags.h - the table of STags of a device: which region or window an STag names. Looking up an STag takes no lock of
 * the table: the caller holds the lock of some QP. */
#ifndef SOFT_OBJ_STAGS_H
#define SOFT_OBJ_STAGS_H
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"

/* How the table of STags keeps the MR directory, which peers on this host read. */
struct soft_directory {
	/* Called with stags_lock held. */
	void (*publish)(struct shm_process *process, const struct soft_region *region);
	/* Called with stags_lock held. Returns true if peers may be within a write to the region. */
	bool (*withdraw)(struct shm_process *process, const struct soft_region *region);
	/* Waits until no peer is within a write that it began before the withdrawal. Called with no lock held. */
	void (*wait_for_writers)(struct dapl_device *dev);
};

struct stag_entry {
	struct stag_entry *next;
	uint32_t index;			/* STag without its low byte, the key */
	struct soft_region *region;
};

struct soft_stags {
	uint32_t mask, count;
	struct stag_entry *bucket[];
};

static inline uint32_t soft_stags_hash(uint32_t index)
{
	return index * 0x9e3779b1u >> 8;
}

static inline struct soft_region *soft_stags_find(const struct dapl_device *dev, uint32_t stag)
{
	const struct soft_stags *table = __atomic_load_n(&dev->stags, __ATOMIC_ACQUIRE);
	uint32_t index = stag >> 8;
	struct stag_entry *e = __atomic_load_n(&table->bucket[soft_stags_hash(index) & table->mask],
					       __ATOMIC_ACQUIRE);

	while (e && e->index != index)
		e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
	return e ? e->region : NULL;
}

/* Returns 0 or an errno. */
int soft_stags_init(struct dapl_device *dev, const struct soft_directory *directory);
void soft_stags_fini(struct dapl_device *dev);
/* The device has an MR directory from now on: publishes its regions there. Called with the progress lock
 * held. */
void soft_stags_publish_all(struct dapl_device *dev, struct shm_process *process);
/* Gives the region an STag, sets region->stag, and publishes it. Returns 0 or an errno. */
int soft_stags_add(struct dapl_device *dev, struct soft_region *region);
/* Revokes the access to the region, and returns when no thread and no peer uses it any more. Called with no lock held.
 * LMR-19, DM-18, RMR-10. */
void soft_stags_remove(struct dapl_device *dev, uint32_t stag);
/* Calls visit(region, arg) for each region and window, with the table locked. */
void soft_stags_each(struct dapl_device *dev, void (*visit)(struct soft_region *region, void *arg), void *arg);

#endif
