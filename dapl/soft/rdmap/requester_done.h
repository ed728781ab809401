/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_done.h - what the peer's messages do to the requests of the send queue. Called with qp->lock held. The
 * functions that return int return a Terminate code or WIRE_TERM_NONE. */
#ifndef SOFT_RDMAP_REQUESTER_DONE_H
#define SOFT_RDMAP_REQUESTER_DONE_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"

static inline bool soft_is_read(const struct soft_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* A segment of a read response begins: checks that it continues the answer to the oldest read. */
int soft_requester_response_begin(struct soft_qp *qp, struct dapl_conn *conn);
/* The last segment of a read response is in place: the read is done. */
void soft_requester_response_end(struct soft_qp *qp, struct dapl_conn *conn);
/* An atomic response has come: stores the value, and the atomic is done. */
int soft_requester_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* The peer acknowledges messages and bytes of the window, both counted from the beginning of the stream. */
int soft_requester_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed);
/* The oldest read or atomic without an answer and its index in the send queue, or NULL. */
struct soft_swqe *soft_requester_oldest_read(struct soft_qp *qp, const struct dapl_conn *conn,
					     uint32_t *index);
/* The peer sent a Terminate of `length` bytes. */
void soft_requester_terminated(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body,
			       uint32_t length);

#endif
