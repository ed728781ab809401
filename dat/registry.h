/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.h - which IAs exist, which provider serves each, and how many users a provider has.
 * To open an IA, ia.c gets a provider, calls it, and puts it when the IA closes (lookup.h). */
#ifndef DAT_REGISTRY_H
#define DAT_REGISTRY_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>
#include <stddef.h>

struct reading;

/* One registration. May be read between registry_get() and registry_put(). */
struct provider {
	struct provider *next;
	DAT_PROVIDER_INFO info;
	const DAT_PROVIDER *table;
	struct entry *owner;	/* the entry whose library registered it; NULL: none did */
	unsigned users;		/* under the registry's lock */
};

/* Reads variables and files, once. Each exported call that may be a program's first begins
 * with it. May be called in the constructor of a library that was loaded before this one. */
void registry_start(void);

/* Returns the current reading with a reference, which reading_put() drops; NULL if there was no memory to
 * read the files. Starts the registry. */
struct reading *registry_hold_reading(void);

/* Takes the registry's locks before a fork, or releases them after it. */
void registry_fork(bool begins);

#endif
