/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compare.c - decides what a measurement is compared with (compare.h). */
#include "compare.h"
#include "baseline.h"
#include "baseline_verbs.h"
#include "exchange.h"
#include "tcp.h"
#include "../cli.h"

static bool has_verbs, has_no_tcp;

const char *compare_begin(const struct adapter *a)
{
	const char *why = "the interface adapter names no device (attribute DAT_IB_DEVICE_NAME)";

	if (*a->device)
		why = baseline_verbs_find(a->device, a->port, a->gid, (unsigned)a->reads);
	has_verbs = !why;
	return why;
}

static enum verbs_op verbs_op_of(enum test test)
{
	switch (test) {
	case TEST_WRITE_LAT:
	case TEST_WRITE_BW: return VERBS_WRITE;
	case TEST_IMMED_LAT: return VERBS_WRITE_IMMEDIATE;
	case TEST_READ_LAT:
	case TEST_READ_BW: return VERBS_READ;
	case TEST_ATOMIC_LAT: return VERBS_FETCH_ADD;
	default: return VERBS_SEND;
	}
}

/* Has the server listen, and connects to it over TCP. Returns the socket, or -1: after the first failure, which a line
 * tells, TCP is left out. */
static int reach_server(struct group *g, const struct setting *s, bool echo)
{
	struct command c = { .op = OP_TCP, .count = echo, .size = s->size };
	const char *why = "the server has no free port";
	uint64_t port;
	int fd = -1;

	if (has_no_tcp)
		return -1;
	port = exchange_command(&g->links[0], &c);
	if (port)
		why = tcp_connect(s->to, (uint16_t)port, &fd);
	has_no_tcp = fd < 0;
	if (has_no_tcp)
		cli_warn("TCP left out of the comparison: connect to port %llu of the server: %s",
			 (unsigned long long)port, why);
	return fd;
}

static double tcp_microseconds(struct group *g, const struct setting *s)
{
	int fd = reach_server(g, s, true);

	return fd < 0 ? 0 : tcp_latency(fd, s->size, s->seconds);
}

static double tcp_bytes(struct group *g, const struct setting *s)
{
	int fd = reach_server(g, s, false);

	return fd < 0 ? 0 : tcp_bandwidth(fd, s->size, s->seconds);
}

struct comparison compare(struct group *g, const struct setting *s)
{
	bool verbs = has_verbs && !tests[s->test].datagrams;
	struct comparison c = { 0 };

	switch (tests[s->test].kind) {
	case KIND_LATENCY:
		c.tcp_us = tcp_microseconds(g, s);
		if (verbs)
			c.verbs_us =
				baseline_verbs_latency(verbs_op_of(s->test), s->size, s->seconds);
		break;
	case KIND_BANDWIDTH:
		c.tcp_bytes = tcp_bytes(g, s);
		c.memcpy_bytes = baseline_memcpy_bandwidth(s->size, s->seconds);
		if (verbs)
			c.verbs_bytes =
				baseline_verbs_bandwidth(verbs_op_of(s->test), s->size, s->seconds);
		break;
	case KIND_CONNECT: break;
	}
	return c;
}
