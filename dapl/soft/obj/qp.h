/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.h - queue pairs: the send queue, the taken receive, completions. */
#ifndef SOFT_OBJ_QP_H
#define SOFT_OBJ_QP_H
#include "common/lock.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/rq.h"

struct dapl_conn;
struct dapl_device;
struct dapl_mapping;
struct shm_access;
struct shm_segment;
struct soft_eth;
struct soft_mr;
struct soft_mw;
struct soft_srq;

enum soft_swqe_state { SOFT_POSTED, SOFT_SENT, SOFT_DONE };

struct soft_swqe {
	uint64_t wr_id;
	uint64_t length;		/* of the message, as posted */
	uint64_t remote;
	uint32_t rkey;
	uint32_t word;			/* immediate, or STag to invalidate */
	uint32_t seq;			/* its number among acknowledged messages; reads: MSN */
	uint16_t sges;
	uint8_t opcode, flags;		/* IBV_WR_*, IBV_SEND_* */
	uint8_t state, status;
	bool bind_type1;
	uint8_t proto;			/* large requests: the protocol that was selected (enum shm_proto) */
	bool measured;			/* it is part of a measurement (shm/proto.h) */
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			struct soft_mw *mw;
			struct soft_mr *mr;
			uint64_t addr, length;
			int access;
		} bind;
	};
	struct ibv_sge sge[];		/* or inline data */
};

/* A revocation that waits for one access (shm/revoke.h). */
struct revocation {
	struct shm_access *access;
	struct shm_segment *segment;	/* a reference to the segment of the access, if it has one */
	uint64_t begun_ns;
	bool cut_off;
};

struct soft_qp {
	struct ibv_qp qp;
	struct dapl_device *dev;
	struct dapl_mutex lock;		/* guards what follows */
	enum ibv_qp_state state;	/* INIT, RTS, ERR */
	bool sig_all;
	struct dapl_conn *conn;		/* changes only with the progress lock held, too */

	char *sq;
	uint32_t sq_stride, sq_size;
	uint32_t sq_head, sq_tail;	/* counters; [head, tail) are not completed */
	uint32_t read_next;		/* counter; no read or atomic before it is outstanding */
	uint32_t max_send_sge, max_inline;
	struct soft_local local;	/* the region that a request was sent from last */

	struct soft_rq rq;		/* without SRQ */
	struct soft_srq *srq;
	bool taken_valid;
	struct soft_rwqe *taken;	/* the receive that a message is placed into */
	bool srq_waiting;		/* guarded by srq->lock */
	TAILQ_ENTRY(soft_qp) srq_link;	/* guarded by srq->lock */
	void (*srq_posted)(struct soft_qp *qp);	/* raw Ethernet: called instead of soft_unexpected_deliver() */

	uint32_t qkey;			/* UD */
	struct soft_eth *eth;		/* raw Ethernet (eth/eth.c); else NULL */

	LIST_ENTRY(soft_qp) link;	/* dev->qps */
	LIST_ENTRY(soft_qp) number_link;	/* dev->by_number */

	struct soft_event last_receive;	/* IBV_EVENT_QP_LAST_WQE_REACHED */

	/* A flush that waits for a revocation (shm/revoke.h): the service thread makes its completions. */
	bool flush_waits;		/* set with this lock, cleared with dev->qps_lock, too */
	struct revocation revocation;	/* dev->qps_lock while flush_waits */
	uint32_t flush_culprit;		/* arguments of soft_flush_qp() */
	enum ibv_wc_status flush_status;
};

/* The device knows queue pairs as libibverbs does. */
static inline struct soft_qp *soft_qp(struct ibv_qp *qp)
{
	return (struct soft_qp *)qp;
}

/* Returns true if a request with these flags generates a completion when it succeeds. */
static inline bool soft_is_signaled(const struct soft_qp *qp, unsigned send_flags)
{
	return qp->sig_all || (send_flags & IBV_SEND_SIGNALED);
}

static inline struct soft_swqe *soft_swqe(const struct soft_qp *qp, uint32_t index)
{
	return (struct soft_swqe *)(qp->sq + (size_t)(index & (qp->sq_size - 1)) * qp->sq_stride);
}

/* Returns NULL if there is no such QP. Called with dev->qps_lock held. */
struct soft_qp *soft_qp_by_number(struct dapl_device *dev, uint32_t number);

/* The functions from here on are called with qp->lock held. */
/* The only code that changes the state; callers of libibverbs see it in the second field. */
static inline void soft_qp_set_state(struct soft_qp *qp, enum ibv_qp_state state)
{
	qp->state = qp->qp.state = state;
}

/* Takes a receive for a message into qp->taken. Returns false if there is none. With an SRQ, the next
 * post to it calls soft_unexpected_deliver() then. */
bool soft_qp_take_receive(struct soft_qp *qp);
/* Completes the taken receive: *wc tells what it has, and gets the rest of the completion. */
void soft_qp_received(struct soft_qp *qp, enum ibv_wc_status status, struct ibv_wc *wc, bool solicited);
/* Completes the next receive of the QP's own queue, which holds a Send of `length` bytes. */
void soft_qp_received_next(struct soft_qp *qp, uint32_t length, bool solicited);
/* Completes a write of one segment that was executed while it was posted. It has no place in the send
 * queue, which is empty. */
void soft_qp_executed(struct soft_qp *qp, const struct ibv_send_wr *wr);
/* Completes a request. */
void soft_qp_complete_send(struct soft_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode,
			   enum ibv_wc_status status, uint32_t length);
/* Makes the completions of a flush. */
void soft_qp_end_flush(struct soft_qp *qp);
#endif
