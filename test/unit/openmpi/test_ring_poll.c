/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ring_poll.c - reading of eager rings: what counts as a message, what is done with a peer that breaks the
 * protocol, how slots are released, and when the progress function polls the CQ. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/ring.h"
#include "contrib/openmpi/ring_poll.h"
#include "test/unit/unit.h"

enum { SIZE = 4096, LARGEST = 1152, LONGEST = LARGEST - UDAPL_MESSAGE_OVERHEAD };

static _Alignas(UDAPL_CACHE_LINE) char memory[SIZE + sizeof(struct udapl_ring_ctl)];
static struct udapl_ring_out writer;	/* the peer's side */

/* A ring of the connection, and the peer that writes it. */
UNIT_FIXTURE(begin)
{
	static const struct udapl_ring_shape shape = { .size = SIZE, .largest = LARGEST };
	struct udapl_ring_in *r;

	btl_begin(state);
	r = &conn->ring_in;
	memset(memory, 0, sizeof memory);
	r->memory.base = memory;
	r->shape = shape;
	r->cursor = (struct udapl_ring_cursor){ .end = SIZE, .lap = 1 };
	r->ctl = (struct udapl_ring_ctl *)(memory + SIZE);
	r->ctl->mapped = 1;
	udapl_message_init(&r->message, &r->segment, peer);
	module.rings[0] = conn;
	module.num_rings = 1;
	memset(&writer, 0, sizeof writer);
	writer.offer.shape = shape;
	writer.cursor = r->cursor;
	writer.free_slots = SIZE / UDAPL_RING_SLOT;
	writer.buffer = memory;
	writer.ctl = r->ctl;
}

/* The peer writes this ring by RDMA. */
static void unmap(void)
{
	conn->ring_in.ctl->mapped = 0;
	writer.ctl = NULL;
}

/* The peer writes a message: as a store, or as a write that ends with the tail. */
static void put_tail(const void *payload, struct udapl_tail tail)
{
	struct udapl_extent at = udapl_ring_extent(writer.cursor.end, tail.length);

	assert_true(udapl_ring_fits(&writer, at.size));
	memcpy(memory + at.begin, payload, tail.length);
	if (writer.ctl) {
		udapl_ring_store(&writer, tail, at.size);
		return;
	}
	tail.lap = writer.cursor.lap;
	memcpy(memory + writer.cursor.end - sizeof tail, &tail, sizeof tail);
	writer.free_slots -= udapl_ring_advance(&writer.offer.shape, &writer.cursor, at.size);
}

static void put(const char *text) { put_tail(text, (struct udapl_tail){ .length = strlen(text), .tag = TAG }); }

/* The tail of the next message has this value, valid or not. */
static void put_garbled(struct udapl_tail tail)
{
	tail.lap = writer.cursor.lap;
	memcpy(memory + writer.cursor.end - sizeof tail, &tail, sizeof tail);
}

