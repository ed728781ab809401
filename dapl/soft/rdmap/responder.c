/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - the target's side of sends, writes, reads and atomics: checks the head of each segment, and
 * ends messages. responder_place.c tells where payloads go. The common case, a small Send or write of one
 * segment, is executed at once. */
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/obj/store.h"
#include "dapl/soft/obj/tap_record.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/wire/wire.h"
#include "common/compiler.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include <stdlib.h>

/* --- sends -------------------------------------------------------------------------- */

int soft_responder_send_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->stream.rx;

	assert_held(&qp->lock);
	if (!rx->send_open) {
		rx->send_open = true;
		rx->send_op = rx->seg.op;
		rx->send_word = rx->seg.stag;
		rx->send_offset = 0;
		rx->unexpected = NULL;
		if (TAILQ_EMPTY(&conn->stream.unexpected) && soft_qp_take_receive(qp)) {	/* SRQ-15 */
			conn->stream.consumed += SOFT_CHARGE;
		} else {
			soft_trace(TRC_LVL_DETAIL, "qp", qp, "send without a receive");
			rx->unexpected = soft_unexpected_new(conn, rx->send_op, rx->send_word);
			if (!rx->unexpected)
				return WIRE_TERM_LOCAL;
			if (qp->srq)	/* if the SRQ is empty, its next post calls soft_unexpected_deliver() */
				soft_qp_take_receive(qp);
		}
	}
	if (rx->send_offset + (uint64_t)rx->payload_left > SOFT_MAX_MESSAGE)
		return WIRE_TERM_TOO_LONG;
	rx->sink = rx->unexpected ? SOFT_SINK_UNEXPECTED : SOFT_SINK_RECV;
	if (rx->unexpected)
		return soft_unexpected_limit(conn);
	if (rx->send_offset + (uint64_t)rx->payload_left > qp->taken->length)
		return soft_deliver_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);	/* DTO-4 */
	return WIRE_TERM_NONE;
}

int soft_responder_send_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->stream.rx;

	assert_held(&qp->lock);
	rx->send_open = false;
	conn->stream.arrived++;
	if (rx->unexpected) {
		rx->unexpected->complete = true;
		rx->unexpected = NULL;
		soft_unexpected_deliver(qp);
		return WIRE_TERM_NONE;
	}
	return soft_deliver(qp, conn, rx->send_op, rx->send_word, rx->send_offset);
}

/* EXT-9 */
int soft_responder_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint32_t word = wire_get32(body), length = wire_get32(body + 4);
	struct soft_unexpected *unexpected;
	int term;

	assert_held(&qp->lock);
	if (TAILQ_EMPTY(&conn->stream.unexpected) && soft_qp_take_receive(qp)) {
		conn->stream.arrived++;
		conn->stream.consumed += SOFT_CHARGE;
		return soft_deliver(qp, conn, conn->stream.rx.seg.op, word, length);
	}
	unexpected = soft_unexpected_new(conn, conn->stream.rx.seg.op, word);
	if (!unexpected)
		return WIRE_TERM_LOCAL;
	unexpected->write_length = length;
	unexpected->complete = true;
	term = soft_unexpected_limit(conn);
	if (term != WIRE_TERM_NONE)
		return term;
	conn->stream.arrived++;
	soft_unexpected_deliver(qp);
	return WIRE_TERM_NONE;
}

/* --- writes, reads, atomics ----------------------------------------------------------- */

int soft_responder_write_term(enum soft_check check)
{
	switch (check) {
	case SOFT_BAD_STAG:
		return WIRE_TERM_DDP_STAG;
	case SOFT_BOUNDS:
		return WIRE_TERM_DDP_BOUNDS;
	case SOFT_OTHER_STREAM:
		return WIRE_TERM_DDP_STREAM;
	case SOFT_WRAP:
		return WIRE_TERM_DDP_WRAP;
	default:
		return WIRE_TERM_ACCESS;
	}
}

int soft_responder_write_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->stream.rx;
	struct soft_region *held;
	enum soft_check check;
	uintptr_t end;
	char *at;

	assert_held(&qp->lock);
	if (!rx->write_open)
		rx->write_length = 0;
	rx->write_open = true;
	rx->write_stag = rx->seg.stag;
	rx->write_to = rx->seg.to;
	rx->write_length += rx->payload_left;
	rx->tail_length = 0;
	rx->sink = SOFT_SINK_WRITE;
	if (!rx->payload_left)
		return WIRE_TERM_NONE;
	check = soft_mem_remote(qp, rx->seg.stag, rx->seg.to, rx->payload_left,
				IBV_ACCESS_REMOTE_WRITE, &at, &held);
	if (check != SOFT_FINE)
		return soft_responder_write_term(check);
	soft_mem_done(held);
	if (rx->seg.last) {
		end = (uintptr_t)at + rx->payload_left;
		rx->tail_length = end - ((end - 1) & ~(uintptr_t)7);
		if (rx->tail_length > rx->payload_left)
			rx->tail_length = rx->payload_left;
	}
	return WIRE_TERM_NONE;
}

