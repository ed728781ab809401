/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* direct.h - what a device tells its peers on this host, so that they can write and read its
 * memory themselves while nobody here polls: the board, the first part of a station's file.
 * Who uses it how is direct.c's matter; doc/design/soft-direct.md argues why it is safe. */
#ifndef SOFT_DIRECT_H
#define SOFT_DIRECT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "dapl/soft/relaxed.h"
#include "dapl/soft/ring.h"

struct dapl_conn;
struct iovec;
struct soft_pair;
struct soft_qp;
struct soft_region;
struct soft_station;
struct soft_swqe;

enum {
	BOARD_SETS = 256, BOARD_WAYS = 4,	/* regions; one that finds no place is left out */
	DIRECT_MAX = 16 << 10,			/* bytes of an access */
};

/* A memory region. Written under stags_lock; odd versions are valid. */
struct board_entry {
	uint32_t version;		/* changes first and last */
	uint32_t stag, access;		/* IBV_ACCESS_* */
	int32_t file;			/* our number of the file that it's a mapping of, or -1 */
	uint64_t pd, first, length, base;
	uint64_t offset;		/* in the file */
} __attribute__((aligned(64)));

/* Written by its owner, mapped read-only by peers. */
struct soft_board {
	uint32_t sleeps;		/* odd: nobody polls, ring; even: somebody does */
	uint32_t pid;			/* 0: nobody may access us */
	uint64_t id, self;		/* the station's id, and where this lies in our memory */
	int32_t fd;			/* our number of the gate's file */
	uint32_t fences;		/* it does so for those who write to mapped regions */
	uint64_t gate __attribute__((aligned(64)));	/* offset of the open window; 0: none */
	uint32_t polls __attribute__((aligned(128)));	/* counted, whoever serves */
	struct board_entry entry[BOARD_SETS][BOARD_WAYS] __attribute__((aligned(4096)));
};

/* Our own: other processes may access our memory from now on. Whatever fails, they may not. */
void soft_board_open(struct soft_station *station);
/* Closes what the station has open for direct access, its own or a peer's. */
void soft_board_close(struct soft_station *station);
/* stags_lock held. After the withdrawal nobody finds the region any more; true: there may be peers who
 * did, and are within a write to it (soft_gate_settle). */
void soft_board_publish(struct soft_station *station, const struct soft_region *region);
bool soft_board_withdraw(struct soft_station *station, const struct soft_region *region);

/* qp->lock held: from now on, or no more, the peer of the connection may access what the QP
 * could. Nobody does any more when soft_door_close returns. */
void soft_door_open(struct soft_qp *qp, struct dapl_conn *conn);
void soft_door_close(struct dapl_conn *conn);

/* --- the initiator: a permission of the peer's, as it was found ------------------------------- */

struct soft_permit {
	const struct ring_door *door;
	const struct board_entry *entry;
	struct board_entry is;		/* what it said */
};

/* False: there is none now. `needed`: IBV_ACCESS_REMOTE_* */
bool soft_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed,
		      struct soft_permit *permit);

static inline bool soft_permit_is_there(const struct soft_permit *permit)
{
	return __atomic_load_n(&permit->entry->version, __ATOMIC_ACQUIRE) == permit->is.version &&
	       __atomic_load_n(&permit->door->pd, __ATOMIC_ACQUIRE) == permit->is.pd;
}

/* ... after all that was read before? */
static inline bool soft_permit_holds(const struct soft_permit *permit)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return soft_permit_is_there(permit);
}

static inline bool soft_permit_covers(const struct soft_permit *permit, uint64_t remote,
				      uint64_t length)
{
	const struct board_entry *is = &permit->is;

	return remote + length >= remote && remote >= is->first && length <= is->length &&
	       remote - is->first <= is->length - length;
}

/* Can the peer's memory be accessed? Found out once; false also when its process has ended. */
bool soft_direct_reaches(struct soft_station *peer);
/* The process that the station is of has ended, as far as can be told. */
bool soft_direct_has_ended(struct soft_station *peer);
/* Opens a file anew that a process has open under this number. -1: it can't be. */
int soft_direct_open(pid_t pid, int number);

/* qp->lock held: the peer's service thread serves, and nobody else looks for what comes. */
bool soft_direct_nobody_polls(struct soft_pair *pair);
/* qp->lock held: may it be worth while with a request of these flags that is posted now? */
bool soft_direct_suits(const struct soft_qp *qp, const struct dapl_conn *conn,
		       unsigned send_flags);
/* qp->lock held; the request is the next and last, and its peer does not run. Executes it in the
 * peer's memory. False: not this one, it may not or did not come to its end: it is to be
 * sent. */
bool soft_direct_execute(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);

/* A request of CHOICE_MIN bytes and more, over a ring: chooses its way. */
void soft_direct_choose(const struct dapl_conn *conn, struct soft_swqe *wqe);
/* qp->lock held; all before the read has been executed. The kernel copies. False: it did not, and
 * the read is the ring's now. */
bool soft_direct_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);
/* qp->lock held; nothing is before it. Reads into `to`, our own, if that is to go by the kernel in any
 * case. False: it did not, and nothing is known. */
bool soft_direct_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
			  uint32_t length);
/* The peer may copy what requests lend; or no more, and what it copies after the return it does not
 * take for the payload. qp->lock held. */
void soft_direct_lend(struct soft_pair *pair);
void soft_direct_recall(struct soft_pair *pair);
/* Copies what the peer has lent from its memory. False: this process may not, or it isn't there. */
bool soft_direct_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces,
		       uint32_t length);
/* The peer has recalled what it lent: it never will be there. */
bool soft_direct_recalled(const struct dapl_conn *conn);

#endif
