/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange.h - what both sides of a measurement say to each other: commands, answers, and data that can
 * be recognised. The client sends a command, the server answers when it is ready, by the endpoint that the
 * command came by, then both do their part. All receives of a link land in one place, so neither side
 * sends anything the other doesn't wait for. */
#ifndef DATPERF_EXCHANGE_H
#define DATPERF_EXCHANGE_H
#include "link.h"

enum {
	CREDIT = LINK_DEPTH / 2 /* messages of a stream that an answer is for */
};

enum op {
	OP_SEND_CHECK,
	OP_TARGET_CHECK,
	OP_PING_SEND,
	OP_PING_WRITE,
	OP_PING_IMMED,
	OP_STREAM,
	OP_CONNECT,
	OP_SYNC,
	OP_BYE
};

struct command { /* network byte order on the way */
	uint32_t op, count;
	uint64_t size, seed;
	uint32_t wake, reserved;
};
struct answer {
	uint64_t bad; /* 1 + the first byte that differs, or 0 */
};

/* The byte `i` of data differs from one `seed` to another. */
void exchange_fill(char *to, size_t size, uint64_t seed);
/* Returns 1 + the first byte that differs, or 0. */
uint64_t exchange_differs(const char *got, size_t size, uint64_t seed);

/* When no other request is under way: `out` has the message. */
void exchange_send(struct link *l, const void *message, size_t size);
/* Fails when the next message has another size. */
void exchange_receive(struct link *l, size_t expected);

/* The last byte of a write tells that it is whole. Round i has this value, never that of the round
 * before, and never the 0 that stands there at first. */
void exchange_write_marked(struct link *l, size_t size, uint32_t round);
void exchange_clear_mark(struct link *l, size_t size);
/* Spins until the peer's write of the round is there. */
void exchange_spin_mark(struct link *l, size_t size, uint32_t round);

#endif
