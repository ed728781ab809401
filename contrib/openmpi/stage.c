/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stage.c - the quick way of a short message: it is put together on the stage, the image of the
 * peer's ring, and written from there, without a fragment. That a place of the stage is free again
 * follows from the ring's being read there, so most of these writes need not tell us that they
 * completed. */
#include "ring.h"

/* One write of so many tells of its completion, and that of all. */
static int batch(void)
{
	return (unsigned)mca_btl_udapl_component.requests / 4;
}

/* With e->lock held, as below. Where a payload for the next message is put together. NULL: not now,
 * or not on the stage. */
static inline char *place(mca_btl_base_endpoint_t *e, size_t length)
{
	const udapl_conn_t *c = e->conn;

	if (!c || !opal_list_is_empty(&e->sends) || !udapl_may_post(c) || !c->ring_out.stage.base ||
	    !udapl_ring_has_room(c, length))
		return NULL;
	return c->ring_out.stage.base + c->ring_out.at.end - sizeof(struct udapl_tail) -
	       udapl_padded(length);
}

static inline bool pack(char *to, opal_convertor_t *conv, const void *header, size_t header_size,
			size_t payload_size)
{
	void *data;

	if (!payload_size || opal_convertor_need_buffers(conv))
		return udapl_pack(to, conv, header, header_size, payload_size);
	memcpy(to, header, header_size);
	opal_convertor_get_current_pointer(conv, &data);
	memcpy(to + header_size, data, payload_size);
	return true;
}

/* The line of the stage that the next message ends in will be written. */
static inline void prepare_next(const struct udapl_ring_out *r)
{
	__builtin_prefetch(r->stage.base + r->at.end - UDAPL_LINE, 1);
}

/* What was put together there. What can't be posted is lost, the verdict will tell. */
static inline void post(udapl_conn_t *c, mca_btl_base_tag_t tag, char *payload, size_t length)
{
	struct udapl_ring_out *r = &c->ring_out;
	struct udapl_tail tail = { .length = length, .credits = c->owed, .tag = tag };
	bool tells = ++r->untold >= batch();
	DAT_RETURN rc;

	c->owed = 0;
	if (udapl_ring_owes(c, UDAPL_TELL_ALONG))
		tail.eager_credits = udapl_take_all(&c->ring_in.owed);
	rc = udapl_ring_write(c, payload, r->stage.lmr_context, tail,
			      tells ? &r->work : &c->module->untold,
			      tells ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
	prepare_next(r);
	if (OPAL_UNLIKELY(rc != DAT_SUCCESS)) {
		udapl_conn_refused(c, rc);
		return;
	}
	c->room--;
	if (tells) {
		r->untold = 0;
		c->posted++;
	}
}

/* Sends a copy. False: not now, or not this message. */
bool udapl_send_copy(mca_btl_base_endpoint_t *e, const void *payload, size_t length,
		     mca_btl_base_tag_t tag)
{
	char *copy;

	OPAL_THREAD_LOCK(&e->lock);
	copy = place(e, length);
	if (copy) {
		memcpy(copy, payload, length);
		post(e->conn, tag, copy, length);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	return copy != NULL;
}

/* OPAL_ERR_RESOURCE_BUSY: not now, or not this message. */
static inline int send_staged(mca_btl_base_endpoint_t *e, opal_convertor_t *conv, const void *header,
			      size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
	size_t length = header_size + payload_size;
	int rc = OPAL_ERR_RESOURCE_BUSY;
	char *payload;

	OPAL_THREAD_LOCK(&e->lock);
	payload = place(e, length);
	if (payload && pack(payload, conv, header, header_size, payload_size)) {
		post(e->conn, tag, payload, length);
		rc = OPAL_SUCCESS;
	} else if (payload) {
		rc = OPAL_ERROR;
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	return rc;
}

/* Who sends without ever waiting has room again only when he looks for completions and credits. */
static bool is_crammed(mca_btl_base_endpoint_t *e, size_t length)
{
	const udapl_conn_t *c = e->conn;

	return c && c->state == UDAPL_CONN_UP && c->ring_out.stage.base &&
	       (c->room <= 0 || !udapl_ring_has_room(c, length));
}

static __attribute__((noinline))
int send_otherwise(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		   void *header, size_t header_size, size_t payload_size, uint8_t order,
		   uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	int rc = OPAL_ERR_RESOURCE_BUSY;

	if (is_crammed(e, header_size + payload_size)) {
		udapl_progress_module((mca_btl_udapl_module_t *)btl, false);
		rc = send_staged(e, conv, header, header_size, payload_size, tag);
	}
	return rc != OPAL_ERR_RESOURCE_BUSY ? rc
		     : udapl_sendi_frag(btl, e, conv, header, header_size, payload_size, order,
					flags, tag, des);
}

int udapl_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		void *header, size_t header_size, size_t payload_size, uint8_t order,
		uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	int rc = send_staged(e, conv, header, header_size, payload_size, tag);

	if (des)
		*des = NULL;
	if (OPAL_LIKELY(rc != OPAL_ERR_RESOURCE_BUSY))
		return rc;
	return send_otherwise(btl, e, conv, header, header_size, payload_size, order, flags, tag,
			      des);
}

/* The completion of a write that tells, and those before it with it. */
void udapl_sent_staged(struct udapl_conn *c)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool waiting;

	OPAL_THREAD_LOCK(&e->lock);
	c->posted--;
	c->room += batch();
	waiting = udapl_has_waiting(e);
	OPAL_THREAD_UNLOCK(&e->lock);
	if (waiting)
		udapl_push(e);
}
