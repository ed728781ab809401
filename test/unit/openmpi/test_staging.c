/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_staging.c - the fast path of short messages: where a message is assembled, when it is written by RDMA, what is
 * sent in another way, and the wait for space in a full ring. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/posting.h"
#include "contrib/openmpi/ring.h"
#include "contrib/openmpi/staging.h"
#include "test/unit/unit.h"

enum { SIZE = 4096, LARGEST = 1152, LONGEST = LARGEST - UDAPL_MESSAGE_OVERHEAD };

static const struct udapl_ring_shape shape = { .size = SIZE, .largest = LARGEST };
static _Alignas(UDAPL_CACHE_LINE) char ring[SIZE + sizeof(struct udapl_ring_ctl)];	/* of the peer */
static _Alignas(UDAPL_CACHE_LINE) char staging[SIZE], incoming[SIZE + sizeof(struct udapl_ring_ctl)];

/* The ring of the peer is mapped. */
UNIT_FIXTURE(begin)
{
	struct udapl_ring_out *r;

	btl_begin(state);
	r = &conn->ring_out;
	memset(ring, 0, sizeof ring);
	memset(staging, 0, sizeof staging);
	r->offer = (struct udapl_ring_offer){ .address = (uintptr_t)ring, .rmr_context = 77, .shape = shape };
	r->cursor = (struct udapl_ring_cursor){ .end = SIZE, .lap = 1 };
	r->free_slots = SIZE / UDAPL_RING_SLOT;
	r->max_payload = LONGEST;
	r->work = (struct udapl_work){ UDAPL_STAGED, conn };
	r->buffer = ring;
	r->ctl = (struct udapl_ring_ctl *)(ring + SIZE);
	module.empty_polls_limit = 1;
}

/* It is written by RDMA. */
static void stage(void)
{
	conn->ring_out.ctl = NULL;
	conn->ring_out.buffer = conn->ring_out.staging.base = staging;
	conn->ring_out.staging.lmr_context = 5;
	writes_arrive = true;
}

static int sendi(const char *header, size_t header_size, const char *payload, size_t payload_size, bool packed,
		 mca_btl_base_descriptor_t **des)
{
	opal_convertor_t conv = convertor_of(payload, packed);

	return udapl_sendi(&module.super, peer, &conv, (void *)(uintptr_t)header, header_size, payload_size,
			   MCA_BTL_NO_ORDER, 0, TAG, des);
}

static int send_text(const char *text) { return sendi(text, strlen(text), NULL, 0, false, NULL); }

static struct udapl_tail tail_at(uint32_t end)
{
	struct udapl_tail tail;

	memcpy(&tail, ring + end - sizeof tail, sizeof tail);
	return tail;
}

/* The peer's ring has this message, which ends here. */
static void arrived(uint32_t end, const char *text, size_t length)
{
	assert_int_equal(tail_at(end).lap, 1);
	assert_int_equal(tail_at(end).length, length);
	assert_int_equal(tail_at(end).tag, TAG);
	assert_memory_equal(ring + udapl_ring_extent(end, length).begin, text, length);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- what arrives ------------------------------------------------------------------------------ */

CASE(message_is_stored_in_a_mapped_ring)
{
	assert_int_equal(send_text("hello"), OPAL_SUCCESS);
	arrived(SIZE, "hello", 5);
	assert_int_equal(num_posts, 0);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
}

CASE(message_is_written_from_the_staging_buffer)
{
	stage();
	assert_int_equal(send_text("hello"), OPAL_SUCCESS);
	arrived(SIZE, "hello", 5);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].local.lmr_context, 5);
	assert_int_equal(posts[0].remote.rmr_context, 77);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 1);
}

