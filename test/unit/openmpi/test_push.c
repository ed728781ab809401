/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_push.c - posting of messages: what a message needs, by send or into the ring, and how far waiting requests
 * get. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/push.h"
#include "test/unit/unit.h"

enum { LENGTH = 10, SIZE = 8192, LARGEST = 1152 };

static struct udapl_ring_ctl ctl;

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	memset(&ctl, 0, sizeof ctl);
	conn->credits = 3;
}

static void has_ring(uint32_t free_slots)
{
	struct udapl_ring_out *r = &conn->ring_out;

	r->offer = (struct udapl_ring_offer){ .address = 0x10000, .rmr_context = 77, .shape = { SIZE, LARGEST } };
	r->cursor = (struct udapl_ring_cursor){ SIZE, 1 };
	r->free_slots = free_slots;
	r->max_payload = LARGEST - UDAPL_MESSAGE_OVERHEAD;
}

static udapl_frag_t *new_frag(void)
{
	udapl_frag_t *f = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, LENGTH, 0);

	f->header->kind = UDAPL_DATA;
	f->header->tag = TAG;
	f->callback = false;
	return f;
}

static udapl_frag_t *add_send(void)
{
	udapl_frag_t *f = new_frag();

	opal_list_append(&peer->sends, &f->base.super.super);
	return f;
}

static udapl_rdma_t *add_rdma(void)
{
	udapl_rdma_t *r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	r->endpoint = peer;
	r->op = UDAPL_PUT;
	opal_list_append(&peer->rdmas, &r->super.super);
	return r;
}

static int waiting_sends(void) { return (int)opal_list_get_size(&peer->sends); }
static int waiting_rdmas(void) { return (int)opal_list_get_size(&peer->rdmas); }

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- one message ------------------------------------------------------------------------------- */

CASE(message_needs_a_slot_and_a_place_at_the_peer)
{
	static const struct {
		enum udapl_conn_state state;
		int sq_free, credits;
		uint32_t ring_slots;
		bool mapped, room;
	} table[] = {
		{ UDAPL_CONN_ESTABLISHED, 1, 1, 0, false, true },
		{ UDAPL_CONN_ESTABLISHED, 0, 1, 9, false, false },
		{ UDAPL_CONN_ESTABLISHED, 1, 0, 0, false, false },
		{ UDAPL_CONN_ESTABLISHED, 1, 0, 1, false, true },
		{ UDAPL_CONN_ESTABLISHED, 1, 0, 9, true, false },	/* messages are stored there, not posted */
		{ UDAPL_CONN_ACCEPTED, 1, 1, 9, false, false },
		{ UDAPL_CONN_CLOSING, 1, 1, 9, false, false },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		conn->state = table[i].state;
		conn->sq_free = table[i].sq_free;
		conn->credits = table[i].credits;
		has_ring(table[i].ring_slots);
		conn->ring_out.ctl = table[i].mapped ? &ctl : NULL;
		if (LOCKED(udapl_has_room(conn, LENGTH)) != table[i].room)
			fail_msg("row %u", i);
	}
}

CASE(long_message_needs_a_credit_beside_a_ring)
{
	conn->credits = 0;
	has_ring(SIZE / UDAPL_RING_SLOT);
	assert_true(LOCKED(udapl_has_room(conn, LARGEST - UDAPL_MESSAGE_OVERHEAD)));
	assert_false(LOCKED(udapl_has_room(conn, LARGEST - UDAPL_MESSAGE_OVERHEAD + 1)));
}

CASE(message_is_sent_without_a_ring)
{
	udapl_frag_t *f;

	f = new_frag();
	conn->credits_to_return = 2;
	assert_true(LOCKED(udapl_post_frag(conn, f)));
	assert_int_equal(num_posts, 1);
	assert_ptr_equal(sent_header(&posts[0]), f->header);
	assert_int_equal(posts[0].local.segment_length, sizeof *f->header + LENGTH);
	assert_int_equal(f->header->credits, 2);
	assert_ptr_equal(f->work.conn, conn);
	assert_int_equal(conn->credits_to_return, 0);
	assert_int_equal(conn->credits, 2);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 1);
	assert_int_equal(conn->posted, 1);
}

