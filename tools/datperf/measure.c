/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.c - the client's part of each measurement, and the results of all threads (measure.h). Rounds and
 * messages go to the endpoints of a link in turn, beginning with the first. */
#include "measure.h"
#include "connect.h"
#include "exchange.h"
#include "usage.h"
#include "../call.h"
#include "../cli.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	WARM_UP = 100,
	MAX_ROUNDS = 10000000, /* of all threads; their times are kept, 8 bytes each */
};
static const double MAX_STREAM = 4e9; /* messages of all threads: they are counted in 32 bits */

const struct test_info tests[TESTS] = {
	[TEST_SEND_LAT] = { "send-lat", "verbs send", "send and receive", KIND_LATENCY },
	[TEST_WRITE_LAT] = { "write-lat", "verbs write", "RDMA write", KIND_LATENCY, .polls_memory = true,
			     .rdma = true },
	[TEST_IMMED_LAT] = { "immed-lat", "verbs immed", "RDMA write with immediate data", KIND_LATENCY, .rdma = true },
	[TEST_READ_LAT] = { "read-lat", "verbs read", "RDMA read", KIND_LATENCY, .rdma = true },
	[TEST_ATOMIC_LAT] = { "atomic-lat", "verbs atomic", "fetch and add", KIND_LATENCY, .fixed_size = WORD,
			      .rdma = true },
	[TEST_SEND_BW] = { "send-bw", "verbs send", "send and receive", KIND_BANDWIDTH },
	[TEST_WRITE_BW] = { "write-bw", "verbs write", "RDMA write", KIND_BANDWIDTH, .rdma = true },
	[TEST_READ_BW] = { "read-bw", "verbs read", "RDMA read", KIND_BANDWIDTH, .rdma = true },
	[TEST_CONNECT] = { "connect", "verbs connect", "connect and disconnect", KIND_CONNECT, .fixed_size = WORD },
	[TEST_UD_LAT] = { "ud-lat", "verbs ud", "datagrams", KIND_LATENCY, .datagrams = true },
	[TEST_UD_BW] = { "ud-bw", "verbs ud", "datagrams", KIND_BANDWIDTH, .datagrams = true },
};

static uint64_t command_by(struct link *l, enum op op, uint32_t count, uint64_t size,
			   enum wake wake)
{
	return exchange_command(l, &(struct command){ .op = op, .count = count, .size = size, .wake = wake });
}

static uint64_t command(struct link *l, enum op op, uint32_t count, uint64_t size, uint64_t seed)
{
	return exchange_command(l, &(struct command){ .op = op, .count = count, .size = size, .seed = seed });
}

static void expect_same(uint64_t bad, const char *what, size_t size)
{
	if (bad)
		fail("%s of %zu bytes: byte %llu is wrong", what, size,
		     (unsigned long long)bad - 1);
}

static void check_size(struct link *l, size_t size)
{
	uint64_t seed = size ^ 0x5eed;

	command(l, OP_SEND_CHECK, 0, size, seed);
	exchange_fill(l->out, size, seed);
	link_send(l, size);
	link_finish(l);
	expect_same(exchange_hear(l), "send", size);

	if (size > link_target_size(l))
		return;
	exchange_fill(l->out, size, seed + 1);
	link_write(l, size);
	link_finish(l);
	expect_same(command(l, OP_TARGET_CHECK, 0, size, seed + 1), "RDMA write", size);

	target_clear(&l->target, size);
	link_read(l, size);
	link_finish(l);
	expect_same(exchange_differs(target_read(&l->target, size), size, seed + 1), "RDMA read", size);
}

/* Checks the first endpoint in all sizes, and the others in one size, which takes little time. */
static void check_link(struct link *l, void *unused)
{
	static const size_t sizes[] = { 1,        777,      1 << 10,   4 << 10,
					16 << 10, 64 << 10, 256 << 10, 1 << 20 };

	(void)unused;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		check_size(l, sizes[i]);
	if (l->block > 1 << 20)
		check_size(l, l->block);
	for (unsigned e = 1; e < l->count; e++) {
		link_use(l, e);
		check_size(l, 777);
	}
	link_use(l, 0);
}

void check_data(struct group *g)
{
	group_run(g, check_link, NULL);
}

/* A function that runs rounds of a test, and stores the seconds of each in `took`. Round i goes to endpoint
 * i, modulo their number. */
typedef void (*round_func)(struct link *l, const struct setting *s, double *took, uint32_t rounds);

static void ping_send(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command_by(l, OP_PING_SEND, rounds, s->size, s->wake);
	link_use(l, 0);
	for (uint32_t i = 0; i < rounds; i++, link_next(l)) {
		double start = now();

		link_send(l, s->size);
		link_receive_by(l, s->wake);
		took[i] = (now() - start) / 2;
		link_finish_by(l, s->wake);
	}
}

