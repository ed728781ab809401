/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top.h - traffic of all programs of the user, as a process viewer shows their processor time. */
#ifndef TOOLS_INFO_TOP_H
#define TOOLS_INFO_TOP_H
#include <stdbool.h>

/* With a count, prints so many tables, each `seconds` after the one before and below its time; as JSON an array on each
 * line. Without (0), renews the table each `seconds` on a terminal, and prints one table elsewhere. Returns the exit
 * status. */
int top_show(double seconds, unsigned long count, bool json);

#endif
