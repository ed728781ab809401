/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compare.c - decides what a measurement is compared with (compare.h). */
#include "compare.h"
#include "baseline.h"
#include "baseline_verbs.h"

static bool has_verbs;

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

struct comparison compare(const struct setting *s)
{
	struct comparison c = { 0 };

	switch (tests[s->test].kind) {
	case KIND_LATENCY:
		c.tcp_us = baseline_tcp_latency(s->size, s->seconds);
		if (has_verbs)
			c.verbs_us =
				baseline_verbs_latency(verbs_op_of(s->test), s->size, s->seconds);
		break;
	case KIND_BANDWIDTH:
		c.tcp_bytes = baseline_tcp_bandwidth(s->size, s->seconds);
		c.memcpy_bytes = baseline_memcpy_bandwidth(s->size, s->seconds);
		if (has_verbs)
			c.verbs_bytes =
				baseline_verbs_bandwidth(verbs_op_of(s->test), s->size, s->seconds);
		break;
	case KIND_CONNECT: break;
	}
	return c;
}