void soft_responder_write_end(struct dapl_conn *conn)
{
	struct soft_unexpected *last = TAILQ_LAST(&conn->stream.unexpected, soft_unexpected_head);

	conn->stream.rx.write_open = false;
	conn->stream.arrived++;
	if (last)
		last->writes_after++;
	else
		conn->stream.delivered++;
}

/* Returns NULL if the peer has more reads outstanding than was agreed, or without memory. Many peers never read,
 * so the first read of a connection allocates the ring. */
static struct soft_answer *answer_room(struct dapl_conn *conn)
{
	if (conn->stream.answer_tail - conn->stream.tx.cursor.answer >= conn->stream.reads_in)
		return NULL;
	if (!conn->stream.answers)
		conn->stream.answers = calloc(conn->stream.reads_in, sizeof *conn->stream.answers);
	if (!conn->stream.answers)
		return NULL;
	return &conn->stream.answers[conn->stream.answer_tail % conn->stream.reads_in];
}

int soft_responder_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	struct soft_answer *answer = answer_room(conn);
	struct soft_region *held = NULL;
	enum soft_check check = SOFT_FINE;
	char *at;

	assert_held(&qp->lock);
	if (!answer)
		return WIRE_TERM_NO_BUFFER;
	*answer = (struct soft_answer){
		.sink_stag = wire_get32(body), .sink_to = wire_get64(body + 4),
		.length = wire_get32(body + 12), .stag = wire_get32(body + 16),
		.from = wire_get64(body + 20), .msn = conn->stream.rx.seg.msn,
	};
	if (answer->length)
		check = soft_mem_remote(qp, answer->stag, answer->from, answer->length,
					IBV_ACCESS_REMOTE_READ, &at, &held);
	soft_mem_done(held);
	if (check != SOFT_FINE)
		return WIRE_TERM(0, 1, check);
	conn->stream.answer_tail++;
	return WIRE_TERM_NONE;
}

int soft_responder_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	struct soft_answer *answer = answer_room(conn);
	uint64_t data = wire_get64(body + 20), data_mask = wire_get64(body + 28);
	uint64_t compare = wire_get64(body + 36), compare_mask = wire_get64(body + 44), before;
	uint32_t code = wire_get32(body);
	struct soft_region *held;
	enum soft_check check;
	char *at;

	assert_held(&qp->lock);
	if (!answer)
		return WIRE_TERM_NO_BUFFER;
	if (code == WIRE_ATOMIC_CMP_SWAP ? data_mask != ~0ull || compare_mask != ~0ull
					 : code != WIRE_ATOMIC_FETCH_ADD || data_mask)
		return WIRE_TERM_UNSPECIFIED;
	check = soft_mem_remote(qp, wire_get32(body + 8), wire_get64(body + 12), 8,
				IBV_ACCESS_REMOTE_ATOMIC, &at, &held);
	if (check != SOFT_FINE)
		return WIRE_TERM(0, 1, check);
	if ((uintptr_t)at % 8) {
		soft_mem_done(held);
		return WIRE_TERM_CATASTROPHIC;
	}
	before = soft_execute_atomic(at, code == WIRE_ATOMIC_CMP_SWAP, data, compare);
	soft_mem_done(held);
	*answer = (struct soft_answer){
		.atomic = true, .sink_stag = wire_get32(body + 4), .sink_to = before,
		.msn = conn->stream.rx.seg.msn,
	};
	conn->stream.answer_tail++;
	return WIRE_TERM_NONE;
}

/* --- short messages of a ring ------------------------------------------------------- */

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

static NOINLINE void record_receive(const struct soft_qp *qp, const struct soft_message *m,
				    const struct soft_rwqe *rwqe)
{
	const struct ibv_wc wc = { .opcode = IBV_WC_RECV, .byte_len = m->length };

	assert_held(&qp->lock);
	tap_record_receive(qp, &wc, rwqe);
}

/* Executes a whole Send into a receive of one segment. Returns false for any other case. */
static ALWAYS_INLINE bool quick_send(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *m,
				     bool tapped)
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
	if (tapped && !tap_record_plain_receive(qp, m->length, at))
		record_receive(qp, m, rwqe);
	soft_qp_received_next(qp, m->length, m->op == WIRE_SEND_SE);
	return true;
}

/* Executes a whole write whose last 8 bytes are an aligned word, which is stored at once. Returns false for
 * any other case. */
static NOINLINE bool quick_write(struct soft_qp *qp, struct dapl_conn *conn,
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

/* HOT: functions of their own, so that the choice between them needs no frame. */
static NOINLINE bool send_plainly(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *m)
{
	return quick_send(qp, conn, m, false);
}

static NOINLINE bool send_recorded(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *m)
{
	return quick_send(qp, conn, m, true);
}

bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *m)
{
	const unsigned detours = soft_detours(qp->dev);

	assert_held(&qp->lock);
	if (!m->last || m->rndv || unlikely(detours & SOFT_GUARDED))
		return false;
	switch (m->op) {
	case WIRE_SEND:
	case WIRE_SEND_SE:
		return unlikely(detours) ? send_recorded(qp, conn, m) : send_plainly(qp, conn, m);
	case WIRE_WRITE:
		return quick_write(qp, conn, m);
	default:
		return false;
	}
}
