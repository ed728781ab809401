/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* segment.c - checks the form and the order of incoming segments and hands each to its side: to the
 * responder, or to the requester if it answers a request. */
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/wire/message.h"

/* The form of each opcode: queue, exact length of its body (-1: a payload of any length). */
static const struct {
	bool tagged, dapl_only;		/* dapl_only: between peers of this implementation */
	uint8_t qn;
	int16_t body;
} form[16] = {
	[WIRE_WRITE] = { true, false, 0, -1 },
	[WIRE_READ_REQUEST] = { false, false, WIRE_QN_READ, WIRE_READ_REQUEST_LENGTH },
	[WIRE_READ_RESPONSE] = { true, false, 0, -1 },
	[WIRE_SEND] = { false, false, WIRE_QN_SEND, -1 },
	[WIRE_SEND_INV] = { false, false, WIRE_QN_SEND, -1 },
	[WIRE_SEND_SE] = { false, false, WIRE_QN_SEND, -1 },
	[WIRE_SEND_SE_INV] = { false, false, WIRE_QN_SEND, -1 },
	[WIRE_TERMINATE] = { false, false, WIRE_QN_TERMINATE, 0 },
	[WIRE_IMMEDIATE] = { false, true, WIRE_QN_SEND, WIRE_IMMEDIATE_LENGTH },
	[WIRE_IMMEDIATE_SE] = { false, true, WIRE_QN_SEND, WIRE_IMMEDIATE_LENGTH },
	[WIRE_ATOMIC_REQUEST] = { false, true, WIRE_QN_READ, WIRE_ATOMIC_REQUEST_LENGTH },
	[WIRE_ATOMIC_RESPONSE] = { false, true, WIRE_QN_ATOMIC, WIRE_ATOMIC_RESPONSE_LENGTH },
	[WIRE_SEND_IMM] = { false, true, WIRE_QN_SEND, -1 },
	[WIRE_SEND_SE_IMM] = { false, true, WIRE_QN_SEND, -1 },
	[WIRE_ACK] = { false, true, WIRE_QN_DAPL, WIRE_ACK_LENGTH },
	[WIRE_CLOSE] = { false, true, WIRE_QN_DAPL, 0 },
};

int soft_segment_control(const struct dapl_conn *conn, struct soft_rx *rx, const char **check)
{
	uint32_t ulpdu = wire_get16(rx->part);
	uint8_t first = rx->part[2], second = rx->part[3];
	bool tagged = first >> 7;
	uint32_t head = segment_head_length(tagged) - WIRE_FPDU_LENGTH;
	int body;

	*check = "ULPDU length";
	if (ulpdu < WIRE_TAGGED)
		return WIRE_TERM_LENGTH;
	*check = "DDP version";
	if ((first & 3) != 1)
		return tagged ? WIRE_TERM_TAGGED_VERSION : WIRE_TERM_UNTAGGED_VERSION;
	*check = "RDMAP version";
	if (second >> 6 != 1)
		return WIRE_TERM_RDMAP_VERSION;
	rx->seg = (struct wire_segment){
		.tagged = tagged, .last = first >> 6 & 1, .op = second & 15,
	};
	*check = "opcode";
	if (form[rx->seg.op].tagged != tagged || (form[rx->seg.op].dapl_only && !conn->stream.peer_is_dapl))
		return WIRE_TERM_OPCODE;
	*check = "ULPDU length";
	body = form[rx->seg.op].body;
	if (ulpdu < head)
		return WIRE_TERM_LENGTH;
	if (rx->seg.op == WIRE_TERMINATE)
		body = ulpdu - head;
	if (body >= 0 && (uint32_t)body != ulpdu - head)
		return WIRE_TERM_LENGTH;
	if (body > WIRE_BODY_MAX || (rx->seg.op == WIRE_TERMINATE && body < WIRE_TERMINATE_LENGTH))
		return WIRE_TERM_LENGTH;
	rx->part_need = WIRE_FPDU_LENGTH + head + (body > 0 ? body : 0);
	rx->payload_left = body < 0 ? ulpdu - head : 0;
	rx->payload_done = 0;
	rx->trailer_left = (-(WIRE_FPDU_LENGTH + ulpdu) & 3) + WIRE_CRC;
	return WIRE_TERM_NONE;
}

static uint32_t expected_msn(const struct soft_rx *rx, uint32_t qn)
{
	switch (qn) {
	case WIRE_QN_SEND:
		return rx->msn_send;
	case WIRE_QN_READ:
		return rx->msn_read;
	case WIRE_QN_ATOMIC:
		return rx->msn_atomic;
	case WIRE_QN_DAPL:
		return rx->msn_dapl;
	default:
		return 1;
	}
}

/* Returns a Terminate code, or WIRE_TERM_NONE if the segment fits the segments before it. */
static int check_order(const struct soft_rx *rx, const char **check)
{
	const struct wire_segment *seg = &rx->seg;
	bool sends = form[seg->op].body < 0;

	*check = "last flag of a message of one segment";
	if (!sends && !seg->last)
		return WIRE_TERM_UNSPECIFIED;
	*check = "opcode within a message";
	if (rx->send_open && seg->qn == WIRE_QN_SEND && (!sends || seg->op != rx->send_op))
		return WIRE_TERM_OPCODE;
	return WIRE_TERM_NONE;
}

