/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.c - the server's part of each measurement (measure.h). */
#include "connect.h"
#include "exchange.h"
#include "measure.h"
#include "side.h"
#include "tcp.h"
#include "usage.h"
#include "../cli.h"
#include <endian.h>
#include <string.h>

static void answer(struct link *l, uint64_t value)
{
	struct answer a = { htobe64(value) };

	exchange_send(l, &a, sizeof a);
}

static void echo_sends(struct link *l, uint32_t rounds, size_t size, enum wake wake)
{
	for (link_use(l, 0); rounds--; link_next(l)) {
		size_t got = link_receive_by(l, wake);

		if (got != size)
			fail("%zu bytes received instead of %zu", got, size);
		link_send(l, size);
		link_finish_by(l, wake);
	}
}

static void echo_writes(struct link *l, uint32_t rounds, size_t size)
{
	link_use(l, 0);
	for (uint32_t i = 1; i <= rounds; i++, link_next(l)) {
		exchange_spin_mark(l, size, i);
		exchange_write_marked(l, size, i);
		link_finish(l);
	}
}

static void echo_immediate(struct link *l, uint32_t rounds, size_t size, enum wake wake)
{
	for (link_use(l, 0); rounds--; link_next(l)) {
		link_receive_by(l, wake);
		link_write_immediate(l, size, rounds);
		link_finish_by(l, wake);
	}
}

/* Receives a stream. Sends the credits for messages of an endpoint on that endpoint: its peer has `most`
 * receives for them, in whatever order messages of several endpoints arrive. */
static void take_stream(struct link *l, uint32_t count, size_t size)
{
	for (unsigned e = 0; e < l->count; e++)
		l->endpoints[e].moved = 0;
	while (count--) {
		exchange_receive(l, size);
		if (++l->endpoints[l->from].moved % exchange_credit(l) == 0) {
			link_use(l, l->from);
			answer(l, 0);
		}
	}
}

/* Opens the datagram endpoint, if both adapters have datagrams. */
static void open_datagrams(struct link *l, const struct command *c)
{
	size_t limit = datagrams_limit(l, c->size);

	datagrams_close(l);
	answer(l, limit);
	if (limit)
		datagrams_accept(l, limit);
}

static void take_datagrams(struct link *l, const struct command *c, bool echo)
{
	if (!l->datagrams.ep || c->size > l->datagrams.limit)
		fail("a command about datagrams of %llu bytes received, at most %zu expected",
		     (unsigned long long)c->size, l->datagrams.ep ? l->datagrams.limit : 0);
	answer(l, 0);
	datagrams_take(l, c->wake, echo, (uint32_t)c->seed);
}

static void accept_probes(struct link *l, uint32_t count)
{
	while (count--)
		connect_accept_probe(l);
}

/* Fails if the target, or the client's, which this side writes to, is too small for the command. */
static void expect_room(const struct link *l, const struct command *c)
{
	if (c->size > link_target_size(l))
		fail("a command about %llu bytes of memory received, at most %zu expected", (unsigned long long)c->size,
		     link_target_size(l));
}

/* Posts as many writes or reads as the client does, at the same time. The client's OP_SYNC follows its own; the answer
 * to it follows these. */
static void stream_back(struct link *l, const struct command *c, void (*post)(struct link *, size_t))
{
	expect_room(l, c);
	answer(l, 0);
	l->depth = c->depth ? c->depth : LINK_DEPTH;
	link_use(l, 0);
	for (uint32_t i = 0; i < c->count; i++, link_next(l))
		post(l, c->size);
	link_finish(l);
	l->depth = LINK_DEPTH;
}

/* Sends as many messages as the client does, at the same time. */
static void stream_sends_back(struct link *l, const struct command *c)
{
	answer(l, 0);
	l->depth = c->depth ? c->depth : LINK_DEPTH;
	exchange_stream(l, c->count, c->size, false);
	l->depth = LINK_DEPTH;
	link_use(l, 0);
	answer(l, 0);
}

static void answer_side(struct link *l)
{
	struct side own;

	side_read(&own);
	exchange_send(l, &own, sizeof own);
}

/* Serves TCP in place of DAT until the client closes its connection, or has made none. `count` is 1 for an echo. */
static void serve_tcp(struct link *l, const struct command *c)
{
	struct sockaddr_storage own;
	uint16_t port = 0;
	int listener;

	adapter_address(l->adapter, &own);
	listener = tcp_listen((struct sockaddr *)&own, &port);
	answer(l, port);
	if (listener >= 0)
		tcp_serve(listener, c->size, c->count == 1);
}

static struct command read_command(struct link *l, size_t size)
{
	struct command c;

	if (size != sizeof c)
		fail("a command of %zu bytes received instead of %zu", size, sizeof c);
	memcpy(&c, l->in, sizeof c);
	c = (struct command){ .op = be32toh(c.op),
			      .count = be32toh(c.count),
			      .size = be64toh(c.size),
			      .seed = be64toh(c.seed),
			      .wake = be32toh(c.wake),
			      .depth = be32toh(c.depth) };
	if (c.size > l->block)
		fail("a command about %llu bytes received, at most %zu expected", (unsigned long long)c.size,
		     l->block);
	if (c.wake > WAKE_CNO)
		fail("a command with wake %u received, 0 to %d expected", (unsigned)c.wake, WAKE_CNO);
	if (c.depth > l->most)
		fail("a command with depth %u received, 0 to %u expected", (unsigned)c.depth, l->most);
	return c;
}

/* Executes a command. Returns false if it ends the service. */
static bool obey(struct link *l, const struct command *c)
{
	switch (c->op) {
	case OP_SEND_CHECK:
		answer(l, 0);
		exchange_receive(l, c->size);
		answer(l, exchange_differs(l->in, c->size, c->seed));
		return true;
	case OP_TARGET_CHECK:
		expect_room(l, c);
		answer(l, exchange_differs(target_read(&l->target, c->size), c->size, c->seed));
		return true;
	case OP_PING_SEND:
		answer(l, 0);
		echo_sends(l, c->count, c->size, c->wake);
		return true;
	case OP_PING_WRITE:
		expect_room(l, c);
		exchange_clear_mark(l, c->size);
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
	case OP_PREEMPTED: answer(l, usage_preempted()); return true;
	case OP_PROCESSOR_TIME: answer(l, usage_microseconds()); return true;
	case OP_SIDE: answer_side(l); return true;
	case OP_WRITE_BACK: stream_back(l, c, link_write); return true;
	case OP_READ_BACK: stream_back(l, c, link_read); return true;
	case OP_STREAM_BACK: stream_sends_back(l, c); return true;
	case OP_TCP: serve_tcp(l, c); return true;
	case OP_DATAGRAMS_OPEN: open_datagrams(l, c); return true;
	case OP_DATAGRAMS_ECHO: take_datagrams(l, c, true); return true;
	case OP_DATAGRAMS_TAKE: take_datagrams(l, c, false); return true;
	case OP_DATAGRAMS_RECEIVED: answer(l, l->datagrams.received); return true;
	case OP_DATAGRAMS_TIME: answer(l, l->datagrams.microseconds); return true;
	case OP_DATAGRAMS_CLOSE:
		datagrams_close(l);
		answer(l, 0);
		return true;
	case OP_BYE: answer(l, 0); return false;
	default: fail("unknown command %u", c->op);
	}
}

void serve(struct link *l, void *unused)
{
	bool more = true;
	size_t size;

	(void)unused;
	while (more && link_wait(l, &size)) {
		struct command c = read_command(l, size);

		link_use(l, l->from);
		more = obey(l, &c);
	}
}
