/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup.h - finds and releases the provider of an IA, and tells whether a name exists (lookup.c). */
#ifndef DAT_LOOKUP_H
#define DAT_LOOKUP_H
#include <dat/udat.h>
#include <stdbool.h>

struct provider;

/* Finds and holds the provider of an IA, and loads it if needed. The error tells which part of
 * the key was not found. Called without the registry's lock, which both take. */
DAT_RETURN registry_get(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN thread_safe, struct provider **provider);
/* Unloads the library if this was its last user. */
void registry_put(struct provider *provider);

/* Returns whether an open could find an IA of this name. Called with the registry's lock held. */
bool name_is_known(const char *name);

#endif
