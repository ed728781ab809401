/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rdma_post.c - posting of an RDMA operation: which request is made of it, what a refused post does,
 * and how an operation is completed. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/rdma_post.h"
#include "test/unit/unit.h"

static udapl_rdma_t *r;
static int callbacks, status_of_callback;
static bool free_at_callback;
static mca_btl_base_registration_handle_t handle;

static void on_done(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		    mca_btl_base_registration_handle_t *with, void *context, void *data, int status)
{
	udapl_rdma_t *next = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	assert_ptr_equal(btl, &module.super);
	assert_ptr_equal(e, peer);
	assert_ptr_equal(local, &callbacks);
	assert_ptr_equal(with, &handle);
	assert_ptr_equal(context, &status_of_callback);
	assert_ptr_equal(data, &free_at_callback);
	callbacks++;
	status_of_callback = status;
	free_at_callback = next == r;
	opal_free_list_return(&module.rdmas, &next->super);
}

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	callbacks = 0;
	r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);
	r->endpoint = peer;
	r->local = (DAT_LMR_TRIPLET){ .virtual_address = 0x1000, .segment_length = 8, .lmr_context = 5 };
	r->remote = (DAT_RMR_TRIPLET){ .virtual_address = 0x2000, .segment_length = 8, .rmr_context = 6 };
	r->operand = 17;
	r->compare = 18;
	r->cbfunc = on_done;
	r->local_address = &callbacks;
	r->local_handle = &handle;
	r->cbcontext = &status_of_callback;
	r->cbdata = &free_at_callback;
	peer->rdma_outstanding = module.rdma_outstanding = 3;
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(operation_is_posted_as_its_kind)
{
	static const struct { enum udapl_op op; enum post_kind kind; uint64_t operand, compare; } table[] = {
		{ UDAPL_PUT, POSTED_WRITE, 0, 0 },
		{ UDAPL_GET, POSTED_READ, 0, 0 },
		{ UDAPL_ADD, POSTED_ADD, 17, 0 },
		{ UDAPL_CSWAP, POSTED_SWAP, 17, 18 },
	};

	for (int i = 0; i < 4; i++) {
		const struct post *p = &posts[i];

		r->op = table[i].op;
		r->work.conn = NULL;
		assert_true(LOCKED(udapl_rdma_post(conn, r)));
		assert_int_equal(num_posts, i + 1);
		assert_int_equal(p->kind, table[i].kind);
		assert_ptr_equal(p->ep, conn->ep);
		assert_ptr_equal(p->work, &r->work);
		assert_int_equal(p->work->kind, UDAPL_RDMA);
		assert_ptr_equal(p->work->conn, conn);
		assert_memory_equal(&p->local, &r->local, sizeof r->local);
		assert_memory_equal(&p->remote, &r->remote, sizeof r->remote);
		assert_int_equal(p->flags, DAT_COMPLETION_DEFAULT_FLAG);
		assert_int_equal(p->operand, table[i].operand);
		assert_int_equal(p->compare, table[i].compare);
	}
}

CASE(posted_operation_takes_a_slot)
{
	r->op = UDAPL_PUT;
	LOCKED(udapl_rdma_post(conn, r));
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 1);
	assert_int_equal(conn->posted, 1);
	assert_true(opal_list_is_empty(&peer->flushed_rdmas));
}

/* Whether it counts as done is decided with its connection. */
CASE(refused_operation_joins_the_flushed_ones)
{
	static const struct { DAT_RETURN rc; enum udapl_endpoint_state state; } table[] = {
		{ UDAPL_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED), UDAPL_CONNECTED },
		{ UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE), UDAPL_FAILED },
	};

	for (int i = 0; i < 2; i++) {
		r->op = UDAPL_GET;
		post_results[POSTED_READ] = table[i].rc;
		assert_false(LOCKED(udapl_rdma_post(conn, r)));
		assert_int_equal(peer->state, table[i].state);
		assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
		assert_int_equal(conn->posted, 0);
		assert_ptr_equal(opal_list_remove_first(&peer->flushed_rdmas), r);
		assert_true(opal_list_is_empty(&peer->flushed_rdmas));
	}
	assert_int_equal(callbacks, 0);
}

CASE(unknown_operation_is_refused)
{
	r->op = (enum udapl_op)(UDAPL_CSWAP + 1);
	assert_false(LOCKED(udapl_rdma_post(conn, r)));
	assert_int_equal(num_posts, 0);
	assert_int_equal(peer->state, UDAPL_FAILED);
	opal_list_remove_first(&peer->flushed_rdmas);
}

CASE(completion_is_reported_with_its_status)
{
	static const int statuses[] = { OPAL_SUCCESS, OPAL_ERR_UNREACH };

	for (int i = 0; i < 2; i++) {
		udapl_rdma_done(r, statuses[i]);
		assert_int_equal(callbacks, i + 1);
		assert_int_equal(status_of_callback, statuses[i]);
		assert_int_equal(peer->rdma_outstanding, 2 - i);
		assert_int_equal(module.rdma_outstanding, 2 - i);
		assert_ptr_equal(opal_free_list_get(&module.rdmas), r);
	}
}

/* It may start another one. */
CASE(operation_is_free_when_its_callback_runs)
{
	udapl_rdma_done(r, OPAL_SUCCESS);
	assert_true(free_at_callback);
}

CASE(no_callback_is_called_without_one_or_while_closing)
{
	for (int i = 0; i < 2; i++) {
		module.closing = i == 0;
		r->cbfunc = i == 0 ? on_done : NULL;
		udapl_rdma_done(r, OPAL_SUCCESS);
		assert_int_equal(callbacks, 0);
		assert_int_equal(module.rdma_outstanding, 2 - i);
		r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);
	}
}

UNIT_MAIN(NULL, NULL)
