/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* matrix.h - the results of all pairs of hosts (--hosts): which pairs and hosts are slow, and the output. */
#ifndef DATPERF_MATRIX_H
#define DATPERF_MATRIX_H
#include "limits.h"
#include "whole_file.h"
#include <stdbool.h>

enum { MATRIX_HOSTS = 64 };	/* at most: 2016 pairs, an hour and more */

struct pair {
	bool measured;
	double latency;		/* us: the median of send-lat, 8 bytes */
	double bytes;		/* a second: write-bw, 1 MiB */
	bool slow;
};

struct matrix {
	const char *const *hosts;
	int count;
	struct pair pairs[MATRIX_HOSTS][MATRIX_HOSTS];	/* [client][server], the client is the earlier host */
	bool slow[MATRIX_HOSTS];
};

/* Returns the result of two hosts, in either order; NULL for a host and itself. */
const struct pair *matrix_pair(const struct matrix *m, int a, int b);
/* Marks slow pairs and hosts. A pair is slow if its latency is more than 1.5 times what a quarter of the pairs
 * reaches, or its bandwidth less than two thirds of that. A host is slow if all its pairs are, and those without
 * it are not all. */
void matrix_judge(struct matrix *m);
/* Returns whether all pairs were measured and keep the limits. */
bool matrix_keeps(const struct matrix *m, const struct limits *limits);
/* Print tables and the slow pairs and hosts; or one JSON object. */
void matrix_print(const struct matrix *m, const struct limits *limits);
void matrix_print_json(const struct matrix *m, const struct limits *limits);
/* Draws both tables as an SVG image, which replaces the file. Calls fail() if that cannot be written. */
void matrix_draw(const struct matrix *m, struct whole_file *file);

#endif
