/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* push.c - posts messages, and waiting requests as far as send-queue slots and credits allow (push.h). */
#include "push.h"
#include "conn.h"
#include "control.h"
#include "posting.h"
#include "rdma_post.h"
#include "ring.h"

static DAT_RETURN write_message(udapl_conn_t *c, udapl_frag_t *f)
{
	const struct udapl_header *h = f->header;
	struct udapl_tail tail = { .length = f->segment.seg_len, .credits = h->credits,
				   .eager_credits = h->eager_credits, .tag = h->tag };

	return udapl_ring_write(c, (char *)(f->header + 1), f->lmr_context, tail, &f->work,
				DAT_COMPLETION_DEFAULT_FLAG);
}

bool udapl_has_room(udapl_conn_t *c, size_t length)
{
	assert_held(&c->endpoint->lock);
	return udapl_may_post(c) && (c->credits > 0 || udapl_ring_takes_posts(c, length));
}

bool udapl_post_frag(udapl_conn_t *c, udapl_frag_t *f)
{
	DAT_RETURN rc;

	assert_held(&c->endpoint->lock);
	udapl_put_credits(c, f->header);
	f->work.conn = c;
	if (udapl_ring_takes_posts(c, f->segment.seg_len)) {
		rc = write_message(c, f);
	} else {
		rc = udapl_post_message(c, f);
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

bool udapl_post_or_flush(mca_btl_base_endpoint_t *e, udapl_frag_t *f)
{
	assert_held(&e->lock);
	if (udapl_post_frag(e->conn, f))
		return true;
	f->callback = true;
	opal_list_append(&e->flushed_sends, &f->base.super.super);
	return false;
}

static udapl_frag_t *first_waiting(mca_btl_base_endpoint_t *e)
{
	return (udapl_frag_t *)opal_list_get_first(&e->sends);
}

void udapl_push(mca_btl_base_endpoint_t *e)
{
	udapl_conn_t *c;

	udapl_mutex_lock(&e->lock);
	c = e->conn;
	while (c && !opal_list_is_empty(&e->sends) &&
	       udapl_has_room(c, first_waiting(e)->segment.seg_len))
		if (!udapl_post_or_flush(e, (udapl_frag_t *)opal_list_remove_first(&e->sends)))
			break;
	c = e->conn;	/* NULL if a failed post has failed the peer */
	while (c && !opal_list_is_empty(&e->rdmas) && udapl_may_post(c))
		if (udapl_rdma_post(c, (udapl_rdma_t *)opal_list_remove_first(&e->rdmas)))
			udapl_count_post(c);
		else
			break;
	udapl_mutex_unlock(&e->lock);
}
