/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plot.h - a chart of values over the size of a transfer, as SVG (--plot). The file is replaced with each
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

/* Checks that the file can be written: calls fail() if not, or if it is not a regular file. The file is first
 * replaced by the first value. */
void plot_open(const char *path);
/* Sets the title of the whole chart. */
void plot_set_title(const char *title);
/* Returns false, after a line, if the file could not be written. It has the last chart that could, or is as it was
 * before. */
bool plot_close(void);
/* A series of comparisons has a dashed line. A value of a side that shared its processor is a hollow point, which a
 * line below the diagrams explains. */
enum plot_value { PLOT_RESULT, PLOT_DISTURBED, PLOT_COMPARISON };
/* Adds a value, in microseconds or MB/s. `series` is the name of a series, a constant string.
 * Does nothing if the value is not above 0, or if there is no chart. */
void plot_add(enum plot_panel panel, const char *series, enum plot_value kind, size_t bytes,
	      double value);

#endif
