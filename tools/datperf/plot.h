/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plot.h - a chart of values over the size of a transfer, as SVG (--plot). The file is rewritten with each
 * value, so that it is whole whenever the run ends. What is measured is report.c's concern. */
#ifndef DATPERF_PLOT_H
#define DATPERF_PLOT_H
#include <stdbool.h>
#include <stddef.h>

/* Each has a diagram of its own, if it has values. */
enum plot_panel { PLOT_LATENCY, PLOT_BANDWIDTH, PLOT_PANELS };

enum {
	PLOT_SERIES = 12, /* of a panel, at most; more are left out */
	PLOT_POINTS = 32  /* of a series, at most; more are left out */
};

/* fail() if the file cannot be written, or is none that can be rewritten. */
void plot_open(const char *path);
/* Of the whole chart. */
void plot_set_title(const char *title);
/* A value above 0, in microseconds or MB/s. The name of the series is a constant. Only for comparison:
 * a dashed line. Does nothing unless a file is open. */
void plot_add(enum plot_panel panel, const char *series, bool comparison, size_t bytes,
	      double value);

#endif
