/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - the end of a stream: sends Terminate, flushes the QP, reports the end to cm/. */
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/rdmap/transmit.h"

enum ibv_wc_status soft_stream_term_status(int term)
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

void soft_stream_report_end(struct dapl_conn *conn, bool orderly)
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
		p[5] = soft_stream_term_status(term);
		wire_put32(p + 8, index);
		wire_put32(p + 12, conn->stream.delivered);
		tx->term_length += WIRE_TERMINATE_EXTRA;
	}
	tx->terminate = true;
	soft_flush_qp(qp, 0, IBV_WC_SUCCESS);
	soft_stream_report_end(conn, false);
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
		soft_stream_report_end(conn, orderly);
	conn->events->ended(conn);
}
