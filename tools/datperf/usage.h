/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usage.h - whether the sides of a measurement had their processors for themselves. A side that is preempted often
 * shares its processor with the other side or with another program, and the result is that of the scheduler. */
#ifndef DATPERF_USAGE_H
#define DATPERF_USAGE_H
#include <stdbool.h>
#include <stdint.h>

/* Returns how often the kernel has taken the processor from a thread of this process (ru_nivcsw): the thread was
 * preempted, or gave way by sched_yield(). */
uint64_t usage_preempted(void);
/* Returns the processor time of all threads of this process, in user space and in the kernel. */
uint64_t usage_microseconds(void);
/* Returns whether so many preemptions of a side in so many seconds change the result: more than one in 50 ms. */
bool usage_is_shared(uint64_t preempted, double seconds);

#endif
