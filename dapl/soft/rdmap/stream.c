/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - the end of a stream: sends and receives Terminate, flushes the QP, reports the end to cm/. */
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/rdmap/transmit.h"

/* The status of the peer's completion. */
static enum ibv_wc_status term_status(int term)
{
	int layer = term >> 12, type = term >> 8 & 15;

	if ((layer == 0 && type == 1) || (layer == 1 && type == 1))
		return IBV_WC_REM_ACCESS_ERR;
	if (layer == 1 && type == 2)
		return IBV_WC_REM_INV_REQ_ERR;
	if (term == WIRE_TERM_CATASTROPHIC || term == WIRE_TERM_UNSPECIFIED)
		return IBV_WC_REM_INV_REQ_ERR;
	return IBV_WC_REM_OP_ERR;
}

/* Reports the end to core, once. */
static void report_end(struct dapl_conn *conn, bool orderly)
{
	if (!__atomic_exchange_n(&conn->stream.end_reported, true, __ATOMIC_RELAXED))
		soft_conn_queue_upcall(conn, orderly ? SOFT_UP_CLOSED : SOFT_UP_BROKEN);
}

void soft_stream_terminate(struct soft_qp *qp, struct dapl_conn *conn, int term, bool read,
			   uint32_t index, const char *check)
{
	struct soft_tx *tx = &conn->stream.tx;
	uint8_t *p = tx->term;

	if (tx->terminate || tx->close_notice)
		return;
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "conn", conn, NULL,
	      "terminate %d/%d/%d: %s, op %d msn %u, qp %06x", term >> 12, term >> 8 & 15,
	      term & 255, check, conn->stream.rx.seg.op, conn->stream.rx.seg.msn, qp->qp.qp_num);
	soft_conn_caused(conn, 0, DAPL_CODE_TERMINATE_SENT, (unsigned)term, NULL);
	wire_terminate_put(p, term);
	tx->term_length = WIRE_TERMINATE_LENGTH;
	if (conn->stream.peer_is_dapl) {
		memset(p + WIRE_TERMINATE_LENGTH, 0, WIRE_TERMINATE_EXTRA);
		p[4] = read;
		p[5] = term_status(term);
		wire_put32(p + 8, index);
		wire_put32(p + 12, conn->stream.delivered);
		tx->term_length += WIRE_TERMINATE_EXTRA;
	}
	tx->terminate = true;
	soft_flush_qp(qp, 0, IBV_WC_SUCCESS);
	report_end(conn, false);
	soft_conn_send(conn);
}

void soft_stream_fail(struct soft_qp *qp, struct dapl_conn *conn, int term, const char *check)
{
	uint8_t op = conn->stream.rx.seg.op;
	bool read = op == WIRE_READ_REQUEST || op == WIRE_ATOMIC_REQUEST;
	uint32_t index = read ? conn->stream.rx.seg.msn : conn->stream.arrived + 1;

	if (op == WIRE_SEND_INV || op == WIRE_SEND_SE_INV)
		index -= term == WIRE_TERM_INVALIDATE;	/* the Send itself had arrived */
	soft_stream_terminate(qp, conn, term, read, index, check);
}

void soft_stream_answer_fail(struct soft_qp *qp, struct dapl_conn *conn, int term,
			     const char *check)
{
	uint32_t answer = conn->stream.tx.cursor.answer;

	soft_stream_terminate(qp, conn, term, true, conn->stream.answers[answer % conn->stream.reads_in].msn, check);
}

void soft_stream_abort(struct soft_qp *qp, struct dapl_conn *conn, const char *check)
{
	soft_stream_terminate(qp, conn, WIRE_TERM_LOCAL, false, 0, check);
}

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

void soft_stream_terminated(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body,
			    uint32_t length)
{
	unsigned term = wire_terminate_get(body, conn->stream.swaps);
	enum ibv_wc_status status = term_status(term);
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
	report_end(conn, false);
	soft_conn_send(conn);
}

void soft_stream_ended(struct soft_qp *qp, struct dapl_conn *conn, bool orderly)
{
	bool sent;

	if (qp && qp->state == IBV_QPS_RTS) {
		sent = qp->sq_head != qp->sq_tail &&
		       soft_swqe(qp, qp->sq_head)->state != SOFT_POSTED;
		soft_flush_qp(qp, qp->sq_head, !orderly && sent ? IBV_WC_RETRY_EXC_ERR
								: IBV_WC_SUCCESS);
	}
	if (!conn->stream.tx.close_notice)
		report_end(conn, orderly);
	conn->events->ended(conn);
}
