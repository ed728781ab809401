/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sending and its flow control.
 *
 * A message needs a free send-queue slot, and at the peer either space in the ring or a posted
 * receive: a credit. A message without them waits in endpoint->sends, until a completion or
 * credits arrive. Credits ride on every message. If there is no message, half of the credits are
 * returned by a control message, which needs no credit (UDAPL_CONTROL_RECEIVES). */
#include "send.h"
#include "connect.h"
#include "frag.h"
#include "rdma.h"
#include "ring.h"
#include "staging.h"

/* Called with e->lock held. */
static void put_credits(udapl_conn_t *c, struct udapl_header *h)
{
	h->credits = c->credits_to_return;
	c->credits_to_return = 0;
	h->eager_credits = udapl_fetch_and_clear(&c->ring_in.slots_to_return);
	h->reserved = 0;
}

static DAT_RETURN post_message(udapl_conn_t *c, udapl_frag_t *f)
{
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)f->header,
				 .segment_length = sizeof *f->header + f->segment.seg_len,
				 .lmr_context = f->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &f->work };

	udapl_count_post(c);
	return dat_ep_post_send(c->ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN write_message(udapl_conn_t *c, udapl_frag_t *f)
{
	const struct udapl_header *h = f->header;
	struct udapl_tail tail = { .length = f->segment.seg_len, .credits = h->credits,
				   .eager_credits = h->eager_credits, .tag = h->tag };

	return udapl_ring_write(c, (char *)(f->header + 1), f->lmr_context, tail, &f->work,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* For a message with `length` bytes of payload. */
static bool has_room(udapl_conn_t *c, size_t length)
{
	return udapl_may_post(c) && (c->credits > 0 || udapl_ring_takes_posts(c, length));
}

/* Called with e->lock held, after has_room() returned true. */
static bool post(udapl_conn_t *c, udapl_frag_t *f)
{
	DAT_RETURN rc;

	put_credits(c, f->header);
	f->work.conn = c;
	if (udapl_ring_takes_posts(c, f->segment.seg_len)) {
		rc = write_message(c, f);
	} else {
		rc = post_message(c, f);
		c->credits--;
	}
	if (rc != DAT_SUCCESS) {
		udapl_conn_post_failed(c, rc);
		return false;
	}
	c->sq_free--;
	c->posted++;
	return true;
}

/* Called with e->lock held. A fragment that cannot be posted joins the flushed requests, whose
 * status is decided with that of the connection. */
static bool post_or_flush(mca_btl_base_endpoint_t *e, udapl_frag_t *f)
{
	if (post(e->conn, f))
		return true;
	f->callback = true;
	opal_list_append(&e->flushed_sends, &f->base.super.super);
	return false;
}

static udapl_frag_t *first_waiting(mca_btl_base_endpoint_t *e)
{
	return (udapl_frag_t *)opal_list_get_first(&e->sends);
}

/* Posts waiting requests as far as possible. */
void udapl_push(mca_btl_base_endpoint_t *e)
{
	udapl_conn_t *c;

	OPAL_THREAD_LOCK(&e->lock);
	c = e->conn;
	while (c && !opal_list_is_empty(&e->sends) &&
	       has_room(c, first_waiting(e)->segment.seg_len))
		if (!post_or_flush(e, (udapl_frag_t *)opal_list_remove_first(&e->sends)))
			break;
	while (c && !opal_list_is_empty(&e->rdmas) && udapl_may_post(c))
		if (udapl_rdma_post(c, (udapl_rdma_t *)opal_list_remove_first(&e->rdmas)))
			udapl_count_post(c);
		else
			break;
	OPAL_THREAD_UNLOCK(&e->lock);
}

/* --- the interface --------------------------------------------------------------------------- */

/* Whether Open MPI needs no completion callback. */
static bool is_btl_owned(const mca_btl_base_descriptor_t *des)
{
	return (des->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) &&
	       !(des->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
}

/* The payload is copied into a ring, so the fragment is complete. */
static int finish_copied(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
		  mca_btl_base_descriptor_t *des)
{
	bool btl_owned = des->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if ((des->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && des->des_cbfunc)
		des->des_cbfunc(btl, e, des, OPAL_SUCCESS);
	if (btl_owned)
		udapl_free(btl, des);
	return 1;
}

/* Returns 1 if the message is sent and the fragment belongs to the BTL or to the caller again;
 * the callback has run if the caller always wants it. A short message is copied: that costs
 * less than its completion. */
int udapl_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
	       mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
	udapl_frag_t *f = (udapl_frag_t *)des;
	bool btl_owned = is_btl_owned(des);
	int rc = OPAL_SUCCESS;

	if (udapl_send_copy(e, f->header + 1, f->segment.seg_len, tag, btl_owned ? UDAPL_COPY_LIMIT : 0))
		return finish_copied(btl, e, des);
	f->endpoint = e;
	f->header->kind = UDAPL_DATA;
	f->header->tag = tag;
	f->callback = true;
	OPAL_THREAD_LOCK(&e->lock);
	if (e->state == UDAPL_FAILED) {
		rc = OPAL_ERR_UNREACH;
	} else if (e->conn && opal_list_is_empty(&e->sends) &&
		   has_room(e->conn, f->segment.seg_len)) {
		f->callback = !btl_owned;
		if (post_or_flush(e, f) && btl_owned)
			rc = 1;
	} else {
		opal_list_append(&e->sends, &f->base.super.super);
		if (e->state == UDAPL_IDLE)
			udapl_connect(e);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	return rc;
}

bool udapl_pack(void *to, opal_convertor_t *conv, const void *header, size_t header_size,
		size_t payload_size)
{
	struct iovec iov = { (char *)to + header_size, payload_size };
	size_t size = payload_size;
	uint32_t count = 1;

	memcpy(to, header, header_size);
	return !payload_size ||
	       (opal_convertor_pack(conv, &iov, &count, &size) >= 0 && size == payload_size);
}

/* Sends what udapl_sendi() could not place in the ring. Packing advances the convertor, so
 * whether the message can be sent is checked before. */
int udapl_sendi_frag(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		     const void *header, size_t header_size, size_t payload_size, uint8_t order,
		     uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	size_t length = header_size + payload_size;
	mca_btl_base_descriptor_t *new = udapl_alloc(btl, e, order, length,
						     flags | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
	udapl_frag_t *f = (udapl_frag_t *)new;
	int rc = OPAL_ERR_RESOURCE_BUSY;

	if (!f)
		return OPAL_ERR_OUT_OF_RESOURCE;
	OPAL_THREAD_LOCK(&e->lock);
	if (e->conn && opal_list_is_empty(&e->sends) && has_room(e->conn, length)) {
		f->header->kind = UDAPL_DATA;
		f->header->tag = tag;
		f->callback = false;
		rc = udapl_pack(f->header + 1, conv, header, header_size, payload_size)
			     ? OPAL_SUCCESS
			     : OPAL_ERROR;
		if (rc != OPAL_SUCCESS || !post(e->conn, f))
			udapl_free(btl, new);	/* the broken connection is reported */
	} else if (e->state == UDAPL_IDLE) {
		udapl_connect(e);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	if (rc == OPAL_ERR_RESOURCE_BUSY) {
		new->des_flags = flags;
		if (des)
			*des = new;
		else
			udapl_free(btl, new);
	}
	return rc;
}

/* --- completions ------------------------------------------------------------------------------ */

/* Completes a fragment. The status is OPAL_SUCCESS for a request flushed after a close
 * notification. */
void udapl_send_done(struct udapl_frag *f, int status)
{
	mca_btl_base_module_t *btl = &f->endpoint->module->super;
	bool closing = f->endpoint->module->closing;
	bool btl_owned = closing || !f->callback ||
		    (f->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

	if (f->callback && f->base.des_cbfunc && !closing)
		f->base.des_cbfunc(btl, f->endpoint, &f->base, status);
	if (btl_owned)
		udapl_free(btl, &f->base);
}

/* Completion of a send or of a write into a ring. */
void udapl_send_completed(struct udapl_frag *f, DAT_DTO_COMPLETION_STATUS status)
{
	udapl_conn_t *c = f->work.conn;
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool control = f->work.kind == UDAPL_CONTROL, flushed = false, waiting;

	OPAL_THREAD_LOCK(&e->lock);
	c->posted--;
	if (control)
		c->control_free++;
	else
		c->sq_free++;
	waiting = udapl_has_waiting(e);
	if (status != DAT_DTO_SUCCESS && !control && f->callback) {
		opal_list_append(&e->flushed_sends, &f->base.super.super);
		flushed = true;
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	if (!flushed)
		udapl_send_done(f, OPAL_SUCCESS);
	if (control)
		udapl_return_credits(c);	/* credits that found no free slot */
	if (waiting)
		udapl_push(e);
}

/* --- control messages --------------------------------------------------------------------------- */

/* Called with e->lock held. The last slot is reserved for the close notification. Returns false
 * if there is no slot: credits are sent when one is free, a ring offer with the next message. */
bool udapl_control(struct udapl_conn *c, enum udapl_message kind, const void *data, size_t size)
{
	udapl_frag_t *f;

	if (c->control_free <= (kind == UDAPL_CLOSE ? 0 : 1))
		return false;
	f = (udapl_frag_t *)opal_free_list_get(&c->module->control_frags);
	if (!f)
		return false;
	f->endpoint = c->endpoint;
	f->work.conn = c;
	f->callback = false;
	f->segment.seg_len = size;
	f->header->kind = kind;
	f->header->tag = 0;
	if (size)
		memcpy(f->header + 1, data, size);
	put_credits(c, f->header);
	if (post_message(c, f) != DAT_SUCCESS) {
		udapl_free(&c->module->super, &f->base);
		return false;
	}
	c->control_free--;
	c->posted++;
	return true;
}

/* Reports credits to the peer, if enough of them are unreported. */
void udapl_return_credits(struct udapl_conn *c)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_ESTABLISHED && udapl_credits_due(c))
		udapl_control(c, UDAPL_CREDITS, NULL, 0);
	OPAL_THREAD_UNLOCK(&e->lock);
}
