/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eager.c - rings for short messages. Who receives much from a peer gives it a ring in his
 * memory. DAT providers store the last 8 bytes of a write last, so a message ends with its tail, and
 * who receives polls the place where the next tail will be. Where a message begins its tail says: the
 * ring is filled from its top down, and what ends where one begins is the next.
 *
 *	... | next message | tail | payload | padding to 8 | tail | read already ...
 *	                     ^ polled when what is above has been read
 *
 * A message takes whole cache lines; what its first one has before it is unused. Where the
 * largest would not fit any more, both sides go on at the top, for another lap; so no message ends
 * in the lines that are left out. The last 8 bytes of a line that has been read are the tail of this
 * lap, or zero: the reader clears them where payload was. So nothing old is taken for a tail, and a
 * message of one line makes the reader write nothing. Lines that were read are told like credits, with
 * messages.
 *
 * Most are written from the stage (stage.c). */
#include "ring.h"

enum {
	RING_LINES = UINT16_MAX,	/* at most: they are told in 16 bits */
	IN_A_ROW = 64			/* messages read before others have their turn */
};

static struct udapl_ring_place first_place(const struct udapl_ring_shape *shape)
{
	return (struct udapl_ring_place){ .end = shape->size, .lap = 1 };
}

/* --- ours, which we read ---------------------------------------------------------------------- */

static struct udapl_ring_shape own_shape(const mca_btl_udapl_module_t *m)
{
	struct udapl_ring_shape shape = { .largest = udapl_room_for(m->super.btl_eager_limit) };
	uint64_t size = (uint64_t)mca_btl_udapl_component.eager_messages * shape.largest;

	shape.size = size < RING_LINES * UDAPL_LINE ? size : RING_LINES * UDAPL_LINE;
	return shape;
}

/* With e->lock held. */
static int place_for(mca_btl_udapl_module_t *m)
{
	int place = -1;

	OPAL_THREAD_LOCK(&m->lock);
	for (int i = 0; i < mca_btl_udapl_component.eager_peers && place < 0; i++)
		if (!m->rings[i])
			place = i;
	OPAL_THREAD_UNLOCK(&m->lock);
	return place;
}

static void poll_from_now_on(udapl_conn_t *c, int place)
{
	mca_btl_udapl_module_t *m = c->module;

	opal_atomic_lock_init(&c->ring_in.busy, OPAL_ATOMIC_LOCK_UNLOCKED);
	OPAL_THREAD_LOCK(&m->lock);
	m->rings[place] = c;
	opal_atomic_wmb();
	if (place >= m->num_rings)
		m->num_rings = place + 1;
	OPAL_THREAD_UNLOCK(&m->lock);
}

/* With e->lock held. Called with every message until `offered` is set. Without a ring messages
 * come as before. */
void udapl_ring_offer(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;
	struct udapl_ring_offer offer = { .shape = own_shape(m) };
	int place = place_for(m);

	if (c->state != UDAPL_CONN_UP)
		return;
	if (!c->ring_in.memory.base) {
		c->ring_in.offered = true;
		if (!mca_btl_udapl_component.eager_rdma || place < 0)
			return;
		if (!udapl_memory_get(m, &c->ring_in.memory, offer.shape.size, true))
			return;
		c->ring_in.shape = offer.shape;
		c->ring_in.at = first_place(&offer.shape);
		poll_from_now_on(c, place);
	}
	offer.address = (uintptr_t)c->ring_in.memory.base;
	offer.rmr_context = c->ring_in.memory.rmr_context;
	c->ring_in.offered = udapl_control(c, UDAPL_RING, &offer, sizeof offer);
}

/* The connection is ending, nobody writes any more. */
void udapl_ring_free(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	OPAL_THREAD_LOCK(&m->lock);
	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] == c)
			m->rings[i] = NULL;
	OPAL_THREAD_UNLOCK(&m->lock);
	udapl_memory_put(&c->ring_in.memory);
	udapl_memory_put(&c->ring_out.stage);
}

