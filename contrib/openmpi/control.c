/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - messages about a connection: credits, ring offers, the close notification. They need no
 * credit (UDAPL_CONTROL_RECEIVES), but a slot of their own in the send queue. */
#include "control.h"
#include "frag.h"
#include "posting.h"
#include "ring.h"
#include <string.h>

void udapl_put_credits(udapl_conn_t *c, struct udapl_header *h)
{
	assert_held(&c->endpoint->lock);
	h->credits = c->credits_to_return;
	c->credits_to_return = 0;
	h->eager_credits = udapl_fetch_and_clear(&c->ring_in.slots_to_return);
	h->reserved = 0;
}

DAT_RETURN udapl_post_message(udapl_conn_t *c, udapl_frag_t *f)
{
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)f->header,
				 .segment_length = sizeof *f->header + f->segment.seg_len,
				 .lmr_context = f->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &f->work };

	udapl_count_post(c);
	return dat_ep_post_send(c->ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

bool udapl_control(struct udapl_conn *c, enum udapl_message kind, const void *data, size_t size)
{
	udapl_frag_t *f;

	assert_held(&c->endpoint->lock);
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
	udapl_put_credits(c, f->header);
	if (udapl_post_message(c, f) != DAT_SUCCESS) {
		udapl_free(&c->module->super, &f->base);
		return false;
	}
	c->control_free--;
	c->posted++;
	return true;
}

void udapl_return_credits(struct udapl_conn *c)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	udapl_mutex_lock(&e->lock);
	if (c->state == UDAPL_CONN_ESTABLISHED && udapl_credits_due(c))
		udapl_control(c, UDAPL_CREDITS, NULL, 0);
	udapl_mutex_unlock(&e->lock);
}
