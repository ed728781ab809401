/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.h - revokes the direct write access of peers on this host, in three phases:
 * 1. The caller unpublishes the permission, with its locks held, and makes a full fence.
 * 2. It waits without a lock until no peer is within a write that it may have begun before. A peer
 *    says when it is within a write; one that stays there is cut off after a while.
 * 3. It frees what the permission was for: the region, or the flushed requests of a QP.
 * Nothing sleeps with a lock held: a thread that holds the lock of a QP hands phases 2 and 3 to the
 * service thread. mr_dir.h says what a permission is, doc/design/soft-shared-memory.md has the argument. */
#ifndef SOFT_REVOKE_H
#define SOFT_REVOKE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "common/compiler.h"
#include "common/once.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/shm/shm_ring.h"

struct dapl_conn;
struct dapl_device;
struct iovec;
struct shm_conn;
struct shm_process;
struct shm_segment;
struct soft_qp;

/* --- the target ------------------------------------------------------------------------------ */

/* The access of the peer of a connection to the memory of this process, from the first grant until the
 * connection is gone and the peer is not within a write. It is part of the segment. */
struct shm_access {
	struct shm_segment *segment;	/* a reference while it is listed; NULL: not listed. Guarded
					 * by dev->accesses.lock, as the fields without another
					 * lock */
	struct shm_process *peer, *own;	/* constant */
	const struct ring_writer *writer;	/* of the peer; constant */
	bool granted;			/* the peer may begin an access; qp->lock */
	bool connected;
	bool timed_out;			/* atomic: the peer was within a write for too long */
	uint64_t waited;		/* the last revocation that this access was waited for, or
					 * did not concern */
	uint64_t looked;		/* the last round of the timer that looked at it */
	LIST_ENTRY(shm_access) link;	/* dev->accesses.list */
};

/* Allows the peer of the connection to access what the QP permits. qp->lock held. */
void shm_grant_open(struct soft_qp *qp, struct dapl_conn *conn);
/* No longer allows it. Returns true if no access goes on. qp->lock held. */
bool shm_grant_revoke(struct dapl_conn *conn);
/* The connection is gone. If the peer is within a write, the service thread drops its access later. */
void revoke_unwatch(struct dapl_conn *conn);
/* Phase 2 for a region: waits until each peer of the device is no longer within a write that it began
 * before, or cannot begin its copy any more. Before the call, the region was unpublished and a full
 * fence was made; if peers may map it, reach_fence_peers() was called as well. A peer that stays
 * within a write for a second is given up. No lock held. */
void revoke_wait_for_writers(struct dapl_device *dev);
/* Phase 2 for a grant whose peer is within a write: the service thread waits, then calls
 * soft_qp_end_flush(). qp->lock held. */
void revoke_before_flush(struct soft_qp *qp, struct shm_access *access);
/* The QP is reset or destroyed: waits in the place of the service thread. The QP is then not flushed.
 * No lock held. */
void revoke_instead_of_flush(struct soft_qp *qp);
/* The device is closed: no connection is left. */
void revoke_close(struct dapl_device *dev);

/* --- the initiator, qp->lock held ---------------------------------------------------------------- */

/* From now on the target waits for this writer, if it revokes a permission that the writer looks
 * for after this call. `fenced`: the target calls reach_fence_peers() first. */
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

/* The open window, to be read before the permission. 0: none. */
uint64_t access_window(const struct shm_process *peer);
/* The iovec that tells the kernel to copy CMA_SHORT_MAX bytes from shm->bounce. It lies in memory that
 * the kernel removes when the target closes the window. NULL: the window is closed, or there is no
 * memory. */
const struct iovec *access_source(struct shm_conn *shm, uint64_t window);
/* process_vm_writev(2) with this source. */
ssize_t access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int pieces);
void access_free(struct shm_conn *shm);

#endif
