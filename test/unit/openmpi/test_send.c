/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_send.c - sending and its completion (send.c, push.c, completed.c): what a message needs, what waits for it and
 * in which order, which side owns the descriptor, and when a callback runs. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/completed.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/push.h"
#include "contrib/openmpi/send.h"
#include "test/unit/unit.h"

static int callbacks, status;
static mca_btl_base_descriptor_t *called_for;

static void sent(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, mca_btl_base_descriptor_t *des, int rc)
{
	assert_ptr_equal(btl, &module.super);
	assert_ptr_equal(e, peer);
	callbacks++;
	status = rc;
	called_for = des;
}

static udapl_frag_t *message(size_t size, uint32_t flags)
{
	udapl_frag_t *f = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, size, flags);

	assert_non_null(f);
	f->base.des_cbfunc = sent;
	return f;
}

static int send_it(udapl_frag_t *f) { return udapl_send(&module.super, peer, &f->base, TAG); }

UNIT_FIXTURE(set_up)
{
	callbacks = 0;
	status = 1;
	btl_begin(state);
	conn->credits = 10;
}

/* What still waits leaves its list. */
static int tear_down(void **state)
{
	while (opal_list_remove_first(&peer->sends) || opal_list_remove_first(&peer->flushed_sends))
		;
	return btl_end(state);
}

static void expect_state(int credits, int slots, int outstanding)
{
	assert_int_equal(conn->credits, credits);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - slots);
	assert_int_equal(conn->posted, outstanding);
}

/* --- posting ----------------------------------------------------------------------------------- */

UNIT_CASE(message_takes_a_credit_and_a_slot)
{
	udapl_frag_t *f = message(100, 0);

	conn->credits_to_return = 3;
	assert_int_equal(send_it(f), OPAL_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_ptr_equal(posts[0].work, &f->work);
	assert_int_equal(posts[0].local.segment_length, sizeof(struct udapl_header) + 100);
	assert_int_equal(posts[0].local.lmr_context, f->lmr_context);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_DATA);
	assert_int_equal(sent_header(&posts[0])->tag, TAG);
	assert_int_equal(sent_header(&posts[0])->credits, 3);
	expect_state(9, 1, 1);
}

/* A ring that is written by RDMA takes messages without credits. */
UNIT_CASE(message_is_written_into_the_ring_without_a_credit)
{
	struct udapl_ring_out *r = &conn->ring_out;
	udapl_frag_t *f = message(100, 0);

	conn->credits = 0;
	r->offer.shape = (struct udapl_ring_shape){ 4096, 1152 };
	r->cursor = (struct udapl_ring_cursor){ 4096, 1 };
	r->free_slots = 128;
	r->max_payload = 1000;
	assert_int_equal(send_it(f), OPAL_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, POSTED_WRITE);
	assert_int_equal(posts[0].flags, DAT_COMPLETION_DEFAULT_FLAG);
	expect_state(0, 1, 1);
}

/* Unless Open MPI waits for its completion: then a copy has no advantage. */
UNIT_CASE(short_message_is_copied_into_the_staging_buffer)
{
	static char staging[4096];
	struct udapl_ring_out *r = &conn->ring_out;
	udapl_frag_t *f = message(10, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP), *long_one, *waited_for;

	r->offer.shape = (struct udapl_ring_shape){ 4096, 2112 };
	r->cursor = (struct udapl_ring_cursor){ 4096, 1 };
	r->free_slots = 128;
	r->max_payload = 2000;
	r->buffer = r->staging.base = staging;
	assert_int_equal(send_it(f), 1);
	assert_ptr_equal(posts[0].work, &module.unsignaled_work);
	assert_int_equal(send_it(waited_for = message(10, 0)), OPAL_SUCCESS);
	assert_ptr_equal(posts[1].work, &waited_for->work);
	assert_int_equal(send_it(long_one = message(UDAPL_COPY_LIMIT + 1, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)), 1);
	assert_ptr_equal(posts[2].work, &long_one->work);
}

UNIT_CASE(messages_wait_in_their_order)
{
	udapl_frag_t *f[3];

	conn->credits = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_it(f[i] = message(10, 0)), OPAL_SUCCESS);
	assert_int_equal(num_posts, 0);
	conn->credits = 1;
	assert_int_equal(send_it(message(20, 0)), OPAL_SUCCESS);	/* others wait */
	assert_int_equal(num_posts, 0);
	conn->credits = 2;
	udapl_push(peer);
	assert_int_equal(num_posts, 2);
	assert_ptr_equal(posts[0].work, &f[0]->work);
	assert_ptr_equal(posts[1].work, &f[1]->work);
	assert_int_equal(opal_list_get_size(&peer->sends), 2);
	conn->credits = 5;
	conn->sq_free = 1;
	udapl_push(peer);
	assert_ptr_equal(posts[2].work, &f[2]->work);
	assert_int_equal(num_posts, 3);
}

UNIT_CASE(message_to_a_failed_peer_is_refused)
{
	udapl_frag_t *f = message(10, 0);

	peer->state = UDAPL_FAILED;
	peer->conn = NULL;
	assert_int_equal(send_it(f), OPAL_ERR_UNREACH);
	assert_int_equal(opal_list_get_size(&peer->sends), 0);
	udapl_free(&module.super, &f->base);
}

