/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.c - see measure.h. The client sends a command, the server answers when
 * it is ready, then both do their part; all receives of a side land in one place,
 * so neither side sends anything the other doesn't wait for. */
#include "measure.h"
#include "cli.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { PING = 8, CREDIT = LINK_DEPTH / 2, WARM_UP = 100, MAX_ROUNDS = 200000 };

enum op { OP_SEND_CHECK, OP_TARGET_CHECK, OP_PING_SEND, OP_PING_WRITE, OP_STREAM, OP_SYNC, OP_BYE };

struct command {	/* network byte order on the way */
	uint32_t op, count;
	uint64_t size, seed;
};
struct answer {
	uint64_t bad;	/* 1 + the first byte that differs, or 0 */
};

/* --- both sides -------------------------------------------------------------- */

static unsigned char pattern(uint64_t seed, size_t i)
{
	return (unsigned char)((i + seed) * 0x9e3779b97f4a7c15u >> 56);
}

static void fill(char *to, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (char)pattern(seed, i);
}

static uint64_t differs(const char *got, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)got[i] != pattern(seed, i))
			return i + 1;
	return 0;
}

static void send_message(struct link *l, const void *message, size_t size)
{
	link_finish(l);
	memcpy(l->out, message, size);
	link_send(l, size);
	link_finish(l);
}

static void receive_size(struct link *l, size_t expected)
{
	size_t got = link_receive(l);

	if (got != expected)
		fail("%zu bytes received instead of %zu", got, expected);
}

static volatile uint64_t *flag(struct link *l)
{
	return (volatile uint64_t *)(void *)l->target;
}

static void write_flag(struct link *l, uint64_t value)
{
	memcpy(l->out, &value, sizeof value);
	link_write(l, sizeof value);
}

/* --- the server -------------------------------------------------------------- */

static void answer(struct link *l, uint64_t bad)
{
	struct answer a = { htobe64(bad) };

	send_message(l, &a, sizeof a);
}

static void echo_sends(struct link *l, uint32_t rounds)
{
	while (rounds--) {
		receive_size(l, PING);
		link_send(l, PING);
		link_finish(l);
	}
}

static void echo_writes(struct link *l, uint32_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		link_spin(flag(l), i);
		write_flag(l, i);
		link_finish(l);
	}
}

static void take_stream(struct link *l, uint32_t count, size_t size)
{
	for (uint32_t i = 1; i <= count; i++) {
		receive_size(l, size);
		if (i % CREDIT == 0)
			answer(l, 0);
	}
}

void serve(struct link *l)
{
	struct command c;
	size_t size;

	while (link_wait(l, &size)) {
		if (size != sizeof c)
			fail("a command of %zu bytes", size);
		memcpy(&c, l->in, sizeof c);
		c.op = be32toh(c.op), c.count = be32toh(c.count);
		c.size = be64toh(c.size), c.seed = be64toh(c.seed);
		if (c.size > LINK_BLOCK)
			fail("a command about %llu bytes", (unsigned long long)c.size);
		switch (c.op) {
		case OP_SEND_CHECK:
			answer(l, 0);
			receive_size(l, c.size);
			answer(l, differs(l->in, c.size, c.seed));
			break;
		case OP_TARGET_CHECK: answer(l, differs(l->target, c.size, c.seed)); break;
		case OP_PING_SEND:
			answer(l, 0);
			echo_sends(l, c.count);
			break;
		case OP_PING_WRITE:
			*flag(l) = 0;
			answer(l, 0);
			echo_writes(l, c.count);
			break;
		case OP_STREAM:
			answer(l, 0);
			take_stream(l, c.count, c.size);
			break;
		case OP_SYNC: answer(l, 0); break;
		case OP_BYE: answer(l, 0); return;
		default: fail("unknown command %u", c.op);
		}
	}
}

/* --- the client -------------------------------------------------------------- */

static uint64_t hear(struct link *l)
{
	struct answer a;

	receive_size(l, sizeof a);
	memcpy(&a, l->in, sizeof a);
	return be64toh(a.bad);
}

static uint64_t command(struct link *l, enum op op, uint32_t count, uint64_t size, uint64_t seed)
{
	struct command c = { htobe32(op), htobe32(count), htobe64(size), htobe64(seed) };

	send_message(l, &c, sizeof c);
	return hear(l);
}

