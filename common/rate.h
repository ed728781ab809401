/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rate.h - admits RATE_BURST events a second and counts the others. Lock-free: threads that
 * meet at the border of two seconds may admit or miss a few. */
#ifndef COMMON_RATE_H
#define COMMON_RATE_H
#include <stdbool.h>
#include <stdint.h>

#define RATE_BURST 10
#define RATE_WINDOW_MS 1000

struct rate {
	uint64_t window;	/* when the current second began, in ms; 0: never */
	unsigned count;		/* events in it */
};

/* Returns whether the event at `now` (ms, monotonic, not 0) is admitted. *suppressed becomes the number of
 * events that an earlier second did not admit, and that no call has reported yet. */
bool rate_admit(struct rate *rate, uint64_t now, unsigned *suppressed);
/* Returns the number of events that were not admitted, and that no call has reported yet. */
unsigned rate_suppressed(struct rate *rate);

#endif
