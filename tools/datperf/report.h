/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.h - the output of datperf: tables, CSV, JSON, histograms. Each result is written as soon
 * as it is measured, so that an interrupted run keeps the results so far. */
#ifndef DATPERF_REPORT_H
#define DATPERF_REPORT_H
#include "compare.h"
#include "limits.h"

/* FORMAT_LIMITS: the line of the limits alone. */
enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_LIMITS };

/* Shows on stderr, if that is a terminal, a line with the present measurement. report_end_progress() and
 * report_result() remove the line. */
void report_progress(const struct setting *s);
void report_end_progress(void);

/* `gigabits`: tables have Gbit/s instead of MB/s. `timed`: each line begins with the time. `datagrams`: CSV has a
 * column for those that were lost. */
void report_use(bool gigabits, bool timed, bool datagrams);

/* `compares`: results have a comparison. `no_verbs`: NULL, or the reason why raw verbs are not measured. */
void report_begin(enum format format, struct group *g, const char *peer, bool compares,
		  const char *no_verbs);
/* `histogram`: with the distribution of the times, which CSV cannot have. */
void report_result(const struct setting *s, const struct result *r, const struct comparison *c,
		   bool histogram);
/* Reports that a test was left out, and the reason. */
void report_skipped(enum test test, const char *why);
/* Reports that sizes above `limit` were left out of a test, since a side has no larger target or MTU. */
void report_larger_left_out(enum test test, size_t limit);
/* `limits`: what the run must reach; limits_kept() tells whether it did. */
void report_end(bool interrupted, const struct limits *limits);

/* A rate of bytes a second in the unit of tables, the unit and the decimals. */
double report_rate(double bytes);
const char *report_rate_name(void);
int report_decimals(void);

/* Returns the mark behind the line of a result: " *" if a side shared its processor, which report_end() explains. */
const char *report_mark(const struct result *r);

/* Returns text like "64 KiB" or "8", which is valid until the next call. */
const char *size_text(size_t size);

#endif
