/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.h - functions of libdat2 that registries of other projects lack. */
#ifndef DAPL_REGISTRY_H
#define DAPL_REGISTRY_H

/* Returns the function's address, or NULL if the program's registry lacks it. */
void *dapl_registry_function(const char *name);

#endif
