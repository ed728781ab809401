/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.c - see measure.h. The client sends a command, the server answers when
 * it is ready, then both do their part; all receives of a side land in one place,
 * so neither side sends anything the other doesn't wait for. */
#include "measure.h"
#include "../cli.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	CREDIT = LINK_DEPTH / 2,
	WARM_UP = 100,
	MAX_ROUNDS = 10000000,	/* whose times are kept, 8 bytes each */
};
static const double MAX_STREAM = 4e9;	/* messages: they are counted in 32 bits */

const struct test_info tests[TESTS] = {
	[TEST_SEND_LAT] = { "send-lat", "send and receive", KIND_LATENCY, 0, false },
	[TEST_WRITE_LAT] = { "write-lat", "RDMA write", KIND_LATENCY, 0, true },
	[TEST_IMMED_LAT] = { "immed-lat", "RDMA write with immediate data", KIND_LATENCY, 0,
			     false },
	[TEST_READ_LAT] = { "read-lat", "RDMA read", KIND_LATENCY, 0, false },
	[TEST_ATOMIC_LAT] = { "atomic-lat", "fetch and add", KIND_LATENCY, WORD, false },
	[TEST_SEND_BW] = { "send-bw", "send and receive", KIND_BANDWIDTH, 0, false },
	[TEST_WRITE_BW] = { "write-bw", "RDMA write", KIND_BANDWIDTH, 0, false },
	[TEST_READ_BW] = { "read-bw", "RDMA read", KIND_BANDWIDTH, 0, false },
	[TEST_CONNECT] = { "connect", "connect and disconnect", KIND_CONNECT, WORD, false },
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

/* The last byte of a write tells that it is whole. Round i has this value, never that of the round
 * before, and never the 0 that stands there at first. */
static uint8_t mark(uint32_t round)
{
	return (uint8_t)(round % 251 + 1);
}

static volatile uint8_t *marked_byte(struct link *l, size_t size)
{
	return (volatile uint8_t *)l->target + size - 1;
}

static void write_marked(struct link *l, size_t size, uint32_t round)
{
	l->out[size - 1] = (char)mark(round);
	link_write(l, size);
}

/* --- the server -------------------------------------------------------------- */

static void answer(struct link *l, uint64_t bad)
{
	struct answer a = { htobe64(bad) };

	send_message(l, &a, sizeof a);
}

static void echo_sends(struct link *l, uint32_t rounds, size_t size, enum wake wake)
{
	while (rounds--) {
		size_t got = link_receive_by(l, wake);

		if (got != size)
			fail("%zu bytes received instead of %zu", got, size);
		link_send(l, size);
		link_finish_by(l, wake);
	}
}

static void echo_writes(struct link *l, uint32_t rounds, size_t size)
{
	for (uint32_t i = 1; i <= rounds; i++) {
		link_spin_byte(marked_byte(l, size), mark(i));
		write_marked(l, size, i);
		link_finish(l);
	}
}

static void echo_immediate(struct link *l, uint32_t rounds, size_t size, enum wake wake)
{
	while (rounds--) {
		link_receive_by(l, wake);
		link_write_immediate(l, size, rounds);
		link_finish_by(l, wake);
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

static void accept_probes(struct link *l, uint32_t count)
{
	while (count--)
		link_accept_probe(l);
}

static struct command read_command(struct link *l, size_t size)
{
	struct command c;

	if (size != sizeof c)
		fail("a command of %zu bytes", size);
	memcpy(&c, l->in, sizeof c);
	c = (struct command){ .op = be32toh(c.op),
			      .count = be32toh(c.count),
			      .size = be64toh(c.size),
			      .seed = be64toh(c.seed),
			      .wake = be32toh(c.wake) };
	if (c.size > LINK_BLOCK || c.wake > WAKE_CNO)
		fail("a command about %llu bytes", (unsigned long long)c.size);
	return c;
}

/* False: the service ends. */
static bool obey(struct link *l, const struct command *c)
{
	switch (c->op) {
	case OP_SEND_CHECK:
		answer(l, 0);
		receive_size(l, c->size);
		answer(l, differs(l->in, c->size, c->seed));
		return true;
	case OP_TARGET_CHECK: answer(l, differs(l->target, c->size, c->seed)); return true;
	case OP_PING_SEND:
		answer(l, 0);
		echo_sends(l, c->count, c->size, c->wake);
		return true;
	case OP_PING_WRITE:
		*marked_byte(l, c->size) = 0;
		answer(l, 0);
		echo_writes(l, c->count, c->size);
		return true;
	case OP_PING_IMMED:
		answer(l, 0);
		echo_immediate(l, c->count, c->size, c->wake);
		return true;
	case OP_STREAM:
		answer(l, 0);
		take_stream(l, c->count, c->size);
		return true;
	case OP_CONNECT:
		answer(l, 0);
		accept_probes(l, c->count);
		return true;
	case OP_SYNC: answer(l, 0); return true;
	case OP_BYE: answer(l, 0); return false;
	default: fail("unknown command %u", c->op);
	}
}

void serve(struct link *l)
{
	bool more = true;
	size_t size;

	while (more && link_wait(l, &size)) {
		struct command c = read_command(l, size);

		more = obey(l, &c);
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

static uint64_t command_by(struct link *l, enum op op, uint32_t count, uint64_t size,
			   enum wake wake)
{
	struct command c = { .op = htobe32(op),
			     .count = htobe32(count),
			     .size = htobe64(size),
			     .wake = htobe32(wake) };

	send_message(l, &c, sizeof c);
	return hear(l);
}

static uint64_t command(struct link *l, enum op op, uint32_t count, uint64_t size, uint64_t seed)
{
	struct command c = { .op = htobe32(op),
			     .count = htobe32(count),
			     .size = htobe64(size),
			     .seed = htobe64(seed) };

	send_message(l, &c, sizeof c);
	return hear(l);
}

static void expect_same(uint64_t bad, const char *what, size_t size)
{
	if (bad)
		fail("%s of %zu bytes: byte %llu is wrong", what, size,
		     (unsigned long long)bad - 1);
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

/* The functions below store how long each round took, in seconds. */
typedef void (*round_func)(struct link *l, const struct setting *s, double *took, uint32_t rounds);

static void ping_send(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command_by(l, OP_PING_SEND, rounds, s->size, s->wake);
	for (uint32_t i = 0; i < rounds; i++) {
		double start = now();

		link_send(l, s->size);
		link_receive_by(l, s->wake);
		took[i] = (now() - start) / 2;
		link_finish_by(l, s->wake);
	}
}

static void ping_write(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	*marked_byte(l, s->size) = 0;
	command_by(l, OP_PING_WRITE, rounds, s->size, s->wake);
	for (uint32_t i = 1; i <= rounds; i++) {
		double start = now();

		write_marked(l, s->size, i);
		link_spin_byte(marked_byte(l, s->size), mark(i));
		took[i - 1] = (now() - start) / 2;
		link_finish(l);
	}
}

static void ping_immediate(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command_by(l, OP_PING_IMMED, rounds, s->size, s->wake);
	for (uint32_t i = 0; i < rounds; i++) {
		double start = now();

		link_write_immediate(l, s->size, i);
		link_receive_by(l, s->wake);
		took[i] = (now() - start) / 2;
		link_finish_by(l, s->wake);
	}
}

static void read_target(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		double start = now();

		link_read(l, s->size);
		link_finish_by(l, s->wake);
		took[i] = now() - start;
	}
}

static void fetch_and_add(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		double start = now();

		link_fetch_add(l);
		link_finish_by(l, s->wake);
		took[i] = now() - start;
	}
}

static void connect_probes(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command(l, OP_CONNECT, rounds, 0, 0);
	for (uint32_t i = 0; i < rounds; i++)
		took[i] = link_probe(l, s->to, s->port);
}

/* As many as take about `seconds`, going by `count` that took `took`. */
static uint32_t rounds_for(double seconds, double took, uint32_t count, double most)
{
	double n = took > 0 ? seconds / took * count : most;

	return (uint32_t)(n < count ? count : n > most ? most : n);
}

/* The first few are slower than the rest: enough are tried that a sixteenth of the time passes. */
static bool are_too_few(double seconds, double took, uint32_t count, double most)
{
	return took < seconds / 16 && count < most / 2;
}

static const round_func round_funcs[TESTS] = {
	[TEST_SEND_LAT] = ping_send,       [TEST_WRITE_LAT] = ping_write,
	[TEST_IMMED_LAT] = ping_immediate, [TEST_READ_LAT] = read_target,
	[TEST_ATOMIC_LAT] = fetch_and_add, [TEST_CONNECT] = connect_probes,
};

static uint32_t enough_rounds(struct link *l, const struct setting *s, double *took, uint32_t count)
{
	double passed, start;

	for (;; count *= 2) {
		start = now();
		round_funcs[s->test](l, s, took, count);
		passed = now() - start;
		if (!are_too_few(s->seconds, passed, count, MAX_ROUNDS))
			return rounds_for(s->seconds, passed, count, MAX_ROUNDS);
	}
}

static struct result measure_rounds(struct link *l, const struct setting *s)
{
	uint32_t few = tests[s->test].kind == KIND_CONNECT ? 4 : WARM_UP, n = s->rounds;
	double *took = calloc(n > MAX_ROUNDS ? n : MAX_ROUNDS, sizeof *took), start;
	struct result result = { 0 };

	if (!took)
		fail("no memory for %u rounds", n);
	round_funcs[s->test](l, s, took, few);
	if (!n)
		n = enough_rounds(l, s, took, few);
	start = now();
	round_funcs[s->test](l, s, took, n);
	result.messages = n / (now() - start);
	for (uint32_t i = 0; i < n; i++)
		took[i] *= 1e6;
	result.latency = stats_of(took, n);
	result.histogram = histogram_of(took, n);
	free(took);
	return result;
}

/* Seconds for `count` messages (a multiple of CREDIT), until the last is in place. */
static double stream_sends(struct link *l, size_t size, uint32_t count)
{
	uint32_t heard = 0; /* credits: each says that CREDIT messages were received */
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
	command(l, OP_SYNC, 0, 0, 0); /* an iWARP write completes before it arrives */
	return now() - start;
}

static double stream_reads(struct link *l, size_t size, uint32_t count)
{
	double start = now();

	for (uint32_t i = 0; i < count; i++)
		link_read(l, size);
	link_finish(l);
	return now() - start;
}

typedef double (*stream_func)(struct link *l, size_t size, uint32_t count);

static uint32_t enough_messages(struct link *l, const struct setting *s, stream_func stream, uint32_t count)
{
	double took;

	for (;; count *= 2) {
		took = stream(l, s->size, count);
		if (!are_too_few(s->seconds, took, count, MAX_STREAM))
			return rounds_for(s->seconds, took, count, MAX_STREAM);
	}
}

static struct result measure_stream(struct link *l, const struct setting *s)
{
	stream_func stream = s->test == TEST_SEND_BW ? stream_sends
			     : s->test == TEST_WRITE_BW ? stream_writes
							: stream_reads;
	uint32_t few = 2 * CREDIT, n = s->rounds;
	double took;

	stream(l, s->size, few);
	if (!n)
		n = enough_messages(l, s, stream, few);
	n = (n + CREDIT - 1) / CREDIT * CREDIT;
	took = stream(l, s->size, n);
	return (struct result){ .latency.count = n,
				.bytes = (double)n * s->size / took,
				.messages = n / took };
}

struct result measure(struct link *l, const struct setting *s)
{
	return tests[s->test].kind == KIND_BANDWIDTH ? measure_stream(l, s) : measure_rounds(l, s);
}

const char *test_missing(const struct link *l, enum test test)
{
	if (test == TEST_ATOMIC_LAT && !l->atomics)
		return "the interface adapter has no atomics";
	if (test == TEST_IMMED_LAT && !l->immediate)
		return "the interface adapter has no immediate data";
	if ((test == TEST_READ_LAT || test == TEST_READ_BW) && !l->reads)
		return "the interface adapter has no RDMA reads";
	return NULL;
}

void end_service(struct link *l)
{
	command(l, OP_BYE, 0, 0, 0);
}
