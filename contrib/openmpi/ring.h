/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - where messages lie in an eager ring, and how one is written; eager.c says why so. All of
 * it is done for every short message, so it is inline. */
#ifndef BTL_UDAPL_RING_H
#define BTL_UDAPL_RING_H

#include <string.h>
#include "udapl.h"

enum {
	UDAPL_SLOT = 32,	/* a message takes a multiple of it */
	UDAPL_LINE = 64,	/* of the cache */
	UDAPL_ALONG = 3,	/* lines before the last that are polled, too */
	UDAPL_LONG = 512,	/* payloads that are longer begin ... */
	UDAPL_AHEAD = 14,	/* ... so much before a line */
	UDAPL_SPARE = 103,	/* bytes of a message beyond its payload, at most, but for its last line */
	UDAPL_TELL_ALONE = 2,	/* this part of a ring is owed: it is told by a message of its own, */
	UDAPL_TELL_ALONG = 16	/* ... or this part, along with the next one from the stage */
};

struct udapl_extent {
	uint32_t begin;		/* of the payload, in the ring */
	uint32_t size;		/* of the message: what it takes */
};

/* Does so much payload fit into a slot, with its tail? */
static inline bool udapl_ring_is_slot(uint32_t length)
{
	return length <= UDAPL_SLOT - sizeof(struct udapl_tail);
}

/* Where it begins, unless it is a long one. */
static inline uint32_t udapl_ring_begin(uint32_t end, uint32_t length)
{
	return (end - sizeof(struct udapl_tail) - length) & ~7u;
}

/* Of a message with so much payload whose tail ends there. What is behind a header of ob1's in a long one
 * begins a line: to copy it there is quicker; and it shares no line with the next. */
static inline struct udapl_extent udapl_ring_extent(uint32_t end, uint32_t length)
{
	uint32_t begin;

	if (OPAL_LIKELY(length <= UDAPL_LONG)) {
		begin = udapl_ring_begin(end, length);
		return (struct udapl_extent){ begin, end - (begin & ~(UDAPL_SLOT - 1u)) };
	}
	begin = ((end - sizeof(struct udapl_tail) - length + UDAPL_AHEAD) & ~(UDAPL_LINE - 1u)) - UDAPL_AHEAD;
	return (struct udapl_extent){ begin, end - (begin & ~(UDAPL_LINE - 1u)) };
}

/* A message of `size` bytes that ends here is the last of its lap. */
static inline bool udapl_ring_ends(const struct udapl_ring_shape *shape, uint32_t end, uint32_t size)
{
	return end - size < shape->largest;
}

/* Slots that it takes from the ring, with those that are left out at the bottom. */
static inline uint32_t udapl_ring_taken(const struct udapl_ring_shape *shape, uint32_t end,
					uint32_t size)
{
	return (udapl_ring_ends(shape, end, size) ? end : size) / UDAPL_SLOT;
}

/* Goes on to where the next message ends. Returns the slots taken. */
static inline uint32_t udapl_ring_pass(const struct udapl_ring_shape *shape,
				       struct udapl_ring_place *at, uint32_t size)
{
	uint32_t taken = udapl_ring_taken(shape, at->end, size);

	if (OPAL_UNLIKELY(udapl_ring_ends(shape, at->end, size))) {
		at->end = shape->size;
		at->lap = at->lap % UINT8_MAX + 1;
	} else {
		at->end -= size;
	}
	return taken;
}

/* Slots of our ring that were read and not told are 1 / `part` of it, or more. */
static inline bool udapl_ring_owes(const struct udapl_conn *c, uint32_t part)
{
	const struct udapl_ring_in *r = &c->ring_in;

	return r->owed > 0 && (uint32_t)r->owed >= r->shape.size / (UDAPL_SLOT * part);
}

/* Credits of any kind that should be told alone, if nothing goes where they could ride on. */
static inline bool udapl_owes(const struct udapl_conn *c)
{
	return c->owed >= mca_btl_udapl_component.credits / 2 ||
	       udapl_ring_owes(c, UDAPL_TELL_ALONE);
}

/* --- the peer's; with e->lock held --------------------------------------------------------- */

/* What was read of a ring that is mapped. */
static inline void udapl_ring_look(struct udapl_ring_out *r)
{
	uint32_t read = __atomic_load_n(&r->notes->read, __ATOMIC_ACQUIRE);

	r->free += read - r->seen;
	r->seen = read;
}

/* For a message that takes so much, and is no longer than `most`. */
static inline bool udapl_ring_fits(struct udapl_ring_out *r, uint32_t size)
{
	uint32_t taken = udapl_ring_taken(&r->offer.shape, r->at.end, size);

	if (OPAL_UNLIKELY(taken > r->free) && r->notes)
		udapl_ring_look(r);
	return taken <= r->free;
}

static inline bool udapl_ring_has_room(struct udapl_conn *c, size_t length)
{
	struct udapl_ring_out *r = &c->ring_out;

	return length <= r->most && udapl_ring_fits(r, udapl_ring_extent(r->at.end, length).size);
}

/* Has it room for a message that is not on the stage, to be posted? */
static inline bool udapl_ring_takes_posts(struct udapl_conn *c, size_t length)
{
	return !c->ring_out.notes && udapl_ring_has_room(c, length);
}

/* The mapped ring: the payload is there; with its tail it's the peer's message of that size. What is where the
 * next tail will be looked for is of the lap before: something read, or, if there is no slot left, a tail. */
static inline void udapl_ring_store(struct udapl_ring_out *r, struct udapl_tail tail, uint32_t size)
{
	uint32_t end = r->at.end, taken;
	struct udapl_tail *next;
	uint64_t word;

	tail.lap = r->at.lap;
	memcpy(&word, &tail, sizeof word);
	taken = udapl_ring_pass(&r->offer.shape, &r->at, size);
	next = (struct udapl_tail *)(r->image + r->at.end) - 1;
	if (OPAL_UNLIKELY(next->lap == r->at.lap))
		next->lap = 0;
	__atomic_store_n((uint64_t *)(r->image + end) - 1, word, __ATOMIC_RELEASE);
	r->free -= taken;
}

/* Writes this payload; behind it is room for the tail. There is room for it in the ring. */
static inline DAT_RETURN udapl_ring_write(struct udapl_conn *c, char *payload, uint32_t lmr_context,
					  struct udapl_tail tail, struct udapl_work *work,
					  DAT_COMPLETION_FLAGS flags)
{
	struct udapl_ring_out *r = &c->ring_out;
	struct udapl_extent extent = udapl_ring_extent(r->at.end, tail.length);
	uint32_t size = r->at.end - extent.begin;
	DAT_LMR_TRIPLET from;
	DAT_RMR_TRIPLET to;

	tail.lap = r->at.lap;
	memcpy(payload + size - sizeof tail, &tail, sizeof tail);
	from.virtual_address = (uintptr_t)payload;
	from.segment_length = size;
	from.lmr_context = lmr_context;
	to.virtual_address = r->offer.address + r->at.end - size;
	to.segment_length = size;
	to.rmr_context = r->offer.rmr_context;
	r->free -= udapl_ring_pass(&r->offer.shape, &r->at, extent.size);
	return dat_ep_post_rdma_write(c->ep, 1, &from, (DAT_DTO_COOKIE){ .as_ptr = work }, &to, flags);
}

#endif
