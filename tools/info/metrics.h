/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* metrics.h - datinfo --metrics: traffic, endpoints and failures of programs in the text format of Prometheus
 * (version 0.0.4). Not responsible for: what the counters mean (dapl/core/ia/counters.c). */
#ifndef TOOLS_INFO_METRICS_H
#define TOOLS_INFO_METRICS_H

#include <stddef.h>

/* Returns the metrics of all programs of this user, or of all users for root. The caller frees the text. Stores its
 * length. If memory lacks, the program fails with one line. Only the main thread may call it. */
char *metrics_text(size_t *length);

/* Prints them once. Returns the exit status. */
int metrics_print(void);
/* Answers GET /metrics over HTTP at "PORT", "ADDRESS:PORT" or "[V6]:PORT" until the tool is interrupted; without an
 * address at the loopback addresses only. Returns the exit status. */
int metrics_serve(const char *where);

#endif
