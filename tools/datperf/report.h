/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.h - the output of datperf: tables, CSV, JSON, histograms. Each result is written as it is
 * measured, so that an interrupted run keeps what it has. */
#ifndef DATPERF_REPORT_H
#define DATPERF_REPORT_H
#include "compare.h"

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

/* On a terminal: one line on stderr that tells what is being measured, and its end. report_result() ends
 * it, too. */
void report_progress(const struct setting *s);
void report_end_progress(void);

/* compares: results have a comparison; no_verbs: why raw verbs are not measured, NULL if they are. */
void report_begin(enum format format, const struct group *g, const char *peer, bool compares,
		  const char *no_verbs);
/* histogram: with the distribution of the times, which is not for CSV. */
void report_result(const struct setting *s, const struct result *r, const struct comparison *c,
		   bool histogram);
/* A test that was not done, and why. */
void report_skipped(enum test test, const char *why);
void report_end(bool interrupted);

/* "64 KiB", "8". Valid until the next call. */
const char *size_text(size_t size);

#endif
