/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - one direction of a pair of queue pairs in shared memory: slots of two cache lines
 * each, from one producer to one consumer, and a bulk area for what a slot does not hold. A
 * payload may also be lent: it stays in the producer's memory, and the slot says where.
 * Knows nothing of what the messages mean (pair.c) or of where the memory is from (shm.c).
 *
 * Order. The producer fills a slot (and its bulk), then stores seq with release; the
 * consumer loads seq with acquire: a slot seen is a message complete. seq is the number of
 * the message, so nothing is ever cleared, and a small message is one cache line on its
 * way, the slot's first. The consumer says in `told` how many slots it is done with, with
 * release; the producer loads that with acquire before it uses a slot or bulk again.
 *
 * Trust. The other side may store anything at any time. What it wrote is loaded once, into
 * locals, and checked there. The producer keeps its own record of what bulk belongs to
 * which slot; all it takes from the consumer is one counter, which must lie between the
 * last one and what was sent. A hostile peer can spoil its own messages, no more. */
#ifndef SOFT_RING_H
#define SOFT_RING_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include "common/trace.h"	/* likely, unlikely */
#include "dapl/soft/relaxed.h"

enum {
	RING_SLOTS = 128,
	RING_SPARE = 2,			/* slots that only a last message may use */
	RING_INLINE = 96,		/* payload in the slot itself; 32 of it in the first line */
	RING_CHUNK = 16 << 10,		/* most payload of a message, */
	RING_LENT = 1 << 20,		/* ... or of one whose payload is lent */
	RING_BULK = 256 << 10,
	RING_LINE = 64,
	RING_TELL_SLOTS = RING_SLOTS / 4, RING_TELL_BULK = RING_BULK / 4,
};

struct ring_slot {
	uint32_t seq;			/* written last */
	uint8_t op;
	uint8_t flags;			/* RING_IS_* */
	uint16_t zero;
	uint32_t length;		/* of the payload; more than RING_INLINE: in bulk, or lent */
	uint32_t word;
	uint32_t delivered, consumed;	/* acknowledgement that rides along */
	uint64_t to;
	union {
		uint8_t data[RING_INLINE];
		uint32_t at;		/* offset in bulk */
		uint64_t address;	/* lent: in the producer's memory */
	};
} __attribute__((aligned(128)));

enum { RING_IS_LAST = 1, RING_IS_LENT = 2 };

/* What the consumer tells the producer. */
struct ring_told {
	uint32_t count;			/* changes with every telling; written last */
	uint32_t head;			/* slots done with */
	uint32_t delivered, consumed;
	/* Of the payload lent at `head` the consumer can't get what begins here, and asks for it, for
	 * the so many-th time; in the other direction's, the producer has put it into aid so often. */
	uint32_t wanted_at, wanted, given;
} __attribute__((aligned(128)));

/* What the consumer of a direction says to its producer, and seldom changes. */
struct ring_door {
	uint64_t pd;			/* whose regions it may access (direct.c); 0: closed */
	uint32_t lends;			/* what it has lent itself is there to be copied */
	uint32_t call;			/* by this when something is in the ring (calls.h); 0: don't */
} __attribute__((aligned(64)));

/* What a producer says, who writes to the consumer's memory itself (gate.c). */
struct ring_writer {
	uint32_t maps;			/* regions, and stores into them; 0: it has not begun to */
	uint32_t within;		/* a write: permission to it holds till it's 0 again */
} __attribute__((aligned(128)));	/* lines are fetched in pairs */

/* Both directions, as they lie in the segment: 0 is from the initiator. Pages are used
 * from the front, and bulk only for what does not fit a slot. */
struct ring_memory {
	struct ring_told told[2];
	struct ring_door door[2];
	struct ring_writer writer[2];
	uint8_t pad[4096 - 2 * sizeof(struct ring_told) - 2 * sizeof(struct ring_door) -
		    2 * sizeof(struct ring_writer)];
	struct ring_slot slot[2][RING_SLOTS];
	uint8_t bulk[2][RING_BULK];
	uint8_t aid[2][RING_CHUNK];	/* what was wanted */
};

/* What both sides have left becomes like new: nothing of it is seen by who uses it next. True:
 * bulk was used, too, and still has its pages. Both sides were to be trusted. */
bool ring_memory_clean(struct ring_memory *memory);

/* The producer's own. */
struct ring_tx {
	struct ring_slot *slot;
	const struct ring_told *told;
	uint8_t *bulk;
	uint32_t tail, head;		/* slots used; done with, as last told */
	uint32_t bulk_tail, bulk_head;	/* bytes; counters that wrap, 0 when it's empty */
	uint32_t bulk_end[RING_SLOTS];	/* bulk_tail behind each slot */
	uint32_t touched;		/* of bulk; behind it no memory is yet */
	bool fresh;			/* some was used for the first time, which takes long */
	bool broken;			/* the consumer told nonsense */
};

/* The consumer's own. */
struct ring_rx {
	const struct ring_slot *slot;
	struct ring_told *told;
	const uint8_t *bulk;
	uint32_t head;			/* slots taken */
	uint32_t told_head, tells;
	uint32_t bulk_untold;		/* bytes taken since, of bulk or lent */
	uint32_t touched;		/* like the producer's, */
	bool fresh;			/* ... as far as ring_look_fresh was called */
};

