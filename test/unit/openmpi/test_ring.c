/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ring.c - the layout of messages in an eager ring: where a message lies, when a lap ends, how many slots are
 * free, and what a writer stores. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/ring.h"
#include "test/unit/unit.h"

enum { SIZE = 4096, LARGEST = 1152, LONGEST = LARGEST - UDAPL_MESSAGE_OVERHEAD };

static const struct udapl_ring_shape shape = { .size = SIZE, .largest = LARGEST };
static _Alignas(UDAPL_CACHE_LINE) char memory[SIZE + sizeof(struct udapl_ring_ctl)];

/* The outgoing ring of the connection: this memory, written by RDMA. */
static struct udapl_ring_out *ring_in_memory(void)
{
	struct udapl_ring_out *r = &conn->ring_out;

	memset(memory, 0, sizeof memory);
	r->offer = (struct udapl_ring_offer){ .address = (uintptr_t)memory, .rmr_context = 77, .shape = shape };
	r->cursor = (struct udapl_ring_cursor){ .end = SIZE, .lap = 1 };
	r->free_slots = SIZE / UDAPL_RING_SLOT;
	r->max_payload = LONGEST;
	return r;
}

/* The same, mapped. */
static struct udapl_ring_out *mapped_ring(void)
{
	struct udapl_ring_out *r = ring_in_memory();

	r->buffer = memory;
	r->ctl = (struct udapl_ring_ctl *)(memory + SIZE);
	return r;
}

static struct udapl_tail tail_at(uint32_t end)
{
	struct udapl_tail tail;

	memcpy(&tail, memory + end - sizeof tail, sizeof tail);
	return tail;
}

/* --- layout ------------------------------------------------------------------------------------ */

static void check_extent(uint32_t end, uint32_t length)
{
	struct udapl_extent at = udapl_ring_extent(end, length);

	if (at.size % UDAPL_RING_SLOT || at.size < length + sizeof(struct udapl_tail))
		fail_msg("%u bytes before %u take %u", length, end, at.size);
	if (at.begin < end - at.size || at.begin + length + sizeof(struct udapl_tail) > end)
		fail_msg("%u bytes before %u begin at %u", length, end, at.begin);
	if (at.size > ((length + UDAPL_MESSAGE_OVERHEAD + UDAPL_CACHE_LINE - 1) & ~(UDAPL_CACHE_LINE - 1u)))
		fail_msg("%u bytes before %u take %u: too many", length, end, at.size);
	if (end - at.begin - length > UDAPL_TAIL_ROOM)
		fail_msg("%u bytes before %u end too far before the tail for a fragment", length, end);
}

UNIT_TEST(message_lies_within_its_slots_and_overhead)
{
	for (uint32_t end = 2048; end <= 2048 + UDAPL_CACHE_LINE; end += UDAPL_RING_SLOT)
		for (uint32_t length = 0; length <= LONGEST; length++)
			check_extent(end, length);
}

UNIT_TEST(long_message_begins_a_header_before_a_line)
{
	struct udapl_extent at;

	for (uint32_t end = 2048; end <= 2048 + UDAPL_CACHE_LINE; end += UDAPL_RING_SLOT) {
		for (uint32_t length = UDAPL_ALIGN_ABOVE + 1; length <= LONGEST; length++) {
			at = udapl_ring_extent(end, length);
			assert_int_equal((at.begin + UDAPL_ALIGN_SKIP) % UDAPL_CACHE_LINE, 0);
			assert_int_equal((end - at.size) % UDAPL_CACHE_LINE, 0);
		}
		assert_int_equal(udapl_ring_extent(end, UDAPL_ALIGN_ABOVE).begin % 8, 0);
	}
}

UNIT_TEST(slot_holds_24_bytes)
{
	assert_true(udapl_ring_is_slot(0));
	assert_true(udapl_ring_is_slot(24));
	assert_false(udapl_ring_is_slot(25));
	assert_int_equal(udapl_ring_extent(SIZE, 24).size, UDAPL_RING_SLOT);
	assert_int_equal(udapl_ring_extent(SIZE, 25).size, 2 * UDAPL_RING_SLOT);
}

/* --- laps -------------------------------------------------------------------------------------- */

/* The largest message always fits in front of the cursor, so no message crosses the bottom. */
UNIT_TEST(lap_ends_where_the_largest_message_no_longer_fits)
{
	struct udapl_ring_cursor at = { .end = LARGEST + UDAPL_RING_SLOT, .lap = 1 };

	assert_int_equal(udapl_ring_advance(&shape, &at, UDAPL_RING_SLOT), 1);
	assert_int_equal(at.end, LARGEST);
	assert_int_equal(at.lap, 1);
	assert_int_equal(udapl_ring_advance(&shape, &at, UDAPL_RING_SLOT), LARGEST / UDAPL_RING_SLOT);
	assert_int_equal(at.end, SIZE);
	assert_int_equal(at.lap, 2);
}

