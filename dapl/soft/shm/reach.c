/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reach.c - see reach.h. A process id may be used again: the peer is known by the id in its memory, and a
 * pidfd tells when it has ended. */
#include "dapl/soft/shm/reach.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shared.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <linux/membarrier.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A peer without a pidfd is this process. */
static bool was_seen_lately(const struct shm_process *peer)
{
	return peer->pidfd < 0 || clock_coarse_ns() - READ_ONCE(peer->seen_ns) < PEER_ALIVE_NS;
}

/* Returns true if the process with this id lives. When it was reached, it was the peer. */
static bool lives(struct shm_process *peer)
{
	struct pollfd ended = { .fd = peer->pidfd, .events = POLLIN };

	if (was_seen_lately(peer))
		return true;
	WRITE_ONCE(peer->seen_ns, clock_coarse_ns());
	return poll(&ended, 1, 0) == 0;
}

/* Returns true if the memory of process `pid` has the peer's id where the peer says it is. */
static bool has_id(const struct shm_process *peer, pid_t pid)
{
	uint64_t id = 0;
	struct iovec here = { &id, sizeof id };
	struct iovec there = { (char *)(uintptr_t)peer->mr_dir->self +
			       offsetof(struct shm_mr_dir, id), sizeof id };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof id && id == peer->id;
}

int reach_open_file(pid_t pid, int number)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;	/* opening anything but a regular file may have side effects */
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int open_window_file(pid_t pid, int number)
{
	int fd = reach_open_file(pid, number);
	int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : 0;

	if (seals >= 0 && (seals & F_SEAL_GROW) && (seals & F_SEAL_SEAL))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Called once for each peer process, with reach_lock held. */
static bool try_to_reach(struct shm_process *peer)
{
	pid_t pid = __atomic_load_n(&peer->mr_dir->pid, __ATOMIC_ACQUIRE);

	assert_held(&peer->reach_lock);
	if (pid <= 0)
		return false;
	if (peer->file < 0) {		/* another process */
		peer->pidfd = syscall(SYS_pidfd_open, pid, 0);
		if (peer->pidfd < 0)
			return false;
	}
	if (!has_id(peer, pid) || !lives(peer))
		return false;
	if (peer->file < 0)		/* only now is it known that the file belongs to the peer */
		peer->window_file = open_window_file(pid, peer->mr_dir->fd);
	peer->pid = pid;
	soft_trace(TRC_LVL_DETAIL, "process", peer, "process %d can be accessed", pid);
	return peer->window_file >= 0;
}

bool reach_memory(struct shm_process *peer)
{
	bool reached;

	if (likely(__atomic_load_n(&peer->reach, __ATOMIC_ACQUIRE) == SOFT_REACH_YES) &&
	    likely(was_seen_lately(peer)))
		return true;
	dapl_mutex_lock(&peer->reach_lock);
	if (unlikely(peer->reach == SOFT_REACH_UNTRIED)) {
		reached = try_to_reach(peer);
		__atomic_store_n(&peer->reach, reached ? SOFT_REACH_YES : SOFT_REACH_NO,
				 __ATOMIC_RELEASE);
	}
	if (peer->reach == SOFT_REACH_YES && unlikely(!lives(peer)))
		WRITE_ONCE(peer->reach, SOFT_REACH_NO);
	reached = peer->reach == SOFT_REACH_YES;
	dapl_mutex_unlock(&peer->reach_lock);
	return reached;
}

bool reach_process_has_ended(struct shm_process *peer)
{
	struct pollfd ended = { .events = POLLIN };
	pid_t pid = READ_ONCE(peer->mr_dir->pid);

	reach_memory(peer);	/* opens the pidfd at the first call, if there is a process */
	ended.fd = peer->pidfd;
	if (ended.fd >= 0)
		return poll(&ended, 1, 0) > 0;
	return peer->file < 0 && pid > 0 && kill(pid, 0) && errno == ESRCH;
}

/* --- fences ------------------------------------------------------------------------------------- */

static int barrier(int command)
{
	return syscall(SYS_membarrier, command, 0);
}

bool reach_fence_is_possible(void)
{
	int commands = barrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void reach_fence_peers(void)
{
	barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* 0: not tried yet; 1: registered; -1: not possible */
static int registered;

bool reach_fence_joined(void)
{
	if (!READ_ONCE(registered))
		WRITE_ONCE(registered, barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? -1 : 1);
	return READ_ONCE(registered) > 0;
}

void reach_fence_fork_child(void)
{
	registered = 0;
}
