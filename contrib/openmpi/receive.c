/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - handles received messages (receive.h). The receives of a connection are in the shared queue
 * of the adapter, or in its own queue (recv_post.h). There is always a receive for each message that
 * a peer may send. So devices never have to delay or fail a sender. */
#include "receive.h"
#include "conn.h"
#include "control.h"
#include "posting.h"
#include "push.h"
#include "recv_post.h"
#include "ring_setup.h"
#include "send.h"

/* --- received messages ----------------------------------------------------------------------- */

/* Called with e->lock held. Returns true if waiting requests may now be sent. */
static bool take_credits(udapl_conn_t *c, int credits, uint32_t eager_credits)
{
	bool gained = credits || eager_credits;

	assert_held(&c->endpoint->lock);
	if (!c->received_any)
		gained |= udapl_conn_first_message(c);
	c->credits += credits;
	c->ring_out.free_slots += eager_credits;
	return gained && udapl_has_waiting(c->endpoint);
}

/* Takes the credits that came with a message in the ring. */
void udapl_credits_received(struct udapl_conn *c, int credits, uint32_t eager_credits)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool waiting;

	udapl_mutex_lock(&e->lock);
	waiting = take_credits(c, credits, eager_credits);
	udapl_mutex_unlock(&e->lock);
	if (waiting)
		udapl_push(e);
}

static void dispatch(udapl_conn_t *c, const struct udapl_header *h, void *payload, size_t length)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	mca_btl_base_segment_t segment = { .seg_addr.pval = payload, .seg_len = length };
	udapl_message_t message;
	bool waiting;

	udapl_message_init(&message, &segment, e);
	udapl_mutex_lock(&e->lock);
	waiting = take_credits(c, h->credits, h->eager_credits);
	if (h->kind == UDAPL_RING_OFFER && length >= sizeof(struct udapl_ring_offer))
		udapl_ring_accept(c, payload);
	else if (h->kind == UDAPL_CLOSE)
		c->close_received = true;
	udapl_mutex_unlock(&e->lock);
	if (h->kind == UDAPL_DATA)
		udapl_deliver(c->module, h->tag, &message);
	if (waiting)
		udapl_push(e);
}

/* After a connection ended the shared queue may hold a surplus, so a credit is returned even if
 * the receive is not re-posted. */
static void repost(udapl_conn_t *c, udapl_frag_t *f, bool consumed_credit)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	int rc = f->work.conn ? udapl_receive_post_own(c, f) : udapl_receive_post_shared(c->module, f);

	if (consumed_credit && (rc == OPAL_SUCCESS || rc == OPAL_ERR_NOT_AVAILABLE)) {
		udapl_mutex_lock(&e->lock);
		c->credits_to_return++;
		c->received++;
		if (c->received >= mca_btl_udapl_component.eager_threshold && !c->ring_in.offered)
			udapl_ring_offer(c);
		udapl_mutex_unlock(&e->lock);
	}
}

/* Completion of a receive. */
void udapl_receive_completed(mca_btl_udapl_module_t *m, struct udapl_frag *f, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	udapl_conn_t *c = f->work.conn ? f->work.conn : udapl_conn_from(dto->ep_handle);
	size_t length = dto->transfered_length;

	if (f->work.conn) {
		udapl_add(&c->receives, -1);
	} else {
		udapl_mutex_lock(&m->recv_lock);
		m->srq_posted--;
		udapl_mutex_unlock(&m->recv_lock);
	}
	if (!c || dto->status != DAT_DTO_SUCCESS || length < sizeof *f->header) {
		if (c && dto->status != DAT_DTO_ERR_FLUSHED)
			udapl_conn_broken(c, "a receive failed");
		udapl_receive_drop(m, f);
		return;
	}
	dispatch(c, f->header, f->header + 1, length - sizeof *f->header);
	repost(c, f, f->header->kind == UDAPL_DATA);
	udapl_return_credits(c);
}