UNIT_TEST(lap_takes_all_slots_of_the_ring)
{
	static const uint32_t sizes[] = { 32, 64, 1152, 96, 32, 608 };
	struct udapl_ring_cursor at = { .end = SIZE, .lap = 1 };
	uint32_t slots = 0;

	for (int i = 0, laps = 0; laps < 50; i++) {
		uint8_t lap = at.lap;

		assert_true(at.end >= LARGEST);
		slots += udapl_ring_advance(&shape, &at, sizes[i % 6]);
		if (at.lap == lap)
			continue;
		laps++;
		assert_int_equal(at.end, SIZE);
		assert_int_equal(slots, laps * SIZE / UDAPL_RING_SLOT);
	}
}

/* Cleared memory has lap 0, so no message has. */
UNIT_TEST(lap_after_255_is_1)
{
	struct udapl_ring_cursor at = { .end = LARGEST, .lap = 254 };

	udapl_ring_advance(&shape, &at, UDAPL_RING_SLOT);
	assert_int_equal(at.lap, 255);
	at.end = LARGEST;
	udapl_ring_advance(&shape, &at, UDAPL_RING_SLOT);
	assert_int_equal(at.lap, 1);
}

/* --- free slots -------------------------------------------------------------------------------- */

UNIT_TEST_WITH(message_needs_its_slots_and_those_left_at_the_bottom, btl_begin, btl_end)
{
	struct udapl_ring_out *r = ring_in_memory();

	r->free_slots = 1;
	assert_true(udapl_ring_has_room(conn, 24));
	assert_false(udapl_ring_has_room(conn, 25));
	r->cursor.end = LARGEST;	/* the last message of the lap takes everything below */
	assert_false(udapl_ring_has_room(conn, 24));
	r->free_slots = LARGEST / UDAPL_RING_SLOT - 1;
	assert_false(udapl_ring_has_room(conn, 24));
	r->free_slots++;
	assert_true(udapl_ring_has_room(conn, 24));
}

UNIT_TEST_WITH(too_long_a_message_finds_no_room, btl_begin, btl_end)
{
	ring_in_memory();
	assert_true(udapl_ring_has_room(conn, LONGEST));
	assert_false(udapl_ring_has_room(conn, LONGEST + 1));
	assert_false(udapl_ring_has_room(conn, (size_t)1 << 32));
	conn->ring_out.max_payload = 0;
	assert_false(udapl_ring_has_room(conn, 1));
}

UNIT_TEST_WITH(mapped_ring_shows_what_the_peer_released, btl_begin, btl_end)
{
	struct udapl_ring_out *r = mapped_ring();

	r->free_slots = 0;
	r->consumed_seen = UINT32_MAX - 1;	/* the count wraps */
	r->ctl->consumed = UINT32_MAX - 1;
	assert_false(udapl_ring_has_room(conn, 24));
	r->ctl->consumed = 1;
	assert_true(udapl_ring_has_room(conn, 24));
	assert_int_equal(r->free_slots, 3);
	r->free_slots = 0;
	assert_false(udapl_ring_has_room(conn, 24));	/* they are counted once */
}

UNIT_TEST_WITH(mapped_ring_takes_no_rdma, btl_begin, btl_end)
{
	ring_in_memory();
	assert_true(udapl_ring_takes_posts(conn, 24));
	mapped_ring();
	assert_false(udapl_ring_takes_posts(conn, 24));
}

/* --- credits ----------------------------------------------------------------------------------- */

UNIT_TEST_WITH(credits_are_due_at_half_of_either_kind, btl_begin, btl_end)
{
	conn->ring_in.shape = shape;
	assert_false(udapl_credits_due(conn));
	conn->credits_to_return = mca_btl_udapl_component.credits / 2 - 1;
	assert_false(udapl_credits_due(conn));
	conn->credits_to_return++;
	assert_true(udapl_credits_due(conn));
	conn->credits_to_return = 0;
	conn->ring_in.slots_to_return = SIZE / UDAPL_RING_SLOT / 2 - 1;
	assert_false(udapl_credits_due(conn));
	conn->ring_in.slots_to_return++;
	assert_true(udapl_credits_due(conn));
}

/* Without an incoming ring there is nothing to report, although nothing is half of nothing. */
UNIT_TEST_WITH(no_slots_are_due_without_a_ring, btl_begin, btl_end)
{
	assert_false(udapl_ring_credits_due(conn, UDAPL_CREDIT_ALONE));
}

