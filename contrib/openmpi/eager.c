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
 * What sendi is given is packed into the stage, the ring's image, and written from there; that a place
 * of the stage is free again follows from the ring's being read there, so most of these writes need
 * not tell us that they completed. */
#include "udapl.h"
#include <string.h>

enum {
	LINE = 64,
	RING_LINES = UINT16_MAX,	/* at most: they are told in 16 bits */
	IN_A_ROW = 64			/* messages read before others have their turn */
};

static uint32_t padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

/* Bytes of a ring that so much payload takes: whole lines. */
static uint32_t room_for(size_t length)
{
	return (padded(length) + sizeof(struct udapl_tail) + LINE - 1) & ~(size_t)(LINE - 1);
}

/* A message of `size` bytes that ends here is the last of its lap. */
static bool is_last(const struct udapl_ring_shape *shape, uint32_t end, uint32_t size)
{
	return end - size < shape->largest;
}

/* Lines that it takes from the ring, with those that are left out at the bottom. */
static uint32_t taken(const struct udapl_ring_shape *shape, uint32_t end, uint32_t size)
{
	return (is_last(shape, end, size) ? end : size) / LINE;
}

/* Goes on to where the next message ends. */
static void pass(const struct udapl_ring_shape *shape, struct udapl_ring_place *at, uint32_t size)
{
	if (is_last(shape, at->end, size)) {
		at->end = shape->size;
		at->lap = at->lap % UINT8_MAX + 1;
	} else {
		at->end -= size;
	}
}

static struct udapl_ring_place first_place(const struct udapl_ring_shape *shape)
{
	return (struct udapl_ring_place){ .end = shape->size, .lap = 1 };
}

/* --- ours, which we read ---------------------------------------------------------------------- */

static struct udapl_ring_shape own_shape(const mca_btl_udapl_module_t *m)
{
	struct udapl_ring_shape shape = { .largest = room_for(m->super.btl_eager_limit) };
	uint64_t size = (uint64_t)mca_btl_udapl_component.eager_messages * shape.largest;

	shape.size = size < RING_LINES * LINE ? size : RING_LINES * LINE;
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
	for (; to > from; to -= LINE)
		memset(to - sizeof(struct udapl_tail), 0, sizeof(struct udapl_tail));
}

static void read_message(udapl_conn_t *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;
	uint32_t size = room_for(tail.length);
	char *end = r->memory.base + r->at.end;
	struct udapl_header h = { .kind = UDAPL_DATA, .tag = tail.tag, .credits = tail.credits,
				  .eager_credits = tail.eager_credits };

	opal_atomic_rmb();
	if (size <= r->shape.largest)
		udapl_dispatch(c, &h, end - sizeof tail - padded(tail.length), tail.length);
	else
		size = LINE;		/* not a writer of ours */
	clear(end - size, end - LINE);
	opal_atomic_wmb();
	OPAL_THREAD_ADD_FETCH32(&r->owed, taken(&r->shape, r->at.end, size));
	pass(&r->shape, &r->at, size);
}

static int read_ring(udapl_conn_t *c)
{
	struct udapl_tail tail;
	int n = 0;

	if (opal_atomic_trylock(&c->ring_in.busy))
		return 0;
	while (n < IN_A_ROW && has_come(c, &tail)) {
		read_message(c, tail);
		n++;
	}
	opal_atomic_unlock(&c->ring_in.busy);
	if (n)
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

/* As many as should be told, if nothing else goes where they could ride on. */
bool udapl_ring_owes(const struct udapl_conn *c)
{
	return c->ring_in.owed * LINE >= (int32_t)c->ring_in.shape.size / 2 && c->ring_in.owed;
}

/* --- the peer's, which we write -------------------------------------------------------------- */

static bool is_ring(const struct udapl_ring_shape *shape)
{
	return shape->size % LINE == 0 && shape->size <= RING_LINES * LINE && shape->largest &&
	       shape->largest % LINE == 0 && shape->largest <= shape->size;
}

/* With e->lock held. Without a stage sendi needs fragments, as everything else. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	struct udapl_ring_out *r = &c->ring_out;

	if (!is_ring(&offer->shape))
		return;
	r->offer = *offer;
	r->at = first_place(&offer->shape);
	r->free = offer->shape.size / LINE;
	r->work = (struct udapl_work){ UDAPL_STAGED, c };
	udapl_memory_get(c->module, &r->stage, offer->shape.size, false);
}

bool udapl_ring_has_room(const struct udapl_conn *c, size_t length)
{
	const struct udapl_ring_out *r = &c->ring_out;
	uint32_t size = room_for(length);

	return length <= UINT16_MAX && size <= r->offer.shape.largest &&
	       taken(&r->offer.shape, r->at.end, size) <= r->free;
}

/* Behind the payload at `data` there is room for the tail. */
static DAT_RETURN write_message(struct udapl_conn *c, const struct udapl_header *h, char *data,
				size_t length, uint32_t lmr_context, struct udapl_work *work,
				DAT_COMPLETION_FLAGS flags)
{
	struct udapl_ring_out *r = &c->ring_out;
	const struct udapl_ring_shape *shape = &r->offer.shape;
	uint32_t size = padded(length) + sizeof(struct udapl_tail), room = room_for(length);
	struct udapl_tail tail = { .length = length, .credits = h->credits,
				   .eager_credits = h->eager_credits, .tag = h->tag,
				   .lap = r->at.lap };
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)data, .segment_length = size,
				 .lmr_context = lmr_context };
	DAT_RMR_TRIPLET to = { .virtual_address = r->offer.address + r->at.end - size,
			       .segment_length = size, .rmr_context = r->offer.rmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = work };

	memcpy(data + padded(length), &tail, sizeof tail);
	r->free -= taken(shape, r->at.end, room);
	pass(shape, &r->at, room);
	return dat_ep_post_rdma_write(c->ep, 1, &from, cookie, &to, flags);
}

/* With e->lock held, and so are the next ones; udapl_ring_has_room() said yes. */
DAT_RETURN udapl_ring_write(struct udapl_conn *c, struct udapl_frag *f)
{
	return write_message(c, f->header, (char *)(f->header + 1), f->segment.seg_len,
			     f->lmr_context, &f->work, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Where a payload for the next message is put together. NULL: not on the stage. */
void *udapl_ring_stage(const struct udapl_conn *c, size_t length)
{
	const struct udapl_ring_out *r = &c->ring_out;

	if (!r->stage.base || !udapl_ring_has_room(c, length))
		return NULL;
	return r->stage.base + r->at.end - sizeof(struct udapl_tail) - padded(length);
}

/* Writes what was put together there. */
DAT_RETURN udapl_ring_write_staged(struct udapl_conn *c, const struct udapl_header *h,
				   void *stage, size_t length, bool tells)
{
	struct udapl_ring_out *r = &c->ring_out;

	return write_message(c, h, stage, length, r->stage.lmr_context,
			     tells ? &r->work : &c->module->untold,
			     tells ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
}