static void expect_same(uint64_t bad, const char *what, size_t size)
{
	if (bad)
		fail("%s of %zu bytes: byte %llu is wrong", what, size, (unsigned long long)bad - 1);
}

void check_data(struct link *l, size_t size)
{
	uint64_t seed = size ^ 0x5eed;

	command(l, OP_SEND_CHECK, 0, size, seed);
	fill(l->out, size, seed);
	link_send(l, size);
	link_finish(l);
	expect_same(hear(l), "send", size);

	fill(l->out, size, seed + 1);
	link_write(l, size);
	link_finish(l);
	expect_same(command(l, OP_TARGET_CHECK, 0, size, seed + 1), "RDMA write", size);

	memset(l->target, 0, size);
	link_read(l, size);
	link_finish(l);
	expect_same(differs(l->target, size, seed + 1), "RDMA read", size);
}

static void ping_send(struct link *l, double *took, uint32_t rounds)
{
	command(l, OP_PING_SEND, rounds, PING, 0);
	for (uint32_t i = 0; i < rounds; i++) {
		double start = now();
		link_send(l, PING);
		receive_size(l, PING);
		took[i] = now() - start;
		link_finish(l);
	}
}

static void ping_write(struct link *l, double *took, uint32_t rounds)
{
	*flag(l) = 0;
	command(l, OP_PING_WRITE, rounds, PING, 0);
	for (uint64_t i = 1; i <= rounds; i++) {
		double start = now();
		write_flag(l, i);
		link_spin(flag(l), i);
		took[i - 1] = now() - start;
		link_finish(l);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* As many as take about `seconds`, going by a few that took `took`. */
static uint32_t rounds_for(double seconds, double took, uint32_t few)
{
	double n = took > 0 ? seconds / took * few : MAX_ROUNDS;

	return n < few ? few : n > MAX_ROUNDS ? MAX_ROUNDS : (uint32_t)n;
}

struct latency measure_latency(struct link *l, enum way way, double seconds)
{
	void (*ping)(struct link *, double *, uint32_t) = way == WAY_SEND ? ping_send : ping_write;
	double *took = calloc(MAX_ROUNDS, sizeof *took), start = now();
	struct latency result;
	uint32_t n;

	if (!took)
		fail("no memory");
	ping(l, took, WARM_UP);
	n = rounds_for(seconds, now() - start, WARM_UP);
	ping(l, took, n);
	qsort(took, n, sizeof *took, by_value);
	result = (struct latency){ took[0] * 5e5, took[n / 2] * 5e5, took[(uint64_t)n * 99 / 100] * 5e5, n };
	free(took);
	return result;
}

/* Seconds for `count` messages (a multiple of CREDIT), until the last is in place. */
static double stream_sends(struct link *l, size_t size, uint32_t count)
{
	uint32_t heard = 0;	/* credits: each says that CREDIT messages were received */
	double start;

	command(l, OP_STREAM, count, size, 0);
	start = now();
	for (uint32_t i = 0; i < count; i++) {
		for (; i - heard * CREDIT == LINK_DEPTH; heard++)
			hear(l);
		link_send(l, size);
	}
	for (; heard < count / CREDIT; heard++)
		hear(l);
	link_finish(l);
	return now() - start;
}

static double stream_writes(struct link *l, size_t size, uint32_t count)
{
	double start = now();

	for (uint32_t i = 0; i < count; i++)
		link_write(l, size);
	link_finish(l);
	command(l, OP_SYNC, 0, 0, 0);	/* an iWARP write completes before it arrives */
	return now() - start;
}

struct bandwidth measure_bandwidth(struct link *l, enum way way, size_t size, double seconds)
{
	double (*stream)(struct link *, size_t, uint32_t) = way == WAY_SEND ? stream_sends : stream_writes;
	uint32_t few = 2 * CREDIT, n;
	double took;

	stream(l, size, few);
	n = rounds_for(seconds, stream(l, size, few), few) / CREDIT * CREDIT;
	took = stream(l, size, n);
	return (struct bandwidth){ (double)n * size / took, n / took };
}

void end_service(struct link *l)
{
	command(l, OP_BYE, 0, 0, 0);
}
