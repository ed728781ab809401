/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plot.h - a chart of values over the size of a transfer, as SVG (--plot). The file is rewritten with each
 * value, so that it is whole whenever the run ends. report.c supplies the values. */
#ifndef DATPERF_PLOT_H
#define DATPERF_PLOT_H
#include <stdbool.h>
#include <stddef.h>

/* A panel with values is a diagram of its own. */
enum plot_panel { PLOT_LATENCY, PLOT_BANDWIDTH, PLOT_PANELS };

enum {
	PLOT_SERIES = 12, /* of a panel, at most; more are left out */
	PLOT_POINTS = 32  /* of a series, at most; more are left out */
};

/* Opens the file. Calls fail() if it cannot be written, or is not a regular file. */
void plot_open(const char *path);
/* Sets the title of the whole chart. */
void plot_set_title(const char *title);
/* Adds a value, in microseconds or MB/s. `series` is the name of a series, a constant string. The line of a
 * `comparison` is dashed. Does nothing if the value is not above 0, or if no file is open. */
void plot_add(enum plot_panel panel, const char *series, bool comparison, size_t bytes,
	      double value);

#endif
