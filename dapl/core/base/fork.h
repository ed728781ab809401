/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - the fork handlers of the library. A part of the library that has locks or descriptors
 * registers what it does around a fork. The work is in the files that register. */
#ifndef DAPL_FORK_H
#define DAPL_FORK_H
#include <stdbool.h>
#include <sys/types.h>
#include "common/lock_rank.h"

/* `before` takes the locks that a thread of the child could find held for ever; the other two
 * release them. Parts with a low `rank` come first before the fork, and last after it: so all locks
 * are taken in their order. A NULL function does nothing. */
struct dapl_fork_part {
	enum lock_rank rank;	/* of the first lock that `before` takes */
	void (*before)(void), (*parent)(void), (*child)(void);
	struct dapl_fork_part *next;
};

/* The part stays registered until the library is unloaded. A fork that has begun does not call
 * it. */
void dapl_fork_register(struct dapl_fork_part *part);

/* Registers the part at the first call in a process; `home` is the part's, and 0 before. True in the child of a fork
 * that had begun before: its handlers have not run, and another thread of the parent may hold the part's locks for
 * ever. The caller makes them anew, and sets `home`. */
bool dapl_fork_missed(pid_t *home, struct dapl_fork_part *part);

/* The library is about to be unmapped. fork() calls handlers without a lock that dlclose()
 * would wait for, and one may be waiting for a lock of ours: waits until all have left, for
 * a second at most (at exit they may never). */
void dapl_fork_wait(void);

#endif
