/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma.c - access to the memory of peers: put, get, atomic operations, flush. They need no
 * credits. If the connection has no free send-queue slot, or is not established, they wait in
 * endpoint->rdmas. */
#include "rdma.h"
#include "conn.h"
#include "posting.h"
#include "rdma_post.h"
#include "progress.h"
#include "reg_cache.h"
#include "send.h"

/* --- operations -------------------------------------------------------------------------------- */

/* An operation that did not complete during the post needs progress at the peer. */
static void count_posted(mca_btl_base_endpoint_t *e)
{
	udapl_mutex_lock(&e->lock);
	if (e->conn)
		udapl_count_post(e->conn);
	udapl_mutex_unlock(&e->lock);
}

static int start(mca_btl_base_endpoint_t *e, struct udapl_rdma *r)
{
	mca_btl_udapl_module_t *m = e->module;

	udapl_add(&e->rdma_outstanding, 1);
	udapl_add(&m->rdma_outstanding, 1);
	udapl_request_poll(m);
	udapl_mutex_lock(&e->lock);
	if (e->conn && opal_list_is_empty(&e->rdmas) && udapl_may_post(e->conn)) {
		udapl_rdma_post(e->conn, r);
	} else {
		opal_list_append(&e->rdmas, &r->super.super);
		if (e->state == UDAPL_IDLE)
			udapl_connect(e);
	}
	udapl_mutex_unlock(&e->lock);
	if (m->rdma_outstanding == 1)
		udapl_reap_rdma(m);
	if (m->rdma_outstanding > 0)
		count_posted(e);
	return OPAL_SUCCESS;
}

static struct udapl_rdma *new_rdma(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
				   enum udapl_op op, uint64_t remote,
				   const mca_btl_base_registration_handle_t *remote_handle,
				   size_t size, mca_btl_base_rdma_completion_fn_t cbfunc,
				   void *context, void *data)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	struct udapl_rdma *r = (struct udapl_rdma *)opal_free_list_get(&m->rdmas);

	if (!r)
		return NULL;
	r->op = op;
	r->endpoint = e;
	r->remote = (DAT_RMR_TRIPLET){ .virtual_address = remote,
				       .segment_length = size,
				       .rmr_context = remote_handle->rmr_context };
	r->cbfunc = cbfunc;
	r->cbcontext = context;
	r->cbdata = data;
	return r;
}

static void set_local(struct udapl_rdma *r, void *local,
		      mca_btl_base_registration_handle_t *handle, size_t size)
{
	r->local_address = local;
	r->local_handle = handle;
	r->local = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)local,
				      .segment_length = size,
				      .lmr_context = handle->lmr_context };
}

static int transfer(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, enum udapl_op op,
		    void *local, uint64_t remote,
		    mca_btl_base_registration_handle_t *local_handle,
		    mca_btl_base_registration_handle_t *remote_handle, size_t size,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	struct udapl_rdma *r = new_rdma(btl, e, op, remote, remote_handle, size, cbfunc,
					context, data);

	if (!r)
		return OPAL_ERR_OUT_OF_RESOURCE;
	set_local(r, local, local_handle, size);
	return start(e, r);
}

int udapl_put(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	(void)flags, (void)order;
	if (size > btl->btl_put_limit)
		return OPAL_ERR_NOT_AVAILABLE;
	return transfer(btl, e, UDAPL_PUT, local, remote, local_handle, remote_handle, size,
			cbfunc, context, data);
}

int udapl_get(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	(void)flags, (void)order;
	if (size > btl->btl_get_limit)
		return OPAL_ERR_NOT_AVAILABLE;
	return transfer(btl, e, UDAPL_GET, local, remote, local_handle, remote_handle, size, cbfunc,
			context, data);
}

/* DAT has two atomic operations, both of 64 bits: fetch and add, and compare and swap. osc/rdma also
 * requests other operations, and requests these two without a handle for memory that it shares with the
 * peer. It has a fallback for OPAL_ERR_NOT_SUPPORTED. After any other error, including
 * OPAL_ERR_NOT_AVAILABLE, which btl.h specifies for this case, it retries for ever. */
static bool have_atomic(uint64_t remote, const mca_btl_base_registration_handle_t *remote_handle,
			int flags)
{
	return remote_handle && !(remote & 7) &&
	       !(flags & (MCA_BTL_ATOMIC_FLAG_32BIT | MCA_BTL_ATOMIC_FLAG_FLOAT));
}

int udapl_atomic_op(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, uint64_t remote,
		    mca_btl_base_registration_handle_t *remote_handle,
		    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	struct udapl_rdma *r;

	(void)order;
	if (op != MCA_BTL_ATOMIC_ADD || !have_atomic(remote, remote_handle, flags))
		return OPAL_ERR_NOT_SUPPORTED;
	r = new_rdma(btl, e, UDAPL_ADD, remote, remote_handle, 8, cbfunc, context, data);
	if (!r)
		return OPAL_ERR_OUT_OF_RESOURCE;
	r->operand = operand;
	r->local_address = NULL;
	r->local_handle = NULL;
	r->local = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)r->super.ptr,
				      .segment_length = 8,
				      .lmr_context = udapl_frag_lmr(&r->super) };
	return start(e, r);
}

/* The previous value is stored at `local`. */
static int fetch(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, enum udapl_op op, void *local,
		 uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		 mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		 uint64_t operand, mca_btl_base_rdma_completion_fn_t cbfunc, void *context,
		 void *data)
{
	struct udapl_rdma *r = new_rdma(btl, e, op, remote, remote_handle, 8, cbfunc, context,
					data);

	if (!r)
		return OPAL_ERR_OUT_OF_RESOURCE;
	r->compare = compare;
	r->operand = operand;
	set_local(r, local, local_handle, 8);
	return start(e, r);
}

int udapl_atomic_fop(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		     uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		     mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	(void)order;
	if (op != MCA_BTL_ATOMIC_ADD || !have_atomic(remote, remote_handle, flags))
		return OPAL_ERR_NOT_SUPPORTED;
	return fetch(btl, e, UDAPL_ADD, local, remote, local_handle, remote_handle, 0, operand,
		     cbfunc, context, data);
}

int udapl_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		       uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		       uint64_t value, int flags, int order,
		       mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data)
{
	(void)order;
	if (!have_atomic(remote, remote_handle, flags))
		return OPAL_ERR_NOT_SUPPORTED;
	return fetch(btl, e, UDAPL_CSWAP, local, remote, local_handle, remote_handle, compare,
		     value, cbfunc, context, data);
}

/* --- flush -------------------------------------------------------------------------------------- */

static bool is_outstanding(mca_btl_udapl_module_t *m, const mca_btl_base_endpoint_t *e)
{
	mca_btl_base_endpoint_t *i;
	bool some = false;

	if (e)
		return e->rdma_outstanding > 0;
	udapl_mutex_lock(&m->lock);
	OPAL_LIST_FOREACH(i, &m->endpoints, mca_btl_base_endpoint_t)
		some |= i->rdma_outstanding > 0;
	udapl_mutex_unlock(&m->lock);
	return some;
}

/* A request completes when it has been executed at the peer, so flush only waits. */
int udapl_flush(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;

	while (is_outstanding(m, e))
		opal_progress();
	return OPAL_SUCCESS;
}
