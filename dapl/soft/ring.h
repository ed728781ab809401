/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - one direction of a pair of queue pairs in shared memory: slots of a cache line
 * each, from one producer to one consumer, and a bulk area for what a slot does not hold.
 * Knows nothing of what the messages mean (pair.c) or of where the memory is from (shm.c).
 *
 * Order. The producer fills a slot (and its bulk), then stores seq with release; the
 * consumer loads seq with acquire: a slot seen is a message complete. seq is the number of
 * the message, so nothing is ever cleared, and a small message is one cache line on its
 * way. The consumer says in `told` how many slots it is done with, with release; the
 * producer loads that with acquire before it uses a slot or bulk again.
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

enum {
	RING_SLOTS = 128,
	RING_SPARE = 2,			/* slots that only a last message may use */
	RING_INLINE = 32,		/* payload in the slot itself */
	RING_CHUNK = 16 << 10,		/* most payload of a message */
	RING_BULK = 256 << 10,
	RING_LINE = 64,
	RING_TELL_SLOTS = RING_SLOTS / 4, RING_TELL_BULK = RING_BULK / 4,
};

struct ring_slot {
	uint32_t seq;			/* written last */
	uint8_t op;
	uint8_t last;
	uint16_t zero;
	uint32_t length;		/* of the payload; more than RING_INLINE: in bulk */
	uint32_t word;
	uint32_t delivered, consumed;	/* acknowledgement that rides along */
	uint64_t to;
	union {
		uint8_t data[RING_INLINE];
		uint32_t at;		/* offset in bulk */
	};
} __attribute__((aligned(64)));

/* What the consumer tells the producer. */
struct ring_told {
	uint32_t count;			/* changes with every telling; written last */
	uint32_t head;			/* slots done with */
	uint32_t delivered, consumed;
} __attribute__((aligned(128)));

/* Both directions, as they lie in the segment: 0 is from the initiator. Pages are used
 * from the front, and bulk only for what does not fit a slot. */
struct ring_memory {
	struct ring_told told[2];
	uint8_t pad[4096 - 2 * sizeof(struct ring_told)];
	struct ring_slot slot[2][RING_SLOTS];
	uint8_t bulk[2][RING_BULK];
};

/* The producer's own. */
struct ring_tx {
	struct ring_slot *slot;
	const struct ring_told *told;
	uint8_t *bulk;
	uint32_t tail, head;		/* slots used; done with, as last told */
	uint32_t bulk_tail, bulk_head;	/* bytes; counters that wrap, 0 when it's empty */
	uint32_t bulk_end[RING_SLOTS];	/* bulk_tail behind each slot */
	bool broken;			/* the consumer told nonsense */
};

/* The consumer's own. */
struct ring_rx {
	const struct ring_slot *slot;
	struct ring_told *told;
	const uint8_t *bulk;
	uint32_t head;			/* slots taken */
	uint32_t told_head, tells;
	uint32_t bulk_untold;		/* bytes taken since */
};

struct ring_message {
	uint8_t op;
	bool last;
	uint32_t length, word, delivered, consumed;
	uint64_t to;
	const uint8_t *data;		/* of the consumer: still in shared memory */
};

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

/* Puts a message whose payload is `length` bytes of the pieces. ring_room was true, or it
 * is one of the RING_SPARE last messages and fits a slot. */
void ring_put(struct ring_tx *tx, const struct ring_message *message,
	      const struct iovec *piece, int pieces);

/* --- the consumer ------------------------------------------------------------- */

static inline bool ring_ready(const struct ring_rx *rx)
{
	return __atomic_load_n(&rx->slot[rx->head % RING_SLOTS].seq, __ATOMIC_ACQUIRE) ==
	       rx->head + 1;
}

/* The message at the head, of which ring_ready is true. False: it's malformed. */
bool ring_get(const struct ring_rx *rx, struct ring_message *message);

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
