/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* provider.h - the entries of dat.conf for which the registry has called dat_provider_init (provider.c). */
#ifndef DAPL_PROVIDER_H
#define DAPL_PROVIDER_H

struct dapl_entry;

/* Returns the entry of this name, or NULL if the registry has initialised none. Takes the lock of the
 * entries. */
struct dapl_entry *dapl_entry_find(const char *name);

#endif
