/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stats.h - statistics of a sample of times: percentiles and a histogram. */
#ifndef DATPERF_STATS_H
#define DATPERF_STATS_H
#include <stddef.h>
#include <stdint.h>

/* Times in microseconds. */
struct stats {
	uint32_t count;
	double min, median, mean, p99, p999, max;
};

/* Sorts the times, and returns their statistics. `count` is at least 1. */
struct stats stats_of(double *times, uint32_t count);

enum { HISTOGRAM_BUCKETS = 24 };

/* The sample in four buckets for each doubling, from its least value on. The last bucket also has all larger
 * values. `from` is the lower border of a bucket in microseconds. */
struct histogram {
	unsigned buckets;
	double from[HISTOGRAM_BUCKETS];
	uint32_t counts[HISTOGRAM_BUCKETS];
};

/* Returns the histogram of the times, which must be sorted. */
struct histogram histogram_of(const double *times, uint32_t count);

#endif
