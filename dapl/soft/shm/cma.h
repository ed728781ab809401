/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cma.h - what a device tells its peers on this host, so that they can write and read its memory
 * themselves while no thread here polls: the MR directory, the first part of the shared file of a
 * process. cma.c, rmem_map.c and revoke.c use it; doc/design/soft-shared-memory.md argues why it is
 * safe. */
#ifndef SOFT_CMA_H
#define SOFT_CMA_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/once.h"
#include "dapl/soft/shm/ring.h"

struct dapl_conn;
struct iovec;
struct shm_conn;
struct soft_qp;
struct soft_region;
struct shm_process;
struct soft_swqe;

/* Allows other processes to access the memory of this one, whose directory it is. If any step
 * fails, they may not. */
void mr_dir_open(struct shm_process *process);
/* Closes the descriptors for direct access, of this process or of a peer. */
void mr_dir_close(struct shm_process *process);
/* stags_lock held. After the withdrawal no peer finds the region any more. True: peers that found
 * it before may be within a write to it (revoke_wait_for_writers). */
void mr_dir_publish(struct shm_process *process, const struct soft_region *region);
bool mr_dir_withdraw(struct shm_process *process, const struct soft_region *region);

/* Allows the peer of the connection to access what the QP permits. qp->lock held. */
void shm_grant_open(struct soft_qp *qp, struct dapl_conn *conn);
/* No longer allows it. True: no access goes on. qp->lock held. */
bool shm_grant_revoke(struct dapl_conn *conn);

/* --- the initiator: a permission that the peer gives ------------------------------------------ */

struct mr_permit {
	const struct ring_grant *grant;
	const struct mr_dir_entry *entry;
	struct mr_dir_entry is;		/* a copy of *entry */
};

/* False: the peer gives no permission for any of the rights in `needed` (IBV_ACCESS_REMOTE_*). */
bool mr_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed,
		      struct mr_permit *permit);

static inline bool mr_permit_is_valid(const struct mr_permit *permit)
{
	return __atomic_load_n(&permit->entry->version, __ATOMIC_ACQUIRE) == permit->is.version &&
	       __atomic_load_n(&permit->grant->pd, __ATOMIC_ACQUIRE) == permit->is.pd;
}

/* True: the permission is still valid after all that was read before. */
static inline bool mr_permit_still_valid(const struct mr_permit *permit)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return mr_permit_is_valid(permit);
}

static inline bool mr_permit_covers(const struct mr_permit *permit, uint64_t remote,
				      uint64_t length)
{
	const struct mr_dir_entry *is = &permit->is;

	return remote + length >= remote && remote >= is->first && length <= is->length &&
	       remote - is->first <= is->length - length;
}

/* True: the memory of the peer can be accessed. Found out once; false also when its process has
 * ended. */
bool cma_reaches(struct shm_process *peer);
/* True: the peer process has ended, as far as can be told. */
bool shm_process_has_ended(struct shm_process *peer);
/* Opens the file that process `pid` has open as descriptor `number`. -1: it cannot be opened. */
int shm_process_open_file(pid_t pid, int number);

/* Executes the request at the cursor in the memory of the peer; it is the only one outstanding. False: it
 * is to be sent: CMA is not permitted, or failed. True: the caller calls soft_qp_complete_sends().
 * qp->lock held. */
bool cma_execute(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);
/* Has the kernel copy a large read. All requests before it have been executed. False: it did not, and
 * the read takes the ring. qp->lock held. */
bool cma_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);
/* Reads into `to`, local memory. No request is before it. False: it was not read, and nothing is
 * known. qp->lock held. */
bool cma_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
			  uint32_t length);
/* Allows, or no longer allows, the peer to copy payloads that were sent by rendezvous. After
 * rndv_disable() the peer discards what it copies. qp->lock held. */
void rndv_enable(struct shm_conn *shm);
void rndv_disable(struct shm_conn *shm);
/* Copies the payload of a rendezvous from the memory of the peer. False: this process may not, or
 * the payload was withdrawn. */
bool rndv_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces,
		       uint32_t length);
/* True: the peer has withdrawn its payloads: they will never be there. */
bool rndv_is_cancelled(const struct dapl_conn *conn);

#endif