/* --- ownership --------------------------------------------------------------------------------- */

static void complete(int i, DAT_DTO_COMPLETION_STATUS how)
{
	udapl_send_completed(CONTAINER_OF(posts[i].work, udapl_frag_t, work), how);
}

UNIT_CASE(descriptor_of_the_caller_comes_back_by_its_callback)
{
	udapl_frag_t *f = message(10, 0);

	send_it(f);
	assert_int_equal(callbacks, 0);
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(callbacks, 1);
	assert_ptr_equal(called_for, &f->base);
	assert_int_equal(status, OPAL_SUCCESS);
	expect_state(9, 0, 0);
	assert_ptr_not_equal(message(10, 0), f);	/* the caller has it */
}

/* Sent means sent: Open MPI needs no callback. */
UNIT_CASE(descriptor_of_the_component_is_freed_without_one)
{
	udapl_frag_t *f = message(2000, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

	assert_int_equal(send_it(f), 1);
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(callbacks, 0);
	assert_ptr_equal(message(2000, 0), f);
}

UNIT_CASE(callback_that_is_always_wanted_runs)
{
	udapl_frag_t *f = message(2000, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);

	assert_int_equal(send_it(f), OPAL_SUCCESS);
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(callbacks, 1);
	assert_ptr_equal(message(2000, 0), f);
}

/* It waited, so the caller does not know yet. */
UNIT_CASE(callback_of_a_message_that_waited_runs)
{
	udapl_frag_t *f = message(2000, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

	conn->credits = 0;
	assert_int_equal(send_it(f), OPAL_SUCCESS);
	conn->credits = 1;
	udapl_push(peer);
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(callbacks, 1);
}

UNIT_CASE(message_copied_into_a_mapped_ring_is_complete)
{
	static _Alignas(UDAPL_CACHE_LINE) char ring[4096 + sizeof(struct udapl_ring_ctl)];
	struct udapl_ring_out *r = &conn->ring_out;
	udapl_frag_t *f = message(10, MCA_BTL_DES_SEND_ALWAYS_CALLBACK);

	r->offer.shape = (struct udapl_ring_shape){ 4096, 1152 };
	r->cursor = (struct udapl_ring_cursor){ 4096, 1 };
	r->free_slots = 128;
	r->max_payload = 1000;
	r->buffer = ring;
	r->ctl = (struct udapl_ring_ctl *)(ring + 4096);
	assert_int_equal(send_it(f), 1);
	assert_int_equal(callbacks, 1);
	assert_int_equal(num_posts, 0);
	f->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
	assert_int_equal(send_it(f), 1);
	assert_int_equal(callbacks, 1);
	assert_ptr_equal(message(10, 0), f);
}

UNIT_CASE(closing_module_calls_nothing)
{
	udapl_frag_t *f = message(10, 0);

	send_it(f);
	module.closing = true;
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(callbacks, 0);
	assert_ptr_equal(message(10, 0), f);
}

/* --- completions ------------------------------------------------------------------------------- */

UNIT_CASE(completion_sends_what_waits)
{
	conn->sq_free = 1;
	send_it(message(10, 0));
	send_it(message(10, 0));
	assert_int_equal(num_posts, 1);
	complete(0, DAT_DTO_SUCCESS);
	assert_int_equal(num_posts, 2);
}

/* Its status is that of the connection, which is decided later. */
UNIT_CASE(flushed_message_waits_for_the_end_of_the_connection)
{
	send_it(message(10, 0));
	complete(0, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(callbacks, 0);
	assert_int_equal(opal_list_get_size(&peer->flushed_sends), 1);
	expect_state(9, 0, 0);
}

/* Open MPI counts it as sent. */
UNIT_CASE(flushed_message_of_the_component_is_freed)
{
	udapl_frag_t *f = message(2000, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

	send_it(f);
	complete(0, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(callbacks, 0);
	assert_true(opal_list_is_empty(&peer->flushed_sends));
	assert_ptr_equal(message(2000, 0), f);
}

/* Credits that found no slot are reported when one is free. */
UNIT_CASE(completed_control_message_returns_credits)
{
	udapl_frag_t *f = (udapl_frag_t *)opal_free_list_get(&module.control_frags);

	f->endpoint = peer;
	f->work.conn = conn;
	f->callback = false;
	conn->control_free = 1;
	conn->credits_to_return = mca_btl_udapl_component.credits;
	udapl_send_completed(f, DAT_DTO_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	assert_int_equal(sent_header(&posts[0])->credits, mca_btl_udapl_component.credits);
	assert_int_equal(conn->control_free, 1);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
}

UNIT_CASE(message_that_cannot_be_posted_joins_the_flushed)
{
	post_results[POSTED_SEND] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	assert_int_equal(send_it(message(2000, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)), OPAL_SUCCESS);
	assert_int_equal(opal_list_get_size(&peer->flushed_sends), 1);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
	assert_int_equal(conn->posted, 0);
	assert_true(((udapl_frag_t *)opal_list_get_first(&peer->flushed_sends))->callback);
}

UNIT_MAIN(NULL, NULL)
