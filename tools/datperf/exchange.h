/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange.h - the messages between the two sides of a measurement: commands, answers, and data that can be
 * checked. The client sends a command. When the server is ready, it answers on the endpoint of the command,
 * and both sides do their part. All receives of a link have the same buffer, so neither side sends a message
 * for which the other does not wait. */
#ifndef DATPERF_EXCHANGE_H
#define DATPERF_EXCHANGE_H
#include "link.h"

enum op {
	OP_SEND_CHECK,
	OP_TARGET_CHECK,
	OP_PING_SEND,
	OP_PING_WRITE,
	OP_PING_IMMED,
	OP_STREAM,
	OP_CONNECT,
	OP_SYNC,
	OP_PREEMPTED,
	OP_PROCESSOR_TIME,
	OP_TCP,
	OP_SIDE,
	OP_WRITE_BACK,
	OP_READ_BACK,
	OP_STREAM_BACK,
	OP_BYE,
	OP_DATAGRAMS_OPEN,
	OP_DATAGRAMS_ECHO,
	OP_DATAGRAMS_TAKE,
	OP_DATAGRAMS_RECEIVED,
	OP_DATAGRAMS_TIME,
	OP_DATAGRAMS_CLOSE
};

struct command { /* in network byte order when sent */
	uint32_t op, count;
	uint64_t size, seed;
	uint32_t wake, depth; /* depth: requests in flight of the server, for OP_WRITE_BACK and OP_READ_BACK */
};
struct answer {
	uint64_t value; /* of a check: 1 + offset of the first byte that differs, or 0; of OP_PREEMPTED:
			 * usage_preempted() of the server; of OP_PROCESSOR_TIME: usage_microseconds();
			 * of OP_TCP: its port, or 0; of OP_DATAGRAMS_OPEN: datagrams_limit() of both sides; of
			 * OP_DATAGRAMS_RECEIVED and _TIME: what the server has counted. The answer to OP_SIDE
			 * is a struct side. */
};

/* Writes data that depend on `seed`. */
void exchange_fill(char *to, size_t size, uint64_t seed);
/* Returns 1 + offset of the first byte that differs from the data of `seed`, or 0. */
uint64_t exchange_differs(const char *got, size_t size, uint64_t seed);

/* Sends a message, which it copies to `out`. Waits before and after that until all requests are complete. */
void exchange_send(struct link *l, const void *message, size_t size);
/* Receives the next message. Fails if its size is not `expected`. */
void exchange_receive(struct link *l, size_t expected);

/* Receives an answer. Returns its `value`. */
uint64_t exchange_hear(struct link *l);
/* Returns the messages of a stream for each answer. */
static inline uint32_t exchange_credit(const struct link *l)
{
	return l->most / 2;
}

/* Sends `count` messages and receives as many, at the same time as the peer does. No side is more than half of its
 * receives ahead of what it has received from the other, so that all messages find a receive. `begins`: this side
 * sends first. */
void exchange_stream(struct link *l, uint32_t count, size_t size, bool begins);
/* Sends a command, in the byte order of the host. Returns the value of its answer. */
uint64_t exchange_command(struct link *l, const struct command *c);

/* The last byte of a write is a mark: when it has arrived, the whole write has. The mark of a round differs
 * from the mark of the round before, and from 0, to which exchange_clear_mark() sets it. */
void exchange_write_marked(struct link *l, size_t size, uint32_t round);
void exchange_clear_mark(struct link *l, size_t size);
/* Spins until the peer's write of the round has arrived. */
void exchange_spin_mark(struct link *l, size_t size, uint32_t round);

#endif
