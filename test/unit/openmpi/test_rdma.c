/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rdma.c - puts, gets and atomic operations: what is refused, what is posted, in which order, and when a callback
 * runs. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/progress.h"
#include "contrib/openmpi/push.h"
#include "contrib/openmpi/rdma.h"
#include "contrib/openmpi/rdma_post.h"
#include "test/unit/unit.h"

static uint64_t local;
static mca_btl_base_registration_handle_t local_handle = { .rmr_context = 1, .lmr_context = 2 };
static mca_btl_base_registration_handle_t remote_handle = { .rmr_context = 3, .lmr_context = 4 };
static int callbacks, status, progress_calls;

REPLACE(opal_progress)

static void done(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *at,
		 mca_btl_base_registration_handle_t *handle, void *context, void *data, int rc)
{
	assert_ptr_equal(btl, &module.super);
	assert_ptr_equal(e, peer);
	assert_ptr_equal(context, &callbacks);
	assert_ptr_equal(data, &status);
	assert_true(!at || (at == &local && handle == &local_handle));
	callbacks++;
	status = rc;
}

static int put(size_t size)
{
	return udapl_put(&module.super, peer, &local, 0x1000, &local_handle, &remote_handle, size, 0, 0, done,
			 &callbacks, &status);
}

static int get(size_t size)
{
	return udapl_get(&module.super, peer, &local, 0x1000, &local_handle, &remote_handle, size, 0, 0, done,
			 &callbacks, &status);
}

static int add(uint64_t remote, mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op, int flags)
{
	return udapl_atomic_op(&module.super, peer, remote, handle, op, 5, flags, 0, done, &callbacks, &status);
}

static int fetch_add(uint64_t remote, mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op,
		     int flags)
{
	return udapl_atomic_fop(&module.super, peer, &local, remote, &local_handle, handle, op, 5, flags, 0, done,
				&callbacks, &status);
}

static int swap(uint64_t remote, mca_btl_base_registration_handle_t *handle, int flags)
{
	return udapl_atomic_cswap(&module.super, peer, &local, remote, &local_handle, handle, 6, 7, flags, 0, done,
				  &callbacks, &status);
}

static int set_up(void **state)
{
	callbacks = progress_calls = 0;
	status = 1;
	return btl_begin(state);
}

/* Operations that still wait or were flushed leave their lists. */
static int tear_down(void **state)
{
	while (opal_list_remove_first(&peer->rdmas) || opal_list_remove_first(&peer->flushed_rdmas))
		;
	return btl_end(state);
}

/* --- what is posted ---------------------------------------------------------------------------- */

static void check_post(enum post_kind kind, size_t size)
{
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, kind);
	assert_int_equal(posts[0].remote.virtual_address, 0x1000);
	assert_int_equal(posts[0].remote.rmr_context, remote_handle.rmr_context);
	assert_int_equal(posts[0].remote.segment_length, size);
	assert_int_equal(posts[0].local.segment_length, size);
	assert_int_equal(posts[0].flags, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(posts[0].work->kind, UDAPL_RDMA);
	assert_ptr_equal(posts[0].work->conn, conn);
	num_posts = 0;
}

static void check_local(void)
{
	assert_int_equal(posts[0].local.virtual_address, (uintptr_t)&local);
	assert_int_equal(posts[0].local.lmr_context, local_handle.lmr_context);
}

UNIT_CASE(put_writes_and_get_reads)
{
	assert_int_equal(put(100), OPAL_SUCCESS);
	check_local();
	check_post(POSTED_WRITE, 100);
	assert_int_equal(get(200), OPAL_SUCCESS);
	check_local();
	check_post(POSTED_READ, 200);
	assert_int_equal(module.rdma_outstanding, 2);
	assert_int_equal(peer->rdma_outstanding, 2);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 2);
	assert_int_equal(conn->posted, 2);
	assert_true(module.poll_requested);
}

UNIT_CASE(atomic_operations_have_8_bytes)
{
	assert_int_equal(fetch_add(0x1000, &remote_handle, MCA_BTL_ATOMIC_ADD, 0), OPAL_SUCCESS);
	assert_int_equal(posts[0].operand, 5);
	check_local();
	check_post(POSTED_ADD, 8);
	assert_int_equal(swap(0x1000, &remote_handle, 0), OPAL_SUCCESS);
	assert_int_equal(posts[0].compare, 6);
	assert_int_equal(posts[0].operand, 7);
	check_local();
	check_post(POSTED_SWAP, 8);
}

