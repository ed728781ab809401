/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.h - clocks in nanoseconds. Steps of the wall clock do not move the monotonic ones, clock_now_ns()
 * and clock_coarse_ns(). */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* Up to a timer tick (4 ms) behind clock_now_ns(), at a third of the cost. */
static inline uint64_t clock_coarse_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

#endif
