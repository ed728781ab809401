/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limit.h - the limit tests: create objects of one kind until that fails, or up to a maximum, free
 * them, and create one more. They need no server. */
#ifndef DAPLTEST_LIMIT_H
#define DAPLTEST_LIMIT_H
#include "options.h"

/* Runs the named tests, or all tests. Returns the exit status. */
int limit_run(const struct options *o);

#endif
