/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fastpath.h - the common case of posting: one Send or write of one segment, on an idle stream. It goes
 * straight into a ring (shm/shm_conn.c) or over TCP (rdmap/transmit.c). The functions are called with
 * qp->lock held. */
#ifndef SOFT_OBJ_FASTPATH_H
#define SOFT_OBJ_FASTPATH_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "common/compiler.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/wire/message.h"

/* Returns true if the stream may send, and has nothing to send before a new request. */
static inline bool fastpath_idle(const struct dapl_conn *conn)
{
	const struct soft_tx *tx = &conn->stream.tx;

	return tx->open && !(tx->blocked | tx->busy | tx->shut | tx->close_notice | tx->terminate |
			     tx->cursor.second) &&
	       !tx->cursor.offset && tx->cursor.answer == conn->stream.answer_tail;
}

/* Describes the message that the request becomes. Returns false if the request needs the general path. */
static inline bool fastpath_message(const struct ibv_send_wr *wr, struct soft_message *message)
{
	if (wr->num_sge != 1 || wr->next || (wr->send_flags & IBV_SEND_FENCE))
		return false;	/* DTO-28 */
	message->last = true;
	message->rndv = false;
	message->length = wr->sg_list->length;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		message->op = wr->send_flags & IBV_SEND_SOLICITED ? WIRE_SEND_SE : WIRE_SEND;
		message->word = 0;
		message->to = 0;
		return true;
	case IBV_WR_RDMA_WRITE:
		message->op = WIRE_WRITE;
		message->word = wr->wr.rdma.rkey;
		message->to = wr->wr.rdma.remote_addr;
		return true;
	default:
		return false;
	}
}

/* Sets *at to the payload. Returns false if it may not be sent. Inline data must lie in registered
 * memory, too, unlike in verbs. */
static inline bool fastpath_payload(struct soft_qp *qp, const struct ibv_send_wr *wr, char **at)
{
	const struct ibv_sge *sge = wr->sg_list;

	if ((wr->send_flags & IBV_SEND_INLINE) && unlikely(sge->length > qp->max_inline))
		return false;
	return likely(soft_local_find(&qp->local, sge, at)) ||
	       soft_mem_to_send(qp, sge, at) == SOFT_FINE;
}

/* Appends the request to the send queue, which has room. */
static inline void fastpath_queue(struct soft_qp *qp, const struct ibv_send_wr *wr, enum soft_swqe_state state,
				  uint32_t seq)
{
	struct soft_swqe *wqe = soft_swqe(qp, qp->sq_tail++);

	wqe->wr_id = wr->wr_id;
	wqe->length = wr->sg_list->length;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->state = state;
	wqe->status = IBV_WC_SUCCESS;
	wqe->seq = seq;
}

#endif