static int check_numbers(const struct soft_rx *rx, const char **check)
{
	const struct wire_segment *seg = &rx->seg;
	bool sends = form[seg->op].body < 0;

	*check = "queue number";
	if (seg->qn != form[seg->op].qn)
		return WIRE_TERM_QN;
	*check = "message sequence number";
	if (seg->msn != expected_msn(rx, seg->qn))
		return WIRE_TERM_MSN;
	*check = "message offset";
	if (seg->mo != (sends && rx->send_open ? rx->send_offset : 0))
		return WIRE_TERM_MO;
	return check_order(rx, check);
}

static int begin_tagged(struct soft_qp *qp, struct dapl_conn *conn, const char **check)
{
	if (conn->stream.rx.seg.op == WIRE_WRITE) {
		*check = "target of a write";
		return soft_responder_write_begin(qp, conn);
	}
	*check = "read response";
	return soft_requester_response_begin(qp, conn);
}

/* Predicts whether the next messages are large: after a large segment yes, after a message of one small
 * segment no. The small last segment of a large message changes nothing. */
static void note_size(struct soft_rx *rx)
{
	bool begun = rx->seg.tagged ? rx->write_open || rx->read_open : rx->send_open;

	if (rx->payload_left >= RX_BULK_MIN)
		rx->bulk = true;
	else if (rx->payload_left && !begun)
		rx->bulk = false;
}

int soft_segment_begin(struct soft_qp *qp, struct dapl_conn *conn, const char **check)
{
	struct soft_rx *rx = &conn->stream.rx;
	struct wire_segment *seg = &rx->seg;
	const uint8_t *p = rx->part + WIRE_FPDU_LENGTH + 2;
	int term;

	seg->stag = wire_get32(p);
	rx->sink = SOFT_SINK_NONE;
	note_size(rx);
	if (seg->tagged) {
		seg->to = wire_get64(p + 4);
		return begin_tagged(qp, conn, check);
	}
	seg->qn = wire_get32(p + 4);
	seg->msn = wire_get32(p + 8);
	seg->mo = wire_get32(p + 12);
	term = check_numbers(rx, check);
	if (term != WIRE_TERM_NONE || form[seg->op].body >= 0)
		return term;
	*check = "receive for a send";
	return soft_responder_send_begin(qp, conn);
}

int soft_segment_arrived(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct soft_message *message, const char **check)
{
	struct soft_rx *rx = &conn->stream.rx;
	int body, term;

	*check = "opcode";
	if (message->op >= sizeof form / sizeof *form)
		return WIRE_TERM_OPCODE;
	body = form[message->op].body;
	rx->seg = (struct wire_segment){
		.tagged = form[message->op].tagged, .last = message->last,
		.op = message->op, .stag = message->word, .to = message->to,
		.qn = form[message->op].qn, .msn = expected_msn(rx, form[message->op].qn),
	};
	rx->sink = SOFT_SINK_NONE;
	rx->payload_left = body < 0 ? message->length : 0;
	rx->payload_done = 0;
	if (rx->seg.tagged)
		return begin_tagged(qp, conn, check);
	term = check_order(rx, check);
	if (term != WIRE_TERM_NONE)
		return term;
	if (body < 0) {
		*check = "receive for a send";
		return soft_responder_send_begin(qp, conn);
	}
	*check = "length of a message";
	if (message->op == WIRE_TERMINATE ? message->length < WIRE_TERMINATE_LENGTH || message->length > WIRE_BODY_MAX
					  : message->length != (uint32_t)body)
		return WIRE_TERM_LENGTH;
	memcpy(rx->part + WIRE_HEAD_MAX, message->data, message->length);
	rx->part_need = WIRE_HEAD_MAX + message->length;
	return WIRE_TERM_NONE;
}

int soft_segment_end(struct soft_qp *qp, struct dapl_conn *conn, const char **check)
{
	struct soft_rx *rx = &conn->stream.rx;
	const uint8_t *body = rx->part + WIRE_HEAD_MAX;

	conn->stream.tx.open = true;		/* the initiator's first FPDU allows the acceptor to send */
	switch (rx->seg.op) {
	case WIRE_WRITE:
		if (rx->seg.last)
			soft_responder_write_end(conn);
		return WIRE_TERM_NONE;
	case WIRE_READ_RESPONSE:
		if (rx->seg.last)
			soft_requester_response_end(qp, conn);
		return WIRE_TERM_NONE;
	case WIRE_READ_REQUEST:
		rx->msn_read++;
		*check = "read request";
		return soft_responder_read(qp, conn, body);
	case WIRE_ATOMIC_REQUEST:
		rx->msn_read++;
		*check = "atomic request";
		return soft_responder_atomic(qp, conn, body);
	case WIRE_ATOMIC_RESPONSE:
		rx->msn_atomic++;
		*check = "atomic response";
		return soft_requester_atomic(qp, conn, body);
	case WIRE_IMMEDIATE:
	case WIRE_IMMEDIATE_SE:
		rx->msn_send++;
		*check = "receive for an immediate";
		return soft_responder_immediate(qp, conn, body);
	case WIRE_ACK:
		*check = "acknowledgement";
		return soft_segment_ack(qp, conn, body);
	case WIRE_CLOSE:
		rx->msn_dapl++;
		rx->close_notice = true;
		if (conn->shm)
			soft_conn_queue_upcall(conn, SOFT_UP_CLOSE_SENT);
		return WIRE_TERM_NONE;
	case WIRE_TERMINATE:
		soft_requester_terminated(qp, conn, body, rx->part_need - WIRE_HEAD_MAX);
		return WIRE_TERM_NONE;
	default:	/* the Sends */
		if (!rx->seg.last)
			return WIRE_TERM_NONE;
		rx->msn_send++;
		*check = "delivery of a send";
		return soft_responder_send_end(qp, conn);
	}
}