UNIT_TEST_WITH(count_is_fetched_and_cleared, btl_begin, btl_end)
{
	volatile int32_t n = 5, none = 0;

	assert_int_equal(udapl_fetch_and_clear(&n), 5);
	assert_int_equal(n, 0);
	assert_int_equal(udapl_fetch_and_clear(&none), 0);
	opal_uses_threads = true;
	n = 3;
	assert_int_equal(udapl_fetch_and_clear(&n), 3);
	assert_int_equal(n, 0);
}

/* --- writing ----------------------------------------------------------------------------------- */

UNIT_TEST_WITH(store_writes_the_tail_and_takes_the_slots, btl_begin, btl_end)
{
	struct udapl_ring_out *r = mapped_ring();
	struct udapl_tail tail = { .credits = 3, .eager_credits = 4, .length = 24, .tag = TAG };

	udapl_ring_store(r, tail, UDAPL_RING_SLOT);
	assert_int_equal(tail_at(SIZE).length, 24);
	assert_int_equal(tail_at(SIZE).credits, 3);
	assert_int_equal(tail_at(SIZE).eager_credits, 4);
	assert_int_equal(tail_at(SIZE).tag, TAG);
	assert_int_equal(tail_at(SIZE).lap, 1);
	assert_int_equal(r->cursor.end, SIZE - UDAPL_RING_SLOT);
	assert_int_equal(r->free_slots, SIZE / UDAPL_RING_SLOT - 1);
}

/* Payload of the previous lap may look like a tail of this one: the reader would take it for a message. */
UNIT_TEST_WITH(store_clears_what_looks_like_the_next_tail, btl_begin, btl_end)
{
	struct udapl_ring_out *r = mapped_ring();

	memset(memory, 1, SIZE);
	udapl_ring_store(r, (struct udapl_tail){ .length = 24 }, UDAPL_RING_SLOT);
	assert_int_equal(tail_at(r->cursor.end).lap, 0);
}

UNIT_TEST_WITH(store_leaves_other_data_of_the_previous_lap, btl_begin, btl_end)
{
	struct udapl_ring_out *r = mapped_ring();

	memset(memory, 9, SIZE);
	udapl_ring_store(r, (struct udapl_tail){ .length = 24 }, UDAPL_RING_SLOT);
	assert_int_equal(tail_at(r->cursor.end).lap, 9);
}

/* The next tail is that of the next lap: a tail of this lap at the top is no message of it. */
UNIT_TEST_WITH(store_at_the_end_of_a_lap_looks_for_the_next_lap, btl_begin, btl_end)
{
	struct udapl_ring_out *r = mapped_ring();
	struct udapl_tail next = { .lap = 2 };

	r->cursor.end = LARGEST;
	memcpy(memory + SIZE - sizeof next, &next, sizeof next);
	udapl_ring_store(r, (struct udapl_tail){ .length = 24 }, UDAPL_RING_SLOT);
	assert_int_equal(tail_at(LARGEST).lap, 1);
	assert_int_equal(tail_at(SIZE).lap, 0);
	assert_int_equal(r->cursor.lap, 2);
}

/* The write ends with the tail, and does not touch what lies before the payload. */
static void check_write(uint32_t length)
{
	struct udapl_ring_out *r = ring_in_memory();
	struct udapl_extent at = udapl_ring_extent(SIZE, length);
	char payload[LARGEST + UDAPL_TAIL_ROOM];
	struct udapl_work work = { UDAPL_SEND, conn };

	memset(payload, 'p', sizeof payload);
	num_posts = 0;
	assert_int_equal(udapl_ring_write(conn, payload, 5, (struct udapl_tail){ .length = length, .tag = TAG },
					  &work, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_int_equal(posts[0].remote.virtual_address, (uintptr_t)memory + at.begin);
	assert_int_equal(posts[0].remote.virtual_address + posts[0].remote.segment_length, (uintptr_t)memory + SIZE);
	assert_int_equal(posts[0].local.segment_length, posts[0].remote.segment_length);
	assert_int_equal(tail_at(SIZE).length, length);
	assert_int_equal(tail_at(SIZE).lap, 1);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(memory[at.begin + i], 'p');
	assert_true(at.begin == 0 || memory[at.begin - 1] == 0);
	assert_int_equal(r->free_slots, (SIZE - at.size) / UDAPL_RING_SLOT);
	assert_int_equal(r->cursor.end, SIZE - at.size);
}

UNIT_TEST_WITH(rdma_write_ends_with_the_tail, btl_begin, btl_end)
{
	static const uint32_t lengths[] = { 0, 1, 23, 24, 25, 512, 513, 600, LONGEST };

	writes_arrive = true;
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
		check_write(lengths[i]);
	assert_int_equal(posts[0].remote.rmr_context, 77);
	assert_int_equal(posts[0].local.lmr_context, 5);
	assert_int_equal(posts[0].flags, DAT_COMPLETION_SUPPRESS_FLAG);
}

UNIT_MAIN(NULL, NULL)
