/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* message.h - a message between two devices of this library, whatever carries it, and copies of its payload. A ring
 * (shm/shm_ring.h) takes it whole; as FPDUs it becomes segments. */
#ifndef SOFT_WIRE_MESSAGE_H
#define SOFT_WIRE_MESSAGE_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include "common/compiler.h"

struct soft_message {
	uint8_t op;
	bool last, rndv;
	uint32_t length, word, delivered, consumed;
	uint64_t to;
	const uint8_t *data;		/* for the receiver: still in shared memory, if it came by a ring */
	uint64_t address;		/* of a rendezvous: the payload in the producer's memory */
};

/* Copies all pieces to one place. Returns the byte behind it. */
static inline uint8_t *copy_gather(uint8_t *to, const struct iovec *piece, int pieces)
{
	for (int i = 0; i < pieces; to += piece[i++].iov_len)
		memcpy(to, piece[i].iov_base, piece[i].iov_len);
	return to;
}

/* Copies from one place to all pieces. Returns the byte behind what was copied. */
static inline const uint8_t *copy_scatter(const struct iovec *piece, int pieces, const uint8_t *from)
{
	for (int i = 0; i < pieces; from += piece[i++].iov_len)
		memcpy(piece[i].iov_base, from, piece[i].iov_len);
	return from;
}

/* Copies a short payload and touches nothing beyond it: a call of memcpy costs more. */
static inline void copy_short(uint8_t *to, const uint8_t *from, uint32_t length)
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

#endif
