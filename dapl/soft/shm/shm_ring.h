/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_ring.h - one direction of a connection in shared memory: slots of two cache lines each, from one
 * producer to one consumer, and a bulk area for payloads that a slot does not hold. In a rendezvous
 * the payload stays in the producer's memory, and the slot says where. shm_conn.c gives
 * the messages their meaning, shm_segment.c provides the memory. shared.h has the layout.
 *
 * Order. The producer fills a slot (and its bulk), then stores seq with release. The consumer loads
 * seq with acquire: so a message is complete when its slot is seen. seq is the number of the
 * message. So nothing is ever cleared, and a small message moves one cache line, the slot's first.
 * The consumer stores into struct ring_ack with release how many slots it is done with. The
 * producer loads that with acquire before it uses a slot or bulk again.
 *
 * Trust. The other side may store anything at any time. What it wrote is loaded once, into locals,
 * and checked there. The producer keeps its own record of which bulk belongs to which slot. All it
 * takes from the consumer is one counter, which must lie between its last value and what was sent.
 * So a hostile peer can corrupt its own messages, and nothing else. */
#ifndef SOFT_SHM_SHM_RING_H
#define SOFT_SHM_SHM_RING_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include "common/compiler.h"
#include "common/once.h"
#include "dapl/soft/shm/shared.h"
#include "dapl/soft/wire/message.h"

/* Makes the memory like new: its next user sees nothing of what both sides have left. Returns true if bulk
 * was used, too, and still has its pages. Both sides must have been trusted. */
bool ring_memory_clean(struct ring_memory *memory);

/* Private to the producer. */
struct ring_tx {
	struct ring_slot *slot;
	const struct ring_ack *ack;
	uint8_t *bulk;
	uint32_t tail, head;		/* slots used; slots done with as of the last look */
	uint32_t bulk_tail, bulk_head;	/* lines; counters that wrap, 0 when bulk is empty */
	uint16_t bulk_end[RING_SLOTS];	/* the low bits of bulk_tail behind each slot */
	uint32_t touched;		/* bytes of bulk used so far; no pages are behind them yet */
	bool fresh;			/* some bulk was used for the first time, which takes long */
	bool broken;			/* the consumer acknowledged what was not sent */
};

/* Private to the consumer. */
struct ring_rx {
	const struct ring_slot *slot;
	struct ring_ack *ack;
	const uint8_t *bulk;
	uint32_t head;			/* slots taken */
	uint32_t acked_head, acks;
	uint32_t bulk_unacked;		/* bytes consumed since the last acknowledgement, of bulk or
					 * by rendezvous */
	uint32_t touched;		/* bytes of bulk seen so far */
	bool fresh;			/* set by ring_look_fresh(): some bulk was seen for the first time */
};

static inline void ring_touch(uint32_t *touched, uint32_t end, bool *fresh)
{
	if (unlikely(end > *touched)) {
		*touched = end;
		*fresh = true;
	}
}

void ring_tx_init(struct ring_tx *tx, struct ring_memory *memory, unsigned direction);
void ring_rx_init(struct ring_rx *rx, struct ring_memory *memory, unsigned direction);

/* --- the producer ------------------------------------------------------------- */

/* Out of line: looks at the acknowledgement, then answers ring_room() anew. */
bool ring_room_again(struct ring_tx *tx, uint32_t length);

/* Returns true if a message with `length` bytes of payload may be put. */
static inline bool ring_room(struct ring_tx *tx, uint32_t length)
{
	if (likely(length <= RING_INLINE && tx->tail - tx->head < RING_SLOTS - RING_SPARE))
		return true;
	return ring_room_again(tx, length);
}