/* Short copies are inlined, by length. */
CASE(header_and_payload_of_any_length_arrive)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char both[64];

	for (size_t h = 0; h <= 20; h++) {
		for (size_t p = 0; p <= 20; p++) {
			memset(ring, 0, SIZE);
			conn->ring_out.cursor = (struct udapl_ring_cursor){ .end = SIZE, .lap = 1 };
			conn->ring_out.free_slots = SIZE / UDAPL_RING_SLOT;
			assert_int_equal(sendi(bytes, h, bytes + 30, p, false, NULL), OPAL_SUCCESS);
			memcpy(both, bytes, h);
			memcpy(both + h, bytes + 30, p);
			arrived(SIZE, both, h + p);
		}
	}
	assert_int_equal(packs, 0);
}

CASE(data_with_gaps_are_packed)
{
	assert_int_equal(sendi("head", 4, "payload", 7, true, NULL), OPAL_SUCCESS);
	assert_int_equal(packs, 1);
	arrived(SIZE, "headpayload", 11);
}

CASE(message_that_cannot_be_packed_does_not_arrive)
{
	pack_result = -1;
	assert_int_equal(sendi("head", 4, "payload", 7, true, NULL), OPAL_ERROR);
	assert_int_equal(tail_at(SIZE).lap, 0);
	assert_int_equal(conn->ring_out.cursor.end, SIZE);
}

CASE(message_carries_credits)
{
	conn->credits_to_return = 3;
	send_text("x");
	assert_int_equal(tail_at(SIZE).credits, 3);
	assert_int_equal(tail_at(SIZE).eager_credits, 0);
	assert_int_equal(conn->credits_to_return, 0);
	send_text("y");
	assert_int_equal(tail_at(SIZE - UDAPL_RING_SLOT).piggyback, 0);
}

/* The reader takes a slower path for them. */
CASE(few_slots_are_not_worth_reporting)
{
	int due = SIZE / UDAPL_RING_SLOT / UDAPL_CREDIT_ALONG;

	conn->ring_in.shape = shape;
	conn->ring_in.slots_to_return = due - 1;
	send_text("x");
	assert_int_equal(tail_at(SIZE).eager_credits, 0);
	assert_int_equal(conn->ring_in.slots_to_return, due - 1);
	conn->ring_in.slots_to_return = due;
	send_text("y");
	assert_int_equal(tail_at(SIZE - UDAPL_RING_SLOT).eager_credits, due);
	assert_int_equal(conn->ring_in.slots_to_return, 0);
}

CASE(one_write_in_an_interval_is_signaled)
{
	int interval = udapl_signal_interval();

	stage();
	assert_int_equal(interval, mca_btl_udapl_component.requests / UDAPL_SIGNALS_PER_QUEUE);
	for (int i = 0; i < 2 * interval; i++) {
		bool signaled = i % interval == interval - 1;

		assert_int_equal(send_text("x"), OPAL_SUCCESS);
		assert_int_equal(posts[i].flags, signaled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
		assert_ptr_equal(posts[i].work, signaled ? &conn->ring_out.work : &module.unsignaled_work);
	}
	assert_int_equal(conn->posted, 2);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests - 2 * interval);
}

CASE(refused_write_breaks_the_connection)
{
	stage();
	post_results[POSTED_WRITE] = UDAPL_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE);
	send_text("x");
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
	assert_int_equal(conn->posted, 0);
}

CASE(only_a_mapped_ring_takes_long_copies)
{
	char payload[600];

	memset(payload, 'p', sizeof payload);
	assert_true(udapl_send_copy(peer, payload, sizeof payload, TAG, 0));
	arrived(SIZE, payload, sizeof payload);
	stage();
	assert_false(udapl_send_copy(peer, payload, sizeof payload, TAG, sizeof payload - 1));
	assert_true(udapl_send_copy(peer, payload, sizeof payload, TAG, sizeof payload));
}

static bool copied(void) { return udapl_send_copy(peer, "x", 1, TAG, 1); }

