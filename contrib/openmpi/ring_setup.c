/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_setup.c - eager rings for short messages. A process that receives many messages from a peer
 * offers it a ring in its own memory. DAT providers store the last 8 bytes of a write last, so a
 * message ends with its tail, and the consumer polls the place of the next tail. The length in
 * the tail tells where its message begins. The ring is filled from the top down: the next message ends
 * where this one begins.
 *
 *	| next message | tail | payload | padding to 8 | tail | already read
 *	                 ^ polled when everything above it has been read
 *
 * A message takes whole slots; the unused bytes precede its payload. Where the largest message no
 * longer fits, both sides continue at the top with the next lap. So no message ends in the slots
 * that are left over at the bottom. After a slot has been read, its last 8 bytes are the tail of
 * this lap or zero: the consumer clears them where there was payload. So old data is never taken
 * for a tail, and a message of one slot needs no store by the consumer. Messages report released
 * slots as they report credits.
 *
 * A producer on the same host maps the ring if the provider can do that. When it has no free slot, it
 * reads the number of released slots from the control block, so they need not be reported. It counts
 * there the messages that it posts instead of storing them. When this count changes, the consumer polls
 * its CQ, so that a posted message arrives little later than the messages stored before it. In a mapped
 * ring the producer, not the consumer, prevents that old data is taken for a tail: it clears the place
 * of the next tail if its content looks like a tail of this lap. That costs one load, from memory to
 * which no other process writes.
 *
 * staging.c writes most messages; ring_poll.c reads them. */
#include "ring_setup.h"
#include "control.h"
#include "memory.h"
#include "receive.h"
#include "ring.h"
#include "send.h"
#include "opal/util/output.h"
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* Linux 5.14 */
#endif

static struct udapl_ring_cursor first_cursor(const struct udapl_ring_shape *shape)
{
	return (struct udapl_ring_cursor){ .end = shape->size, .lap = 1 };
}

/* --- incoming ring --------------------------------------------------------------------------- */

static struct udapl_ring_shape ring_of(const mca_btl_udapl_module_t *m, int messages)
{
	uint32_t largest = m->super.btl_eager_limit + UDAPL_MESSAGE_OVERHEAD + UDAPL_CACHE_LINE - 1;
	struct udapl_ring_shape shape = { .largest = largest & ~(UDAPL_CACHE_LINE - 1u) };
	uint64_t size;

	if (messages < UDAPL_RING_MIN_MESSAGES)
		messages = UDAPL_RING_MIN_MESSAGES;
	size = (uint64_t)messages * shape.largest;
	shape.size = size < UDAPL_RING_MAX_SLOTS * UDAPL_RING_SLOT ? size : UDAPL_RING_MAX_SLOTS * UDAPL_RING_SLOT;
	return shape;
}

/* The first ring, for a peer on this host. A producer that is ahead of its consumer fills a ring that fits the L2
 * cache, and then waits for each line that the consumer has just read. */
static struct udapl_ring_shape large_ring(const mca_btl_udapl_module_t *m)
{
	return ring_of(m, mca_btl_udapl_component.eager_messages);
}

/* Any other ring. The more rings exist, the smaller the next one is, because all of them should fit into the
 * processor's cache: with large ones an all-to-all of 8 ranks takes longer. */
static struct udapl_ring_shape small_ring(const mca_btl_udapl_module_t *m, int others)
{
	return ring_of(m, mca_btl_udapl_component.eager_messages / (UDAPL_RING_LATER * (others + 1)));
}

/* Returns the first free place in m->rings, or -1 if there is none. Called with m->lock held. */
static int find_ring_index(const mca_btl_udapl_module_t *m)
{
	assert_held(&m->lock);
	for (int i = 0; i < mca_btl_udapl_component.eager_peers; i++)
		if (!m->rings[i])
			return i;
	return -1;
}

/* Returns false if other connections have taken all places. */
static bool start_polling(udapl_conn_t *c)
{
	mca_btl_udapl_module_t *m = c->module;
	int index;

	c->ring_in.busy = false;
	udapl_mutex_lock(&m->lock);
	index = find_ring_index(m);
	if (index >= 0) {
		m->rings[index] = c;
		opal_atomic_wmb();
		if (index >= m->num_rings)
			m->num_rings = index + 1;
	}
	udapl_mutex_unlock(&m->lock);
	return index >= 0;
}

static bool alloc_ring(mca_btl_udapl_module_t *m, struct udapl_ring_in *r, struct udapl_ring_shape shape)
{
	r->shape = shape;
	return udapl_memory_alloc(m, &r->memory, shape.size + sizeof *r->ctl, true);
}

/* Only for a peer that may map it: one that stores into the ring by RDMA gains nothing by its size. */
static bool alloc_large_ring(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	const opal_proc_t *proc = c->endpoint->proc;

	if (!proc || !OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) || !alloc_ring(c->module, r, large_ring(c->module)))
		return false;
	if (!r->memory.shared)
		udapl_memory_free(&r->memory);
	return r->memory.shared;
}