struct ring_message {
	uint8_t op;
	bool last, lent;
	uint32_t length, word, delivered, consumed;
	uint64_t to;
	const uint8_t *data;		/* of the consumer: still in shared memory */
	uint64_t address;		/* instead, where it's lent */
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

/* Out of line: looks at what the consumer told, then answers ring_room anew. */
bool ring_room_again(struct ring_tx *tx, uint32_t length);

/* May a message with so much payload be put? */
static inline bool ring_room(struct ring_tx *tx, uint32_t length)
{
	if (likely(length <= RING_INLINE && tx->tail - tx->head < RING_SLOTS - RING_SPARE))
		return true;
	return ring_room_again(tx, length);
}

/* Copies all pieces to one place; what is behind it. */
static inline uint8_t *ring_gather(uint8_t *to, const struct iovec *piece, int pieces)
{
	for (int i = 0; i < pieces; to += piece[i++].iov_len)
		memcpy(to, piece[i].iov_base, piece[i].iov_len);
	return to;
}

/* The other way round. What follows what was taken. */
static inline const uint8_t *ring_scatter(const struct iovec *piece, int pieces, const uint8_t *from)
{
	for (int i = 0; i < pieces; from += piece[i++].iov_len)
		memcpy(piece[i].iov_base, from, piece[i].iov_len);
	return from;
}

/* Copies up to RING_INLINE bytes, and touches none beyond: a call of memcpy costs more. */
static inline void ring_copy(uint8_t *to, const uint8_t *from, uint32_t length)
{
	struct { uint64_t word[2]; } first, last;

	for (; unlikely(length > 32); to += 16, from += 16, length -= 16) {
		memcpy(&first, from, 16);
		memcpy(to, &first, 16);
	}
	if (length >= 16) {
		memcpy(&first, from, 16);
		memcpy(&last, from + length - 16, 16);
		memcpy(to, &first, 16);
		memcpy(to + length - 16, &last, 16);
	} else if (length >= 8) {
		memcpy(&first, from, 8);
		memcpy(&last, from + length - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + length - 8, &last, 8);
	} else {
		for (uint32_t i = 0; i < length; i++)
			to[i] = from[i];
	}
}

/* The payload is in its place: the rest of the slot, and it's the consumer's. */
static inline void ring_publish(struct ring_tx *tx, struct ring_slot *slot,
				const struct ring_message *message)
{
	slot->op = message->op;
	slot->flags = message->last * RING_IS_LAST | message->lent * RING_IS_LENT;
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
static inline void ring_put_small(struct ring_tx *tx, const struct ring_message *message,
				  const void *payload)
{
	struct ring_slot *slot = &tx->slot[tx->tail % RING_SLOTS];

	ring_copy(slot->data, payload, message->length);
	ring_publish(tx, slot, message);
}

/* Puts a message whose payload is `length` bytes of the pieces. ring_room was true, or it
 * is one of the RING_SPARE last messages and fits a slot. */
void ring_put(struct ring_tx *tx, const struct ring_message *message,
	      const struct iovec *piece, int pieces);

/* Puts a message whose payload is lent, of RING_CHUNK bytes to RING_LENT. There is room for one
 * without a payload. */
static inline void ring_lend(struct ring_tx *tx, const struct ring_message *message)
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

/* The message at the head, of which ring_ready is true. False: it's malformed. */
static inline bool ring_get(const struct ring_rx *rx, struct ring_message *message)
{
	const struct ring_slot *slot = &rx->slot[rx->head % RING_SLOTS];
	uint8_t flags = ONCE(slot->flags);
	uint32_t at;

	message->op = ONCE(slot->op);
	message->last = flags & RING_IS_LAST;
	message->lent = false;
	message->length = ONCE(slot->length);
	message->word = ONCE(slot->word);
	message->delivered = ONCE(slot->delivered);
	message->consumed = ONCE(slot->consumed);
	message->to = ONCE(slot->to);
	message->data = slot->data;
	if (likely(message->length <= RING_INLINE))
		return true;
	if (flags & RING_IS_LENT) {
		message->lent = true;
		message->address = ONCE(slot->address);
		return message->length > RING_CHUNK && message->length <= RING_LENT;
	}
	at = ONCE(slot->at);
	if (message->length > RING_CHUNK || at > RING_BULK - message->length)
		return false;
	message->data = rx->bulk + at;
	return true;
}

/* Takes note of it in rx->fresh if its payload lies where none did before. */
static inline void ring_look_fresh(struct ring_rx *rx, const struct ring_message *message)
{
	if (message->length > RING_INLINE && !message->lent)
		ring_touch(&rx->touched, message->data - rx->bulk + message->length, &rx->fresh);
}

/* The message is done with: its slot and bulk may be told. */
static inline void ring_done(struct ring_rx *rx, const struct ring_message *message)
{
	rx->head++;
	if (message->length > RING_INLINE)
		rx->bulk_untold += message->length;
}

/* So much was taken that the producer should know. */
static inline bool ring_tell_due(const struct ring_rx *rx)
{
	return rx->head - rx->told_head >= RING_TELL_SLOTS || rx->bulk_untold >= RING_TELL_BULK;
}

void ring_tell(struct ring_rx *rx, uint32_t delivered, uint32_t consumed);

#endif
