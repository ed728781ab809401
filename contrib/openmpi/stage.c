/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stage.c - the quick way of a short message, without a fragment. Where the peer's ring is mapped it
 * is put together there, and its tail stored. Else that is done on the stage, the image of the ring,
 * and written from there. That a place of the stage is free again follows from the ring's being read
 * there, so most of these writes need not tell us that they completed. */
#include "ring.h"

enum { TRIES = 256 };	/* to get room in a mapped ring, before another way is taken */

/* One write of so many tells of its completion, and that of all. */
static int batch(void)
{
	return (unsigned)mca_btl_udapl_component.requests / 4;
}

static inline bool may_write(const udapl_conn_t *c)
{
	return c->state == UDAPL_CONN_UP && c->ring_out.image && (c->ring_out.notes || c->room > 0);
}

struct place {
	udapl_conn_t *conn;
	char *payload;	/* put together there */
	uint32_t size;	/* of the message */
};

/* With e->lock held, as below. For the next message. False: not now, or not here. */
static inline __opal_attribute_always_inline__
bool find_place(mca_btl_base_endpoint_t *e, size_t length, struct place *at)
{
	udapl_conn_t *c = e->conn;
	struct udapl_extent extent;

	if (!c || !opal_list_is_empty(&e->sends) || !may_write(c) || length > c->ring_out.most)
		return false;
	extent = udapl_ring_extent(c->ring_out.at.end, length);
	*at = (struct place){ c, c->ring_out.image + extent.begin, extent.size };
	return udapl_ring_fits(&c->ring_out, extent.size);
}

/* memcpy, without a call for what is short: two pieces that overlap, if need be. */
static inline void copy(char *to, const char *from, size_t n)
{
	uint64_t first, last;
	uint32_t first4, last4;

	if (OPAL_UNLIKELY(n > 16 || n < 4)) {
		memcpy(to, from, n);
	} else if (OPAL_LIKELY(n >= 8)) {
		memcpy(&first, from, 8);
		memcpy(&last, from + n - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + n - 8, &last, 8);
	} else {
		memcpy(&first4, from, 4);
		memcpy(&last4, from + n - 4, 4);
		memcpy(to, &first4, 4);
		memcpy(to + n - 4, &last4, 4);
	}
}

static inline bool pack(char *to, opal_convertor_t *conv, const void *header, size_t header_size,
			size_t payload_size)
{
	void *data;

	if (!payload_size || opal_convertor_need_buffers(conv))
		return udapl_pack(to, conv, header, header_size, payload_size);
	copy(to, header, header_size);
	opal_convertor_get_current_pointer(conv, &data);
	copy(to + header_size, data, payload_size);
	return true;
}

/* The line of the stage that the next message ends in will be written. */
static inline void prepare_next(const struct udapl_ring_out *r)
{
	__builtin_prefetch(r->stage.base + r->at.end - UDAPL_LINE, 1);
}

static inline struct udapl_tail make_tail(udapl_conn_t *c, mca_btl_base_tag_t tag, size_t length)
{
	struct udapl_tail tail = { .length = length, .tag = tag };

	if (OPAL_UNLIKELY(c->owed | c->ring_in.owed)) {
		tail.credits = c->owed;
		c->owed = 0;
		if (udapl_ring_owes(c, UDAPL_TELL_ALONG))
			tail.eager_credits = udapl_take_all(&c->ring_in.owed);
	}
	return tail;
}

/* What was put together there. What can't be posted is lost, the verdict will tell. */
static void post(udapl_conn_t *c, struct udapl_tail tail, char *payload)
{
	struct udapl_ring_out *r = &c->ring_out;
	bool tells = ++r->untold >= batch();
	DAT_RETURN rc;

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

static inline __opal_attribute_always_inline__
void publish(struct place at, mca_btl_base_tag_t tag, size_t length)
{
	struct udapl_tail tail = make_tail(at.conn, tag, length);

	if (OPAL_LIKELY(at.conn->ring_out.notes))
		udapl_ring_store(&at.conn->ring_out, tail, at.size);
	else
		post(at.conn, tail, at.payload);
}

/* Sends a copy. False: not now, or not this message. */
bool udapl_send_copy(mca_btl_base_endpoint_t *e, const void *payload, size_t length,
		     mca_btl_base_tag_t tag, size_t most)
{
	struct place at;
	bool copied;

	OPAL_THREAD_LOCK(&e->lock);
	copied = (length <= most || (e->conn && e->conn->ring_out.notes)) &&
		 find_place(e, length, &at);
	if (copied) {
		memcpy(at.payload, payload, length);
		publish(at, tag, length);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	return copied;
}

/* OPAL_ERR_RESOURCE_BUSY: not now, or not this message. */
static inline __opal_attribute_always_inline__
int send_staged(mca_btl_base_endpoint_t *e, opal_convertor_t *conv, const void *header,
		size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
	size_t length = header_size + payload_size;
	int rc = OPAL_ERR_RESOURCE_BUSY;
	struct place at;

	OPAL_THREAD_LOCK(&e->lock);
	if (OPAL_LIKELY(find_place(e, length, &at))) {
		rc = OPAL_ERROR;
		if (OPAL_LIKELY(pack(at.payload, conv, header, header_size, payload_size))) {
			publish(at, tag, length);
			rc = OPAL_SUCCESS;
		}
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	return rc;
}

/* Who sends without ever waiting has room again only when he looks for completions and credits; or,
 * where the ring is mapped, as soon as the peer has read something. */
static bool is_crammed(mca_btl_base_endpoint_t *e, size_t length, bool *mapped)
{
	udapl_conn_t *c;
	bool crammed;

	OPAL_THREAD_LOCK(&e->lock);
	c = e->conn;
	crammed = c && c->state == UDAPL_CONN_UP && c->ring_out.image &&
		  opal_list_is_empty(&e->sends) && !(may_write(c) && udapl_ring_has_room(c, length));
	*mapped = crammed && c->ring_out.notes;
	OPAL_THREAD_UNLOCK(&e->lock);
	return crammed;
}

/* As many tries. A peer who is there has read something before any other way would be shorter; he may
 * be waiting for us to do so, too. */
static int make_room(mca_btl_udapl_module_t *m, bool mapped)
{
	if (mapped) {
		udapl_rings_poll(m);
		return 1;
	}
	udapl_progress_module(m, false);
	return TRIES;
}

static __attribute__((noinline))
int send_otherwise(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		   void *header, size_t header_size, size_t payload_size, uint8_t order,
		   uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	int rc = OPAL_ERR_RESOURCE_BUSY;
	bool mapped;

	if (des)
		*des = NULL;
	for (int tries = 0; tries < TRIES && rc == OPAL_ERR_RESOURCE_BUSY &&
			    is_crammed(e, header_size + payload_size, &mapped);) {
		tries += make_room((mca_btl_udapl_module_t *)btl, mapped);
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
