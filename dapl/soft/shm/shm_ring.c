/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_ring.c - puts messages into shared memory and takes them out. ring.h says in which order, and
 * which side trusts what. No system calls, no waiting. */
#include "dapl/soft/shm/shm_ring.h"
#include <stddef.h>

_Static_assert(sizeof(struct ring_slot) == 2 * RING_LINE, "a slot is two cache lines");
_Static_assert(offsetof(struct ring_memory, slot) == 4096, "slots begin a page");
_Static_assert(RING_BULK / RING_LINE < UINT16_MAX, "bulk_end tells all lines of bulk from each other");

void ring_tx_init(struct ring_tx *tx, struct ring_memory *memory, unsigned direction)
{
	memset(tx, 0, sizeof *tx);
	tx->slot = memory->slot[direction];
	tx->ack = &memory->ack[direction];
	tx->bulk = memory->bulk[direction];
}

void ring_rx_init(struct ring_rx *rx, struct ring_memory *memory, unsigned direction)
{
	memset(rx, 0, sizeof *rx);
	rx->slot = memory->slot[direction];
	rx->ack = &memory->ack[direction];
	rx->bulk = memory->bulk[direction];
}

/* Slots are used from the first on, so those behind an unused one are untouched. */
bool ring_memory_clean(struct ring_memory *memory)
{
	bool bulk = false;

	memset(memory->ack, 0, sizeof memory->ack);
	memset(memory->grant, 0, sizeof memory->grant);
	memset(memory->writer, 0, sizeof memory->writer);
	for (int direction = 0; direction < 2; direction++) {
		struct ring_slot *slot = memory->slot[direction];

		for (int i = 0; i < RING_SLOTS && slot[i].seq; i++) {
			bulk |= slot[i].length > RING_INLINE;
			slot[i].seq = 0;
		}
	}
	return bulk;
}

enum { BULK_LINES = RING_BULK / RING_LINE };

static uint32_t lines(uint32_t length)
{
	return (length + RING_LINE - 1) / RING_LINE;
}

/* Lines at the end of the area that are skipped, so that a payload is contiguous. */
static uint32_t skipped(const struct ring_tx *tx, uint32_t size)
{
	uint32_t at = tx->bulk_tail % BULK_LINES;

	return at + size > BULK_LINES ? BULK_LINES - at : 0;
}

static bool bulk_room(const struct ring_tx *tx, uint32_t size)
{
	return tx->bulk_tail + skipped(tx, size) + size - tx->bulk_head <= BULK_LINES;
}

/* Reads the acknowledgement. When all of bulk was consumed, it starts again at offset 0, so that
 * light traffic stays in the same pages and in the cache. */
static void read_ack(struct ring_tx *tx)
{
	uint32_t head = __atomic_load_n(&tx->ack->head, __ATOMIC_ACQUIRE);

	if (head - tx->head > tx->tail - tx->head) {
		tx->broken = true;
		return;
	}
	if (head != tx->head)
		tx->bulk_head = tx->bulk_tail -
				(uint16_t)(tx->bulk_tail - tx->bulk_end[(head - 1) % RING_SLOTS]);
	tx->head = head;
	if (head == tx->tail)
		tx->bulk_head = tx->bulk_tail = 0;
}

bool ring_room_again(struct ring_tx *tx, uint32_t length)
{
	uint32_t size = length > RING_INLINE ? lines(length) : 0;

	if (size && tx->bulk_tail - tx->bulk_head > RING_ACK_BULK / RING_LINE)
		read_ack(tx);
	if (tx->tail - tx->head < RING_SLOTS - RING_SPARE && bulk_room(tx, size))
		return !tx->broken;
	read_ack(tx);
	return !tx->broken && tx->tail - tx->head < RING_SLOTS - RING_SPARE &&
	       bulk_room(tx, size);
}

/* Allocates bulk for a payload that a slot does not hold. */
static uint8_t *bulk_take(struct ring_tx *tx, struct ring_slot *slot, uint32_t length)
{
	uint32_t size = lines(length), at;

	tx->bulk_tail += skipped(tx, size);
	at = tx->bulk_tail % BULK_LINES * RING_LINE;
	tx->bulk_tail += size;
	ring_touch(&tx->touched, at + size * RING_LINE, &tx->fresh);
	slot->at = at;
	return tx->bulk + at;
}

void ring_put(struct ring_tx *tx, const struct soft_message *message,
	      const struct iovec *piece, int pieces)
{
	struct ring_slot *slot = &tx->slot[tx->tail % RING_SLOTS];
	uint8_t *to = slot->data;

	if (message->length > RING_INLINE)
		to = bulk_take(tx, slot, message->length);
	copy_gather(to, piece, pieces);
	ring_publish(tx, slot, message);
}

void ring_send_ack(struct ring_rx *rx, uint32_t delivered, uint32_t consumed)
{
	struct ring_ack *ack = rx->ack;

	__atomic_store_n(&ack->delivered, delivered, __ATOMIC_RELAXED);
	__atomic_store_n(&ack->consumed, consumed, __ATOMIC_RELAXED);
	__atomic_store_n(&ack->head, rx->head, __ATOMIC_RELEASE);
	__atomic_store_n(&ack->count, ++rx->acks, __ATOMIC_RELEASE);
	rx->acked_head = rx->head;
	rx->bulk_unacked = 0;
}
