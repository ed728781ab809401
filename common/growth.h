/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* growth.h - differences of values that the kernel or a device counts, and that may begin again: counters after a
 * reset of their driver, the times of frames after CLOCK_REALTIME was set. Arithmetic only. */
#ifndef COMMON_GROWTH_H
#define COMMON_GROWTH_H
#include <stdint.h>

/* How much a counter has grown. One that is smaller than before began again at 0. */
static inline uint64_t counter_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/* The same for a counter of 32 bits, which also goes on at 0 after its largest value: then it has grown by less than
 * half its range. */
static inline uint64_t counter_growth32(uint32_t before, uint32_t now)
{
	return now - before <= INT32_MAX ? now - before : counter_growth(before, now);
}

/* The time of a frame that follows one of the time `last`, both in ns: not less than that, unless it is less by more
 * than a second. Then the clock was set back, or `last` was wrong. */
static inline uint64_t frame_time_even_out(uint64_t time, uint64_t last)
{
	return time < last && last - time <= 1000000000 ? last : time;
}

#endif
