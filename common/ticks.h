/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ticks.h - the cycle counter of the processor as a clock that all processes of a host share. To read it takes three
 * instructions, clock_gettime() some 70. Which time a count stands for is the reader's work. */
#ifndef COMMON_TICKS_H
#define COMMON_TICKS_H
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#define HAVE_TICKS 1
#else
#define HAVE_TICKS 0
#endif

/* Returns true if the counter runs at one rate, and is the same on all processors: so the kernel has found. */
bool ticks_are_usable(void);

static inline uint64_t ticks_now(void)
{
#if HAVE_TICKS
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* Counts after the loads that come before: what these have found was written earlier. */
static inline uint64_t ticks_after_loads(void)
{
#if HAVE_TICKS && defined(__SSE2__)
	__builtin_ia32_lfence();
#endif
	return ticks_now();
}

#endif
