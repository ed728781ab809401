/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stats.c - statistics of a sample of times (stats.h). */
#include "stats.h"
#include <stdlib.h>

/* The fourth root of two: four buckets for each doubling. */
static const double STEP = 1.189207115;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the least value of the sorted sample that at least `part` of the other values do not exceed. */
static double percentile(const double *times, uint32_t count, double part)
{
	uint32_t rank = (uint32_t)(part * count);

	return times[rank < count ? rank : count - 1];
}

struct stats stats_of(double *times, uint32_t count)
{
	struct stats s = { .count = count };

	qsort(times, count, sizeof *times, by_value);
	for (uint32_t i = 0; i < count; i++)
		s.mean += times[i] / count;
	s.min = times[0];
	s.median = percentile(times, count, 0.5);
	s.p99 = percentile(times, count, 0.99);
	s.p999 = percentile(times, count, 0.999);
	s.max = times[count - 1];
	return s;
}

struct histogram histogram_of(const double *times, uint32_t count)
{
	struct histogram h = { .buckets = 1, .from = { times[0] } };
	unsigned at = 0;

	for (uint32_t i = 0; i < count; i++) {
		while (at + 1 < HISTOGRAM_BUCKETS && times[i] >= h.from[at] * STEP &&
		       h.from[at] > 0) {
			h.from[at + 1] = h.from[at] * STEP;
			at++;
		}
		h.counts[at]++;
	}
	h.buckets = at + 1;
	return h;
}
