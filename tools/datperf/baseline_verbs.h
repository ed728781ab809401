/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline_verbs.h - what libibverbs does without DAT, to compare with: two processes of this host over the
 * same port of an RDMA device. The library is loaded when it is asked for, so that datperf runs on a
 * machine without it. */
#ifndef DATPERF_BASELINE_VERBS_H
#define DATPERF_BASELINE_VERBS_H
#include <stddef.h>
#include <stdint.h>

enum verbs_op { VERBS_SEND, VERBS_WRITE, VERBS_WRITE_IMMEDIATE, VERBS_READ, VERBS_FETCH_ADD };

/* Selects a device by its name. `gid`: the address of the port to use, as text; `reads`: RDMA reads and
 * atomics under way at a time. Returns NULL, or why there is nothing to compare with: text that is valid
 * until the next call. */
const char *baseline_verbs_find(const char *device, unsigned port, const char *gid, unsigned reads);

/* As baseline.h; polling, for about `seconds`. baseline_verbs_find() has returned NULL. */
double baseline_verbs_latency(enum verbs_op op, size_t size, double seconds);
double baseline_verbs_bandwidth(enum verbs_op op, size_t size, double seconds);

#endif