CASE(nothing_is_copied_that_cannot_be_sent_now)
{
	opal_free_list_item_t *f = opal_free_list_get(&module.eager_frags);
	static char payload[LONGEST + 1];

	assert_false(udapl_send_copy(peer, payload, sizeof payload, TAG, sizeof payload));
	conn->state = UDAPL_CONN_CLOSING;
	assert_false(copied());
	conn->state = UDAPL_CONN_ESTABLISHED;
	opal_list_append(&peer->sends, &f->super);	/* an earlier message waits */
	assert_false(copied());
	opal_list_remove_item(&peer->sends, &f->super);
	opal_free_list_return(&module.eager_frags, f);
	conn->ring_out.free_slots = 0;
	assert_false(copied());
	conn->ring_out.free_slots = 1;
	conn->sq_free = 0;
	assert_true(copied());		/* a store needs no slot of the send queue */
	stage();
	conn->ring_out.free_slots = 1;
	assert_false(copied());
	conn->sq_free = 1;
	assert_true(copied());
	conn->ring_out.buffer = NULL;
	conn->ring_out.free_slots = 1;
	assert_false(copied());
	peer->conn = NULL;
	assert_false(copied());
}

/* --- a full ring ------------------------------------------------------------------------------- */

static void peer_releases_a_slot(void) { conn->ring_out.ctl->consumed++; }

/* The peer may itself wait until this process reads. */
CASE(full_ring_is_waited_for_while_messages_are_read)
{
	struct udapl_ring_in *in = &conn->ring_in;
	struct udapl_tail tail = { .length = 1, .tag = TAG, .lap = 1 };

	memset(incoming, 0, sizeof incoming);
	in->memory.base = incoming;
	in->shape = shape;
	in->cursor = (struct udapl_ring_cursor){ .end = SIZE, .lap = 1 };
	in->ctl = (struct udapl_ring_ctl *)(incoming + SIZE);
	in->ctl->mapped = 1;
	udapl_message_init(&in->message, &in->segment, peer);
	memcpy(incoming + SIZE - sizeof tail, &tail, sizeof tail);
	module.rings[0] = conn;
	module.num_rings = 1;
	during_delivery = peer_releases_a_slot;
	conn->ring_out.free_slots = 0;
	assert_int_equal(send_text("hello"), OPAL_SUCCESS);
	assert_int_equal(num_deliveries, 1);
	arrived(SIZE, "hello", 5);
	assert_int_equal(num_posts, 0);
	assert_int_equal(cq_dequeues, 0);	/* stores of the peer need no poll of the CQ */
}

CASE(full_send_queue_is_waited_for_by_completions)
{
	stage();
	conn->sq_free = 0;
	conn->posted = 1;
	completion_comes(&conn->ring_out.work, DAT_DTO_SUCCESS, 0);
	assert_int_equal(send_text("hello"), OPAL_SUCCESS);
	arrived(SIZE, "hello", 5);
	assert_int_equal(conn->sq_free, udapl_signal_interval() - 1);
	assert_int_equal(conn->posted, 0);
}

CASE(ring_that_stays_full_leads_to_a_receive_of_the_peer)
{
	conn->ring_out.free_slots = 0;
	conn->credits = 1;
	assert_int_equal(send_text("hello"), OPAL_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].kind, POSTED_SEND);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_DATA);
	assert_int_equal(sent_header(&posts[0])->tag, TAG);
	assert_memory_equal(sent_header(&posts[0]) + 1, "hello", 5);
	assert_int_equal(conn->credits, 0);
}

/* The caller fills the descriptor and sends it later. */
CASE(message_without_any_room_gets_a_descriptor)
{
	mca_btl_base_descriptor_t *des = NULL;

	conn->ring_out.free_slots = 0;
	assert_int_equal(sendi("hello", 5, NULL, 0, false, &des), OPAL_ERR_RESOURCE_BUSY);
	assert_non_null(des);
	assert_int_equal(des->des_segments->seg_len, 5);
	assert_int_equal(des->des_flags, 0);
	assert_int_equal(num_posts, 0);
	udapl_free(&module.super, des);
	assert_int_equal(send_text("hello"), OPAL_ERR_RESOURCE_BUSY);	/* without one */
	assert_int_equal(num_posts, 0);
}

UNIT_MAIN(NULL, NULL)
