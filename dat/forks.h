/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* forks.h - what the libraries of providers do around a fork. The registry's own fork handlers
 * (registry.c) call these functions.
 *
 * Handlers that the libraries install themselves would not be enough: fork() calls only those that were
 * installed when it began, and the registry's handler may wait until a library is loaded. In the child the
 * locks of such a library could be held for ever, by threads that the child lacks. */
#ifndef DAT_FORKS_H
#define DAT_FORKS_H
#include <dat/udat.h>

/* Called by a provider's library when it is loaded: `before` takes its locks before a fork; `parent` and
 * `child` release them after it. Returns DAT_INSUFFICIENT_RESOURCES if memory is short. */
DAT_RETURN dats_fork_add(void (*before)(void), void (*parent)(void), void (*child)(void));
/* Called by the library before it is unloaded. Waits until a fork that has called `before` has called
 * the other function, too. */
void dats_fork_remove(void (*before)(void));

/* Calls `before` of all libraries. None is added or removed until one of the other functions has returned. */
void forks_before(void);
void forks_parent(void);
void forks_child(void);

#endif
