/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - the fork handlers of the library. A part of the library that has locks or descriptors registers
 * functions that are called around a fork.
 *
 * The registry calls the handlers (dat/forks.h). A registry of another project does not: then fork()
 * calls them, unless it had begun before the library was loaded. The child of such a fork may find locks
 * held for ever. */
#ifndef DAPL_FORK_H
#define DAPL_FORK_H
#include "common/lock_rank.h"

/* `before` takes the locks that the child could otherwise find held for ever; the other two release them.
 * Before the fork, parts with a low `rank` come first, so that all locks are taken in their order. After
 * the fork they come last. A NULL function is skipped. */
struct dapl_fork_part {
	enum lock_rank rank;	/* of the first lock that `before` takes */
	void (*before)(void), (*parent)(void), (*child)(void);
	struct dapl_fork_part *next;
};

/* The part stays registered until the library is unloaded. Waits for a fork that has begun, which does not
 * call it: until the function returns, the part's locks are free. */
void dapl_fork_register(struct dapl_fork_part *part);

/* Called before the library is unmapped. Waits until no thread is in a handler. If fork() calls the
 * handlers, and not the registry, it waits a second at most: at exit a handler may wait for a lock that is
 * never released. */
void dapl_fork_end(void);

#endif
