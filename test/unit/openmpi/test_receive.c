/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_receive.c - completed receives: delivery, credits in both directions, control messages of the peer, and when a
 * receive is posted again. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/memory.h"
#include "contrib/openmpi/receive.h"
#include "contrib/openmpi/recv_post.h"
#include "test/unit/unit.h"

/* A receive of the connection's own, or of the shared queue. */
static udapl_frag_t *posted_receive(bool own)
{
	udapl_frag_t *f;

	module.srq_wanted = 10;
	assert_int_equal(own ? udapl_receive_post_own(conn, NULL) : udapl_receive_post_shared(&module, NULL),
			 OPAL_SUCCESS);
	f = CONTAINER_OF(posts[num_posts - 1].work, udapl_frag_t, work);
	num_posts = 0;
	memset(f->header, 0, module.message_size);
	return f;
}

static void complete(udapl_frag_t *f, DAT_DTO_COMPLETION_STATUS status, size_t length)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto = { .ep_handle = conn->ep, .user_cookie.as_ptr = &f->work, .status = status,
					      .transfered_length = length };

	udapl_receive_completed(&module, f, &dto);
}

static void arrives(udapl_frag_t *f, struct udapl_header h, const void *payload, size_t length)
{
	*f->header = h;
	memcpy(f->header + 1, payload, length);
	complete(f, DAT_DTO_SUCCESS, sizeof h + length);
}

static void data(udapl_frag_t *f, const char *text)
{
	arrives(f, (struct udapl_header){ .kind = UDAPL_DATA, .tag = TAG }, text, strlen(text));
}

#define CASE(name) UNIT_TEST_WITH(name, btl_begin, btl_end)

/* --- data -------------------------------------------------------------------------------------- */

CASE(data_is_delivered_and_its_receive_posted_again)
{
	udapl_frag_t *f = posted_receive(true);

	data(f, "hello");
	assert_int_equal(num_deliveries, 1);
	assert_int_equal(deliveries[0].length, 5);
	assert_memory_equal(deliveries[0].bytes, "hello", 5);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, POSTED_RECV);
	assert_ptr_equal(posts[0].work, &f->work);
	assert_int_equal(conn->receives, 1);
	assert_int_equal(conn->credits_to_return, 1);
}

CASE(receive_of_the_shared_queue_goes_back_there)
{
	udapl_frag_t *f = posted_receive(false);

	data(f, "hello");
	assert_int_equal(num_deliveries, 1);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, POSTED_SRQ_RECV);
	assert_int_equal(module.srq_posted, 1);
	assert_int_equal(conn->credits_to_return, 1);
}

/* A connection has ended: the queue has more receives than it needs. Its credit is returned all the same. */
CASE(surplus_receive_of_the_shared_queue_is_dropped)
{
	udapl_frag_t *f = posted_receive(false);

	module.srq_wanted = 0;
	data(f, "hello");
	assert_int_equal(num_posts, 0);
	assert_int_equal(module.srq_posted, 0);
	assert_int_equal(conn->credits_to_return, 1);
}

CASE(receive_that_cannot_be_posted_returns_no_credit)
{
	udapl_frag_t *f = posted_receive(true);

	post_results[POSTED_RECV] = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	data(f, "hello");
	assert_int_equal(num_deliveries, 1);
	assert_int_equal(conn->credits_to_return, 0);
	assert_int_equal(conn->receives, 0);
}

CASE(half_of_the_credits_are_returned_by_a_message)
{
	mca_btl_udapl_component.eager_threshold = 100;
	for (int i = 1; i < mca_btl_udapl_component.credits / 2; i++)
		data(posted_receive(true), "x");
	assert_int_equal(num_posts, 1);		/* the last receive */
	data(posted_receive(true), "x");
	assert_int_equal(num_posts, 2);
	assert_int_equal(sent_header(&posts[1])->kind, UDAPL_CREDITS);
	assert_int_equal(sent_header(&posts[1])->credits, mca_btl_udapl_component.credits / 2);
	assert_int_equal(conn->credits_to_return, 0);
}

