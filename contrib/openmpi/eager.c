/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eager.c - rings for short messages. Who receives much from a peer gives it a ring of slots in
 * his memory. The peer writes a message so that it ends with its slot, with the tail as the last 8
 * bytes; who receives polls the place where the next tail will be. DAT providers store the last
 * 8 bytes of a write last.
 *
 *	slot:	| unused | payload | padding to 8 | tail |
 *
 * A tail names the lap, so what an earlier lap left is not taken for news. Slots that were read
 * are told like credits, with messages.
 *
 * What sendi is given is packed into the stage and written from there; that a place of the stage is
 * free again follows from the slot's being read, so most of these writes need not tell us that they
 * completed. */
#include "udapl.h"
#include <stdlib.h>
#include <string.h>

enum { STAGE_PLACE = 512 };	/* ob1 sends up to 256 bytes, and its header, by sendi */

static size_t padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

static size_t slot_size(const mca_btl_udapl_module_t *m)
{
	size_t size = padded(m->super.btl_eager_limit) + sizeof(struct udapl_tail);

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

/* NULL: there is none. */
static char *registered(udapl_conn_t *c, size_t size, uint32_t flags,
			mca_btl_base_registration_handle_t **handle)
{
	void *base;

	if (posix_memalign(&base, 4096, size))
		return NULL;
	memset(base, 0, size);
	*handle = udapl_register_mem(&c->module->super, c->endpoint, base, size, flags);
	if (!*handle) {
		free(base);
		return NULL;
	}
	return base;
}

static void unregistered(udapl_conn_t *c, char **base, mca_btl_base_registration_handle_t *handle)
{
	if (*base) {
		udapl_deregister_mem(&c->module->super, handle);
		free(*base);
		*base = NULL;
	}
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
		if (!mca_btl_udapl_component.eager_rdma || place < 0)
			return;
		c->ring_in.base = registered(c, (size_t)offer.slots * offer.slot_size,
					     MCA_BTL_REG_FLAG_LOCAL_WRITE |
					     MCA_BTL_REG_FLAG_REMOTE_WRITE, &c->ring_in.handle);
		if (!c->ring_in.base)
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

	OPAL_THREAD_LOCK(&m->lock);
	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i] == c)
			m->rings[i] = NULL;
	OPAL_THREAD_UNLOCK(&m->lock);
	unregistered(c, &c->ring_in.base, c->ring_in.handle);
	unregistered(c, &c->ring_out.stage, c->ring_out.stage_handle);
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
	struct udapl_header h = { .kind = UDAPL_DATA, .tag = tail.tag, .credits = tail.credits,
				  .eager_credits = tail.eager_credits };

	opal_atomic_rmb();
	if (padded(tail.length) + sizeof tail <= size)
		udapl_dispatch(c, &h, end - padded(tail.length), tail.length);
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

/* With e->lock held. Without a stage sendi needs fragments, as everything else. */
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer)
{
	struct udapl_ring_out *r = &c->ring_out;

	r->offer = *offer;
	r->free = offer->slots;
	r->work = (struct udapl_work){ UDAPL_STAGED, c };
	r->stage = registered(c, (size_t)offer->slots * STAGE_PLACE, 0, &r->stage_handle);
}

bool udapl_ring_has_room(const struct udapl_conn *c, size_t length)
{
	return c->ring_out.free > 0 && length <= UINT16_MAX &&
	       padded(length) + sizeof(struct udapl_tail) <= c->ring_out.offer.slot_size;
}

/* Behind the payload at `data` there is room for the tail. */
static DAT_RETURN write_slot(struct udapl_conn *c, const struct udapl_header *h, char *data,
			     size_t length, uint32_t lmr_context, struct udapl_work *work,
			     DAT_COMPLETION_FLAGS flags)
{
	struct udapl_ring_out *r = &c->ring_out;
	size_t size = padded(length) + sizeof(struct udapl_tail);
	struct udapl_tail tail = { .length = length, .credits = h->credits,
				   .eager_credits = h->eager_credits, .tag = h->tag,
				   .lap = r->lap };
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)data, .segment_length = size,
				 .lmr_context = lmr_context };
	DAT_RMR_TRIPLET to = { .virtual_address = r->offer.address +
				       (uint64_t)(r->next + 1) * r->offer.slot_size - size,
			       .segment_length = size, .rmr_context = r->offer.rmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = work };

	memcpy(data + padded(length), &tail, sizeof tail);
	r->free--;
	if (++r->next == r->offer.slots) {
		r->next = 0;
		r->lap++;
	}
	return dat_ep_post_rdma_write(c->ep, 1, &from, cookie, &to, flags);
}

/* With e->lock held, and so are the next ones; udapl_ring_has_room() said yes. */
DAT_RETURN udapl_ring_write(struct udapl_conn *c, struct udapl_frag *f)
{
	return write_slot(c, f->header, (char *)(f->header + 1), f->segment.seg_len,
			  f->lmr_context, &f->work, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Where a payload for the next slot is put together. NULL: not on the stage. */
void *udapl_ring_stage(const struct udapl_conn *c, size_t length)
{
	const struct udapl_ring_out *r = &c->ring_out;

	if (!r->stage || padded(length) + sizeof(struct udapl_tail) > STAGE_PLACE ||
	    !udapl_ring_has_room(c, length))
		return NULL;
	return r->stage + (size_t)r->next * STAGE_PLACE;
}

/* Writes what was put together there. */
DAT_RETURN udapl_ring_write_staged(struct udapl_conn *c, const struct udapl_header *h,
				   void *stage, size_t length, bool tells)
{
	struct udapl_ring_out *r = &c->ring_out;

	return write_slot(c, h, stage, length, r->stage_handle->lmr_context,
			  tells ? &r->work : &c->module->untold,
			  tells ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
}