/* The payload is in its place: fills the rest of the slot and hands it to the consumer. */
static inline void ring_publish(struct ring_tx *tx, struct ring_slot *slot,
				const struct soft_message *message)
{
	slot->op = message->op;
	slot->flags = message->last * RING_IS_LAST | message->rndv * RING_IS_RNDV;
	slot->zero = 0;
	slot->length = message->length;
	slot->word = message->word;
	slot->delivered = message->delivered;
	slot->consumed = message->consumed;
	slot->to = message->to;
	tx->bulk_end[tx->tail % RING_SLOTS] = tx->bulk_tail;
	__atomic_store_n(&slot->seq, ++tx->tail, __ATOMIC_RELEASE);
}

/* Puts a message of at most RING_INLINE bytes. ring_room was true. */
static inline void ring_put_small(struct ring_tx *tx, const struct soft_message *message,
				  const void *payload)
{
	struct ring_slot *slot = &tx->slot[tx->tail % RING_SLOTS];

	copy_short(slot->data, payload, message->length);
	ring_publish(tx, slot, message);
}

/* Puts a message whose payload is `length` bytes of the pieces. Either ring_room() was true, or the
 * message is one of the last RING_SPARE messages and fits a slot. */
void ring_put(struct ring_tx *tx, const struct soft_message *message,
	      const struct iovec *piece, int pieces);

/* Puts a rendezvous message, with a payload of more than RING_CHUNK and up to RING_RNDV_MAX bytes.
 * ring_room() was true for a message without payload. */
static inline void ring_put_rndv(struct ring_tx *tx, const struct soft_message *message)
{
	struct ring_slot *slot = &tx->slot[tx->tail % RING_SLOTS];

	slot->address = message->address;
	ring_publish(tx, slot, message);
}

/* --- the consumer ------------------------------------------------------------- */

static inline bool ring_ready(const struct ring_rx *rx)
{
	return __atomic_load_n(&rx->slot[rx->head % RING_SLOTS].seq, __ATOMIC_ACQUIRE) ==
	       rx->head + 1;
}

/* Reads the message at the head; ring_ready() is true. Returns false if it is malformed. */
static inline bool ring_get(const struct ring_rx *rx, struct soft_message *message)
{
	const struct ring_slot *slot = &rx->slot[rx->head % RING_SLOTS];
	uint8_t flags = READ_ONCE(slot->flags);
	uint32_t at;

	message->op = READ_ONCE(slot->op);
	message->last = flags & RING_IS_LAST;
	message->rndv = false;
	message->length = READ_ONCE(slot->length);
	message->word = READ_ONCE(slot->word);
	message->delivered = READ_ONCE(slot->delivered);
	message->consumed = READ_ONCE(slot->consumed);
	message->to = READ_ONCE(slot->to);
	message->data = slot->data;
	if (likely(message->length <= RING_INLINE))
		return true;
	if (flags & RING_IS_RNDV) {
		message->rndv = true;
		message->address = READ_ONCE(slot->address);
		return message->length > RING_CHUNK && message->length <= RING_RNDV_MAX;
	}
	at = READ_ONCE(slot->at);
	if (message->length > RING_CHUNK || at > RING_BULK - message->length)
		return false;
	message->data = rx->bulk + at;
	return true;
}

/* Sets rx->fresh if the payload lies in bulk that was not used before. */
static inline void ring_look_fresh(struct ring_rx *rx, const struct soft_message *message)
{
	if (message->length > RING_INLINE && !message->rndv)
		ring_touch(&rx->touched, message->data - rx->bulk + message->length, &rx->fresh);
}

/* The message is done with: its slot and bulk may be acknowledged. */
static inline void ring_done(struct ring_rx *rx, const struct soft_message *message)
{
	rx->head++;
	if (message->length > RING_INLINE)
		rx->bulk_unacked += message->length;
}

/* Returns true if enough was consumed to acknowledge it. */
static inline bool ring_ack_due(const struct ring_rx *rx)
{
	return rx->head - rx->acked_head >= RING_ACK_SLOTS || rx->bulk_unacked >= RING_ACK_BULK;
}

void ring_send_ack(struct ring_rx *rx, uint32_t delivered, uint32_t consumed);

#endif
