/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.c - the table of open IAs.
 *
 * Slots live in chunks that never move and are freed only at unload, so a look-up needs no
 * lock: a chunk and a slot's `ia` are published with release and read with acquire. All other
 * accesses hold `lock`. A look-up that races with a close gets the IA or NULL. The consumer
 * must not use a handle that it closes, as with any handle. */
#include "dat/ia_handle.h"
#include "dat/lock.h"
#include <stdlib.h>

#define CHUNK 256u
#define CHUNKS (IA_HANDLE_LIMIT / CHUNK)

struct slot {
	DAT_IA_HANDLE ia;		/* NULL: not open */
	struct provider *provider;	/* under lock */
	bool reserved;			/* under lock */
	bool closing;			/* changes under lock; read without it */
};

static struct slot *chunks[CHUNKS];
static unsigned lowest_free = 1;	/* no free slot is lower; under lock */
static unsigned used_end = 1;		/* slots at and above were never used */
static struct dat_mutex lock = DAT_MUTEX_INIT(RANK_DAT_IA_HANDLES);

static struct slot *slot_at(unsigned index)
{
	struct slot *chunk = __atomic_load_n(&chunks[index / CHUNK], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[index % CHUNK] : NULL;
}

static struct slot *slot_of(DAT_IA_HANDLE handle)
{
	return is_ia_handle(handle) ? slot_at((uintptr_t)handle) : NULL;
}

/* Returns the slot of a handle that ia_handle_reserve() returned. */
static struct slot *reserved_slot(DAT_IA_HANDLE handle)
{
	uintptr_t index = (uintptr_t)handle;

	return &chunks[index / CHUNK][index % CHUNK];
}

static DAT_IA_HANDLE handle_at(unsigned index)
{
	return (DAT_IA_HANDLE)(uintptr_t)index;
}

/* REG-45 */
DAT_IA_HANDLE ia_from(DAT_IA_HANDLE handle)
{
	struct slot *slot = slot_of(handle);

	return slot ? __atomic_load_n(&slot->ia, __ATOMIC_ACQUIRE) : NULL;
}

/* A new IA may already have the address of an IA that is being closed, so an open one is
 * preferred. REG-42, 43. */
DAT_IA_HANDLE ia_handle_of(DAT_IA_HANDLE ia)
{
	unsigned end = __atomic_load_n(&used_end, __ATOMIC_ACQUIRE), closing = 0;

	if (!ia)
		return NULL;
	for (unsigned i = 1; i < end; i++) {
		struct slot *slot = slot_at(i);

		if (__atomic_load_n(&slot->ia, __ATOMIC_ACQUIRE) != ia)
			continue;
		if (!__atomic_load_n(&slot->closing, __ATOMIC_RELAXED))
			return handle_at(i);
		closing = i;
	}
	return handle_at(closing);
}

static struct slot *slot_make(unsigned index)
{
	struct slot *slot = slot_at(index);

	if (!slot) {
		struct slot *chunk = calloc(CHUNK, sizeof(*chunk));

		if (!chunk)
			return NULL;
		__atomic_store_n(&chunks[index / CHUNK], chunk, __ATOMIC_RELEASE);
		slot = &chunk[index % CHUNK];
	}
	return slot;
}

/* REG-11, 12, 13 */
static DAT_IA_HANDLE reserve(void)
{
	for (; lowest_free < IA_HANDLE_LIMIT; lowest_free++) {
		struct slot *slot = slot_make(lowest_free);

		if (!slot)
			return NULL;
		if (slot->reserved)
			continue;
		slot->reserved = true;
		if (lowest_free >= used_end)
			__atomic_store_n(&used_end, lowest_free + 1, __ATOMIC_RELEASE);
		return handle_at(lowest_free++);
	}
	return NULL;
}

DAT_IA_HANDLE ia_handle_reserve(void)
{
	DAT_IA_HANDLE handle;

	dat_mutex_lock(&lock);
	handle = reserve();
	dat_mutex_unlock(&lock);
	return handle;
}

void ia_handle_publish(DAT_IA_HANDLE handle, DAT_IA_HANDLE ia, struct provider *provider)
{
	struct slot *slot;

	dat_mutex_lock(&lock);
	slot = reserved_slot(handle);
	slot->provider = provider;
	__atomic_store_n(&slot->ia, ia, __ATOMIC_RELEASE);
	dat_mutex_unlock(&lock);
}

void ia_handle_release(DAT_IA_HANDLE handle)
{
	unsigned index = (uintptr_t)handle;
	struct slot *slot;

	dat_mutex_lock(&lock);
	slot = reserved_slot(handle);
	__atomic_store_n(&slot->ia, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->closing, false, __ATOMIC_RELAXED);
	slot->provider = NULL;
	slot->reserved = false;
	if (index < lowest_free)
		lowest_free = index;
	dat_mutex_unlock(&lock);
}

bool ia_handle_close(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia, struct provider **provider)
{
	struct slot *slot = slot_of(handle);
	bool acquired = false;

	if (!slot)
		return false;
	dat_mutex_lock(&lock);
	if (slot->ia && !slot->closing) {
		__atomic_store_n(&slot->closing, true, __ATOMIC_RELAXED);
		*ia = slot->ia;
		*provider = slot->provider;
		acquired = true;
	}
	dat_mutex_unlock(&lock);
	return acquired;
}

void ia_handle_keep(DAT_IA_HANDLE handle)
{
	dat_mutex_lock(&lock);
	__atomic_store_n(&reserved_slot(handle)->closing, false, __ATOMIC_RELAXED);
	dat_mutex_unlock(&lock);
}

void ia_handle_fork(bool begins)
{
	if (begins)
		dat_mutex_lock(&lock);
	else
		dat_mutex_unlock(&lock);
}

void ia_handle_fini(void)
{
	for (unsigned i = 0; i < CHUNKS; i++)
		free(__atomic_exchange_n(&chunks[i], NULL, __ATOMIC_ACQ_REL));
	lowest_free = used_end = 1;
}
