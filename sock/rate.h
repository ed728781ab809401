/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rate.h - the traffic of a connection, which decides when it asks to move: the counts of its busier direction, since
 * when its rate is measured, and after which counts it asks. Not responsible for: whether the rate is high enough
 * (stream.c). */
#ifndef SOCK_RATE_H
#define SOCK_RATE_H
#include "common/clock.h"
#include "sock/conn_types.h"

static inline uint64_t rate_calls(const struct conn *c)
{
	return c->reads > c->writes ? c->reads : c->writes;
}

static inline uint64_t rate_bytes(const struct conn *c)
{
	return c->tcp_in > c->tcp_out ? c->tcp_in : c->tcp_out;
}

/* The rate is measured from now on. */
static inline void rate_begin(struct conn *c)
{
	c->rate.at = clock_now_ns();
	c->rate.calls = rate_calls(c);
	c->rate.bytes = rate_bytes(c);
}

/* The rate is measured from now on, and the connection asks after so many more calls or bytes. */
static inline void rate_ask_after(struct conn *c, uint64_t calls, uint64_t bytes)
{
	rate_begin(c);
	c->ask_calls = c->rate.calls + calls;
	c->ask_bytes = c->rate.bytes + bytes;
}

/* Whether its pause is over. */
static inline bool rate_may_ask(const struct conn *c)
{
	uint64_t at = __atomic_load_n(&c->ask_at, __ATOMIC_RELAXED);

	return !at || clock_now_ns() >= at;
}

#endif
