/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_recv_post.c - posting of receives: how many, where, and what happens if one cannot be posted. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/recv_post.h"
#include "test/unit/unit.h"

#define CASE(name) UNIT_TEST_WITH(name, btl_begin, btl_end)

CASE(receive_takes_a_whole_message)
{
	udapl_frag_t *f;

	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_SUCCESS);
	f = CONTAINER_OF(posts[0].work, udapl_frag_t, work);
	assert_int_equal(posts[0].kind, POSTED_RECV);
	assert_int_equal(posts[0].local.virtual_address, (uintptr_t)f->header);
	assert_int_equal(posts[0].local.segment_length, module.message_size);
	assert_int_equal(posts[0].local.lmr_context, f->lmr_context);
	assert_int_equal(f->work.kind, UDAPL_RECEIVE);
	assert_ptr_equal(f->work.conn, conn);
	assert_true(f->capacity + sizeof *f->header >= module.message_size);
}

/* A receive of the shared queue belongs to no connection until it completes. */
CASE(shared_receive_has_no_connection)
{
	udapl_frag_t *f;

	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_SUCCESS);
	f = CONTAINER_OF(posts[0].work, udapl_frag_t, work);
	assert_int_equal(udapl_receive_post_shared(&module, f), OPAL_SUCCESS);
	assert_ptr_equal(posts[1].work, &f->work);
	assert_int_equal(posts[1].kind, POSTED_SRQ_RECV);
	assert_null(f->work.conn);
}

/* --- a new connection -------------------------------------------------------------------------- */

CASE(connection_has_a_receive_for_each_credit_and_control_message)
{
	int n = mca_btl_udapl_component.credits + UDAPL_CONTROL_RECEIVES;

	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, n);
	assert_int_equal(conn->receives, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(posts[i].kind, POSTED_RECV);
}

CASE(shared_queue_gets_what_its_connections_need)
{
	int n = udapl_receives_of_conn();

	conn->srq = true;
	module.srq_wanted = n;
	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, n);
	assert_int_equal(module.srq_posted, n);
	assert_int_equal(conn->receives, 0);
	assert_int_equal(posts[0].kind, POSTED_SRQ_RECV);
}

CASE(receives_of_an_ended_connection_are_used)
{
	int n = udapl_receives_of_conn();

	conn->srq = true;
	module.srq_wanted = n;
	module.srq_posted = n - 2;
	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, 2);
	assert_int_equal(module.srq_posted, n);
}

CASE(ended_connection_needs_none)
{
	module.srq_wanted = 2 * udapl_receives_of_conn();
	udapl_receives_release(conn);
	assert_int_equal(module.srq_wanted, 2 * udapl_receives_of_conn());
	conn->srq = true;
	udapl_receives_release(conn);
	assert_int_equal(module.srq_wanted, udapl_receives_of_conn());
}

CASE(connection_without_all_receives_is_an_error)
{
	post_results[POSTED_RECV] = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	post_results[POSTED_SRQ_RECV] = post_results[POSTED_RECV];
	assert_int_equal(udapl_receives_post(conn), OPAL_ERR_OUT_OF_RESOURCE);
	conn->srq = true;
	module.srq_wanted = 1;
	assert_int_equal(udapl_receives_post(conn), OPAL_ERR_OUT_OF_RESOURCE);
}

/* --- one receive ------------------------------------------------------------------------------- */

CASE(surplus_is_not_posted_again)
{
	udapl_frag_t *f;

	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_SUCCESS);
	f = CONTAINER_OF(posts[0].work, udapl_frag_t, work);
	assert_int_equal(udapl_receive_post_shared(&module, f), OPAL_ERR_NOT_AVAILABLE);
	assert_int_equal(module.srq_posted, 1);
	assert_int_equal(num_posts, 1);
	assert_ptr_equal(opal_free_list_get(&module.recv_frags), f);	/* back in its list */
}

CASE(refused_post_counts_nothing_and_keeps_no_fragment)
{
	opal_free_list_item_t *first = opal_free_list_get(&module.recv_frags);

	opal_free_list_return(&module.recv_frags, first);
	post_results[POSTED_RECV] = post_results[POSTED_SRQ_RECV] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(module.srq_posted, 0);
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(conn->receives, 0);
	assert_ptr_equal(opal_free_list_get(&module.recv_frags), first);
}

CASE(receive_without_a_buffer_is_an_error)
{
	cache_refusals = 100;	/* the list cannot grow */
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(module.srq_posted, 0);
	assert_int_equal(num_posts, 0);
}

UNIT_MAIN(NULL, NULL)
