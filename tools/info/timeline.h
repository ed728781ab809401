/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timeline.h - datinfo --timeline: the trace records of several processes side by side, by time. */
#ifndef TOOLS_INFO_TIMELINE_H
#define TOOLS_INFO_TIMELINE_H
#include <stdbool.h>

enum { TIMELINE_FILES = 4 };	/* columns that fit into 80 characters */

/* `files` are the `count` files after the first. */
void timeline_show(const char *first, char *const *files, int count, bool json);

#endif
