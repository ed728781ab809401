/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - where messages lie in an eager ring, and how one is written; eager.c says why so. All of
 * it is done for every short message, so it is inline. */
#ifndef BTL_UDAPL_RING_H
#define BTL_UDAPL_RING_H

#include <string.h>
#include "udapl.h"

enum {
	UDAPL_LINE = 64,
	UDAPL_TELL_ALONE = 2,	/* this part of a ring is owed: it is told by a message of its own, */
	UDAPL_TELL_ALONG = 16	/* ... or this part, along with the next one from the stage */
};

static inline uint32_t udapl_padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

/* Bytes of a ring that so much payload takes: whole lines. */
static inline uint32_t udapl_room_for(size_t length)
{
	return (udapl_padded(length) + sizeof(struct udapl_tail) + UDAPL_LINE - 1) &
	       ~(size_t)(UDAPL_LINE - 1);
}

/* A message of `size` bytes that ends here is the last of its lap. */
static inline bool udapl_ring_ends(const struct udapl_ring_shape *shape, uint32_t end, uint32_t size)
{
	return end - size < shape->largest;
}

/* Lines that it takes from the ring, with those that are left out at the bottom. */
static inline uint32_t udapl_ring_taken(const struct udapl_ring_shape *shape, uint32_t end,
					uint32_t size)
{
	return (udapl_ring_ends(shape, end, size) ? end : size) / UDAPL_LINE;
}

/* Goes on to where the next message ends. */
static inline void udapl_ring_pass(const struct udapl_ring_shape *shape, struct udapl_ring_place *at,
				   uint32_t size)
{
	if (udapl_ring_ends(shape, at->end, size)) {
		at->end = shape->size;
		at->lap = at->lap % UINT8_MAX + 1;
	} else {
		at->end -= size;
	}
}

/* Lines of our ring that were read and not told are 1 / `part` of it, or more. */
static inline bool udapl_ring_owes(const struct udapl_conn *c, uint32_t part)
{
	const struct udapl_ring_in *r = &c->ring_in;

	return r->owed > 0 && (uint32_t)r->owed >= r->shape.size / (UDAPL_LINE * part);
}

/* Credits of any kind that should be told alone, if nothing goes where they could ride on. */
static inline bool udapl_owes(const struct udapl_conn *c)
{
	return c->owed >= mca_btl_udapl_component.credits / 2 ||
	       udapl_ring_owes(c, UDAPL_TELL_ALONE);
}

/* --- the peer's; with e->lock held --------------------------------------------------------- */

static inline bool udapl_ring_has_room(const struct udapl_conn *c, size_t length)
{
	const struct udapl_ring_out *r = &c->ring_out;

	return length <= r->most &&
	       udapl_ring_taken(&r->offer.shape, r->at.end, udapl_room_for(length)) <= r->free;
}

/* Writes this payload; behind it is room for the tail. There is room for it in the ring. */
static inline DAT_RETURN udapl_ring_write(struct udapl_conn *c, char *payload, uint32_t lmr_context,
					  struct udapl_tail tail, struct udapl_work *work,
					  DAT_COMPLETION_FLAGS flags)
{
	struct udapl_ring_out *r = &c->ring_out;
	const struct udapl_ring_shape *shape = &r->offer.shape;
	uint32_t before = udapl_padded(tail.length), size = before + sizeof tail;
	uint32_t room = udapl_room_for(tail.length);
	DAT_LMR_TRIPLET from;
	DAT_RMR_TRIPLET to;

	tail.lap = r->at.lap;
	memcpy(payload + before, &tail, sizeof tail);
	from.virtual_address = (uintptr_t)payload;
	from.segment_length = size;
	from.lmr_context = lmr_context;
	to.virtual_address = r->offer.address + r->at.end - size;
	to.segment_length = size;
	to.rmr_context = r->offer.rmr_context;
	r->free -= udapl_ring_taken(shape, r->at.end, room);
	udapl_ring_pass(shape, &r->at, room);
	return dat_ep_post_rdma_write(c->ep, 1, &from, (DAT_DTO_COOKIE){ .as_ptr = work }, &to, flags);
}

#endif