/* Is the next message there? Then it is whole. */
static inline bool has_come(const udapl_conn_t *c, struct udapl_tail *tail)
{
	const char *at = c->ring_in.memory.base + c->ring_in.at.end - sizeof *tail;
	uint64_t word = *(const volatile uint64_t *)at;

	memcpy(tail, &word, sizeof *tail);
	return tail->lap == c->ring_in.at.lap;
}

/* So that none of these lines looks like the end of a message. */
static void clear(char *from, char *to)
{
	for (; to > from; to -= UDAPL_LINE)
		memset(to - sizeof(struct udapl_tail), 0, sizeof(struct udapl_tail));
}

/* One thread reads at a time, and not from what it was called by when a message came. Where there is
 * one thread, it does without the locked instruction: that waits for all stores before it. */
static inline bool begin_reading(struct udapl_ring_in *r)
{
	if (opal_using_threads())
		return !opal_atomic_trylock(&r->busy);
	if (r->busy.u.lock == OPAL_ATOMIC_LOCK_LOCKED)
		return false;
	r->busy.u.lock = OPAL_ATOMIC_LOCK_LOCKED;
	return true;
}

static inline void read_message(udapl_conn_t *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;
	uint32_t size = udapl_room_for(tail.length);
	char *end = r->memory.base + r->at.end;

	opal_atomic_rmb();
	__builtin_prefetch(end - size - sizeof tail);	/* the next tail, if it's in this lap */
	if (tail.credits || tail.eager_credits || OPAL_UNLIKELY(!c->heard))
		udapl_take_news(c, tail.credits, tail.eager_credits);
	if (OPAL_LIKELY(size <= r->shape.largest))
		udapl_deliver(c->module, tail.tag, end - sizeof tail - udapl_padded(tail.length),
			      tail.length);
	else
		size = UDAPL_LINE;	/* not a writer of ours */
	clear(end - size, end - UDAPL_LINE);
	opal_atomic_wmb();
	OPAL_THREAD_ADD_FETCH32(&r->owed, udapl_ring_taken(&r->shape, r->at.end, size));
	udapl_ring_pass(&r->shape, &r->at, size);
}

static int read_ring(udapl_conn_t *c)
{
	struct udapl_tail tail;
	int n = 0;

	if (!begin_reading(&c->ring_in))
		return 0;
	while (n < IN_A_ROW && has_come(c, &tail)) {
		read_message(c, tail);
		n++;
	}
	opal_atomic_unlock(&c->ring_in.busy);
	if (udapl_owes(c))
		udapl_return_credits(c);
	return n;
}

int udapl_rings_poll(mca_btl_udapl_module_t *m)
{
	struct udapl_tail tail;
	int n = 0;

	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] && has_come(m->rings[i], &tail))
			n += read_ring(m->rings[i]);
	return n;
}

/* --- the peer's, which we write -------------------------------------------------------------- */

static bool is_ring(const struct udapl_ring_shape *shape)
{
	return shape->size % UDAPL_LINE == 0 && shape->size <= RING_LINES * UDAPL_LINE && shape->largest &&
	       shape->largest % UDAPL_LINE == 0 && shape->largest <= shape->size;
}

/* That a place holds, and a tail can say. */
static uint32_t most_payload(const struct udapl_ring_shape *shape)
{
	uint32_t most = shape->largest - sizeof(struct udapl_tail);

	return most < UINT16_MAX ? most : UINT16_MAX;
}

/* With e->lock held. Without a stage sendi needs fragments, as everything else. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	struct udapl_ring_out *r = &c->ring_out;

	if (!is_ring(&offer->shape))
		return;
	r->offer = *offer;
	r->at = first_place(&offer->shape);
	r->free = offer->shape.size / UDAPL_LINE;
	r->most = most_payload(&offer->shape);
	r->work = (struct udapl_work){ UDAPL_STAGED, c };
	udapl_memory_get(c->module, &r->stage, offer->shape.size, false);
}
