/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - keeps the library in place for a thread that is in one of its fork handlers. The work
 * of the handlers is in the files that register them. */
#ifndef DAPL_FORK_H
#define DAPL_FORK_H

/* First and last in every handler given to pthread_atfork(). */
void dapl_fork_enter(void);
void dapl_fork_leave(void);

/* The library is about to be unmapped. fork() calls handlers without a lock that dlclose()
 * would wait for, and one may be waiting for a lock of ours: waits until all have left, for
 * a second at most (at exit they may never). */
void dapl_fork_wait(void);

#endif
