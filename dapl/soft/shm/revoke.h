/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.h - revokes the direct write access of peers on this host. A peer says when it is within a
 * write, and the target waits until it is not; a peer that stays there is cut off. cma.h says what
 * a permission is, doc/design/soft-shared-memory.md has the argument. */
#ifndef SOFT_REVOKE_H
#define SOFT_REVOKE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/once.h"
#include "dapl/soft/shm/ring.h"

struct dapl_conn;
struct iovec;
struct shm_conn;
struct shm_process;

/* --- the target ------------------------------------------------------------------------------ */

/* Makes the window file of this process. False: without it, peers may not access the memory. */
bool revoke_open(struct shm_process *process);
/* True: revoke_fence_peers() works. */
bool revoke_can_fence(void);
/* A full fence in every process that has called access_is_fenced(). */
void revoke_fence_peers(void);
/* Waits until the peer of the connection is no longer within a write that it began before, or
 * cannot begin its copy any more. Before the call, the permission was revoked and a full fence was
 * made; if the peer maps regions, revoke_fence_peers() was called as well. A peer that stays within
 * a write for a second is given up. qp->lock held. */
void revoke_wait(struct dapl_conn *conn);

/* --- the initiator, qp->lock held ---------------------------------------------------------------- */

/* From now on the target waits for this writer, if it revokes a permission that the writer looks
 * for after this call. `fenced`: the target calls revoke_fence_peers() first. */
static inline void access_begin(struct ring_writer *own, bool fenced)
{
	WRITE_ONCE(own->within, 1);
	if (likely(fenced))
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void access_end(struct ring_writer *own)
{
	__atomic_store_n(&own->within, 0, __ATOMIC_RELEASE);
}

/* Registers this process for the fences of others, at the first call. False: that is not possible. */
bool access_is_fenced(void);
void access_fork_child(void);

/* The open window, to be read before the permission. 0: none. */
uint64_t access_window(const struct shm_process *peer);
/* The iovec that tells the kernel to copy CMA_SHORT_MAX bytes from shm->bounce. It lies in memory
 * that is gone when the target has closed the window. NULL: the target has, or there is no memory. */
const struct iovec *access_source(struct shm_conn *shm, uint64_t window);
/* process_vm_writev(2) with this source. */
ssize_t access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int pieces);
void access_free(struct shm_conn *shm);

#endif