/* DAT always gives the previous value, so there is a place for it. */
UNIT_CASE(add_without_a_result_has_a_buffer)
{
	assert_int_equal(add(0x1000, &remote_handle, MCA_BTL_ATOMIC_ADD, 0), OPAL_SUCCESS);
	assert_int_not_equal(posts[0].local.virtual_address, 0);
	assert_int_not_equal(posts[0].local.lmr_context, 0);
	assert_int_equal(posts[0].operand, 5);
	check_post(POSTED_ADD, 8);
}

/* --- what is refused --------------------------------------------------------------------------- */

UNIT_CASE(longer_transfer_than_the_limit_is_refused)
{
	module.super.btl_put_limit = 1000;
	module.super.btl_get_limit = 2000;
	assert_int_equal(put(1001), OPAL_ERR_NOT_AVAILABLE);
	assert_int_equal(get(2001), OPAL_ERR_NOT_AVAILABLE);
	assert_int_equal(num_posts, 0);
	assert_int_equal(module.rdma_outstanding, 0);
	assert_int_equal(put(1000), OPAL_SUCCESS);
	assert_int_equal(get(2000), OPAL_SUCCESS);
}

/* osc/rdma retries for ever after any other error. */
UNIT_CASE(atomics_that_dat_lacks_are_not_supported)
{
	for (uint64_t at = 0x1001; at < 0x1008; at++) {
		assert_int_equal(add(at, &remote_handle, MCA_BTL_ATOMIC_ADD, 0), OPAL_ERR_NOT_SUPPORTED);
		assert_int_equal(fetch_add(at, &remote_handle, MCA_BTL_ATOMIC_ADD, 0), OPAL_ERR_NOT_SUPPORTED);
		assert_int_equal(swap(at, &remote_handle, 0), OPAL_ERR_NOT_SUPPORTED);
	}
	for (int flag = MCA_BTL_ATOMIC_FLAG_32BIT; flag; flag = flag == MCA_BTL_ATOMIC_FLAG_32BIT ?
	     MCA_BTL_ATOMIC_FLAG_FLOAT : 0) {
		assert_int_equal(add(0x1000, &remote_handle, MCA_BTL_ATOMIC_ADD, flag), OPAL_ERR_NOT_SUPPORTED);
		assert_int_equal(fetch_add(0x1000, &remote_handle, MCA_BTL_ATOMIC_ADD, flag), OPAL_ERR_NOT_SUPPORTED);
		assert_int_equal(swap(0x1000, &remote_handle, flag), OPAL_ERR_NOT_SUPPORTED);
	}
	assert_int_equal(add(0x1000, NULL, MCA_BTL_ATOMIC_ADD, 0), OPAL_ERR_NOT_SUPPORTED);
	assert_int_equal(fetch_add(0x1000, NULL, MCA_BTL_ATOMIC_ADD, 0), OPAL_ERR_NOT_SUPPORTED);
	assert_int_equal(swap(0x1000, NULL, 0), OPAL_ERR_NOT_SUPPORTED);
	assert_int_equal(add(0x1000, &remote_handle, MCA_BTL_ATOMIC_AND, 0), OPAL_ERR_NOT_SUPPORTED);
	assert_int_equal(fetch_add(0x1000, &remote_handle, MCA_BTL_ATOMIC_SWAP, 0), OPAL_ERR_NOT_SUPPORTED);
	assert_int_equal(num_posts, 0);
}

