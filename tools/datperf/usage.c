/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usage.c - see usage.h. */
#include "usage.h"
#include <sys/resource.h>

/* The scheduler of Linux lets two threads that share a processor run for 3 to 24 ms in turn. Kernel threads preempt
 * for microseconds, a few times a second. */
static const double SHARED_SECONDS = 0.05;

uint64_t usage_preempted(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}

uint64_t usage_microseconds(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

bool usage_is_shared(uint64_t preempted, double seconds)
{
	return (double)preempted * SHARED_SECONDS > seconds;
}
