/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_ring.c - one ring: wrap-around of slots and of the bulk area, a full ring, a
 * concurrent producer and consumer, and a peer that stores invalid data. test_device.c tests
 * the messages.
 *
 * DAPL_TEST_SEED repeats a run, DAPL_TEST_MESSAGES is the number of messages. */
#include <sched.h>
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "test/unit/unit.h"
#include "test/variables.h"

static struct ring_memory *memory;
static struct ring_tx tx;
static struct ring_rx rx;
static uint32_t seed;
static uint8_t pattern[RING_CHUNK + 256];

UNIT_FIXTURE(fresh)
{
	memory = aligned_alloc(4096, sizeof *memory);
	memset(memory, 0, sizeof *memory);
	ring_tx_init(&tx, memory, 1);
	ring_rx_init(&rx, memory, 1);
	if (!seed) {
		seed = variable_seed("DAPL_TEST_SEED");
		print_message("DAPL_TEST_SEED=%u\n", seed);
	}
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = i * 167 >> 3;
}

UNIT_FIXTURE(gone) { free(memory); }

static uint32_t next(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 8;
}

/* Returns a length: mostly small, sometimes the largest. */
static uint32_t some_length(uint32_t *random)
{
	static const uint32_t below[] = { 1, 9, RING_INLINE + 1, RING_INLINE + 2, 200, 3000,
		RING_CHUNK, RING_CHUNK + 1 };

	return next(random) % below[next(random) % 8];
}

/* Puts message n in up to three pieces; its contents follow from n and the length. */
static void put(uint32_t n, uint32_t length)
{
	uint8_t *at = pattern + n % 256;
	struct iovec piece[3] = { { at, length / 3 }, { at + length / 3, length / 5 } };
	struct soft_message message = {
		.op = n % 200, .last = n & 1, .length = length, .word = n * 3, .to = n * 5ull << 20,
		.delivered = n + 1, .consumed = n + 2,
	};
	size_t two = piece[0].iov_len + piece[1].iov_len;

	piece[2] = (struct iovec){ at + two, length - two };
	ring_put(&tx, &message, piece, 3);
}

static void take(uint32_t n, uint32_t length)
{
	struct soft_message message;

	assert_true(ring_ready(&rx));
	assert_true(ring_get(&rx, &message));
	assert_int_equal(message.op, n % 200);
	assert_int_equal(message.last, n & 1);
	assert_int_equal(message.length, length);
	assert_int_equal(message.word, n * 3);
	assert_true(message.to == n * 5ull << 20);
	assert_int_equal(message.delivered, n + 1);
	assert_int_equal(message.consumed, n + 2);
	assert_memory_equal(message.data, pattern + n % 256, length);
	ring_done(&rx, &message);
}

#define T(name) UNIT_TEST_WITH(name, fresh, gone)

T(full_ring_has_room_for_two_control_messages)
{
	uint32_t n = 0;

	while (ring_room(&tx, 8))
		put(n++, 8);
	assert_int_equal(n, RING_SLOTS - RING_SPARE);
	put(n++, 8);
	put(n++, RING_INLINE);
	for (uint32_t i = 0; i < n; i++)
		take(i, i < n - 1 ? 8 : RING_INLINE);
	assert_false(ring_ready(&rx));
	assert_false(ring_room(&tx, 0));	/* the consumer has not reported its head */
	ring_send_ack(&rx, 0, 0);
	assert_true(ring_room(&tx, 0));
}

/* A producer with little outstanding stays in a part of the bulk area: the rest uses no
 * memory. */
T(light_traffic_uses_little_of_the_bulk_area)
{
	const uint8_t *end = memory->bulk[1];
	struct soft_message message;

	for (uint32_t n = 0; n < 1000; n++) {
		assert_true(ring_room(&tx, 4000));
		put(n, 4000);
		assert_true(ring_get(&rx, &message));
		if (message.data + message.length > end)
			end = message.data + message.length;
		take(n, 4000);
		if (ring_ack_due(&rx))
			ring_send_ack(&rx, 0, 0);
	}
	assert_true(end <= memory->bulk[1] + 2 * RING_ACK_BULK + RING_CHUNK);
}

/* One message is always outstanding, so that bulk never starts again at offset 0. Its counters wrap more than once:
 * 100 MiB go through it. */
T(bulk_is_given_back_however_much_was_sent)
{
	enum { LENGTH = RING_CHUNK - 100, COUNT = (100 << 20) / RING_CHUNK };

	put(0, LENGTH);
	for (uint32_t n = 1; n < COUNT; n++) {
		assert_true(ring_room(&tx, LENGTH));
		put(n, LENGTH);
		take(n - 1, LENGTH);
		if (ring_ack_due(&rx))
			ring_send_ack(&rx, 0, 0);
	}
	take(COUNT - 1, LENGTH);
	assert_true(tx.bulk_tail > UINT16_MAX);
}

/* --- concurrent producer and consumer ------------------------------------------------ */

static uint32_t messages = 300000;

static void *producer(void *arg)
{
	uint32_t in = seed;

	for (uint32_t n = 0; n < messages; n++) {
		uint32_t length = some_length(&in);

		while (!ring_room(&tx, length))
			sched_yield();
		put(n, length);
	}
	return arg;
}

