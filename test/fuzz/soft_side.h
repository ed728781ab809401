/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft_side.h - our side of a connection whose peer is a fuzzer: the acts of a consumer that
 * an input can ask for, the names it has for our STags, and what must hold in the end. What
 * the peer does is each target's matter. */
#ifndef TEST_FUZZ_SOFT_SIDE_H
#define TEST_FUZZ_SOFT_SIDE_H
#include "test/unit/device_harness.h"
#include "test/unit/soft/stream.h"

/* Aborts, with a line that says why, unless it's good. */
void side_demand(bool good, const char *what);
/* Opens the device. */
void side_open(void);
/* STags are random: one of the input, as it is on the wire, that stands for one of ours. */
void side_name(const struct stream *s, uint8_t *stag);
/* The same for the source of a read or atomic request, in its body. */
void side_name_body(const struct stream *s, uint8_t op, uint8_t *body, uint32_t length);
/* What the consumer does next. */
void side_act(struct stream *s, const uint8_t *p, uint32_t length);
/* After the end of the stream: memory is as it may be, everything posted completes once. */
void side_check(struct stream *s);

#endif
