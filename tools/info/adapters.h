/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapters.h - the entries of the registry: where each comes from, whether it opens, what it can do, and
 * how to fix what does not open. */
#ifndef TOOLS_INFO_ADAPTERS_H
#define TOOLS_INFO_ADAPTERS_H
#include <stdbool.h>

struct adapters_options {
	char *const *names;	/* of IAs; none: all */
	int count;
	bool verbose, json;
	unsigned seconds;	/* that a provider may take to open an IA */
};

/* Prints them. Returns the exit status: 0 if one opens, or, with names, if all of them do. */
int adapters_show(const struct adapters_options *options);

#endif