static void was_delivered(int i, const char *text)
{
	assert_true(i < num_deliveries);
	assert_int_equal(deliveries[i].length, strlen(text));
	assert_memory_equal(deliveries[i].bytes, text, strlen(text));
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- messages ---------------------------------------------------------------------------------- */

CASE(empty_ring_has_no_message)
{
	assert_int_equal(udapl_rings_poll(&module), 0);
	assert_int_equal(num_deliveries, 0);
}

CASE(messages_are_delivered_in_their_order)
{
	put("one");
	put("a message of two slots: more than 32 bytes");
	put("");
	put("four");
	assert_int_equal(udapl_rings_poll(&module), 4);
	assert_int_equal(num_deliveries, 4);
	was_delivered(0, "one");
	was_delivered(1, "a message of two slots: more than 32 bytes");
	assert_int_equal(deliveries[2].length, 0);
	was_delivered(3, "four");
	assert_int_equal(udapl_rings_poll(&module), 0);
}

/* A poll between the payload and the tail finds nothing. */
CASE(half_a_message_is_not_read)
{
	struct udapl_tail tail = { .length = 5, .tag = TAG, .lap = 1 };

	memcpy(memory + udapl_ring_begin(SIZE, 5), "hello", 5);
	tail.lap = 0;
	memcpy(memory + SIZE - sizeof tail, &tail, sizeof tail);	/* all of it but its last byte */
	assert_int_equal(udapl_rings_poll(&module), 0);
	tail.lap = 1;
	memcpy(memory + SIZE - sizeof tail, &tail, sizeof tail);
	assert_int_equal(udapl_rings_poll(&module), 1);
	was_delivered(0, "hello");
}

CASE(tail_of_another_lap_is_no_message)
{
	writer.cursor.lap = 2;
	put("from another lap");
	assert_int_equal(udapl_rings_poll(&module), 0);
}

/* Every byte of the payload is that of a tail of the next lap. */
static void send_laps(void)
{
	static char payload[LONGEST];

	for (uint32_t i = 0; writer.cursor.lap < 20; i++) {
		uint32_t length = i * 97 % (LONGEST + 1);

		memset(payload, writer.cursor.lap + 1, sizeof payload);
		put_tail(payload, (struct udapl_tail){ .length = length, .tag = TAG });
		num_deliveries = 0;
		assert_int_equal(udapl_rings_poll(&module), 1);
		assert_int_equal(deliveries[0].length, length);
		assert_memory_equal(deliveries[0].bytes, payload,
				    length < sizeof deliveries[0].bytes ? length : sizeof deliveries[0].bytes);
		assert_int_equal(udapl_rings_poll(&module), 0);
		if (!writer.ctl)
			writer.free_slots += udapl_fetch_and_clear(&conn->ring_in.slots_to_return);
		assert_int_equal(conn->ring_in.cursor.end, writer.cursor.end);
		assert_int_equal(conn->ring_in.cursor.lap, writer.cursor.lap);
	}
}

CASE(old_payload_is_no_message_in_a_mapped_ring)
{
	send_laps();
}

CASE(old_payload_is_no_message_in_a_ring_written_by_rdma)
{
	unmap();
	conn->sq_free = conn->control_free = 0;	/* the test returns the slots itself */
	send_laps();
}

CASE(message_without_a_callback_is_dropped)
{
	put_tail("x", (struct udapl_tail){ .length = 1, .tag = TAG + 1 });
	put("y");
	assert_int_equal(udapl_rings_poll(&module), 2);
	assert_int_equal(num_deliveries, 1);
	was_delivered(0, "y");
}

/* Callbacks may already be unloaded. */
CASE(closing_module_delivers_nothing)
{
	module.closing = true;
	put("x");
	assert_int_equal(udapl_rings_poll(&module), 1);
	assert_int_equal(num_deliveries, 0);
}

CASE(longer_message_than_the_largest_is_skipped)
{
	static const uint16_t lengths[] = { LARGEST, LARGEST + 1, SIZE, SIZE + 1, UINT16_MAX };

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		uint32_t end = conn->ring_in.cursor.end;

		put_garbled((struct udapl_tail){ .length = lengths[i], .tag = TAG });
		assert_int_equal(udapl_rings_poll(&module), 1);
		assert_int_equal(num_deliveries, 0);
		assert_int_equal(conn->ring_in.cursor.end, end - UDAPL_RING_SLOT);
		writer.cursor.end -= UDAPL_RING_SLOT;
	}
	put("next");
	assert_int_equal(udapl_rings_poll(&module), 1);
	was_delivered(0, "next");
}

/* At the last place of a lap a message that is as large as possible begins with the ring. */
CASE(no_length_reaches_in_front_of_the_ring)
{
	for (uint32_t length = 0; length <= UINT16_MAX; length++) {
		conn->ring_in.cursor = writer.cursor = (struct udapl_ring_cursor){ .end = LARGEST, .lap = 1 };
		put_garbled((struct udapl_tail){ .length = length, .tag = TAG });
		num_deliveries = 0;
		assert_int_equal(udapl_rings_poll(&module), 1);
		assert_true(num_deliveries == 0 || deliveries[0].payload >= memory);
		assert_int_equal(num_deliveries, udapl_ring_extent(LARGEST, length).size <= LARGEST);
		memset(memory, 0, SIZE);
	}
}

/* --- slots and credits ------------------------------------------------------------------------- */

CASE(slots_are_released_in_the_control_block)
{
	put("x");
	put("a message of two slots, of 33 bytes");
	udapl_rings_poll(&module);
	assert_int_equal(conn->ring_in.ctl->consumed, 3);
	assert_int_equal(conn->ring_in.slots_to_return, 0);
}

CASE(slots_of_a_ring_written_by_rdma_are_reported_later)
{
	unmap();
	put("x");
	put("a message of two slots, of 33 bytes");
	udapl_rings_poll(&module);
	assert_int_equal(conn->ring_in.slots_to_return, 3);
	assert_int_equal(conn->ring_in.ctl->consumed, 0);
	assert_int_equal(num_posts, 0);
}

