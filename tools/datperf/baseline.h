/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline.h - what the host does without RDMA, to compare with: TCP on the loopback interface
 * between two processes, and memcpy(). */
#ifndef DATPERF_BASELINE_H
#define DATPERF_BASELINE_H
#include <stddef.h>

/* Half of a round trip of `size` bytes, the median in microseconds. Measures for about `seconds`. */
double baseline_tcp_latency(size_t size, double seconds);
/* Bytes a second, in messages of `size` bytes. */
double baseline_tcp_bandwidth(size_t size, double seconds);
double baseline_memcpy_bandwidth(size_t size, double seconds);

#endif
