/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pace.h - when the next frame of a send queue with a rate may leave. Arithmetic only: times are given. */
#ifndef SOFT_ETH_PACE_H
#define SOFT_ETH_PACE_H
#include <stdbool.h>
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
/* A frame leaves. `waited`: it was in the queue, so a delay of the queue is made up for. */
void pace_charge(struct pace *pace, uint64_t now_ns, uint64_t bytes, bool waited);

#endif
