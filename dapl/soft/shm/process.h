/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* process.h - the processes that share memory: this one, for one device, and its peers. Each has a
 * wake-up eventfd, an MR directory (mr_dir.h) and a pending bitmap (pending.h). Segments refer to the
 * processes on both sides; a process is freed with its last reference. */
#ifndef SOFT_PROCESS_H
#define SOFT_PROCESS_H
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "common/lock.h"

struct dapl_device;
struct shm_mr_dir;
struct shm_pending;

/* A process with shared memory: this one, for one device, or a peer. */
struct shm_process {
	uint64_t id;
	unsigned refs;			/* guarded by process_lock (process.c) */
	int wake_fd;			/* eventfd */
	int file, pending_file;		/* this process: of mr_dir and pending, to be passed to
					 * peers */
	struct shm_mr_dir *mr_dir;
	struct shm_pending *pending;
	uint32_t *sleep_count;		/* in mr_dir */
	uint32_t notified;		/* atomic: the sleep count for which wake_fd was signaled */

	/* Direct access. The descriptors of a peer are opened when it is first reached. */
	struct dapl_mutex reach_lock;	/* guards the fields below and the window file of this
					 * process */
	/* may be read without the lock */
	enum { SOFT_REACH_UNTRIED, SOFT_REACH_YES, SOFT_REACH_NO } reach;
	int window_file;		/* of this process, or of a peer that was reached, and constant then;
					 * else -1 */
	int pidfd;			/* of a peer; else -1 */
	pid_t pid;			/* constant once it is reached */
	uint64_t seen_ns;		/* when the process was last seen alive */

	LIST_ENTRY(shm_process) link;
};

enum { PROCESS_FDS = 3 };	/* descriptors that make a process known to a peer: its eventfd, MR
				 * directory, pending bitmap */

/* The process of the device, made when it is first needed. NULL: errno says why. Progress lock
 * held. */
struct shm_process *shm_process_own(struct dapl_device *dev);
/* A reference to the peer process with this id. The function takes over the PROCESS_FDS
 * descriptors. NULL: they are not what they should be, or there is no memory. */
struct shm_process *shm_process_of_peer(uint64_t id, const int *fds);
/* The descriptors of the own process that its peers need. */
void shm_process_fds(const struct shm_process *process, int *fds);
void shm_process_get(struct shm_process *process);
void shm_process_put(struct shm_process *process);	/* may be NULL */
void shm_process_fork_prepare(void);
void shm_process_fork_done(void);
/* Closes the descriptors of the parent. The references to the memory are forgotten, not freed. */
void shm_process_fork_child(void);

/* Signals the wake-up eventfd of a peer whose sleep count was read as `sleep_count`: at most once
 * for each value. */
void shm_notify_wake(struct shm_process *process, uint32_t sleep_count);
/* Signals this device's own wake-up eventfd: the service thread looks at the rings once more. */
void shm_notify_self(struct shm_process *process);
/* Clears this device's own wake-up eventfd. Progress lock held. */
void shm_notify_clear(struct dapl_device *dev);

#endif
