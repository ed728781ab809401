/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry_state.h - the static registry (entries of dat.conf) and the dynamic registry (providers
 * registered by code), for the files that work on them:
 *
 *	registry.c	reads the files, once and again
 *	library.c	fork; the end of the process
 *	lookup.c	finds the provider of an IA; the only code that decides to load or unload a library
 *	providers.c	what provider libraries call
 *	listing.c	names and lists of adapters
 *	busy.c		entries whose library is being loaded or unloaded
 *	forks.c		what the libraries do around a fork
 *
 * One lock guards both registries. It is never held while provider code or the dynamic linker
 * runs: an entry whose library is being loaded or unloaded is busy (busy.h). A provider and its entry
 * count their users. A user is counted before the lock is dropped, so that no unload removes the
 * code during an open. REG-51.
 *
 * A constructor of a library may take these locks, and start the registry, while it holds the dynamic
 * linker's lock. So no code here calls the linker while it holds a lock (REG-50). One deadlock remains possible:
 * a constructor opens an IA while another thread loads that IA's library. The constructor
 * waits for the other thread, which waits for the linker. */
#ifndef DAT_REGISTRY_STATE_H
#define DAT_REGISTRY_STATE_H
#include "dat/entry_table.h"
#include "dat/lock.h"
#include "dat/registry.h"
#include <stdbool.h>

struct registry {
	struct dat_mutex lock;		/* guards all else */
	bool started;			/* the files have been read; atomic, and seen without the lock */
	struct entry_table table;
	struct provider *providers;	/* in the order of registration */
};

extern struct registry registry;

/* Returns whether the files have been read. Needs no lock. */
static inline bool registry_has_started(void)
{
	return __atomic_load_n(&registry.started, __ATOMIC_ACQUIRE);
}

#endif