T(producer_and_consumer_run_concurrently)
{
	uint32_t out = seed;
	pthread_t thread;

	messages = variable_number("DAPL_TEST_MESSAGES", messages);
	assert_int_equal(pthread_create(&thread, NULL, producer, NULL), 0);
	for (uint32_t n = 0; n < messages; n++) {
		while (!ring_ready(&rx))
			sched_yield();
		take(n, some_length(&out));
		if (ring_ack_due(&rx))
			ring_send_ack(&rx, 0, 0);
	}
	pthread_join(thread, NULL);
	assert_false(ring_ready(&rx));
}

/* --- hostile ---------------------------------------------------------------------------- */

T(message_outside_its_area_is_refused)
{
	enum { LEAST = RING_INLINE + 1 };	/* bytes; the shortest message in the bulk area */
	static const struct { uint32_t length, at; bool good; } bad[] = {
		{ RING_CHUNK, 0, true }, { RING_CHUNK, RING_BULK - RING_CHUNK, true },
		{ RING_CHUNK + 1, 0, false }, { UINT32_MAX, 0, false }, { 1u << 31, 0, false },
		{ RING_CHUNK, RING_BULK - RING_CHUNK + 1, false }, { LEAST, UINT32_MAX, false },
		{ LEAST, UINT32_MAX - RING_INLINE, false }, { LEAST, RING_BULK, false },
		{ LEAST, RING_BULK - LEAST, true }, { LEAST, RING_BULK - RING_INLINE, false },
	};
	struct ring_slot *slot = &memory->slot[1][0];
	struct soft_message message;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		slot->length = bad[i].length;
		slot->at = bad[i].at;
		slot->seq = 1;
		assert_true(ring_ready(&rx));
		assert_int_equal(ring_get(&rx, &message), bad[i].good);
		if (!bad[i].good)
			continue;
		assert_true(message.data >= memory->bulk[1]);
		assert_true(message.data + message.length <= memory->bulk[1] + RING_BULK);
	}
}

/* Only the next sequence number is a message. */
T(sequence_numbers_out_of_order_are_no_messages)
{
	static const uint32_t numbers[] = { 0, 2, RING_SLOTS, RING_SLOTS + 1, UINT32_MAX, 1u << 31 };

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		memory->slot[1][0].seq = numbers[i];
		assert_false(ring_ready(&rx));
	}
}

/* A head beyond the tail, or below the previous head, makes no room, and no later report does. */
T(invalid_head_makes_no_room)
{
	static const uint32_t heads[] = { RING_SLOTS - RING_SPARE + 1, UINT32_MAX, 1u << 31, 9 };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		gone(state);
		fresh(state);
		for (uint32_t n = 0; n < 10; n++)
			put(n, 8);
		memory->ack[1].head = 10;
		while (ring_room(&tx, 8))
			put(0, 8);
		assert_false(tx.broken);
		memory->ack[1].head = 10 + heads[i] - (heads[i] == 9 ? 10 : 0);
		assert_false(ring_room(&tx, 8));
		assert_true(tx.broken);
		memory->ack[1].head = 20;
		assert_false(ring_room(&tx, 8));
	}
}

/* A rendezvous takes a slot and no bulk, and its length is checked. */
T(rendezvous_takes_a_slot_and_no_bulk)
{
	static const uint32_t lengths[] = { RING_CHUNK + 1, RING_RNDV_MAX, RING_CHUNK, RING_RNDV_MAX + 1, UINT32_MAX };
	struct soft_message m = { .op = 3, .last = true, .rndv = true, .word = 7, .address = 0x123456789ab };

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct soft_message got;

		m.length = lengths[i];
		assert_true(ring_room(&tx, 0));
		ring_put_rndv(&tx, &m);
		assert_true(ring_ready(&rx));
		assert_int_equal(ring_get(&rx, &got), i < 2);
		if (i >= 2) {
			gone(state);
			fresh(state);
			continue;
		}
		assert_true(got.rndv && got.last && got.op == 3 && got.word == 7);
		assert_int_equal(got.length, lengths[i]);
		assert_true(got.address == m.address);
		ring_done(&rx, &got);
		assert_int_equal(tx.bulk_tail, 0);
		assert_int_equal(ring_ack_due(&rx), got.length + (i ? lengths[0] : 0) >= RING_ACK_BULK);
	}
}

/* A ring that is used again shows nothing of its previous use. */
T(cleaned_ring_is_empty)
{
	static const uint32_t messages[] = { 0, 1, 2, RING_SLOTS - 1, RING_SLOTS, 300 };

	for (unsigned i = 0; i < 2 * sizeof messages / sizeof *messages; i++) {
		uint32_t count = messages[i / 2], length = i % 2 ? RING_INLINE + 1 : RING_INLINE;

		ring_tx_init(&tx, memory, i % 2);
		ring_rx_init(&rx, memory, i % 2);
		assert_false(ring_ready(&rx));
		for (uint32_t n = 0; n < count; n++) {
			assert_true(ring_room(&tx, length));
			put(n, length);
			take(n, length);
			assert_false(ring_ready(&rx));
			ring_send_ack(&rx, n, n);
		}
		assert_int_equal(ring_memory_clean(memory), count && length > RING_INLINE);
		for (int direction = 0; direction < 2; direction++) {
			assert_int_equal(memory->ack[direction].count, 0);
			assert_int_equal(memory->ack[direction].head, 0);
			for (int slot = 0; slot < RING_SLOTS; slot++)
				assert_int_equal(memory->slot[direction][slot].seq, 0);
		}
	}
}

UNIT_MAIN(NULL, NULL)
