/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.h - monotonic time. */
#ifndef BTL_UDAPL_CLOCK_H
#define BTL_UDAPL_CLOCK_H

#include "udapl.h"
#include <time.h>

/* Seconds. */
static inline double udapl_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

#endif
