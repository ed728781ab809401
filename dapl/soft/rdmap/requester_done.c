/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_done.c - completes requests, in the order of their posts: those that the transport took, that were
 * acknowledged or answered, and those that are executed without a segment. */
#include "dapl/soft/rdmap/requester_done.h"
#include "common/compiler.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/clock.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/requester.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/shm_conn.h"

static bool swqe_done(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	if (wqe->state != SOFT_SENT)
		return wqe->state == SOFT_DONE;
	if (soft_is_read(wqe))
		return false;		/* DONE when the answer has arrived */
	return qp->conn && (int32_t)(qp->conn->stream.peer_delivered - wqe->seq) >= 0;
}

/* DTO-29 */
void soft_requester_complete(struct soft_qp *qp)
{
	assert_held(&qp->lock);
	for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
		const struct soft_swqe *wqe = soft_swqe(qp, qp->sq_head);

		if (!swqe_done(qp, wqe))
			return;
		if (unlikely(wqe->status != IBV_WC_SUCCESS)) {
			soft_flush_qp(qp, qp->sq_head, wqe->status);
			if (qp->conn)
				soft_stream_abort(qp, qp->conn, "a request failed here");
			return;
		}
		if (unlikely(wqe->length > RING_CHUNK && wqe->opcode != IBV_WR_RDMA_READ &&
			     wqe->measured && qp->conn && qp->conn->shm))
			proto_measured(qp->conn, wqe);
		if (soft_is_signaled(qp, wqe->flags))
			soft_qp_complete_send(qp, wqe->wr_id, wqe->opcode, IBV_WC_SUCCESS, wqe->length);
	}
}

/* --- responses and acknowledgements ----------------------------------------------------- */

struct soft_swqe *soft_requester_oldest_read(struct soft_qp *qp, const struct dapl_conn *conn,
					     uint32_t *index)
{
	uint32_t end = conn->stream.tx.cursor.wqe;

	if ((int32_t)(qp->sq_head - qp->read_next) > 0)
		qp->read_next = qp->sq_head;
	for (; (int32_t)(end - qp->read_next) > 0; qp->read_next++) {
		struct soft_swqe *wqe = soft_swqe(qp, qp->read_next);

		if (wqe->state == SOFT_SENT && soft_is_read(wqe)) {
			*index = qp->read_next;
			return wqe;
		}
	}
	return NULL;
}

static void read_done(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	wqe->state = SOFT_DONE;
	conn->stream.reads_done++;
	qp->read_next++;
	soft_requester_complete(qp);
}

int soft_requester_response_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->stream.rx;
	struct soft_swqe *wqe;
	uint64_t end;

	assert_held(&qp->lock);
	if (!rx->read_open) {
		wqe = soft_requester_oldest_read(qp, conn, &rx->read_wqe);
		if (!wqe || wqe->opcode != IBV_WR_RDMA_READ)
			return WIRE_TERM_OPCODE;
		rx->read_open = true;
		rx->read_offset = 0;
	}
	wqe = soft_swqe(qp, rx->read_wqe);
	if (rx->seg.stag != conn->stream.sink_key + wqe->seq)
		return WIRE_TERM_DDP_STAG;
	end = rx->read_offset + (uint64_t)rx->payload_left;
	if (rx->seg.to != rx->read_offset || end > wqe->length ||
	    (rx->seg.last && end != wqe->length))
		return WIRE_TERM_DDP_BOUNDS;
	rx->sink = SOFT_SINK_READ;
	return WIRE_TERM_NONE;
}

void soft_requester_response_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->stream.rx.read_wqe);

	assert_held(&qp->lock);
	conn->stream.rx.read_open = false;
	if (wqe->measured)
		proto_measured(conn, wqe);
	read_done(qp, conn, wqe);
}

int soft_requester_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint64_t value = wire_get64(body + 4);
	struct soft_swqe *wqe;
	uint32_t index;
	char *at;

	assert_held(&qp->lock);
	wqe = soft_requester_oldest_read(qp, conn, &index);
	if (!wqe || wqe->opcode == IBV_WR_RDMA_READ || conn->stream.rx.read_open ||
	    wire_get32(body) != wqe->seq)
		return WIRE_TERM_OPCODE;
	if (soft_mem_local(qp->dev, qp->qp.pd, wqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) !=
	    SOFT_FINE || !soft_mem_guard(qp->dev, wqe->sge->lkey, at, sizeof value)) {
		soft_flush_qp(qp, index, IBV_WC_LOC_PROT_ERR);
		return WIRE_TERM_LOCAL;
	}
	memcpy(at, &value, sizeof value);
	read_done(qp, conn, wqe);
	return WIRE_TERM_NONE;
}

int soft_requester_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed)
{
	assert_held(&qp->lock);
	if ((int32_t)(delivered - conn->stream.peer_delivered) < 0 ||
	    (int32_t)(conn->stream.tx.cursor.seq - delivered) < 0 ||
	    consumed < conn->stream.peer_consumed || consumed > conn->stream.tx.cursor.charged)
		return WIRE_TERM_UNSPECIFIED;
	conn->stream.peer_delivered = delivered;
	conn->stream.peer_consumed = consumed;
	soft_requester_complete(qp);
	return WIRE_TERM_NONE;
}

/* --- requests without a segment --------------------------------------------------------- */

/* A bind, an invalidate, a read by CMA, or a request that failed its check. */
void soft_requester_execute_local(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;
	struct soft_swqe *wqe = soft_swqe(qp, conn->stream.tx.cursor.wqe);

	if (wqe->opcode == IBV_WR_BIND_MW)
		wqe->status = soft_mw_bind(qp, wqe);
	else if (wqe->opcode == IBV_WR_LOCAL_INV)
		wqe->status = soft_mw_invalidate(qp, wqe->word);
	else
		wqe->status = soft_requester_fault(qp, conn, wqe);
	if (wqe->opcode == IBV_WR_RDMA_READ && wqe->status == IBV_WC_SUCCESS &&
	    !cma_read(qp, conn, wqe))
		return;
	wqe->state = SOFT_DONE;
	if (wqe->status == IBV_WC_SUCCESS)
		conn->stream.tx.cursor.wqe++;
	soft_requester_complete(qp);
}
