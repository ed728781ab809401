/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* staging.c - the fast path of a short message, without a fragment. If the ring of the peer is
 * mapped, the message is assembled there and its tail stored. Otherwise it is assembled in the
 * staging buffer, the image of the ring, and written from there by RDMA. A place in the staging
 * buffer is free again when the peer has released its slots in the ring. So most of these
 * writes can be unsignaled. */
#include "staging.h"
#include "conn.h"
#include "posting.h"
#include "progress.h"
#include "ring.h"
#include "ring_poll.h"
#include "send.h"

static inline bool may_write(const udapl_conn_t *c)
{
	return c->state == UDAPL_CONN_ESTABLISHED && c->ring_out.buffer && (c->ring_out.ctl || c->sq_free > 0);
}

struct target {
	udapl_conn_t *conn;
	char *payload;	/* where the message is assembled */
	uint32_t size;	/* bytes of the message */
};

/* Called with e->lock held. Finds the place of the next message. Returns false if there is none
 * now or the message is too long. */
static inline __opal_attribute_always_inline__
bool find_target(mca_btl_base_endpoint_t *e, size_t length, struct target *at)
{
	udapl_conn_t *c = e->conn;
	struct udapl_extent extent;

	assert_held(&e->lock);
	if (!c || !opal_list_is_empty(&e->sends) || !may_write(c) || length > c->ring_out.max_payload)
		return false;
	extent = udapl_ring_extent(c->ring_out.cursor.end, length);
	*at = (struct target){ c, c->ring_out.buffer + extent.begin, extent.size };
	return udapl_ring_fits(&c->ring_out, extent.size);
}

/* memcpy() that inlines lengths of 4 to 16 bytes as two moves, which may overlap. */
static inline void copy_short(char *to, const char *from, size_t n)
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
	copy_short(to, header, header_size);
	opal_convertor_get_current_pointer(conv, &data);
	copy_short(to + header_size, data, payload_size);
	return true;
}

/* Prefetches for writing the line of the staging buffer in which the next message ends. */
static inline void prefetch_next(const struct udapl_ring_out *r)
{
	__builtin_prefetch(r->staging.base + r->cursor.end - UDAPL_CACHE_LINE, 1);
}

static inline struct udapl_tail make_tail(udapl_conn_t *c, mca_btl_base_tag_t tag, size_t length)
{
	struct udapl_tail tail = { .length = length, .tag = tag };

	if (OPAL_UNLIKELY(c->credits_to_return | c->ring_in.slots_to_return)) {
		tail.credits = c->credits_to_return;
		c->credits_to_return = 0;
		if (udapl_ring_credits_due(c, UDAPL_CREDIT_ALONG))
			tail.eager_credits = udapl_fetch_and_clear(&c->ring_in.slots_to_return);
	}
	return tail;
}

/* Writes an assembled message by RDMA. If that fails the message is lost, and the connection is
 * reported as broken. */
