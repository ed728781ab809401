/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gate.h - how a target takes back from peers on this host what they may write to themselves:
 * they say when they are within a write, and the target waits for them; one that stays there
 * is cut off. What a permission is, is direct.c's matter. doc/design/soft-direct.md has the argument. */
#ifndef SOFT_GATE_H
#define SOFT_GATE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "dapl/soft/relaxed.h"
#include "dapl/soft/ring.h"

struct dapl_conn;
struct iovec;
struct soft_pair;
struct soft_station;

/* --- the target ------------------------------------------------------------------------------ */

/* Makes the station's gate; without one nobody may access our memory. */
bool soft_gate_open(struct soft_station *station);
/* Can soft_gate_fence fence for others? */
bool soft_gate_can_fence(void);
/* A full fence in every process that has asked for it. */
void soft_gate_fence(void);
/* qp->lock held. What the peer may do has been taken back, and a full fence was after that; if
 * it maps regions, soft_gate_fence. Returns when it is no more within a write that it began
 * before, or can't come to its copy any more. Who stays for a second is not waited for. */
void soft_gate_settle(struct dapl_conn *conn);

/* --- the initiator, qp->lock held ---------------------------------------------------------------- */

/* From now on the target waits for us, if it takes back what we look for after this. `fenced`: it
 * does soft_gate_fence first. */
static inline void soft_gate_enter(struct ring_writer *own, bool fenced)
{
	STORE(own->within, 1);
	if (likely(fenced))
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void soft_gate_leave(struct ring_writer *own)
{
	__atomic_store_n(&own->within, 0, __ATOMIC_RELEASE);
}

/* This process is fenced by others, from the first call on, if that can be done. */
bool soft_gate_is_fenced(void);
void soft_gate_fork_child(void);

/* The window that is open, to be looked at before the permission. 0: none. */
uint64_t soft_gate_look(const struct soft_station *peer);
/* What the kernel is to copy from, DIRECT_MAX bytes at pair->bounce, said in memory that is gone
 * when the target has closed the window. NULL: it has, or there is no memory. */
const struct iovec *soft_gate_source(struct soft_pair *pair, uint64_t window);
/* process_vm_writev(2) from there. */
ssize_t soft_gate_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int pieces);
void soft_gate_free(struct soft_pair *pair);

#endif
