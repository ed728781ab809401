/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.h - what one side of a connection sees of the other in shared memory: whether it sleeps, the
 * words of both sides, and how to notify it. */
#ifndef SOFT_PEER_H
#define SOFT_PEER_H
#include "common/compiler.h"
#include "common/once.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"

/* Returns true if no thread of the process polls, so it has to be woken. */
static inline bool shm_is_asleep(const struct shm_process *process)
{
	return __atomic_load_n(process->sleep_count, __ATOMIC_RELAXED) & 1;
}

/* Makes sure that the peer sees what was stored for it before: it polls, or it is woken. */
static inline void shm_notify(const struct shm_conn *shm)
{
	struct shm_process *process = shm->peer;
	uint32_t sleep_count, pending_nr;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleep_count = __atomic_load_n(process->sleep_count, __ATOMIC_RELAXED);
	pending_nr = READ_ONCE(shm->grant->pending_nr);
	if (unlikely(pending_nr))
		pending_mark(process->pending, pending_nr);
	if (unlikely(sleep_count & 1))
		shm_notify_wake(process, sleep_count);
}

static inline struct ring_grant *shm_own_grant(const struct shm_conn *shm)
{
	return &shm->segment->memory->grant[!shm->conn->passive];
}

/* What the peer may access here (revoke.h). */
static inline struct shm_access *shm_own_access(const struct dapl_conn *conn)
{
	return &conn->shm->segment->access[conn->passive];
}

/* The words by which this side, and the peer, announce their writes to the memory of the other
 * (revoke.h). */
static inline struct ring_writer *shm_own_writer(const struct dapl_conn *conn)
{
	return &conn->shm->segment->memory->writer[conn->passive];
}

static inline const struct ring_writer *shm_peer_writer(const struct dapl_conn *conn)
{
	return &conn->shm->segment->memory->writer[!conn->passive];
}

#endif