CASE(message_in_the_ring_takes_no_credit)
{
	const struct udapl_tail *tail;
	udapl_frag_t *f;

	f = new_frag();
	has_ring(9);
	conn->credits_to_return = 2;
	assert_true(LOCKED(udapl_post_frag(conn, f)));
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, POSTED_WRITE);
	assert_ptr_equal(posts[0].work, &f->work);
	assert_int_equal(posts[0].flags, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(posts[0].local.virtual_address, (uintptr_t)(f->header + 1));
	assert_int_equal(posts[0].local.lmr_context, f->lmr_context);
	tail = (const struct udapl_tail *)(uintptr_t)(posts[0].local.virtual_address +
						      posts[0].local.segment_length) - 1;
	assert_int_equal(tail->length, LENGTH);
	assert_int_equal(tail->tag, TAG);
	assert_int_equal(tail->credits, 2);
	assert_int_equal(conn->ring_out.free_slots, 8);
	assert_int_equal(conn->credits, 3);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 1);
	assert_int_equal(conn->posted, 1);
}

CASE(refused_message_joins_the_flushed_ones)
{
	static const struct { DAT_RETURN rc; enum udapl_endpoint_state state; } table[] = {
		{ UDAPL_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED), UDAPL_CONNECTED },
		{ UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE), UDAPL_FAILED },
	};

	for (int i = 0; i < 2; i++) {
		udapl_frag_t *f = new_frag();

		post_results[POSTED_SEND] = table[i].rc;
		assert_false(LOCKED(udapl_post_or_flush(peer, f)));
		assert_true(f->callback);	/* it is reported, though it need not be if it is sent */
		assert_int_equal(peer->state, table[i].state);
		assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
		assert_int_equal(conn->posted, 0);
		assert_int_equal(opal_list_get_size(&peer->flushed_sends), i + 1);
		assert_ptr_equal(opal_list_get_last(&peer->flushed_sends), f);
	}
}

CASE(posted_message_is_not_flushed)
{
	udapl_frag_t *f;

	f = new_frag();
	assert_true(LOCKED(udapl_post_or_flush(peer, f)));
	assert_false(f->callback);
	assert_true(opal_list_is_empty(&peer->flushed_sends));
}

/* --- waiting requests -------------------------------------------------------------------------- */

CASE(messages_are_posted_in_order_while_credits_last)
{
	udapl_frag_t *frags[5];

	for (int i = 0; i < 5; i++)
		frags[i] = add_send();
	udapl_push(peer);
	assert_int_equal(num_posts, 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(posts[i].work, &frags[i]->work);
	assert_int_equal(waiting_sends(), 2);
	assert_ptr_equal(opal_list_get_first(&peer->sends), frags[3]);
	conn->credits = 1;
	udapl_push(peer);
	assert_ptr_equal(posts[3].work, &frags[3]->work);
	assert_int_equal(waiting_sends(), 1);
}

CASE(operations_need_slots_but_no_credits)
{
	udapl_rdma_t *first;

	conn->credits = 0;
	conn->sq_free = 2;
	add_send();
	first = add_rdma();
	add_rdma();
	add_rdma();
	udapl_push(peer);
	assert_int_equal(num_posts, 2);
	assert_ptr_equal(posts[0].work, &first->work);
	assert_int_equal(posts[1].kind, POSTED_WRITE);
	assert_int_equal(waiting_sends(), 1);
	assert_int_equal(waiting_rdmas(), 1);
}

/* So it polls its CQ soon. */
CASE(posts_are_counted_for_a_peer_on_this_host)
{
	has_ring(9);
	conn->ring_out.ctl = &ctl;
	add_send();
	add_rdma();
	udapl_push(peer);
	assert_int_equal(num_posts, 2);
	assert_int_equal(ctl.posted, 2);
}

CASE(refused_requests_end_the_push)
{
	post_results[POSTED_SEND] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	post_results[POSTED_WRITE] = post_results[POSTED_SEND];
	add_send();
	add_send();
	add_rdma();
	add_rdma();
	udapl_push(peer);
	assert_int_equal(waiting_sends(), 1);
	assert_int_equal(waiting_rdmas(), 1);
	assert_int_equal(opal_list_get_size(&peer->flushed_sends), 1);
	assert_int_equal(opal_list_get_size(&peer->flushed_rdmas), 1);
}

/* They are completed as unreachable. */
CASE(nothing_is_posted_to_a_peer_that_failed_during_the_push)
{
	post_results[POSTED_SEND] = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	add_send();
	add_rdma();
	udapl_push(peer);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_int_equal(num_posts, 0);
	assert_int_equal(waiting_rdmas(), 1);
}

CASE(requests_wait_for_a_connection)
{
	add_send();
	add_rdma();
	conn->state = UDAPL_CONN_ACCEPTED;
	udapl_push(peer);
	conn->state = UDAPL_CONN_ESTABLISHED;
	peer->conn = NULL;
	udapl_push(peer);
	assert_int_equal(num_posts, 0);
	assert_int_equal(waiting_sends() + waiting_rdmas(), 2);
}

UNIT_MAIN(NULL, NULL)
