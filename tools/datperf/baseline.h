/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline.h - measures the host without RDMA, for comparison: TCP on the loopback interface between
 * two processes, and memcpy(). Each measurement takes about `seconds`. */
#ifndef DATPERF_BASELINE_H
#define DATPERF_BASELINE_H
#include <stddef.h>

/* Returns the median of half a round trip of `size` bytes, in microseconds. */
double baseline_tcp_latency(size_t size, double seconds);
/* Return the bytes a second, in messages or copies of `size` bytes. */
double baseline_tcp_bandwidth(size_t size, double seconds);
double baseline_memcpy_bandwidth(size_t size, double seconds);

#endif