CASE(half_of_the_slots_are_reported_by_a_message)
{
	unmap();
	for (int i = 0; i < SIZE / UDAPL_RING_SLOT / 2; i++)
		put("x");
	assert_int_equal(udapl_rings_poll(&module), SIZE / UDAPL_RING_SLOT / 2);
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	assert_int_equal(sent_header(&posts[0])->eager_credits, SIZE / UDAPL_RING_SLOT / 2);
	assert_int_equal(conn->ring_in.slots_to_return, 0);
}

CASE(piggybacked_credits_are_taken)
{
	conn->credits = 1;
	conn->ring_out.free_slots = 10;
	put_tail("x", (struct udapl_tail){ .length = 1, .tag = TAG, .credits = 3, .eager_credits = 5 });
	assert_int_equal(udapl_rings_poll(&module), 1);
	assert_int_equal(conn->credits, 4);
	assert_int_equal(conn->ring_out.free_slots, 15);
	was_delivered(0, "x");
}

/* --- which rings, how many messages ------------------------------------------------------------ */

CASE(one_poll_reads_a_batch)
{
	for (int i = 0; i < UDAPL_RING_BATCH + 3; i++)
		put("x");
	assert_int_equal(udapl_rings_poll(&module), UDAPL_RING_BATCH);
	assert_int_equal(udapl_rings_poll(&module), 3);
}

CASE(freed_ring_is_skipped)
{
	put("x");
	module.rings[1] = conn;
	module.rings[0] = NULL;
	module.num_rings = 2;
	assert_int_equal(udapl_rings_poll(&module), 1);
}

static void poll_from_the_callback(void)
{
	assert_int_equal(udapl_rings_poll(&module), 0);
	assert_int_equal(num_deliveries, 1);
	during_delivery = NULL;
}

CASE(callback_does_not_read_the_ring_again)
{
	put("x");
	put("y");
	during_delivery = poll_from_the_callback;
	assert_int_equal(udapl_rings_poll(&module), 2);
	was_delivered(1, "y");
}

CASE(threads_read_one_at_a_time)
{
	opal_uses_threads = true;
	callback_does_not_read_the_ring_again(state);
	put("z");
	assert_int_equal(udapl_rings_poll(&module), 1);
	assert_true(udapl_trylock(&conn->ring_in.busy));
	put("other thread");
	assert_int_equal(udapl_rings_poll(&module), 0);
}

/* --- the progress function --------------------------------------------------------------------- */

CASE(poll_of_the_cq_is_requested_by_posts_of_the_peer)
{
	module.empty_polls_limit = module.empty_polls_left = 50;
	udapl_rings_poll(&module);
	assert_false(module.poll_requested);
	conn->ring_in.ctl->posted = 1;
	udapl_rings_poll(&module);
	assert_true(module.poll_requested);
	assert_int_equal(module.empty_polls_left, 1);
	module.poll_requested = false;
	udapl_rings_poll(&module);
	assert_false(module.poll_requested);
	put("x");
	conn->ring_in.ctl->posted = 2;
	udapl_rings_poll(&module);
	assert_true(module.poll_requested);
}

CASE(empty_polls_lead_to_the_cq)
{
	module.empty_polls_left = module.empty_polls_limit = 3;
	udapl_progress();
	udapl_progress();
	assert_int_equal(cq_dequeues, 0);
	udapl_progress();
	assert_true(cq_dequeues > 0);
}

CASE(messages_restart_the_count_of_empty_polls)
{
	module.empty_polls_left = module.empty_polls_limit = 2;
	module.budget_left = 10;
	for (int i = 0; i < 3; i++) {
		udapl_progress();
		put("x");
		assert_int_equal(udapl_progress(), 1);
	}
	assert_int_equal(cq_dequeues, 0);
}

CASE(budget_of_messages_leads_to_the_cq)
{
	module.empty_polls_limit = 100;
	module.budget = module.budget_left = 2;
	for (int i = 0; i < 2; i++) {
		put("x");
		udapl_progress();
	}
	assert_int_equal(cq_dequeues, 0);
	put("x");
	udapl_progress();
	assert_true(cq_dequeues > 0);
}

CASE(all_modules_make_progress)
{
	mca_btl_udapl_module_t *both[] = { &module, &module };

	mca_btl_udapl_component.modules = both;
	mca_btl_udapl_component.num_modules = 2;
	module.empty_polls_left = module.empty_polls_limit = 2;
	module.budget_left = 100;
	for (int i = 0; i < UDAPL_RING_BATCH + 1; i++)
		put("x");
	assert_int_equal(udapl_progress(), UDAPL_RING_BATCH + 1);
}

UNIT_MAIN(NULL, NULL)
