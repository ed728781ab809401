/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* provider.h - the entries of dat.conf that the registry has initialised (provider.c). */
#ifndef DAPL_PROVIDER_H
#define DAPL_PROVIDER_H

struct dapl_entry;

/* The entry that the registry initialised for this name; NULL: none. Takes the lock
 * of the entries. */
struct dapl_entry *dapl_entry_find(const char *name);

#endif
