/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top.h - traffic of all programs of the user, as a process viewer shows their processor time. */
#ifndef TOOLS_INFO_TOP_H
#define TOOLS_INFO_TOP_H
#include <stdbool.h>
#include "tools/info/top_rows.h"

struct top_options {
	double seconds;			/* between two tables */
	unsigned long count;		/* tables that are printed below each other; 0: see top_show() */
	bool json;
	enum top_by by;
	enum top_sort sort;
	const char *filter;		/* "": all rows */
};

/* Each parses the value `text` of `option`. Another word is a usage error. */
enum top_by top_parse_by(const char *option, const char *text);
enum top_sort top_parse_sort(const char *option, const char *text);

/* With a count, prints so many tables, each below its time; as JSON an array on each line. Without (0), renews the
 * table on a terminal, where keys select, and prints one table elsewhere. Returns the exit status. */
int top_show(const struct top_options *options);

#endif