static void post_staged(udapl_conn_t *c, struct udapl_tail tail, char *payload)
{
	struct udapl_ring_out *r = &c->ring_out;
	bool signaled = ++r->unsignaled >= udapl_signal_interval();
	DAT_RETURN rc;

	rc = udapl_ring_write(c, payload, r->staging.lmr_context, tail,
			      signaled ? &r->work : &c->module->unsignaled_work,
			      signaled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
	prefetch_next(r);
	if (OPAL_UNLIKELY(rc != DAT_SUCCESS)) {
		udapl_conn_post_failed(c, rc);
		return;
	}
	c->sq_free--;
	if (signaled) {
		r->unsignaled = 0;
		c->posted++;
	}
}

static inline __opal_attribute_always_inline__
void publish(struct target at, mca_btl_base_tag_t tag, size_t length)
{
	struct udapl_tail tail = make_tail(at.conn, tag, length);

	if (OPAL_LIKELY(at.conn->ring_out.ctl))
		udapl_ring_store(&at.conn->ring_out, tail, at.size);
	else
		post_staged(at.conn, tail, at.payload);
}

/* Sends a copy. Returns false if there is no space now or the message is too long. */
bool udapl_send_copy(mca_btl_base_endpoint_t *e, const void *payload, size_t length,
		     mca_btl_base_tag_t tag, size_t most)
{
	struct target at;
	bool copied;

	udapl_mutex_lock(&e->lock);
	copied = (length <= most || (e->conn && e->conn->ring_out.ctl)) &&
		 find_target(e, length, &at);
	if (copied) {
		memcpy(at.payload, payload, length);
		publish(at, tag, length);
	}
	udapl_mutex_unlock(&e->lock);
	return copied;
}

/* Returns OPAL_ERR_RESOURCE_BUSY if there is no space now or the message is too long. */
static inline __opal_attribute_always_inline__
int send_in_place(mca_btl_base_endpoint_t *e, opal_convertor_t *conv, const void *header,
		size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
	size_t length = header_size + payload_size;
	int rc = OPAL_ERR_RESOURCE_BUSY;
	struct target at;

	udapl_mutex_lock(&e->lock);
	if (OPAL_LIKELY(find_target(e, length, &at))) {
		rc = OPAL_ERROR;
		if (OPAL_LIKELY(pack(at.payload, conv, header, header_size, payload_size))) {
			publish(at, tag, length);
			rc = OPAL_SUCCESS;
		}
	}
	udapl_mutex_unlock(&e->lock);
	return rc;
}

/* Whether only lack of space prevents sending. Space becomes available when this process polls for
 * completions and credits or, if the ring is mapped, as soon as the peer has read something. */
static bool ring_is_full(mca_btl_base_endpoint_t *e, size_t length, bool *mapped)
{
	udapl_conn_t *c;
	bool full;

	udapl_mutex_lock(&e->lock);
	c = e->conn;
	full = c && c->state == UDAPL_CONN_ESTABLISHED && c->ring_out.buffer && opal_list_is_empty(&e->sends) &&
	       !(may_write(c) && udapl_ring_has_room(c, length));
	*mapped = full && c->ring_out.ctl;
	udapl_mutex_unlock(&e->lock);
	return full;
}

/* Returns the number of attempts used. A peer that polls releases slots sooner than the slow path would
 * finish. The incoming rings are polled, since the peer may itself wait for this process to read. */
static int wait_for_space(mca_btl_udapl_module_t *m, bool mapped)
{
	if (mapped) {
		udapl_rings_poll(m);
		return 1;
	}
	udapl_progress_module(m, false);
	return UDAPL_RING_TRIES;
}

static __attribute__((noinline))
int send_slow_path(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		   void *header, size_t header_size, size_t payload_size, uint8_t order,
		   uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	int rc = OPAL_ERR_RESOURCE_BUSY;
	bool mapped;

	if (des)
		*des = NULL;
	for (int tries = 0; tries < UDAPL_RING_TRIES && rc == OPAL_ERR_RESOURCE_BUSY &&
			    ring_is_full(e, header_size + payload_size, &mapped);) {
		tries += wait_for_space((mca_btl_udapl_module_t *)btl, mapped);
		rc = send_in_place(e, conv, header, header_size, payload_size, tag);
	}
	return rc != OPAL_ERR_RESOURCE_BUSY
		       ? rc
		       : udapl_sendi_frag(btl, e, conv, header, header_size, payload_size, order, flags, tag, des);
}

int udapl_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		void *header, size_t header_size, size_t payload_size, uint8_t order,
		uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	int rc = send_in_place(e, conv, header, header_size, payload_size, tag);

	if (OPAL_LIKELY(rc != OPAL_ERR_RESOURCE_BUSY))
		return rc;
	return send_slow_path(btl, e, conv, header, header_size, payload_size, order, flags, tag,
			      des);
}
