/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nearest.h - which environment variable, or other known name, a misspelt name may mean. */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H
#include <stdbool.h>
#include <stddef.h>

/* Returns whether variables.h has the name. */
bool variable_is_known(const char *name);
/* Returns the one of `names` with the fewest edits to `name`, NULL if none is near. */
const char *nearest_name(const char *name, const char *const *names, size_t count);
/* Returns the known name with the fewest edits to `name`, NULL if none is near. */
const char *variable_nearest(const char *name);

#endif
