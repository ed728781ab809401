/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* providers.h - the dynamic registry: providers that their libraries, or the program, registered. All
 * functions are called with the registry's lock held. */
#ifndef DAT_PROVIDERS_H
#define DAT_PROVIDERS_H
#include "dat/registry_state.h"

/* Returns whether the provider serves opens. That of a replaced entry, which has open IAs, does so while
 * the files have an entry with its key, whatever library that entry names now: no library can register a
 * key twice, and IAs of one name may share their asynchronous EVD. */
bool provider_is_current(const struct provider *provider);

/* Returns the provider that serves opens with this key, or NULL. */
struct provider *provider_find(const DAT_PROVIDER_INFO *key);

/* Removes the registrations that dat_provider_fini left: they would point into unmapped
 * memory. */
void provider_unlink_of(const struct entry *e);
/* Frees all at the end of the process. */
void provider_free_all(void);

#endif
