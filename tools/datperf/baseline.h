/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline.h - measures memcpy() of this host, for comparison. tcp.h has TCP to the peer, baseline_verbs.h raw
 * verbs. */
#ifndef DATPERF_BASELINE_H
#define DATPERF_BASELINE_H
#include <stddef.h>

/* Takes about `seconds`. Returns the bytes a second, in copies of `size` bytes. */
double baseline_memcpy_bandwidth(size_t size, double seconds);

#endif
