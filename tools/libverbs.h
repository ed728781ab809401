/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libverbs.h - finds functions of libibverbs, which the tools load only when they need it. Which functions, and what
 * is done with them, is the caller's. */
#ifndef TOOLS_LIBVERBS_H
#define TOOLS_LIBVERBS_H
#include <stddef.h>

struct libverbs_function {
	const char *name;
	void **to;	/* a pointer to a function */
};

/* NULL: all are found, now or by an earlier call, which has set *handle. Else why not, until the next call. The
 * library stays loaded. */
const char *libverbs_load(void **handle, const struct libverbs_function *functions, size_t count);

#endif
