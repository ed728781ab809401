/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evq.h - HOT: the event ring of one EVD, for all events that are not completions. head moves only in
 * evq_drop (the consumer side, under evd->lock), tail only in evq_commit (producers, under
 * evd->post_lock). evq_commit stores tail with release and evq_peek loads it with acquire, so the
 * consumer sees complete events only. Resizing holds both locks. */
#ifndef CORE_EVENT_EVQ_H
#define CORE_EVENT_EVQ_H
#include <dat/udat.h>
#include <stdint.h>

struct dapl_evq {
	DAT_EVENT *slot;	/* NULL when the EVD takes completions only */
	uint32_t size, mask;	/* size: events that may be queued; there are mask + 1 slots */
	uint32_t head, tail;
};

static inline uint32_t evq_count(const struct dapl_evq *r)
{
	return __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) - __atomic_load_n(&r->head, __ATOMIC_RELAXED);
}

/* Called by a producer with post_lock held. Returns NULL if the ring is full; the caller reports the
 * overflow. */
static inline DAT_EVENT *evq_reserve(struct dapl_evq *r)
{
	if (r->tail - __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) >= r->size)
		return NULL;
	return &r->slot[r->tail & r->mask];
}

/* Called by a producer with post_lock held. Publishes the slot that evq_reserve returned. */
static inline void evq_commit(struct dapl_evq *r)
{
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
}

/* Called on the consumer side. Returns the oldest event, or NULL if the ring is empty. */
static inline const DAT_EVENT *evq_peek(const struct dapl_evq *r)
{
	if (r->head == __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE))
		return NULL;
	return &r->slot[r->head & r->mask];
}

/* Called on the consumer side. Removes the event that evq_peek returned. */
static inline void evq_drop(struct dapl_evq *r)
{
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
}

#endif
