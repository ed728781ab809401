/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plain.h - what nearly every request is: one Send or write of one segment, on a stream that has
 * nothing else to send. It goes in one straight line, into a ring (pair.c) or over TCP (tcp.c). All
 * with qp->lock held. */
#ifndef SOFT_PLAIN_H
#define SOFT_PLAIN_H
#include "dapl/soft/soft.h"

/* May the stream send at all, and has it nothing else to send? */
static inline bool plain_idle(const struct dapl_conn *conn)
{
	const struct soft_tx *tx = &conn->tx;

	return tx->open && !(tx->blocked | tx->busy | tx->shut | tx->goodbye | tx->terminate |
			     tx->cursor.second) &&
	       !tx->cursor.offset && tx->cursor.answer == conn->answer_tail;
}

/* Which message a request becomes; false: not a plain one. */
static inline bool plain_message(const struct ibv_send_wr *wr, struct ring_message *message)
{
	if (wr->num_sge != 1 || wr->next || (wr->send_flags & IBV_SEND_FENCE))
		return false;
	message->last = true;
	message->lent = false;
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

/* Where the payload is; false: it may not be sent. */
static inline bool plain_payload(const struct soft_qp *qp, const struct ibv_send_wr *wr, char **at)
{
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return soft_mem_local(qp->dev, qp->qp.pd, wr->sg_list, 0, at) == SOFT_FINE;
	*at = (char *)(uintptr_t)wr->sg_list->addr;
	return wr->sg_list->length <= qp->max_inline;
}

/* Takes its place in the queue, which has room. */
static inline void plain_queue(struct soft_qp *qp, const struct ibv_send_wr *wr,
			       enum soft_swqe_state state, uint32_t seq)
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
