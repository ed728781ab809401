/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture_report.h - tells the user what a capture has taken and lost: a line each second, the summary at its end.
 * Called by the main thread, unless a comment says something else. */
#ifndef DATCAP_CAPTURE_REPORT_H
#define DATCAP_CAPTURE_REPORT_H
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

struct capture;

/* Adds up the statistics of all devices. Any thread. */
void capture_report_read(struct capture *c, DAT_ETH_STATS *sum);
/* Counts losses in the rings as the program's if a call of output.c is blocked. Any thread. */
void capture_report_look(struct capture *c);
/* Prints the line for the second that has passed. */
void capture_report_second(struct capture *c);
/* Shows the number of frames on a terminal, over the number of the last second. */
void capture_report_count(struct capture *c);
/* Prints the summary, and what made frames short or lost. `sum` is of capture_report_read(). */
void capture_report_end(struct capture *c, const DAT_ETH_STATS *sum);

#endif
