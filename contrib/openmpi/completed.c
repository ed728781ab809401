/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* completed.c - completions of what was sent: messages, staged writes, RDMA operations (completed.h). */
#include "completed.h"
#include "control.h"
#include "frag.h"
#include "posting.h"
#include "push.h"
#include "rdma_post.h"

void udapl_send_done(struct udapl_frag *f, int status)
{
	mca_btl_base_module_t *btl = &f->endpoint->module->super;
	bool closing = f->endpoint->module->closing;
	bool btl_owned = closing || !f->callback || (f->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

	assert_no_lock_held();
	if (f->callback && f->base.des_cbfunc && !closing)
		f->base.des_cbfunc(btl, f->endpoint, &f->base, status);
	if (btl_owned)
		udapl_free(btl, &f->base);
}

/* Called with e->lock held after the completion of a request. Adds the send-queue slots that it frees to
 * *available. Returns whether requests are waiting. */
static bool free_slots(udapl_conn_t *c, int *available, int slots)
{
	assert_held(&c->endpoint->lock);
	c->posted--;
	*available += slots;
	return udapl_has_waiting(c->endpoint);
}

void udapl_send_completed(struct udapl_frag *f, DAT_DTO_COMPLETION_STATUS status)
{
	udapl_conn_t *c = f->work.conn;
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool control = f->work.kind == UDAPL_CONTROL, flushed = false, waiting;

	udapl_mutex_lock(&e->lock);
	waiting = free_slots(c, control ? &c->control_free : &c->sq_free, 1);
	if (status != DAT_DTO_SUCCESS && !control && f->callback) {
		opal_list_append(&e->flushed_sends, &f->base.super.super);
		flushed = true;
	}
	udapl_mutex_unlock(&e->lock);
	if (!flushed)
		udapl_send_done(f, OPAL_SUCCESS);
	if (control)
		udapl_return_credits(c);	/* credits for which no slot was free */
	if (waiting)
		udapl_push(e);
}

void udapl_rdma_completed(struct udapl_rdma *r, DAT_DTO_COMPLETION_STATUS status)
{
	struct udapl_conn *c = r->work.conn;
	mca_btl_base_endpoint_t *e = r->endpoint;
	bool waiting;

	udapl_mutex_lock(&e->lock);
	waiting = free_slots(c, &c->sq_free, 1);
	if (status != DAT_DTO_SUCCESS)
		opal_list_append(&e->flushed_rdmas, &r->super.super);
	udapl_mutex_unlock(&e->lock);
	if (status == DAT_DTO_SUCCESS)
		udapl_rdma_done(r, OPAL_SUCCESS);
	if (waiting)
		udapl_push(e);
}

void udapl_staged_completed(struct udapl_conn *c)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	bool waiting;

	udapl_mutex_lock(&e->lock);
	waiting = free_slots(c, &c->sq_free, udapl_signal_interval());
	udapl_mutex_unlock(&e->lock);
	if (waiting)
		udapl_push(e);
}
