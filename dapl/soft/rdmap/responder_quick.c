/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_quick.c - the common case of receiving: executes one small Send or write of one segment. All
 * other messages, and all that is wrong, take the general path (segment.c). */
#include "common/compiler.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/rdmap/responder_quick.h"
#include "dapl/soft/obj/store.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/wire/wire.h"

static inline void copy_payload(char *to, const uint8_t *from, uint32_t length)
{
	if (likely(length <= RING_INLINE))
		copy_short((uint8_t *)to, from, length);
	else
		memcpy(to, from, length);
}

/* The receive for the next Send, or NULL. A receive of a shared queue is taken by this. */
static const struct soft_rwqe *next_receive(struct soft_qp *qp)
{
	if (qp->srq)
		return soft_qp_take_receive(qp) ? qp->taken : NULL;
	if (qp->taken_valid || qp->rq.head == qp->rq.tail)
		return NULL;
	return soft_rwqe(&qp->rq, qp->rq.head);
}

/* Executes a whole Send into a receive of one segment. Returns false for any other case. */
static bool quick_send(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct soft_message *m)
{
	const struct soft_rwqe *rwqe;
	char *at;

	if (conn->stream.rx.send_open || !TAILQ_EMPTY(&conn->stream.unexpected) ||
	    !(rwqe = next_receive(qp)) || rwqe->sges != 1 || m->length > rwqe->length ||
	    soft_mem_local(qp->dev, soft_receive_pd(qp), rwqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) != SOFT_FINE)
		return false;
	copy_payload(at, m->data, m->length);
	conn->stream.rx.msn_send++;
	conn->stream.consumed += SOFT_CHARGE + m->length;
	conn->stream.arrived++;
	if (qp->srq)
		return soft_deliver(qp, conn, m->op, 0, m->length) == WIRE_TERM_NONE;
	conn->stream.delivered++;
	soft_qp_received_next(qp, m->length, m->op == WIRE_SEND_SE);
	return true;
}

/* Executes a whole write whose last 8 bytes are an aligned word, which is stored at once. Returns false for
 * any other case. */
static bool quick_write(struct soft_qp *qp, struct dapl_conn *conn,
			const struct soft_message *m)
{
	struct soft_rx *rx = &conn->stream.rx;
	struct soft_region *held;
	uint32_t body = m->length - 8;
	char *at;

	if (m->length < 8 || (m->to + m->length) % 8 || rx->write_open ||
	    !TAILQ_EMPTY(&conn->stream.unexpected) ||
	    soft_mem_remote(qp, m->word, m->to, m->length, IBV_ACCESS_REMOTE_WRITE, &at,
			    &held) != SOFT_FINE)
		return false;
	if ((uintptr_t)(at + body) % 8) {	/* a zero-based region may be unaligned */
		soft_mem_done(held);
		return false;
	}
	copy_payload(at, m->data, body);
	soft_store_tail(at + body, m->data + body, 8);
	soft_mem_done(held);
	rx->write_length = m->length;
	conn->stream.arrived++;
	conn->stream.delivered++;
	return true;
}

bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *m)
{
	assert_held(&qp->lock);
	if (!m->last || m->rndv || unlikely(qp->dev->guards))
		return false;
	switch (m->op) {
	case WIRE_SEND:
	case WIRE_SEND_SE:
		return quick_send(qp, conn, m);
	case WIRE_WRITE:
		return quick_write(qp, conn, m);
	default:
		return false;
	}
}
