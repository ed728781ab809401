/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pace.h - when the next frame of a send queue with a rate may leave. Arithmetic only: times are given. */
#ifndef SOFT_ETH_PACE_H
#define SOFT_ETH_PACE_H
#include <stdint.h>

struct pace {
	uint64_t rate;			/* bit/s; 0: no limit */
	uint64_t burst_ns;		/* a frame may leave so long before its turn */
	uint64_t next_ns;		/* the turn of the next frame */
	uint64_t rest;			/* remainder of the division that gave next_ns */
};

void pace_set(struct pace *pace, uint64_t bits_per_s, uint32_t burst);
/* The earliest time for the next frame; 0: now. */
uint64_t pace_due(const struct pace *pace);
/* A frame leaves, whose turn may have been up to lag_ns ago: a delay of the queue is made up for. 0: it was not in the
 * queue. */
void pace_charge(struct pace *pace, uint64_t now_ns, uint64_t bytes, uint64_t lag_ns);

#endif
