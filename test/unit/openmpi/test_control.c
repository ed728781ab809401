/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_control.c - control messages: when they find a slot of the send queue, and how credits are reported. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/control.h"
#include "test/unit/unit.h"

#define CASE(name) UNIT_TEST_WITH(name, btl_begin, btl_end)

CASE(message_carries_its_data_and_all_credits)
{
	conn->credits_to_return = 3;
	conn->ring_in.slots_to_return = 40;
	assert_true(LOCKED(udapl_control(conn, UDAPL_RING_OFFER, "data", 4)));
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].local.segment_length, sizeof(struct udapl_header) + 4);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_RING_OFFER);
	assert_int_equal(sent_header(&posts[0])->tag, 0);
	assert_int_equal(sent_header(&posts[0])->credits, 3);
	assert_int_equal(sent_header(&posts[0])->eager_credits, 40);
	assert_int_equal(sent_header(&posts[0])->reserved, 0);
	assert_memory_equal(sent_header(&posts[0]) + 1, "data", 4);
	assert_int_equal(conn->credits_to_return, 0);
	assert_int_equal(conn->ring_in.slots_to_return, 0);
	assert_int_equal(posts[0].work->kind, UDAPL_CONTROL);
	assert_ptr_equal(posts[0].work->conn, conn);
}

CASE(message_takes_a_slot_of_its_own)
{
	int free = conn->sq_free;

	conn->credits = 2;
	assert_true(LOCKED(udapl_control(conn, UDAPL_CREDITS, NULL, 0)));
	assert_int_equal(conn->control_free, UDAPL_CONTROL_REQUESTS - 1);
	assert_int_equal(conn->sq_free, free);
	assert_int_equal(conn->credits, 2);
	assert_int_equal(conn->posted, 1);
}

CASE(last_slot_is_for_the_close_notification)
{
	conn->control_free = 1;
	conn->credits_to_return = 3;
	assert_false(LOCKED(udapl_control(conn, UDAPL_CREDITS, NULL, 0)));
	assert_int_equal(conn->credits_to_return, 3);
	assert_true(LOCKED(udapl_control(conn, UDAPL_CLOSE, NULL, 0)));
	assert_int_equal(conn->control_free, 0);
	assert_false(LOCKED(udapl_control(conn, UDAPL_CLOSE, NULL, 0)));
	assert_int_equal(num_posts, 1);
}

CASE(refused_post_takes_no_slot)
{
	post_results[POSTED_SEND] = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	assert_false(LOCKED(udapl_control(conn, UDAPL_CREDITS, NULL, 0)));
	assert_int_equal(conn->control_free, UDAPL_CONTROL_REQUESTS);
	assert_int_equal(conn->posted, 0);
}

CASE(message_without_a_buffer_is_not_sent)
{
	cache_refusals = 100;	/* the list cannot grow */
	conn->credits_to_return = 3;
	assert_false(LOCKED(udapl_control(conn, UDAPL_CREDITS, NULL, 0)));
	assert_int_equal(conn->credits_to_return, 3);
	assert_int_equal(num_posts, 0);
}

/* The peer has mapped the ring and polls nothing else: the count makes it poll its CQ. */
CASE(posts_are_counted_in_a_mapped_ring)
{
	struct udapl_ring_ctl ctl = { .posted = 6 };

	conn->ring_out.ctl = &ctl;
	assert_true(LOCKED(udapl_control(conn, UDAPL_CREDITS, NULL, 0)));
	assert_int_equal(ctl.posted, 7);
}

CASE(credits_are_returned_when_half_of_them_are_unreported)
{
	conn->credits_to_return = mca_btl_udapl_component.credits / 2 - 1;
	udapl_return_credits(conn);
	assert_int_equal(num_posts, 0);
	conn->credits_to_return++;
	udapl_return_credits(conn);
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	udapl_return_credits(conn);
	assert_int_equal(num_posts, 1);
}

/* The acceptor sends nothing before the first message of the requester. */
CASE(credits_wait_for_the_connection)
{
	conn->credits_to_return = mca_btl_udapl_component.credits;
	for (int s = 0; s < UDAPL_CONN_STATES; s++) {
		conn->state = (enum udapl_conn_state)s;
		if (s != UDAPL_CONN_ESTABLISHED)
			udapl_return_credits(conn);
	}
	assert_int_equal(num_posts, 0);
	conn->state = UDAPL_CONN_ESTABLISHED;
	udapl_return_credits(conn);
	assert_int_equal(num_posts, 1);
}

UNIT_MAIN(NULL, NULL)
