/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_dir.c - see mr_dir.h. An entry has a version that is odd while the entry is valid. */
#include "dapl/soft/shm/mr_dir.h"
#include "common/once.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_conn.h"
#include <infiniband/verbs.h>
#include <unistd.h>

/* --- the target: what it publishes ------------------------------------------------------------- */

/* F_SEAL_GROW: a window that was cut off cannot come back. */
static bool open_window_file(struct shm_process *process)
{
	uint64_t limit = sealed_file_limit(), size;
	int fd;

	size = limit < WINDOW_FILE_SIZE ? limit / WINDOW_SIZE * WINDOW_SIZE : WINDOW_FILE_SIZE;
	fd = size ? sealed_file_new(size, F_SEAL_GROW | F_SEAL_SEAL) : -1;
	if (fd < 0)
		return false;
	process->window_file = fd;
	process->mr_dir->fd = fd;
	process->mr_dir->window = size - WINDOW_SIZE;
	return true;
}

void mr_dir_open(struct shm_process *process)
{
	struct shm_mr_dir *mr_dir = process->mr_dir;

	if (!open_window_file(process))
		return;
	mr_dir->id = process->id;
	mr_dir->self = (uintptr_t)mr_dir;
	mr_dir->fences = reach_fence_is_possible();
	__atomic_store_n(&mr_dir->pid, getpid(), __ATOMIC_RELEASE);
}

void mr_dir_close(struct shm_process *process)
{
	if (process->window_file >= 0)
		close(process->window_file);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->window_file = process->pidfd = -1;
}

static struct mr_dir_entry *entries(struct shm_mr_dir *mr_dir, uint32_t stag)
{
	return mr_dir->entry[(stag >> 8) % MR_DIR_SETS];
}

static bool is_public(const struct shm_process *process, const struct soft_region *region)
{
	return process && process->window_file >= 0 && region->kind == SOFT_MR &&
	       (region->access & SOFT_REMOTE_ACCESS);
}

void mr_dir_publish(struct shm_process *process, const struct soft_region *region)
{
	struct mr_dir_entry *e, *end;

	if (!is_public(process, region))
		return;
	e = entries(process->mr_dir, region->stag);
	for (end = e + MR_DIR_WAYS; e < end && e->version & 1; e++)
		;
	if (e == end)
		return;
	WRITE_ONCE(e->stag, region->stag);
	WRITE_ONCE(e->access, region->access);
	WRITE_ONCE(e->pd, region->pd->id);
	WRITE_ONCE(e->first, region->first);
	WRITE_ONCE(e->length, region->length);
	WRITE_ONCE(e->base, (uintptr_t)region->base);
	WRITE_ONCE(e->file, region->file);
	WRITE_ONCE(e->offset, region->offset);
	__atomic_store_n(&e->version, e->version + 1, __ATOMIC_RELEASE);
}

bool mr_dir_withdraw(struct shm_process *process, const struct soft_region *region)
{
	struct mr_dir_entry *e, *end;

	if (!is_public(process, region))
		return false;
	e = entries(process->mr_dir, region->stag);
	for (end = e + MR_DIR_WAYS; e < end; e++) {
		if (!(e->version & 1) || e->stag != region->stag)
			continue;
		WRITE_ONCE(e->version, e->version + 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (region->file >= 0)
			reach_fence_peers();
		return region->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	}
	return false;
}

/* --- the initiator: a permission ---------------------------------------------------------------- */

/* Finds the entry of an STag and copies it. mr_permit_still_valid() then tells if the copy is
 * consistent. */
static bool find_entry(const struct shm_mr_dir *mr_dir, uint32_t stag, struct mr_permit *permit)
{
	const struct mr_dir_entry *e = entries((struct shm_mr_dir *)mr_dir, stag), *end;
	struct mr_dir_entry *is = &permit->is;

	for (end = e + MR_DIR_WAYS; e < end; e++) {
		is->version = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);
		if (!(is->version & 1) || READ_ONCE(e->stag) != stag)
			continue;
		permit->entry = e;
		is->stag = stag;
		is->access = READ_ONCE(e->access);
		is->pd = READ_ONCE(e->pd);
		is->first = READ_ONCE(e->first);
		is->length = READ_ONCE(e->length);
		is->base = READ_ONCE(e->base);
		is->file = READ_ONCE(e->file);
		is->offset = READ_ONCE(e->offset);
		return true;
	}
	return false;
}

/* Checks what obj/mem.c checks at the target, except the range. */
bool mr_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed, struct mr_permit *permit)
{
	uint64_t pd;

	permit->grant = conn->shm->grant;
	pd = __atomic_load_n(&permit->grant->pd, __ATOMIC_ACQUIRE);
	return pd && find_entry(conn->shm->peer->mr_dir, stag, permit) && permit->is.pd == pd &&
	       (permit->is.access & needed) && mr_permit_still_valid(permit);
}