CASE(busy_peer_is_offered_a_ring)
{
	for (int i = 1; i < mca_btl_udapl_component.eager_threshold; i++)
		data(posted_receive(true), "x");
	assert_null(conn->ring_in.memory.base);
	data(posted_receive(true), "x");
	assert_true(conn->ring_in.offered);
	assert_int_equal(sent_header(&posts[1])->kind, UDAPL_RING_OFFER);
	udapl_memory_free(&conn->ring_in.memory);
}

/* --- credits and control messages -------------------------------------------------------------- */

CASE(credits_of_the_peer_are_added)
{
	conn->credits = 1;
	conn->ring_out.free_slots = 2;
	arrives(posted_receive(true), (struct udapl_header){ .kind = UDAPL_CREDITS, .credits = 3, .eager_credits = 4 },
		"", 0);
	assert_int_equal(conn->credits, 4);
	assert_int_equal(conn->ring_out.free_slots, 6);
	assert_int_equal(num_deliveries, 0);
	assert_int_equal(conn->credits_to_return, 0);	/* control messages need none */
	assert_int_equal(posts[0].kind, POSTED_RECV);
}

/* The acceptor sends nothing before. */
CASE(first_message_establishes_an_accepted_connection)
{
	conn->state = UDAPL_CONN_ACCEPTED;
	conn->received_any = false;
	peer->state = UDAPL_CONNECTING;
	arrives(posted_receive(true), (struct udapl_header){ .kind = UDAPL_CREDITS }, "", 0);
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_true(conn->received_any);
}

CASE(close_notification_is_remembered)
{
	arrives(posted_receive(true), (struct udapl_header){ .kind = UDAPL_CLOSE }, "", 0);
	assert_true(conn->close_received);
	assert_int_equal(num_deliveries, 0);
}

CASE(ring_of_the_peer_is_accepted)
{
	struct udapl_ring_offer offer = { .address = 0x10000, .shape = { .size = 8192, .largest = 1152 } };

	arrives(posted_receive(true), (struct udapl_header){ .kind = UDAPL_RING_OFFER }, &offer, sizeof offer);
	assert_int_equal(conn->ring_out.offer.address, 0x10000);
	assert_int_equal(conn->ring_out.free_slots, 8192 / UDAPL_RING_SLOT);
	udapl_memory_free(&conn->ring_out.staging);
}

/* Behind it in the buffer is what an earlier message left. */
CASE(short_offer_of_a_ring_is_ignored)
{
	struct udapl_ring_offer offer = { .address = 0x10000, .shape = { .size = 8192, .largest = 1152 } };
	udapl_frag_t *f = posted_receive(true);

	memcpy(f->header + 1, &offer, sizeof offer);
	arrives(f, (struct udapl_header){ .kind = UDAPL_RING_OFFER }, &offer, sizeof offer - 1);
	assert_int_equal(conn->ring_out.max_payload, 0);
	assert_null(conn->ring_out.buffer);
}

CASE(unknown_message_is_ignored)
{
	arrives(posted_receive(true), (struct udapl_header){ .kind = 99, .tag = TAG }, "x", 1);
	assert_int_equal(num_deliveries, 0);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_int_equal(num_posts, 1);
}

/* --- failures ---------------------------------------------------------------------------------- */

CASE(message_without_a_header_breaks_the_connection)
{
	complete(posted_receive(true), DAT_DTO_SUCCESS, sizeof(struct udapl_header) - 1);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_string_equal(peer->failure, "a receive failed");
	assert_int_equal(num_posts, 0);
	assert_int_equal(num_deliveries, 0);
}

CASE(failed_receive_breaks_the_connection)
{
	complete(posted_receive(true), DAT_DTO_ERR_LOCAL_LENGTH, 100);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_int_equal(conn->receives, 0);
	assert_int_equal(num_posts, 0);
}

/* The event of the disconnect says more. */
CASE(flushed_receive_breaks_nothing)
{
	complete(posted_receive(true), DAT_DTO_ERR_FLUSHED, 0);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_int_equal(conn->receives, 0);
	assert_int_equal(num_posts, 0);
}

UNIT_MAIN(NULL, NULL)
