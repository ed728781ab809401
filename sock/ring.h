/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - one direction of a connection in shared memory: a ring of bytes with one sender and one receiver.
 *
 * The ring carries the stream during an epoch. The sender begins an epoch and tells in it how many bytes the
 * direction had sent over TCP before. The sender ends an epoch by revoking what the receiver has not claimed: those
 * bytes belong to the sender again, which sends them over TCP. So after an epoch the ring holds nothing, and
 * neither side waits. The next epoch begins when the receiver has acknowledged the end of the last one.
 *
 * The receiver claims bytes before it copies them. A claim and a revocation change the same word atomically, so
 * each byte is either claimed or revoked.
 *
 * Positions count the bytes that the ring has carried; they go on from epoch to epoch. `size` and `base` change only
 * while the ring is empty. Each side keeps private copies of what it writes, and checks what the peer writes. */
#ifndef SOCK_RING_H
#define SOCK_RING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RING_REVOKED (1ull << 63)

enum {
	RING_LINE = 128,     /* bytes: two cache lines, since processors fetch them in pairs */
	RING_MIN = 64 << 10, /* bytes at the beginning; small, so that few pages and little cache are touched */
};

/* In shared memory. All members are atomic. */
struct ring {
	/* written by the sender */
	_Alignas(RING_LINE) uint64_t tail; /* the position after the last byte */
	uint64_t start;                    /* bytes sent over TCP before this epoch */
	uint64_t base;                     /* the position that is at offset 0 */
	uint32_t size;                     /* bytes, a power of two */
	uint32_t epoch;                    /* number of this epoch; 0: none yet */
	/* written by the receiver; `claim` by both */
	_Alignas(RING_LINE) uint64_t claim; /* the first position that is not claimed, and RING_REVOKED */
	uint64_t head;                      /* the first position that is not free */
	uint32_t ack;                       /* the last epoch that the receiver has left */
	/* wake-ups that one side asks of the other */
	_Alignas(RING_LINE) uint32_t asleep; /* the receiver waits for bytes */
	uint32_t full;                       /* the sender waits for room */
};

/* The sender's private view. */
struct ring_sender {
	struct ring *ring;
	char *data;
	uint64_t tail, head; /* head: as last seen */
	uint64_t base;
	uint32_t size, max; /* bytes; max: the memory there is */
	uint32_t epoch;
	bool active; /* an epoch goes on */
	uint32_t wish; /* bytes; set by the caller: the size from the time on when the ring is empty; 0: as it is */
};

/* The receiver's private view. */
struct ring_receiver {
	struct ring *ring;
	const char *data;
	uint64_t claim;
	uint32_t max;
	uint32_t epoch;
	bool active;
};

void ring_sender_init(struct ring_sender *s, struct ring *ring, char *data, uint32_t max);
void ring_receiver_init(struct ring_receiver *r, struct ring *ring, const char *data, uint32_t max);

/* Returns whether the receiver has left the last epoch. */
bool ring_can_begin(const struct ring_sender *s);
void ring_begin(struct ring_sender *s, uint64_t sent_over_tcp);
/* Returns the bytes that fit. A head that cannot be is an error of the peer: returns 0 and sets *broken. */
size_t ring_room(struct ring_sender *s, bool *broken);
/* Appends up to `length` bytes of the vector from `offset` on, and returns how many. */
size_t ring_write(struct ring_sender *s, const struct iovec *iov, int count, size_t offset, size_t length,
		  bool *broken);
/* Ends the epoch. Stores where the unclaimed bytes are, in one or two pieces, and returns their number. They are valid
 * until the next epoch. */
size_t ring_revoke(struct ring_sender *s, struct iovec pieces[2], bool *broken);

/* Returns whether there is an epoch that the receiver has not entered. */
bool ring_has_epoch(const struct ring_receiver *r);
/* Enters it. Returns the bytes that precede it on TCP. */
uint64_t ring_enter(struct ring_receiver *r, bool *broken);
bool ring_is_revoked(const struct ring_receiver *r);
/* Leaves an epoch that was revoked. A claim that is not the receiver's is an error of the peer. */
void ring_leave(struct ring_receiver *r, bool *broken);
/* Returns the bytes that can be read, 0 if they were revoked. */
size_t ring_available(const struct ring_receiver *r, bool *broken);
/* Copies up to `length` bytes to the vector from `offset` on; without a vector, drops them. Returns how many. */
size_t ring_read(struct ring_receiver *r, const struct iovec *iov, int count, size_t offset, size_t length,
		 bool *broken);
/* Copies without taking them. */
size_t ring_peek(const struct ring_receiver *r, const struct iovec *iov, int count, size_t offset, size_t length,
		 bool *broken);

/* Whether a third of the ring is free, which TCP calls writable, too. */
bool ring_is_writable(const struct ring_sender *s);

/* A side that wants a wake-up sets its flag, and looks at the ring once more before it sleeps. */
void ring_ask(uint32_t *flag);
/* After a change: returns whether the other side wants a wake-up, and clears the flag. */
bool ring_take_wish(uint32_t *flag);
/* Returns whether the sender wants a wake-up and there is room for half of the ring: for less it would be woken often.
 */
bool ring_take_room_wish(const struct ring_receiver *r);

#endif
