/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tick_clock.h - the time at which a program counted ticks (common/ticks.h). */
#ifndef DATCAP_TICK_CLOCK_H
#define DATCAP_TICK_CLOCK_H
#include <stdint.h>

/* Call it first. Takes some milliseconds. */
void tick_clock_start(void);
/* Compares ticks with the clocks. Call it now and then, since the kernel changes the rate of CLOCK_REALTIME, and the
 * administrator sets it. */
void tick_clock_compare(void);
/* Returns the time in ns since 1970. */
uint64_t tick_clock_time(uint64_t ticks);

#endif
