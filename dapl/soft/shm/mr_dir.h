/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_dir.h - the MR directory, a file of a process that its peers on this host map: the regions that
 * they may write and read themselves. cma.c and rmem_map.c look permissions up in it.
 * doc/design/soft-shared-memory.md argues why it is safe. */
#ifndef SOFT_MR_DIR_H
#define SOFT_MR_DIR_H
#include <stdbool.h>
#include <stdint.h>
#include "common/once.h"
#include "dapl/soft/shm/shared.h"

struct dapl_conn;
struct shm_process;
struct soft_region;

/* Allows peers to access the memory of this process. If any step fails, they may not. */
void mr_dir_open(struct shm_process *process);
/* Closes the descriptors for direct access, of this process or of a peer. */
void mr_dir_close(struct shm_process *process);
/* stags_lock held. After the withdrawal no peer finds the region any more. Returns true if peers that found
 * it before may be within a write to it (revoke_wait_for_writers). */
void mr_dir_publish(struct shm_process *process, const struct soft_region *region);
bool mr_dir_withdraw(struct shm_process *process, const struct soft_region *region);

/* --- the initiator: a permission that the peer gives ------------------------------------------ */

struct mr_permit {
	const struct ring_grant *grant;
	const struct mr_dir_entry *entry;
	struct mr_dir_entry is;		/* a copy of *entry */
};

/* Returns false if the peer gives no permission for any of the rights in `needed` (IBV_ACCESS_REMOTE_*). */
bool mr_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed, struct mr_permit *permit);

static inline bool mr_permit_is_valid(const struct mr_permit *permit)
{
	return __atomic_load_n(&permit->entry->version, __ATOMIC_ACQUIRE) == permit->is.version &&
	       __atomic_load_n(&permit->grant->pd, __ATOMIC_ACQUIRE) == permit->is.pd;
}

/* Returns true if the permission is still valid after all that was read before. */
static inline bool mr_permit_still_valid(const struct mr_permit *permit)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return mr_permit_is_valid(permit);
}

static inline bool mr_permit_covers(const struct mr_permit *permit, uint64_t remote, uint64_t length)
{
	const struct mr_dir_entry *is = &permit->is;

	return remote + length >= remote && remote >= is->first && length <= is->length &&
	       remote - is->first <= is->length - length;
}

#endif
