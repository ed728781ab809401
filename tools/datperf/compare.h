/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compare.h - measures the path and this host without DAT, in the size of a measurement (--compare). */
#ifndef DATPERF_COMPARE_H
#define DATPERF_COMPARE_H
#include "measure.h"

/* 0: not measured. */
struct comparison {
	double tcp_us, verbs_us;                     /* microseconds */
	double tcp_bytes, verbs_bytes, memcpy_bytes; /* a second */
};

/* Finds the RDMA device of the adapter. Returns NULL, or the reason why raw verbs are left out. */
const char *compare_begin(const struct adapter *a);
struct comparison compare(struct group *g, const struct setting *s);

#endif
