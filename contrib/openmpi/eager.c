/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eager.c - rings for short messages. Who receives much from a peer gives it a ring of slots in
 * his memory. The peer writes a message so that it ends with its slot, with the tail as the last 8
 * bytes; who receives polls the place where the next tail will be. DAT providers store the last
 * 8 bytes of a write last.
 *
 *	slot:	| unused | header, payload | padding to 8 | tail |
 *
 * A tail names the lap, so what an earlier lap left is not taken for news. Slots that were read
 * are told like credits, with messages. */
#include "udapl.h"
#include <stdlib.h>
#include <string.h>

static size_t padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

static size_t slot_size(const mca_btl_udapl_module_t *m)
{
	size_t size = padded(sizeof(struct udapl_header) + m->super.btl_eager_limit) +
		      sizeof(struct udapl_tail);

	return (size + 63) & ~(size_t)63;
}

/* --- ours, which we read ---------------------------------------------------------------------- */

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

static bool make_ring(udapl_conn_t *c, size_t size)
{
	mca_btl_udapl_module_t *m = c->module;
	void *base;

	if (posix_memalign(&base, 4096, size))
		return false;
	memset(base, 0, size);
	c->ring_in.handle = udapl_register_mem(&m->super, c->endpoint, base, size,
					       MCA_BTL_REG_FLAG_LOCAL_WRITE |
					       MCA_BTL_REG_FLAG_REMOTE_WRITE);
	if (!c->ring_in.handle) {
		free(base);
		return false;
	}
	c->ring_in.base = base;
	return true;
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
	struct udapl_ring_offer offer = { .slots = mca_btl_udapl_component.eager_slots,
					  .slot_size = slot_size(m) };
	int place = place_for(m);

	if (c->state != UDAPL_CONN_UP)
		return;
	if (!c->ring_in.base) {
		c->ring_in.offered = true;
		if (!mca_btl_udapl_component.eager_rdma || place < 0 ||
		    !make_ring(c, (size_t)offer.slots * offer.slot_size))
			return;
		poll_from_now_on(c, place);
	}
	offer.address = (uintptr_t)c->ring_in.base;
	offer.rmr_context = c->ring_in.handle->rmr_context;
	c->ring_in.offered = udapl_control(c, UDAPL_RING, &offer, sizeof offer);
}

/* The connection is ending, nobody writes any more. */
void udapl_ring_free(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (!c->ring_in.base)
		return;
	OPAL_THREAD_LOCK(&m->lock);
	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] == c)
			m->rings[i] = NULL;
	OPAL_THREAD_UNLOCK(&m->lock);
	udapl_deregister_mem(&m->super, c->ring_in.handle);
	free(c->ring_in.base);
	c->ring_in.base = NULL;
}

static volatile uint64_t *next_tail(const udapl_conn_t *c, size_t size)
{
	return (volatile uint64_t *)(c->ring_in.base + (c->ring_in.next + 1) * size -
				     sizeof(struct udapl_tail));
}

static bool has_come(const udapl_conn_t *c, size_t size, struct udapl_tail *tail)
{
	uint64_t word = *next_tail(c, size);

	memcpy(tail, &word, sizeof *tail);
	return tail->lap == c->ring_in.lap;
}

static void read_slot(udapl_conn_t *c, size_t size, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;
	char *end = (char *)(uintptr_t)next_tail(c, size);
	struct udapl_header *h = (struct udapl_header *)(end - padded(tail.length));

	opal_atomic_rmb();
	if (tail.length >= sizeof *h && tail.length + sizeof tail <= size)
		udapl_dispatch(c, h, tail.length - sizeof *h);
	if (++r->next == (uint32_t)mca_btl_udapl_component.eager_slots) {
		r->next = 0;
		r->lap++;
	}
	OPAL_THREAD_ADD_FETCH32(&r->owed, 1);
}

static int read_ring(udapl_conn_t *c, size_t size)
{
	struct udapl_tail tail;
	int n = 0;

	if (opal_atomic_trylock(&c->ring_in.busy))
		return 0;
	while (n < mca_btl_udapl_component.eager_slots && has_come(c, size, &tail)) {
		read_slot(c, size, tail);
		n++;
	}
	opal_atomic_unlock(&c->ring_in.busy);
	if (n)
		udapl_return_credits(c);
	return n;
}

int udapl_rings_poll(mca_btl_udapl_module_t *m)
{
	size_t size = slot_size(m);
	struct udapl_tail tail;
	int n = 0;

	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] && has_come(m->rings[i], size, &tail))
			n += read_ring(m->rings[i], size);
	return n;
}

/* --- the peer's, which we write -------------------------------------------------------------- */

/* With e->lock held. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	c->ring_out.offer = *offer;
	c->ring_out.free = offer->slots;
}

bool udapl_ring_has_room(const struct udapl_conn *c, size_t length)
{
	return c->ring_out.free > 0 &&
	       padded(length) + sizeof(struct udapl_tail) <= c->ring_out.offer.slot_size;
}

/* With e->lock held. The fragment's buffer has room for the tail behind its payload. */
DAT_RETURN udapl_ring_write(struct udapl_conn *c, struct udapl_frag *f, size_t length)
{
	struct udapl_ring_out *r = &c->ring_out;
	size_t size = padded(length) + sizeof(struct udapl_tail);
	struct udapl_tail tail = { .length = length, .lap = r->lap };
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)f->header,
				 .segment_length = size, .lmr_context = f->lmr_context };
	DAT_RMR_TRIPLET to = { .virtual_address = r->offer.address +
				       (uint64_t)(r->next + 1) * r->offer.slot_size - size,
			       .segment_length = size, .rmr_context = r->offer.rmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &f->work };

	memcpy((char *)f->header + padded(length), &tail, sizeof tail);
	r->free--;
	if (++r->next == r->offer.slots) {
		r->next = 0;
		r->lap++;
	}
	return dat_ep_post_rdma_write(c->ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG);
}
