/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reach.h - peer processes: whether this one may access their memory, whether they still run, and full fences in
 * them. */
#ifndef SOFT_REACH_H
#define SOFT_REACH_H
#include <stdbool.h>
#include <sys/types.h>

struct shm_process;

/* Returns true if the memory of the peer can be accessed. The first call finds out; later ones look whether the
 * process has ended. */
bool reach_memory(struct shm_process *peer);
/* Returns true if the peer process is known to have ended. */
bool reach_process_has_ended(struct shm_process *peer);
/* Opens the file that process `pid` has open as descriptor `number`. -1: it cannot be opened. */
int reach_open_file(pid_t pid, int number);

/* --- fences: a process that stores to a peer's memory need not fence each store. The target, which revokes access
 * seldom, makes the fence in its place, by membarrier(2). --------------------------------------------------------- */

/* Returns true if reach_fence_peers() works. */
bool reach_fence_is_possible(void);
/* A full fence in every process that has called reach_fence_joined(). */
void reach_fence_peers(void);
/* Registers this process for the fences of others, at the first call. Returns false if that is not possible. */
bool reach_fence_joined(void);
void reach_fence_fork_child(void);

#endif
