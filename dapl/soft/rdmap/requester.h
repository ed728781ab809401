/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h - the send queue of a connection as segments. Called with qp->lock held. */
#ifndef SOFT_RDMAP_REQUESTER_H
#define SOFT_RDMAP_REQUESTER_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/rdmap/transport.h"

static inline bool soft_is_read(const struct soft_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* The transport took the requests from `from` up to `to`. */
static inline void soft_requester_sent(struct dapl_conn *conn, uint32_t from, uint32_t to)
{
	struct soft_qp *qp = conn->qp;

	if (!qp || from == to || qp->state != IBV_QPS_RTS)
		return;
	for (; from != to; from++) {
		struct soft_swqe *wqe = soft_swqe(qp, from);

		if (wqe->state == SOFT_POSTED)
			wqe->state = soft_is_read(wqe) || conn->peer_is_dapl ? SOFT_SENT : SOFT_DONE;
	}
	soft_qp_complete_sends(qp);
}

/* Fills the batch from the cursor on. Returns what made it stop: FULL, NOTHING, LOCAL or BROKEN. */
enum step soft_requester_fill(struct batch *b, const struct dapl_conn *conn,
			      struct soft_tx_cursor *cur);
/* The batch stopped with LOCAL: executes the request at the connection's cursor. */
void soft_requester_execute_local(struct dapl_conn *conn);
/* The batch stopped with BROKEN: ends the stream. */
void soft_requester_broken(struct dapl_conn *conn, const struct batch *b);

#endif