static void ping_write(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	exchange_clear_mark(l, s->size);
	command_by(l, OP_PING_WRITE, rounds, s->size, s->wake);
	link_use(l, 0);
	for (uint32_t i = 1; i <= rounds; i++, link_next(l)) {
		double start = now();

		exchange_write_marked(l, s->size, i);
		exchange_spin_mark(l, s->size, i);
		took[i - 1] = (now() - start) / 2;
		link_finish(l);
	}
}

static void ping_immediate(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command_by(l, OP_PING_IMMED, rounds, s->size, s->wake);
	link_use(l, 0);
	for (uint32_t i = 0; i < rounds; i++, link_next(l)) {
		double start = now();

		link_write_immediate(l, s->size, i);
		link_receive_by(l, s->wake);
		took[i] = (now() - start) / 2;
		link_finish_by(l, s->wake);
	}
}

static void read_target(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	link_use(l, 0);
	for (uint32_t i = 0; i < rounds; i++, link_next(l)) {
		double start = now();

		link_read(l, s->size);
		link_finish_by(l, s->wake);
		took[i] = now() - start;
	}
}

static void fetch_and_add(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	link_use(l, 0);
	for (uint32_t i = 0; i < rounds; i++, link_next(l)) {
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
		took[i] = connect_probe(l, s->to, s->port);
}

/* Returns the number of rounds, from `count` to `most`, that take about `seconds`. It is extrapolated from
 * `count` rounds, which took `took` seconds. */
static uint32_t rounds_for(double seconds, double took, uint32_t count, double most)
{
	double n = took > 0 ? seconds / took * count : most;

	return (uint32_t)(n < count ? count : n > most ? most : n);
}

/* Returns whether `count` rounds are too few to extrapolate from. They should take a sixteenth of `seconds`,
 * since the first rounds are slower than the rest. */
static bool are_too_few(double seconds, double took, uint32_t count, double most)
{
	return took < seconds / 16 && count < most / 2;
}

static const round_func round_funcs[TESTS] = {
	[TEST_SEND_LAT] = ping_send,       [TEST_WRITE_LAT] = ping_write,
	[TEST_IMMED_LAT] = ping_immediate, [TEST_READ_LAT] = read_target,
	[TEST_ATOMIC_LAT] = fetch_and_add, [TEST_CONNECT] = connect_probes,
	[TEST_UD_LAT] = datagrams_ping,
};

/* A function that transfers `count` messages, of each endpoint a multiple of exchange_credit(), and with `both_ways` as
 * many in the other direction. Returns the seconds until the last one has arrived. */
typedef double (*stream_func)(struct link *l, const struct setting *s, uint32_t count);

static void hear_credit(struct link *l)
{
	exchange_hear(l);
	l->endpoints[l->from].credits++;
}

/* Has the server post as many requests as this side. */
static void begin_back(struct link *l, enum op op, const struct setting *s, uint32_t count)
{
	if (s->both_ways)
		exchange_command(l, &(struct command){ .op = op, .count = count, .size = s->size, .depth = s->depth });
}

/* Sends and receives messages. The server's answer follows its last receive. */
static double stream_both_ways(struct link *l, const struct setting *s, uint32_t count)
{
	double start = now();

	begin_back(l, OP_STREAM_BACK, s, count);
	exchange_stream(l, count, s->size, true);
	exchange_hear(l);
	return now() - start;
}

/* Sends messages. A credit of the peer acknowledges so many messages of its endpoint. */
static double stream_sends(struct link *l, const struct setting *s, uint32_t count)
{
	const uint32_t credit = exchange_credit(l);
	uint32_t wanted = count / credit, heard = 0;
	double start;

	if (s->both_ways)
		return stream_both_ways(l, s, count);
	for (unsigned e = 0; e < l->count; e++)
		l->endpoints[e].moved = l->endpoints[e].credits = 0;
	command(l, OP_STREAM, count, s->size, 0);
	link_use(l, 0);
	start = now();
	for (uint32_t i = 0; i < count; i++, link_next(l)) {
		struct endpoint *e = &l->endpoints[l->turn];

		for (; e->moved - e->credits * credit == l->most; heard++)
			hear_credit(l);
		link_send(l, s->size);
		e->moved++;
	}
	for (; heard < wanted; heard++)
		hear_credit(l);
	link_finish(l);
	return now() - start;
}

/* Waits until all writes have arrived. An iWARP write may complete before that, so the peer has to answer a
 * message that follows it on the same connection. */
static void flush_writes(struct link *l)
{
	struct command c = { .op = htobe32(OP_SYNC) };

	link_finish(l);
	memcpy(l->out, &c, sizeof c);
	for (unsigned e = 0; e < l->count; e++) {
		link_use(l, e);
		link_send(l, sizeof c);
	}
	link_finish(l);
	for (unsigned e = 0; e < l->count; e++)
		exchange_hear(l);
}

static double stream_writes(struct link *l, const struct setting *s, uint32_t count)
{
	double start = now();

	begin_back(l, OP_WRITE_BACK, s, count);
	link_use(l, 0);
	for (uint32_t i = 0; i < count; i++, link_next(l))
		link_write(l, s->size);
	flush_writes(l);
	return now() - start;
}

static double stream_reads(struct link *l, const struct setting *s, uint32_t count)
{
	double start = now();

	begin_back(l, OP_READ_BACK, s, count);
	link_use(l, 0);
	for (uint32_t i = 0; i < count; i++, link_next(l))
		link_read(l, s->size);
	if (s->both_ways)
		flush_writes(l);	/* the answers follow the server's last read */
	link_finish(l);
	return now() - start;
}

static const stream_func stream_funcs[TESTS] = {
	[TEST_SEND_BW] = stream_sends,
	[TEST_WRITE_BW] = stream_writes,
	[TEST_READ_BW] = stream_reads,
	[TEST_UD_BW] = datagrams_stream,
};

/* A measurement on all links. */
struct run {
	const struct setting *s;
	unsigned threads;
	uint32_t rounds;           /* of each link */
	struct part {              /* of one link */
		uint32_t estimate; /* rounds that take about the time of the setting */
		double *took;      /* seconds of each round; NULL for a stream */
		double start, end; /* seconds, monotonic */
		uint32_t lost;     /* datagrams */
	} parts[GROUP_THREADS];
};

static uint32_t enough_rounds(struct link *l, const struct setting *s, double *took, uint32_t count,
			      double most)
{
	double passed, start;

	for (;; count *= 2) {
		start = now();
		round_funcs[s->test](l, s, took, count);
		passed = now() - start;
		if (!are_too_few(s->seconds, passed, count, most))
			return rounds_for(s->seconds, passed, count, most);
	}
}

static void warm_up_rounds(struct link *l, const struct setting *s, struct part *p,
			   unsigned threads)
{
	uint32_t few = tests[s->test].kind == KIND_CONNECT ? 4
		       : l->count > WARM_UP                ? l->count
							   : WARM_UP;
	uint32_t most = MAX_ROUNDS / threads;

	p->took = calloc(s->rounds > most ? s->rounds : most, sizeof *p->took);
	if (!p->took)
		fail("no memory for %u rounds", s->rounds > most ? s->rounds : most);
	round_funcs[s->test](l, s, p->took, few);
	p->estimate = s->rounds ? s->rounds : enough_rounds(l, s, p->took, few, most);
}

static uint32_t enough_messages(struct link *l, const struct setting *s, uint32_t count,
				double most)
{
	double took;

	for (;; count *= 2) {
		took = stream_funcs[s->test](l, s, count);
		if (!are_too_few(s->seconds, took, count, most))
			return rounds_for(s->seconds, took, count, most);
	}
}

static void warm_up_stream(struct link *l, const struct setting *s, struct part *p,
			   unsigned threads)
{
	uint32_t few = l->most * l->count;

	stream_funcs[s->test](l, s, few);
	p->estimate = s->rounds ? s->rounds : enough_messages(l, s, few, MAX_STREAM / threads);
}

static void warm_up(struct link *l, void *arg)
{
	struct run *run = arg;
	struct part *p = &run->parts[l->index];

	if (stream_funcs[run->s->test])
		warm_up_stream(l, run->s, p, run->threads);
	else
		warm_up_rounds(l, run->s, p, run->threads);
	link_use(l, 0);
}

/* Returns the rounds of each link: the mean of the estimates. For a stream, it is rounded up to a multiple
 * of exchange_credit() for each endpoint. All links have the same number, so that they end at about the same time. */
static uint32_t decide_rounds(const struct group *g, const struct run *run)
{
	uint64_t sum = 0;
	uint32_t step = stream_funcs[run->s->test] ? exchange_credit(&g->links[0]) * g->endpoints : 1;

	for (unsigned i = 0; i < g->threads; i++)
		sum += run->parts[i].estimate;
	return (uint32_t)((sum / g->threads + step - 1) / step * step);
}

static void measure_link(struct link *l, void *arg)
{
	struct run *run = arg;
	struct part *p = &run->parts[l->index];

	if (stream_funcs[run->s->test]) {
		double took = stream_funcs[run->s->test](l, run->s, run->rounds);

		p->end = now();
		p->start = p->end - took;
	} else {
		p->start = now();
		round_funcs[run->s->test](l, run->s, p->took, run->rounds);
		p->end = now();
	}
	p->lost = tests[run->s->test].datagrams ? l->datagrams.lost : 0;
	link_use(l, 0);
}

/* Returns the seconds from the start of the first thread to the end of the last one. */
static double elapsed(const struct part *parts, unsigned count)
{
	double start = parts[0].start, end = parts[0].end;

	for (unsigned i = 1; i < count; i++) {
		if (parts[i].start < start)
			start = parts[i].start;
		if (parts[i].end > end)
			end = parts[i].end;
	}
	return end - start;
}

/* Sets the statistics of the rounds of all links but those that were lost, and frees their times. */
static void merge_latencies(struct result *result, struct run *run, unsigned threads)
{
	uint32_t total = run->rounds * threads - result->lost, at = 0;
	double *took = calloc(total ? total : 1, sizeof *took);

	if (!total)
		fail("%s: all %u datagrams were lost", tests[run->s->test].name, result->lost);
	if (!took)
		fail("no memory for %u rounds", total);
	for (unsigned i = 0; i < threads; i++) {
		for (uint32_t k = 0; k < run->rounds; k++)
			if (run->parts[i].took[k] >= 0)	/* else DATAGRAM_LOST */
				took[at++] = run->parts[i].took[k] * 1e6;
		free(run->parts[i].took);
	}
	result->latency = stats_of(took, total);
	result->histogram = histogram_of(took, total);
	free(took);
}

/* What both sides have used up to a moment. */
struct used {
	uint64_t client_preempted, server_preempted, client_microseconds, server_microseconds;
};

static struct used use_until_now(struct group *g)
{
	struct used u = { .server_preempted = command(&g->links[0], OP_PREEMPTED, 0, 0, 0),
			  .server_microseconds = command(&g->links[0], OP_PROCESSOR_TIME, 0, 0, 0) };

	u.client_preempted = usage_preempted();
	u.client_microseconds = usage_microseconds();
	return u;
}

struct result measure(struct group *g, const struct setting *s)
{
	struct run run = { .s = s, .threads = g->threads };
	struct result result = { 0 };
	struct used before, after;
	double seconds;

	for (unsigned i = 0; i < g->threads; i++)
		g->links[i].depth = s->depth;
	group_run(g, warm_up, &run);
	run.rounds = decide_rounds(g, &run);
	before = use_until_now(g);
	group_run(g, measure_link, &run);
	after = use_until_now(g);
	result.client_preempted = after.client_preempted - before.client_preempted;
	result.server_preempted = after.server_preempted - before.server_preempted;
	seconds = elapsed(run.parts, g->threads);
	result.client_load = (double)(after.client_microseconds - before.client_microseconds) / 1e6 / seconds;
	result.server_load = (double)(after.server_microseconds - before.server_microseconds) / 1e6 / seconds;
	result.shared = usage_is_shared(result.client_preempted, seconds) ||
			usage_is_shared(result.server_preempted, seconds);
	for (unsigned i = 0; i < g->threads; i++)
		result.lost += run.parts[i].lost;
	if (run.parts[0].took)
		merge_latencies(&result, &run, g->threads);
	result.latency.count = run.rounds * g->threads * (s->both_ways ? 2 : 1);
	result.messages = (result.latency.count - result.lost) / seconds;
	result.bytes = result.messages * s->size;
	return result;
}

const char *test_missing(const struct adapter *a, enum test test)
{
	if (test == TEST_ATOMIC_LAT && !a->atomics)
		return "the interface adapter has no atomics";
	if (test == TEST_IMMED_LAT && !a->immediate)
		return "the interface adapter has no immediate data";
	if ((test == TEST_READ_LAT || test == TEST_READ_BW) && !a->reads)
		return "the interface adapter has no RDMA reads";
	if (tests[test].datagrams && !a->datagrams)
		return "the interface adapter has no datagrams (attribute " DAT_IB_ATTR_UD ")";
	return NULL;
}

/* One link after another, see connect_datagrams(). */
size_t measure_open_datagrams(struct group *g, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	for (unsigned i = 0; i < g->threads; i++) {
		g->links[i].depth = LINK_DEPTH;
		if (!datagrams_open(&g->links[i], to, port))
			return 0;
	}
	return g->links[0].datagrams.limit;
}

void measure_close_datagrams(struct group *g)
{
	for (unsigned i = 0; i < g->threads; i++)
		datagrams_end(&g->links[i]);
}

struct side measure_server_side(struct group *g)
{
	struct command c = { .op = htobe32(OP_SIDE) };
	struct link *l = &g->links[0];
	struct side server;

	exchange_send(l, &c, sizeof c);
	exchange_receive(l, sizeof server);
	memcpy(&server, l->in, sizeof server);
	side_clean(&server);
	return server;
}

static void say_bye(struct link *l, void *unused)
{
	(void)unused;
	command(l, OP_BYE, 0, 0, 0);
}

void end_service(struct group *g)
{
	group_run(g, say_bye, NULL);
}
