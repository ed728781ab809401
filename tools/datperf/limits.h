/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.h - what a run must reach (--max-lat, --min-bw), compared with its results. */
#ifndef DATPERF_LIMITS_H
#define DATPERF_LIMITS_H
#include "measure.h"
#include <stdio.h>

struct limits {
	double latency;   /* us, of the median; 0: no limit */
	double bandwidth; /* bits a second; 0: no limit */
};

/* Returns whether there is a limit. */
bool limits_given(const struct limits *l);
/* Keeps the result if it is the worst of its kind. */
void limits_note(const struct setting *s, const struct result *r);
/* Returns whether each limit is kept: there are results of that kind, and the worst one is within. */
bool limits_kept(const struct limits *l);
/* Prints one line: the results that decide, the limits, and whether they are kept. */
void limits_print(FILE *f, const struct limits *l);
/* Prints the same as members of a JSON object, with a comma in front. */
void limits_print_json(const struct limits *l);

#endif