UNIT_CASE(operation_without_memory_is_refused)
{
	cache_refusals = 100;	/* the list cannot grow */
	assert_int_equal(put(8), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(add(0x1000, &remote_handle, MCA_BTL_ATOMIC_ADD, 0), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(swap(0x1000, &remote_handle, 0), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(module.rdma_outstanding, 0);
}

UNIT_CASE(operations_wait_for_a_slot_in_their_order)
{
	conn->sq_free = 1;
	put(1), put(2), put(3);
	assert_int_equal(num_posts, 1);
	assert_int_equal(opal_list_get_size(&peer->rdmas), 2);
	conn->sq_free = 2;
	put(4);			/* a slot is free, but others wait */
	assert_int_equal(num_posts, 1);
	udapl_push(peer);
	assert_int_equal(num_posts, 3);
	assert_int_equal(posts[1].local.segment_length, 2);
	assert_int_equal(posts[2].local.segment_length, 3);
	assert_int_equal(opal_list_get_size(&peer->rdmas), 1);
}

UNIT_CASE(operations_wait_for_the_connection)
{
	conn->state = UDAPL_CONN_ACCEPTED;
	put(1);
	peer->conn = NULL;
	put(2);
	assert_int_equal(num_posts, 0);
	assert_int_equal(opal_list_get_size(&peer->rdmas), 2);
	assert_int_equal(module.rdma_outstanding, 2);
}

/* --- completion -------------------------------------------------------------------------------- */

UNIT_CASE(callback_runs_after_the_completion)
{
	put(100);
	assert_int_equal(callbacks, 0);
	completion_comes(posts[0].work, DAT_DTO_SUCCESS, 0);
	udapl_progress_module(&module, false);
	assert_int_equal(callbacks, 1);
	assert_int_equal(status, OPAL_SUCCESS);
	assert_int_equal(module.rdma_outstanding, 0);
	assert_int_equal(peer->rdma_outstanding, 0);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
	assert_int_equal(conn->posted, 0);
}

UNIT_CASE(slot_of_a_completed_operation_is_used_by_a_waiting_message)
{
	udapl_frag_t *waiting = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 10, 0);

	put(100);
	conn->sq_free = 0;
	conn->credits = 1;
	opal_list_append(&peer->sends, &waiting->base.super.super);
	completion_comes(posts[0].work, DAT_DTO_SUCCESS, 0);
	udapl_progress_module(&module, false);
	assert_int_equal(num_posts, 2);
	assert_int_equal(conn->sq_free, 0);
}

UNIT_CASE(operation_that_completes_while_it_is_posted_is_done)
{
	struct udapl_ring_ctl ctl = { .posted = 0 };

	posts_complete = true;
	conn->ring_out.ctl = &ctl;
	put(100);
	assert_int_equal(callbacks, 1);
	assert_int_equal(module.rdma_outstanding, 0);
	assert_int_equal(ctl.posted, 0);	/* needs no progress at the peer */
}

UNIT_CASE(other_operation_makes_the_peer_poll)
{
	struct udapl_ring_ctl ctl = { .posted = 0 };

	conn->ring_out.ctl = &ctl;
	put(100);
	assert_int_equal(ctl.posted, 1);
}

/* The caller may hold locks that the callback takes. */
UNIT_CASE(threads_get_no_callback_while_posting)
{
	opal_uses_threads = true;
	posts_complete = true;
	put(100);
	assert_int_equal(callbacks, 0);
	udapl_progress_module(&module, false);
	assert_int_equal(callbacks, 1);
}

UNIT_CASE(closing_module_calls_nothing)
{
	put(100);
	module.closing = true;
	completion_comes(posts[0].work, DAT_DTO_SUCCESS, 0);
	udapl_progress_module(&module, false);
	assert_int_equal(callbacks, 0);
	assert_int_equal(module.rdma_outstanding, 0);
}

/* Its status is that of the connection, which is decided later. */
UNIT_CASE(flushed_operation_waits_for_the_end_of_the_connection)
{
	put(100);
	completion_comes(posts[0].work, DAT_DTO_ERR_FLUSHED, 0);
	udapl_progress_module(&module, false);
	assert_int_equal(callbacks, 0);
	assert_int_equal(opal_list_get_size(&peer->flushed_rdmas), 1);
	assert_int_equal(peer->rdma_outstanding, 1);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
}

UNIT_CASE(refused_post_breaks_the_connection)
{
	post_results[POSTED_WRITE] = UDAPL_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE);
	assert_int_equal(put(100), OPAL_SUCCESS);
	assert_int_equal(opal_list_get_size(&peer->flushed_rdmas), 1);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
	assert_int_equal(conn->posted, 0);
}

/* An event of the connection reports the reason. */
UNIT_CASE(post_to_an_ended_connection_breaks_nothing)
{
	post_results[POSTED_WRITE] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	put(100);
	assert_int_equal(opal_list_get_size(&peer->flushed_rdmas), 1);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
}

/* void in Open MPI 4.1, int in 5 */
__typeof__(opal_progress()) __wrap_opal_progress(void)
{
	completion_comes(posts[progress_calls++].work, DAT_DTO_SUCCESS, 0);
	udapl_progress_module(&module, false);
	return (__typeof__(opal_progress()))0;
}

UNIT_CASE(flush_waits_for_all_operations)
{
	put(1), put(2), put(3);
	assert_int_equal(udapl_flush(&module.super, peer), OPAL_SUCCESS);
	assert_int_equal(progress_calls, 3);
	assert_int_equal(callbacks, 3);
	put(4);
	assert_int_equal(udapl_flush(&module.super, NULL), OPAL_SUCCESS);
	assert_int_equal(callbacks, 4);
	udapl_flush(&module.super, NULL);
	assert_int_equal(progress_calls, 4);
}

UNIT_CASE(flush_of_a_peer_ignores_others)
{
	mca_btl_base_endpoint_t *other = OBJ_NEW(mca_btl_base_endpoint_t);

	put(1);
	assert_int_equal(udapl_flush(&module.super, other), OPAL_SUCCESS);
	assert_int_equal(progress_calls, 0);
	OBJ_RELEASE(other);
}

UNIT_MAIN(NULL, NULL)
