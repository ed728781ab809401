/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup.h - what the registry knows of a name. lookup.c implements registry_get() and registry_put() of
 * registry.h, too. */
#ifndef DAT_LOOKUP_H
#define DAT_LOOKUP_H
#include <stdbool.h>

/* Returns whether an open could find an IA of this name. Called with the registry's lock held. */
bool name_is_known(const char *name);

#endif
