/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_done.c - what the peer's messages do to the requests of the send queue: acknowledgements, responses, and
 * a Terminate. transmit.c completes the requests. */
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/tap_record.h"
#include "common/trace.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/proto.h"

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
	tap_record_executed(qp, wqe);
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

/* --- the peer's Terminate ----------------------------------------------------------------- */

/* Returns the request that the peer's Terminate is about, or sq_tail. */
static uint32_t find_failed_request(const struct soft_qp *qp, bool read, uint32_t index)
{
	for (uint32_t i = qp->sq_head; i != qp->sq_tail; i++) {
		const struct soft_swqe *wqe = soft_swqe(qp, i);

		if (wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV ||
		    wqe->state == SOFT_DONE || soft_is_read(wqe) != read)
			continue;
		if (wqe->state == SOFT_POSTED)
			return i;	/* under way: nothing behind it was sent */
		if (wqe->seq == index || (!read && (int32_t)(wqe->seq - index) >= 0))
			return i;
	}
	return qp->sq_tail;
}

void soft_requester_terminated(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body,
			       uint32_t length)
{
	unsigned term = wire_terminate_get(body, conn->stream.swaps);
	enum ibv_wc_status status = soft_stream_term_status(term);
	uint32_t culprit = qp->sq_tail;

	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "conn", conn, NULL,
	      "peer terminated %d/%d/%d, qp %06x", term >> 12, term >> 8 & 15, term & 255,
	      qp->qp.qp_num);
	soft_conn_caused(conn, 0, DAPL_CODE_TERMINATE_RECEIVED, term, NULL);
	if (conn->stream.peer_is_dapl && length >= WIRE_TERMINATE_LENGTH + WIRE_TERMINATE_EXTRA) {
		soft_requester_acked(qp, conn, wire_get32(body + 12), conn->stream.peer_consumed);
		if (body[5] == IBV_WC_REM_ACCESS_ERR || body[5] == IBV_WC_REM_INV_REQ_ERR ||
		    body[5] == IBV_WC_REM_OP_ERR)
			status = body[5];
		if (wire_get32(body + 8))	/* 0: none of the local requests is to blame */
			culprit = find_failed_request(qp, body[4], wire_get32(body + 8));
	} else if (conn->stream.reads_done != conn->stream.tx.cursor.reads) {
		soft_requester_oldest_read(qp, conn, &culprit);
	}
	soft_flush_qp(qp, culprit, status);
	conn->stream.tx.close_notice = true;	/* only the FIN is still to be sent */
	soft_stream_report_end(conn, false);
	soft_conn_send(conn);
}
