/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - receives, and what is done with what comes. Each connection has credits +
 * UDAPL_RESERVE of them, in the adapter's shared queue or of its own: there is a receive for
 * whatever a peer may send, always, so the devices never have to make a sender wait or fail. */
#include "udapl.h"

static DAT_RETURN post_to(mca_btl_udapl_module_t *m, udapl_conn_t *own, udapl_frag_t *f)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)f->header,
			       .segment_length = m->message_size,
			       .lmr_context = f->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &f->work };

	f->work.conn = own;
	if (own)
		return dat_ep_post_recv(own->ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	return dat_srq_post_recv(m->srq, 1, &to, cookie);
}

static udapl_frag_t *new_frag(mca_btl_udapl_module_t *m)
{
	return (udapl_frag_t *)opal_free_list_get(&m->recv_frags);
}

static void drop(mca_btl_udapl_module_t *m, udapl_frag_t *f)
{
	opal_free_list_return(&m->recv_frags, &f->base.super);
}

/* Posts f, or a new one if it is NULL, if the shared queue wants another. */
static int fill_srq(mca_btl_udapl_module_t *m, udapl_frag_t *f)
{
	bool wanted;

	OPAL_THREAD_LOCK(&m->recv_lock);
	wanted = m->srq_posted < m->srq_wanted;
	if (wanted)
		m->srq_posted++;
	OPAL_THREAD_UNLOCK(&m->recv_lock);
	if (wanted && !f)
		f = new_frag(m);
	if (wanted && f && post_to(m, NULL, f) == DAT_SUCCESS)
		return OPAL_SUCCESS;
	if (f)
		drop(m, f);
	if (!wanted)
		return OPAL_ERR_NOT_AVAILABLE;
	OPAL_THREAD_LOCK(&m->recv_lock);
	m->srq_posted--;
	OPAL_THREAD_UNLOCK(&m->recv_lock);
	return OPAL_ERR_OUT_OF_RESOURCE;
}

static int fill_own(udapl_conn_t *c, udapl_frag_t *f)
{
	if (!f)
		f = new_frag(c->module);
	if (!f)
		return OPAL_ERR_OUT_OF_RESOURCE;
	if (post_to(c->module, c, f) != DAT_SUCCESS) {
		drop(c->module, f);
		return OPAL_ERR_OUT_OF_RESOURCE;
	}
	OPAL_THREAD_ADD_FETCH32(&c->receives, 1);
	return OPAL_SUCCESS;
}

/* The receives of a new connection. */
int udapl_receives_post(struct udapl_conn *c)
{
	int n = mca_btl_udapl_component.credits + UDAPL_RESERVE, rc;

	for (int i = 0; i < n; i++) {
		rc = c->srq ? fill_srq(c->module, NULL) : fill_own(c, NULL);
		if (rc == OPAL_ERR_NOT_AVAILABLE)
			break;	/* left over from a connection that ended */
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	return OPAL_SUCCESS;
}

/* The shared queue needs them no more; as they are filled they are not posted again. */
void udapl_receives_drop(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (!c->srq)
		return;
	OPAL_THREAD_LOCK(&m->recv_lock);
	m->srq_wanted -= mca_btl_udapl_component.credits + UDAPL_RESERVE;
	OPAL_THREAD_UNLOCK(&m->recv_lock);
}

/* --- what comes ------------------------------------------------------------------------------- */

/* With e->lock held. True: something may go that waited. */
static bool add_news(udapl_conn_t *c, int credits, uint32_t eager_credits)
{
	bool news = credits || eager_credits;

	if (!c->heard)
		news |= udapl_conn_heard_first(c);
	c->credits += credits;
	c->ring_out.free += eager_credits;
	return news && udapl_has_waiting(c->endpoint);
}

/* What comes with a message from the ring. */
void udapl_take_news(struct udapl_conn *c, int credits, uint32_t eager_credits)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool waiting;

	OPAL_THREAD_LOCK(&e->lock);
	waiting = add_news(c, credits, eager_credits);
	OPAL_THREAD_UNLOCK(&e->lock);
	if (waiting)
		udapl_push(e);
}

static void dispatch(udapl_conn_t *c, const struct udapl_header *h, void *payload, size_t length)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	mca_btl_base_segment_t segment = { .seg_addr.pval = payload, .seg_len = length };
	mca_btl_base_descriptor_t des;
	bool waiting;

	udapl_describe(&des, &segment);
	OPAL_THREAD_LOCK(&e->lock);
	waiting = add_news(c, h->credits, h->eager_credits);
	if (h->kind == UDAPL_RING)
		udapl_ring_accept(c, payload);
	else if (h->kind == UDAPL_GOODBYE)
		c->goodbye = true;
	OPAL_THREAD_UNLOCK(&e->lock);
	if (h->kind == UDAPL_DATA)
		udapl_deliver(c->module, h->tag, &des);
	if (waiting)
		udapl_push(e);
}

/* A shared queue that has more than it wants, since a connection ended, has room for the peer's
 * next message all the same. */
static void post_again(udapl_conn_t *c, udapl_frag_t *f, bool owe)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	int rc = f->work.conn ? fill_own(c, f) : fill_srq(c->module, f);

	if (owe && (rc == OPAL_SUCCESS || rc == OPAL_ERR_NOT_AVAILABLE)) {
		OPAL_THREAD_LOCK(&e->lock);
		c->owed++;
		c->received++;
		if (c->received >= mca_btl_udapl_component.eager_threshold && !c->ring_in.offered)
			udapl_ring_offer(c);
		OPAL_THREAD_UNLOCK(&e->lock);
	}
}

/* The completion of a receive. */
void udapl_received(mca_btl_udapl_module_t *m, struct udapl_frag *f,
		    const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	udapl_conn_t *c = f->work.conn ? f->work.conn : udapl_conn_from(dto->ep_handle);
	size_t length = dto->transfered_length;

	if (f->work.conn) {
		OPAL_THREAD_ADD_FETCH32(&c->receives, -1);
	} else {
		OPAL_THREAD_LOCK(&m->recv_lock);
		m->srq_posted--;
		OPAL_THREAD_UNLOCK(&m->recv_lock);
	}
	if (!c || dto->status != DAT_DTO_SUCCESS || length < sizeof *f->header) {
		if (c && dto->status != DAT_DTO_ERR_FLUSHED)
			udapl_conn_broken(c, "a receive failed");
		drop(m, f);
		return;
	}
	dispatch(c, f->header, f->header + 1, length - sizeof *f->header);
	post_again(c, f, f->header->kind == UDAPL_DATA);
	udapl_return_credits(c);
}
