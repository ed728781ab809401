/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* busy.h - entries whose library is being loaded or unloaded. Other threads that need the entry wait
 * until it is idle. The thread that made it busy does not wait: what its own call has not finished
 * does not exist yet. A thread that waits to fork, or to replace the entries, takes precedence over
 * threads that begin to load.
 *
 * All functions are called with the registry's lock held, and return with it held, except where
 * busy_begin() and busy_end() say otherwise. */
#ifndef DAT_BUSY_H
#define DAT_BUSY_H
#include "dat/entry_table.h"
#include <stdbool.h>

/* Drops the lock, so that code of the provider may run. */
void busy_begin(struct entry *e);
/* Takes the lock again. */
void busy_end(struct entry *e);

bool busy_by_other(const struct entry *e);
bool busy_by_this_thread(const struct entry *e);
/* Returns the entry that this thread made busy last and has not finished. */
struct entry *busy_here(void);
/* Returns whether an entry is busy. */
bool busy_any(void);
/* Returns the entry on whose behalf the calling code runs. That is the entry this thread is
 * loading. If there is none, it is an entry with this key that another thread is loading: an
 * init can start a thread. */
struct entry *busy_entry_of_caller(const DAT_PROVIDER_INFO *info);

/* Waits until an entry is no longer busy. */
void busy_wait(void);
/* Called before a load or an unload. Otherwise threads that load and unload in turn could
 * delay a fork for ever. A thread that is itself in the middle of a load does not wait,
 * because the fork waits for it. */
void busy_wait_for_forks(void);
/* Waits until no library is being loaded or unloaded. Other threads do not begin to load or unload
 * meanwhile. Returns false if a provider takes longer than one second. */
bool busy_wait_until_idle(void);
/* Waits until no other thread loads or unloads. The wait ends after one second, however long a
 * provider takes. Until one of the other two functions is called, no thread begins to load or unload. */
void busy_before_fork(void);
void busy_after_fork(void);
/* Ends the busy state of entries whose threads do not exist in the child. */
void busy_after_fork_in_child(void);

#endif
