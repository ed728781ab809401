/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - layout of messages in an eager ring, and how a message is written. ring_setup.c
 * explains the design. All of this runs for every short message, so it is inline. */
#ifndef BTL_UDAPL_RING_H
#define BTL_UDAPL_RING_H

#include <string.h>
#include "tunables.h"
#include "udapl.h"

struct udapl_extent {
	uint32_t begin;		/* offset of the payload in the ring */
	uint32_t size;		/* bytes that the message takes */
};

static inline int32_t udapl_fetch_and_clear(volatile int32_t *n)
{
	int32_t had = *n;

	if (had > 0)
		udapl_add(n, -had);
	return had;
}

/* Whether the payload and its tail fit into one slot. */
static inline bool udapl_ring_is_slot(uint32_t length)
{
	return length <= UDAPL_RING_SLOT - sizeof(struct udapl_tail);
}

/* Offset of a payload that is not aligned to a line. */
static inline uint32_t udapl_ring_begin(uint32_t end, uint32_t length)
{
	return (end - sizeof(struct udapl_tail) - length) & ~7u;
}

/* Extent of a message that ends at `end`. In a long message the data behind the header of ob1
 * begins on a cache line: copying from there is faster, and the message shares no line with the
 * next. */
static inline struct udapl_extent udapl_ring_extent(uint32_t end, uint32_t length)
{
	uint32_t begin;

	if (OPAL_LIKELY(length <= UDAPL_ALIGN_ABOVE)) {
		begin = udapl_ring_begin(end, length);
		return (struct udapl_extent){ begin, end - (begin & ~(UDAPL_RING_SLOT - 1u)) };
	}
	begin = end - sizeof(struct udapl_tail) - length + UDAPL_ALIGN_SKIP;
	begin = (begin & ~(UDAPL_CACHE_LINE - 1u)) - UDAPL_ALIGN_SKIP;
	return (struct udapl_extent){ begin, end - (begin & ~(UDAPL_CACHE_LINE - 1u)) };
}

/* Whether a message of `size` bytes that ends at `end` is the last of its lap. */
static inline bool udapl_ring_wraps(const struct udapl_ring_shape *shape, uint32_t end, uint32_t size)
{
	return end - size < shape->largest;
}

/* Slots that the message takes, including the unused ones at the bottom of the ring. */
static inline uint32_t udapl_ring_slots(const struct udapl_ring_shape *shape, uint32_t end,
					uint32_t size)
{
	return (udapl_ring_wraps(shape, end, size) ? end : size) / UDAPL_RING_SLOT;
}

/* Advances the cursor to the next message. Returns the slots passed. */
static inline uint32_t udapl_ring_advance(const struct udapl_ring_shape *shape, struct udapl_ring_cursor *at,
					  uint32_t size)
{
	uint32_t taken = udapl_ring_slots(shape, at->end, size);

	if (OPAL_UNLIKELY(udapl_ring_wraps(shape, at->end, size))) {
		at->end = shape->size;
		at->lap = at->lap % UINT8_MAX + 1;
	} else {
		at->end -= size;
	}
	return taken;
}

/* Whether at least 1/`part` of the incoming ring is released but not reported. */
static inline bool udapl_ring_credits_due(const struct udapl_conn *c, uint32_t part)
{
	const struct udapl_ring_in *r = &c->ring_in;

	return r->slots_to_return > 0 && (uint32_t)r->slots_to_return >= r->shape.size / (UDAPL_RING_SLOT * part);
}

/* Whether so many credits of either kind are unreported that they need a message of their own if no
 * other message carries them. */
static inline bool udapl_credits_due(const struct udapl_conn *c)
{
	return c->credits_to_return >= mca_btl_udapl_component.credits / 2 ||
	       udapl_ring_credits_due(c, UDAPL_CREDIT_ALONE);
}

/* --- outgoing ring; called with e->lock held ------------------------------------------------ */

/* Reads from a mapped ring how many slots the peer has released. */
static inline void udapl_ring_update_free(struct udapl_ring_out *r)
{
	uint32_t read = __atomic_load_n(&r->ctl->consumed, __ATOMIC_ACQUIRE);

	r->free_slots += read - r->consumed_seen;
	r->consumed_seen = read;
}

/* Whether there is room for a message of `size` bytes. Its payload must not be longer than max_payload. */
static inline bool udapl_ring_fits(struct udapl_ring_out *r, uint32_t size)
{
	uint32_t taken = udapl_ring_slots(&r->offer.shape, r->cursor.end, size);

	if (OPAL_UNLIKELY(taken > r->free_slots) && r->ctl)
		udapl_ring_update_free(r);
	return taken <= r->free_slots;
}

static inline bool udapl_ring_has_room(struct udapl_conn *c, size_t length)
{
	struct udapl_ring_out *r = &c->ring_out;

	return length <= r->max_payload && udapl_ring_fits(r, udapl_ring_extent(r->cursor.end, length).size);
}

/* Whether a message from a fragment can be written into the ring by RDMA. */
static inline bool udapl_ring_takes_posts(struct udapl_conn *c, size_t length)
{
	return !c->ring_out.ctl && udapl_ring_has_room(c, length);
}

/* Completes a message in a mapped ring, whose payload is already stored, by storing its tail.
 * The place of the next tail holds data of the previous lap: bytes of a message that the peer has
 * released, or, if no slot is free, the tail of an unread message. Released bytes that look like a tail
 * of this lap are cleared. */
static inline void udapl_ring_store(struct udapl_ring_out *r, struct udapl_tail tail, uint32_t size)
{
	uint32_t end = r->cursor.end, taken;
	struct udapl_tail *next;
	uint64_t word;

	tail.lap = r->cursor.lap;
	memcpy(&word, &tail, sizeof word);
	taken = udapl_ring_advance(&r->offer.shape, &r->cursor, size);
	next = (struct udapl_tail *)(r->buffer + r->cursor.end) - 1;
	if (OPAL_UNLIKELY(next->lap == r->cursor.lap))
		next->lap = 0;
	__atomic_store_n((uint64_t *)(r->buffer + end) - 1, word, __ATOMIC_RELEASE);
	r->free_slots -= taken;
}

/* Writes the payload by RDMA. The buffer has room for the tail behind the payload, and the ring
 * has room for the message. */
static inline DAT_RETURN udapl_ring_write(struct udapl_conn *c, char *payload, uint32_t lmr_context,
					  struct udapl_tail tail, struct udapl_work *work,
					  DAT_COMPLETION_FLAGS flags)
{
	struct udapl_ring_out *r = &c->ring_out;
	struct udapl_extent extent = udapl_ring_extent(r->cursor.end, tail.length);
	uint32_t size = r->cursor.end - extent.begin;
	DAT_LMR_TRIPLET from;
	DAT_RMR_TRIPLET to;

	tail.lap = r->cursor.lap;
	memcpy(payload + size - sizeof tail, &tail, sizeof tail);
	from.virtual_address = (uintptr_t)payload;
	from.segment_length = size;
	from.lmr_context = lmr_context;
	to.virtual_address = r->offer.address + r->cursor.end - size;
	to.segment_length = size;
	to.rmr_context = r->offer.rmr_context;
	r->free_slots -= udapl_ring_advance(&r->offer.shape, &r->cursor, extent.size);
	return dat_ep_post_rdma_write(c->ep, 1, &from, (DAT_DTO_COOKIE){ .as_ptr = work }, &to, flags);
}

#endif
