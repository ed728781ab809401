/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline_verbs.h - measures libibverbs without DAT, for comparison: two processes of this host over the
 * same port of an RDMA device. The library is loaded by baseline_verbs_find(), so that datperf runs on
 * a machine without it. */
#ifndef DATPERF_BASELINE_VERBS_H
#define DATPERF_BASELINE_VERBS_H
#include <stddef.h>
#include <stdint.h>

enum verbs_op { VERBS_SEND, VERBS_WRITE, VERBS_WRITE_IMMEDIATE, VERBS_READ, VERBS_FETCH_ADD };

/* Selects a device by its name. `gid` is the address of the port to use, as text; `reads` the number of
 * RDMA reads and atomics in flight. Returns NULL, or the reason why the device cannot be measured: text that
 * is valid until the next call. */
const char *baseline_verbs_find(const char *device, unsigned port, const char *gid, unsigned reads);

/* Like baseline_tcp_latency() and baseline_tcp_bandwidth(); both processes poll. Call these only if
 * baseline_verbs_find() has returned NULL. */
double baseline_verbs_latency(enum verbs_op op, size_t size, double seconds);
double baseline_verbs_bandwidth(enum verbs_op op, size_t size, double seconds);

#endif
