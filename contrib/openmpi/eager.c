/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eager.c - rings for short messages. Who receives much from a peer gives it a ring in his
 * memory. DAT providers store the last 8 bytes of a write last, so a message ends with its tail, and
 * who receives polls the place where the next tail will be. Where a message begins its tail says: the
 * ring is filled from its top down, and what ends where one begins is the next.
 *
 *	... | next message | tail | payload | padding to 8 | tail | read already ...
 *	                     ^ polled when what is above has been read
 *
 * A message takes whole slots; what its first one has before it is unused. Where the
 * largest would not fit any more, both sides go on at the top, for another lap; so no message ends
 * in the slots that are left out. The last 8 bytes of a slot that has been read are the tail of this
 * lap, or zero: the reader clears them where payload was. So nothing old is taken for a tail, and a
 * message of one slot makes the reader write nothing. Slots that were read are told like credits, with
 * messages.
 *
 * A writer who can maps the ring. Then nobody has to tell him what was read: he finds out, when he has
 * no room. What he has to post when there is none he notes, so that the reader looks for it, and it's not
 * much later than what was stored before. And it's he who clears: where the next tail will be looked
 * for, and only if what is there looks like it. That takes him one load, of memory that he wrote last.
 *
 * Most messages are written by stage.c; poll.c reads. */
#include "ring.h"
#include "opal/util/output.h"

enum { RING_SLOTS = UINT16_MAX - 1 };	/* at most: they are told in 16 bits */

static struct udapl_ring_place first_place(const struct udapl_ring_shape *shape)
{
	return (struct udapl_ring_place){ .end = shape->size, .lap = 1 };
}

/* --- ours, which we read ---------------------------------------------------------------------- */

/* The more rings there are the smaller is the next: they should stay in a processor's cache. */
static struct udapl_ring_shape own_shape(const mca_btl_udapl_module_t *m, int others)
{
	uint32_t largest = m->super.btl_eager_limit + UDAPL_SPARE + UDAPL_LINE - 1;
	struct udapl_ring_shape shape = { .largest = largest & ~(UDAPL_LINE - 1u) };
	int messages = mca_btl_udapl_component.eager_messages / (others + 1);
	uint64_t size;

	if (messages < UDAPL_LEAST_IN_RING)
		messages = UDAPL_LEAST_IN_RING;
	size = (uint64_t)messages * shape.largest;
	shape.size = size < RING_SLOTS * UDAPL_SLOT ? size : RING_SLOTS * UDAPL_SLOT;
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

static bool make_ring(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;
	struct udapl_ring_in *r = &c->ring_in;
	int place = place_for(m);

	if (!mca_btl_udapl_component.eager_rdma || place < 0)
		return false;
	r->shape = own_shape(m, place);
	if (!udapl_memory_get(m, &r->memory, r->shape.size + sizeof *r->notes, true))
		return false;
	r->notes = (void *)(r->memory.base + r->shape.size);
	r->at = first_place(&r->shape);
	udapl_describe(&r->des, &r->segment);
	poll_from_now_on(c, place);
	return true;
}

/* With e->lock held. Called with every message until `offered` is set. Without a ring messages
 * come as before. */
void udapl_ring_offer(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_ring_offer offer;

	if (c->state != UDAPL_CONN_UP)
		return;
	if (!r->memory.base && !make_ring(c)) {
		r->offered = true;
		return;
	}
	offer = (struct udapl_ring_offer){ .address = (uintptr_t)r->memory.base,
					   .rmr_context = r->memory.rmr_context,
					   .shape = r->shape };
	r->offered = udapl_control(c, UDAPL_RING, &offer, sizeof offer);
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

/* --- the peer's, which we write -------------------------------------------------------------- */

static bool is_ring(const struct udapl_ring_shape *shape)
{
	return shape->size % UDAPL_LINE == 0 && shape->size <= RING_SLOTS * UDAPL_SLOT &&
	       shape->largest % UDAPL_LINE == 0 && shape->largest > UDAPL_SPARE && shape->largest <= shape->size;
}

/* That a place holds, and a tail can say. */
static uint32_t most_payload(const struct udapl_ring_shape *shape)
{
	uint32_t most = shape->largest - UDAPL_SPARE;

	return most < UINT16_MAX ? most : UINT16_MAX;
}

static bool map_ring(struct udapl_conn *c)
{
	struct udapl_ring_out *r = &c->ring_out;
	DAT_RMR_TRIPLET all = {
		.virtual_address = r->offer.address, .rmr_context = r->offer.rmr_context,
		.segment_length = r->offer.shape.size + sizeof *r->notes,
	};
	DAT_PVOID at;

	if (dat_map_rmr(c->ep, &all, &at) != DAT_SUCCESS)
		return false;
	r->image = at;
	r->notes = (void *)(r->image + r->offer.shape.size);
	r->notes->mapped = 1;
	return true;
}

/* With e->lock held. Without a stage sendi needs fragments, as everything else. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	struct udapl_ring_out *r = &c->ring_out;

	if (!is_ring(&offer->shape))
		return;
	r->offer = *offer;
	r->at = first_place(&offer->shape);
	r->free = offer->shape.size / UDAPL_SLOT;
	r->most = most_payload(&offer->shape);
	r->work = (struct udapl_work){ UDAPL_STAGED, c };
	if (!map_ring(c) && udapl_memory_get(c->module, &r->stage, offer->shape.size, false))
		r->image = r->stage.base;
	opal_output_verbose(30, opal_btl_base_framework.framework_output,
			    "btl:udapl: %s: the ring of %s is %s", c->module->name,
			    OPAL_NAME_PRINT(c->endpoint->name),
			    r->notes ? "mapped" : "written by RDMA");
}
