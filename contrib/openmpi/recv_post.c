/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* recv_post.c - posts receives: to the shared queue of a module, or to a connection (recv_post.h). */
#include "recv_post.h"
#include "atomic.h"

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

static udapl_frag_t *get_frag(mca_btl_udapl_module_t *m)
{
	return (udapl_frag_t *)opal_free_list_get(&m->recv_frags);
}

void udapl_receive_drop(mca_btl_udapl_module_t *m, udapl_frag_t *f)
{
	opal_free_list_return(&m->recv_frags, &f->base.super);
}

int udapl_receive_post_shared(mca_btl_udapl_module_t *m, udapl_frag_t *f)
{
	bool wanted;

	udapl_mutex_lock(&m->recv_lock);
	wanted = m->srq_posted < m->srq_wanted;
	if (wanted)
		m->srq_posted++;
	udapl_mutex_unlock(&m->recv_lock);
	if (wanted && !f)
		f = get_frag(m);
	if (wanted && f && post_to(m, NULL, f) == DAT_SUCCESS)
		return OPAL_SUCCESS;
	if (f)
		udapl_receive_drop(m, f);
	if (!wanted)
		return OPAL_ERR_NOT_AVAILABLE;
	udapl_mutex_lock(&m->recv_lock);
	m->srq_posted--;
	udapl_mutex_unlock(&m->recv_lock);
	return OPAL_ERR_OUT_OF_RESOURCE;
}

int udapl_receive_post_own(udapl_conn_t *c, udapl_frag_t *f)
{
	if (!f)
		f = get_frag(c->module);
	if (!f)
		return OPAL_ERR_OUT_OF_RESOURCE;
	if (post_to(c->module, c, f) != DAT_SUCCESS) {
		udapl_receive_drop(c->module, f);
		return OPAL_ERR_OUT_OF_RESOURCE;
	}
	udapl_add(&c->receives, 1);
	return OPAL_SUCCESS;
}

int udapl_receives_post(struct udapl_conn *c)
{
	int n = udapl_receives_of_conn(), rc;

	for (int i = 0; i < n; i++) {
		rc = c->srq ? udapl_receive_post_shared(c->module, NULL) : udapl_receive_post_own(c, NULL);
		if (rc == OPAL_ERR_NOT_AVAILABLE)
			break;	/* receives remain from a connection that ended */
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	return OPAL_SUCCESS;
}

void udapl_receives_release(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (!c->srq)
		return;
	udapl_mutex_lock(&m->recv_lock);
	m->srq_wanted -= udapl_receives_of_conn();
	udapl_mutex_unlock(&m->recv_lock);
}
