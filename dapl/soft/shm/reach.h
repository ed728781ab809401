/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reach.h - whether this process may access the memory of a peer process, and whether the peer still
 * runs. */
#ifndef SOFT_REACH_H
#define SOFT_REACH_H
#include <stdbool.h>
#include <sys/types.h>

struct shm_process;

/* True: the memory of the peer can be accessed. The first call finds out; later ones look whether the
 * process has ended. */
bool reach_memory(struct shm_process *peer);
/* True: the peer process is known to have ended. */
bool reach_process_has_ended(struct shm_process *peer);
/* Opens the file that process `pid` has open as descriptor `number`. -1: it cannot be opened. */
int reach_open_file(pid_t pid, int number);

#endif
