/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange.c - messages and data of a measurement (exchange.h). */
#include "exchange.h"
#include "../cli.h"
#include <endian.h>
#include <string.h>

static unsigned char pattern(uint64_t seed, size_t i)
{
	return (unsigned char)((i + seed) * 0x9e3779b97f4a7c15u >> 56);
}

void exchange_fill(char *to, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (char)pattern(seed, i);
}

uint64_t exchange_differs(const char *got, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)got[i] != pattern(seed, i))
			return i + 1;
	return 0;
}

void exchange_send(struct link *l, const void *message, size_t size)
{
	link_finish(l);
	memcpy(l->out, message, size);
	link_send(l, size);
	link_finish(l);
}

void exchange_receive(struct link *l, size_t expected)
{
	size_t got = link_receive(l);

	if (got != expected)
		fail("%zu bytes received instead of %zu", got, expected);
}

uint64_t exchange_hear(struct link *l)
{
	struct answer a;

	exchange_receive(l, sizeof a);
	memcpy(&a, l->in, sizeof a);
	return be64toh(a.value);
}

uint64_t exchange_command(struct link *l, const struct command *c)
{
	struct command sent = { .op = htobe32(c->op),
				.count = htobe32(c->count),
				.size = htobe64(c->size),
				.seed = htobe64(c->seed),
				.wake = htobe32(c->wake),
				.depth = htobe32(c->depth) };

	exchange_send(l, &sent, sizeof sent);
	return exchange_hear(l);
}

static void take_message(struct link *l, size_t size)
{
	exchange_receive(l, size);
	l->endpoints[l->from].credits++;
}

/* Returns whether the endpoint may send: if this side does not begin, not before the peer. */
static bool may_send(const struct link *l, const struct endpoint *e, bool begins)
{
	return (begins || e->credits) && e->moved < e->credits + exchange_credit(l);
}

void exchange_stream(struct link *l, uint32_t count, size_t size, bool begins)
{
	uint32_t left = count;

	for (unsigned e = 0; e < l->count; e++)
		l->endpoints[e].moved = l->endpoints[e].credits = 0;
	link_use(l, 0);
	for (uint32_t i = 0; i < count; i++, link_next(l)) {
		struct endpoint *e = &l->endpoints[l->turn];

		for (; !may_send(l, e, begins); left--)
			take_message(l, size);
		link_send(l, size);
		e->moved++;
	}
	for (; left; left--)
		take_message(l, size);
	link_finish(l);
}

static uint8_t mark(uint32_t round)
{
	return (uint8_t)(round % 251 + 1);
}

void exchange_write_marked(struct link *l, size_t size, uint32_t round)
{
	l->out[size - 1] = (char)mark(round);
	link_write(l, size);
}

void exchange_clear_mark(struct link *l, size_t size)
{
	target_clear(&l->target, size);
}

void exchange_spin_mark(struct link *l, size_t size, uint32_t round)
{
	link_spin_byte(l, size - 1, mark(round));
}
