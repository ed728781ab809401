/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_post.c - posts an RDMA or atomic operation, and completes it (rdma_post.h). */
#include "rdma_post.h"
#include "atomic.h"
#include "conn.h"

static DAT_RETURN post(struct udapl_conn *c, struct udapl_rdma *r)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = &r->work };

	switch (r->op) {
	case UDAPL_PUT:
		return dat_ep_post_rdma_write(c->ep, 1, &r->local, cookie, &r->remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
	case UDAPL_GET:
		return dat_ep_post_rdma_read(c->ep, 1, &r->local, cookie, &r->remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	case UDAPL_ADD:
		return dat_ib_post_fetch_and_add(c->ep, r->operand, &r->local, cookie, &r->remote,
						 DAT_COMPLETION_DEFAULT_FLAG);
	case UDAPL_CSWAP:
		return dat_ib_post_cmp_and_swap(c->ep, r->compare, r->operand, &r->local, cookie,
						&r->remote, DAT_COMPLETION_DEFAULT_FLAG);
	}
	return UDAPL_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
}

bool udapl_rdma_post(struct udapl_conn *c, struct udapl_rdma *r)
{
	DAT_RETURN rc;

	assert_held(&c->endpoint->lock);
	r->work.conn = c;
	rc = post(c, r);
	if (rc != DAT_SUCCESS) {
		opal_list_append(&r->endpoint->flushed_rdmas, &r->super.super);
		udapl_conn_post_failed(c, rc);
		return false;
	}
	c->sq_free--;
	c->posted++;
	return true;
}

void udapl_rdma_done(struct udapl_rdma *r, int status)
{
	mca_btl_base_endpoint_t *e = r->endpoint;
	mca_btl_udapl_module_t *m = e->module;
	struct udapl_rdma done = *r;

	assert_no_lock_held();
	opal_free_list_return(&m->rdmas, &r->super);
	udapl_add(&e->rdma_outstanding, -1);
	udapl_add(&m->rdma_outstanding, -1);
	if (done.cbfunc && !m->closing)
		done.cbfunc(&m->super, e, done.local_address, done.local_handle, done.cbcontext,
			    done.cbdata, status);
}
