/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapters.h - shows the entries of the registry: where each comes from, whether its IA opens, what the IA
 * can do, and how to fix an entry that does not open. */
#ifndef TOOLS_INFO_ADAPTERS_H
#define TOOLS_INFO_ADAPTERS_H
#include <stdbool.h>

struct adapters_options {
	char *const *names;	/* of IAs; none: all */
	int count;
	bool verbose, json;
	unsigned seconds;	/* that a provider may take to open an IA */
};

/* Prints the entries. Returns the exit status: with names 0 if all of them open, otherwise 0 if any entry
 * opens. */
int adapters_show(const struct adapters_options *options);

#endif
