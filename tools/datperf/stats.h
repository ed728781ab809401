/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stats.h - statistics of a sample of times: percentiles and a histogram. */
#ifndef DATPERF_STATS_H
#define DATPERF_STATS_H
#include <stddef.h>
#include <stdint.h>

/* Microseconds. */
struct stats {
	uint32_t count;
	double min, median, mean, p99, p999, max;
};

/* Sorts the `count` times, in microseconds, at least one. */
struct stats stats_of(double *times, uint32_t count);

enum { HISTOGRAM_BUCKETS = 24 };

/* The sample in steps of a quarter of a power of two, from its least value; the last bucket has all
 * that is above. `from` is the lower border in microseconds. */
struct histogram {
	unsigned buckets;
	double from[HISTOGRAM_BUCKETS];
	uint32_t counts[HISTOGRAM_BUCKETS];
};

/* The times are sorted. */
struct histogram histogram_of(const double *times, uint32_t count);

#endif