/* Called with e->lock held. Takes the place in m->rings only when the ring is complete, since another
 * thread may create the ring of another connection at the same time. */
static bool create_ring(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;
	struct udapl_ring_in *r = &c->ring_in;
	int index;

	assert_held(&c->endpoint->lock);
	udapl_mutex_lock(&m->lock);
	index = find_ring_index(m);
	udapl_mutex_unlock(&m->lock);

	if (!mca_btl_udapl_component.eager_rdma || index < 0)
		return false;
	if (!(index == 0 && alloc_large_ring(c)) && !alloc_ring(m, r, small_ring(m, index)))
		return false;
	r->ctl = (void *)(r->memory.base + r->shape.size);
	r->cursor = first_cursor(&r->shape);
	udapl_message_init(&r->message, &r->segment, c->endpoint);
	if (start_polling(c))
		return true;
	udapl_memory_free(&r->memory);
	return false;
}

/* Called with e->lock held for every message until `offered` is set. Without a ring messages
 * continue to arrive in receives. */
void udapl_ring_offer(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_ring_offer offer;

	assert_held(&c->endpoint->lock);
	if (c->state != UDAPL_CONN_ESTABLISHED)
		return;
	if (!r->memory.base && !create_ring(c)) {
		r->offered = true;
		return;
	}
	offer = (struct udapl_ring_offer){ .address = (uintptr_t)r->memory.base,
					   .rmr_context = r->memory.rmr_context,
					   .shape = r->shape };
	r->offered = udapl_control(c, UDAPL_RING_OFFER, &offer, sizeof offer);
}

/* Called when the connection has ended and the peer can no longer write. */
void udapl_ring_free(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	udapl_mutex_lock(&m->lock);
	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] == c)
			m->rings[i] = NULL;
	udapl_mutex_unlock(&m->lock);
	udapl_memory_free(&c->ring_in.memory);
	udapl_memory_free(&c->ring_out.staging);
}

/* --- outgoing ring --------------------------------------------------------------------------- */

static bool is_ring(const struct udapl_ring_shape *shape)
{
	return shape->size % UDAPL_CACHE_LINE == 0 && shape->size <= UDAPL_RING_MAX_SLOTS * UDAPL_RING_SLOT &&
	       shape->largest % UDAPL_CACHE_LINE == 0 && shape->largest > UDAPL_MESSAGE_OVERHEAD &&
	       shape->largest <= shape->size;
}

/* Limited by the space in the ring and by the length field of the tail. */
static uint32_t max_payload_of(const struct udapl_ring_shape *shape)
{
	uint32_t most = shape->largest - UDAPL_MESSAGE_OVERHEAD;

	return most < UINT16_MAX ? most : UINT16_MAX;
}

/* Page faults would delay the first lap: 500 of them in a large ring. Older kernels cannot do this in advance. */
static void make_present(char *from, size_t size)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), begin = (uintptr_t)from & ~(page - 1);

	madvise((void *)begin, (uintptr_t)from + size - begin, MADV_POPULATE_WRITE);
}

static bool map_ring(struct udapl_conn *c)
{
	struct udapl_ring_out *r = &c->ring_out;
	DAT_RMR_TRIPLET all = {
		.virtual_address = r->offer.address, .rmr_context = r->offer.rmr_context,
		.segment_length = r->offer.shape.size + sizeof *r->ctl,
	};
	DAT_PVOID at;

	if (dat_map_rmr(c->ep, &all, &at) != DAT_SUCCESS)
		return false;
	r->buffer = at;
	make_present(r->buffer, r->offer.shape.size);
	r->ctl = (void *)(r->buffer + r->offer.shape.size);
	r->ctl->mapped = 1;
	return true;
}

/* Called with e->lock held. A connection has one outgoing ring: another offer is ignored, since messages
 * may be under way to the first ring. Without a staging buffer udapl_sendi() uses fragments. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	struct udapl_ring_out *r = &c->ring_out;

	assert_held(&c->endpoint->lock);
	if (r->offer.shape.size || !is_ring(&offer->shape))
		return;
	r->offer = *offer;
	r->cursor = first_cursor(&offer->shape);
	r->free_slots = offer->shape.size / UDAPL_RING_SLOT;
	r->max_payload = max_payload_of(&offer->shape);
	r->work = (struct udapl_work){ UDAPL_STAGED, c };
	if (!map_ring(c) && udapl_memory_alloc(c->module, &r->staging, offer->shape.size, false))
		r->buffer = r->staging.base;
	opal_output_verbose(30, opal_btl_base_framework.framework_output,
			    "btl:udapl: %s: the ring of %s is %s", c->module->name,
			    OPAL_NAME_PRINT(c->endpoint->name),
			    r->ctl ? "mapped" : "written by RDMA");
}
