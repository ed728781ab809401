/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_recv_post.c - posting of receives: how many, where, and what happens if one cannot be posted. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/recv_post.h"

static void receive_takes_a_whole_message(void **state)
{
	udapl_frag_t *f;

	(void)state;
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
static void shared_receive_has_no_connection(void **state)
{
	udapl_frag_t *f;

	(void)state;
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_SUCCESS);
	f = CONTAINER_OF(posts[0].work, udapl_frag_t, work);
	assert_int_equal(udapl_receive_post_shared(&module, f), OPAL_SUCCESS);
	assert_ptr_equal(posts[1].work, &f->work);
	assert_int_equal(posts[1].kind, POSTED_SRQ_RECV);
	assert_null(f->work.conn);
}

/* --- a new connection -------------------------------------------------------------------------- */

static void connection_has_a_receive_for_each_credit_and_control_message(void **state)
{
	int n = mca_btl_udapl_component.credits + UDAPL_CONTROL_RECEIVES;

	(void)state;
	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, n);
	assert_int_equal(conn->receives, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(posts[i].kind, POSTED_RECV);
}

static void shared_queue_gets_what_its_connections_need(void **state)
{
	int n = udapl_receives_of_conn();

	(void)state;
	conn->srq = true;
	module.srq_wanted = n;
	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, n);
	assert_int_equal(module.srq_posted, n);
	assert_int_equal(conn->receives, 0);
	assert_int_equal(posts[0].kind, POSTED_SRQ_RECV);
}

static void receives_of_an_ended_connection_are_used(void **state)
{
	int n = udapl_receives_of_conn();

	(void)state;
	conn->srq = true;
	module.srq_wanted = n;
	module.srq_posted = n - 2;
	assert_int_equal(udapl_receives_post(conn), OPAL_SUCCESS);
	assert_int_equal(num_posts, 2);
	assert_int_equal(module.srq_posted, n);
}

static void ended_connection_needs_none(void **state)
{
	(void)state;
	module.srq_wanted = 2 * udapl_receives_of_conn();
	udapl_receives_release(conn);
	assert_int_equal(module.srq_wanted, 2 * udapl_receives_of_conn());
	conn->srq = true;
	udapl_receives_release(conn);
	assert_int_equal(module.srq_wanted, udapl_receives_of_conn());
}

static void connection_without_all_receives_is_an_error(void **state)
{
	(void)state;
	post_results[POSTED_RECV] = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	post_results[POSTED_SRQ_RECV] = post_results[POSTED_RECV];
	assert_int_equal(udapl_receives_post(conn), OPAL_ERR_OUT_OF_RESOURCE);
	conn->srq = true;
	module.srq_wanted = 1;
	assert_int_equal(udapl_receives_post(conn), OPAL_ERR_OUT_OF_RESOURCE);
}

/* --- one receive ------------------------------------------------------------------------------- */

static void surplus_is_not_posted_again(void **state)
{
	udapl_frag_t *f;

	(void)state;
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_SUCCESS);
	f = CONTAINER_OF(posts[0].work, udapl_frag_t, work);
	assert_int_equal(udapl_receive_post_shared(&module, f), OPAL_ERR_NOT_AVAILABLE);
	assert_int_equal(module.srq_posted, 1);
	assert_int_equal(num_posts, 1);
	assert_ptr_equal(opal_free_list_get(&module.recv_frags), f);	/* back in its list */
}

static void refused_post_counts_nothing_and_keeps_no_fragment(void **state)
{
	opal_free_list_item_t *first = opal_free_list_get(&module.recv_frags);

	(void)state;
	opal_free_list_return(&module.recv_frags, first);
	post_results[POSTED_RECV] = post_results[POSTED_SRQ_RECV] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(module.srq_posted, 0);
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(conn->receives, 0);
	assert_ptr_equal(opal_free_list_get(&module.recv_frags), first);
}

static void receive_without_a_buffer_is_an_error(void **state)
{
	(void)state;
	cache_refusals = 100;	/* the list cannot grow */
	module.srq_wanted = 1;
	assert_int_equal(udapl_receive_post_own(conn, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(udapl_receive_post_shared(&module, NULL), OPAL_ERR_OUT_OF_RESOURCE);
	assert_int_equal(module.srq_posted, 0);
	assert_int_equal(num_posts, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, btl_begin, btl_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(receive_takes_a_whole_message),
		CASE(shared_receive_has_no_connection),
		CASE(connection_has_a_receive_for_each_credit_and_control_message),
		CASE(shared_queue_gets_what_its_connections_need),
		CASE(receives_of_an_ended_connection_are_used),
		CASE(ended_connection_needs_none),
		CASE(connection_without_all_receives_is_an_error),
		CASE(surplus_is_not_posted_again),
		CASE(refused_post_counts_nothing_and_keeps_no_fragment),
		CASE(receive_without_a_buffer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
