/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - the target's side of sends, writes, reads and atomics: checks a message, places its
 * payload in memory or in a receive, keeps messages that come before their receive. */
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/trace.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/store.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/tcp/wire.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>

/* --- the target: sends ------------------------------------------------------------- */

static struct soft_unexpected *unexpected_new(struct dapl_conn *conn, uint8_t op, uint32_t word)
{
	struct soft_unexpected *unexpected = calloc(1, sizeof *unexpected);

	if (!unexpected)
		return NULL;
	unexpected->op = op;
	unexpected->word = word;
	TAILQ_INSERT_TAIL(&conn->unexpected, unexpected, link);
	conn->unexpected_bytes += SOFT_CHARGE;
	return unexpected;
}

static void unexpected_free(struct dapl_conn *conn, struct soft_unexpected *unexpected)
{
	TAILQ_REMOVE(&conn->unexpected, unexpected, link);
	conn->unexpected_bytes -= SOFT_CHARGE + unexpected->length;
	free(unexpected->data);
	free(unexpected);
}

void soft_responder_drop_unexpected(struct dapl_conn *conn)
{
	struct soft_unexpected *unexpected;

	while ((unexpected = TAILQ_FIRST(&conn->unexpected)))
		unexpected_free(conn, unexpected);
	conn->rx.unexpected = NULL;
}

/* Limits the memory of unexpected messages. Peers of this implementation honour the credit window; others
 * are throttled by not reading the socket. */
static int limit_unexpected(struct dapl_conn *conn)
{
	if (conn->unexpected_bytes <= SOFT_WINDOW)
		return WIRE_TERM_NONE;
	if (conn->peer_is_dapl)
		return WIRE_TERM_NO_BUFFER;
	if (!conn->rx.paused) {
		conn->rx.paused = true;
		soft_conn_interest(conn);
	}
	return WIRE_TERM_NONE;
}

static bool unexpected_reserve(struct soft_unexpected *unexpected, uint32_t size)
{
	uint32_t capacity = unexpected->capacity ? unexpected->capacity : 256;
	uint8_t *data;

	if (size <= unexpected->capacity)
		return true;
	while (capacity < size)
		capacity *= 2;
	data = realloc(unexpected->data, capacity);
	if (!data)
		return false;
	unexpected->data = data;
	unexpected->capacity = capacity;
	return true;
}

static const struct ibv_pd *receive_pd(const struct soft_qp *qp)
{
	return qp->srq ? qp->srq->srq.pd : qp->qp.pd;
}

/* The taken receive fails. Returns `term`, which goes to the peer. */
static int receive_failed(struct soft_qp *qp, enum ibv_wc_status status, int term)
{
	static const struct ibv_wc receive = { .opcode = IBV_WC_RECV };

	soft_qp_received(qp, status, &receive, false);
	return term;
}

int soft_responder_send_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;

	if (!rx->send_open) {
		rx->send_open = true;
		rx->send_op = rx->seg.op;
		rx->send_word = rx->seg.stag;
		rx->send_offset = 0;
		rx->unexpected = NULL;
		if (TAILQ_EMPTY(&conn->unexpected) && soft_qp_take_receive(qp)) {
			conn->consumed += SOFT_CHARGE;
		} else {
			soft_trace(TRC_LVL_DETAIL, "qp", qp, "send without a receive");
			rx->unexpected = unexpected_new(conn, rx->send_op, rx->send_word);
			if (!rx->unexpected)
				return WIRE_TERM_LOCAL;
			if (qp->srq)	/* if the SRQ is empty, asks for a call of soft_responder_receives() */
				soft_qp_take_receive(qp);
		}
	}
	if (rx->send_offset + (uint64_t)rx->payload_left > SOFT_MAX_MESSAGE)
		return WIRE_TERM_TOO_LONG;
	rx->sink = rx->unexpected ? SOFT_SINK_UNEXPECTED : SOFT_SINK_RECV;
	if (rx->unexpected)
		return limit_unexpected(conn);
	if (rx->send_offset + (uint64_t)rx->payload_left > qp->taken->length)
		return receive_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);
	return WIRE_TERM_NONE;
}

/* The taken receive holds the whole message: completes it. */
static int deliver(struct soft_qp *qp, struct dapl_conn *conn, uint8_t op, uint32_t word,
		   uint32_t length)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .byte_len = length };
	bool solicited = false;

	switch (op) {
	case WIRE_SEND_SE_INV:
		solicited = true;	/* fall through */
	case WIRE_SEND_INV:
		if (soft_mw_invalidate(qp, word) != IBV_WC_SUCCESS)
			return WIRE_TERM_INVALIDATE;
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = word;
		break;
	case WIRE_SEND_SE_IMM:
		solicited = true;	/* fall through */
	case WIRE_SEND_IMM:
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htonl(word);
		break;
	case WIRE_IMMEDIATE_SE:
		solicited = true;	/* fall through */
	case WIRE_IMMEDIATE:
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htonl(word);
		break;
	case WIRE_SEND_SE:
		solicited = true;
		break;
	}
	conn->delivered++;
	soft_qp_received(qp, IBV_WC_SUCCESS, &wc, solicited);
	return WIRE_TERM_NONE;
}

int soft_responder_send_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;

	rx->send_open = false;
	conn->arrived++;
	if (rx->unexpected) {
		rx->unexpected->complete = true;
		rx->unexpected = NULL;
		soft_responder_receives(qp);
		return WIRE_TERM_NONE;
	}
	return deliver(qp, conn, rx->send_op, rx->send_word, rx->send_offset);
}

int soft_responder_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint32_t word = wire_get32(body), length = wire_get32(body + 4);
	struct soft_unexpected *unexpected;

	conn->arrived++;
	if (TAILQ_EMPTY(&conn->unexpected) && soft_qp_take_receive(qp)) {
		conn->consumed += SOFT_CHARGE;
		return deliver(qp, conn, conn->rx.seg.op, word, length);
	}
	unexpected = unexpected_new(conn, conn->rx.seg.op, word);
	if (!unexpected)
		return WIRE_TERM_LOCAL;
	unexpected->write_length = length;
	unexpected->complete = true;
	soft_responder_receives(qp);
	return limit_unexpected(conn);
}

/* Copies the arrived part of an unexpected message into the taken receive. The rest of the segment that is
 * being received must fit, too. */
static int unexpected_copy(struct soft_qp *qp, const struct dapl_conn *conn,
		     const struct soft_unexpected *unexpected)
{
	bool coming = !unexpected->complete && conn->rx.sink == SOFT_SINK_UNEXPECTED;
	uint64_t length = unexpected->length + (uint64_t)(coming ? conn->rx.payload_left : 0);
	struct iovec iov[SOFT_MAX_SGE];
	int n;

	if (length > qp->taken->length)
		return receive_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);
	n = soft_mem_slice(qp->dev, receive_pd(qp), qp->taken->sge, qp->taken->sges, 0,
			   unexpected->length, IBV_ACCESS_LOCAL_WRITE, iov, SOFT_MAX_SGE);
	if (n < 0)
		return receive_failed(qp, IBV_WC_LOC_PROT_ERR, WIRE_TERM_LOCAL);
	ring_scatter(iov, n, unexpected->data);
	return WIRE_TERM_NONE;
}

static int unexpected_deliver(struct soft_qp *qp, struct dapl_conn *conn, struct soft_unexpected *unexpected)
{
	bool immediate = unexpected->op == WIRE_IMMEDIATE || unexpected->op == WIRE_IMMEDIATE_SE;
	int term = unexpected_copy(qp, conn, unexpected);

	if (term == WIRE_TERM_NONE && unexpected->complete)
		term = deliver(qp, conn, unexpected->op, unexpected->word,
			       immediate ? unexpected->write_length : unexpected->length);
	if (term != WIRE_TERM_NONE)
		return term;
	conn->consumed += SOFT_CHARGE + unexpected->length;
	if (unexpected->complete)
		conn->delivered += unexpected->writes_after;
	else
		conn->rx.unexpected = NULL;	/* the rest of the message goes straight into the receive */
	if (conn->rx.sink == SOFT_SINK_UNEXPECTED && !unexpected->complete)
		conn->rx.sink = SOFT_SINK_RECV;
	unexpected_free(conn, unexpected);
	return WIRE_TERM_NONE;
}

void soft_responder_receives(struct soft_qp *qp)
{
	struct dapl_conn *conn = qp->conn;
	struct soft_unexpected *unexpected;
	int term = WIRE_TERM_NONE;

	if (!conn || qp->state != IBV_QPS_RTS || conn->tx.terminate || conn->tx.close_notice)
		return;
	while (term == WIRE_TERM_NONE && (unexpected = TAILQ_FIRST(&conn->unexpected)) && soft_qp_take_receive(qp))
		term = unexpected_deliver(qp, conn, unexpected);
	if (term != WIRE_TERM_NONE) {
		soft_stream_terminate(qp, conn, term, false, conn->delivered + 1, "delivery of an unexpected send");
		return;
	}
	if (conn->rx.paused && conn->unexpected_bytes <= SOFT_WINDOW / 2) {
		conn->rx.paused = false;
		soft_conn_interest(conn);
	}
	soft_send_ack(conn);
}

/* Receives of a shared queue do not count, since other QPs may take them. While messages wait for a
 * receive there is none. */
uint32_t soft_responder_ready(const struct dapl_conn *conn)
{
	const struct soft_qp *qp = conn->qp;
	uint32_t come = conn->rx.msn_send - 1;

	if (!qp || !TAILQ_EMPTY(&conn->unexpected))
		return come;
	return come + conn->rx.send_open + (qp->rq.tail - qp->rq.head);
}

/* --- the target: writes, reads, atomics ----------------------------------------------- */

static int write_term(enum soft_check check)
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
	struct soft_rx *rx = &conn->rx;
	struct soft_region *held;
	enum soft_check check;
	uintptr_t end;
	char *at;

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
		return write_term(check);
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
	struct soft_unexpected *last = TAILQ_LAST(&conn->unexpected, soft_unexpected_head);

	conn->rx.write_open = false;
	conn->arrived++;
	if (last)
		last->writes_after++;
	else
		conn->delivered++;
}

/* Returns NULL if the peer has more reads outstanding than was agreed. */
static struct soft_answer *answer_room(struct dapl_conn *conn)
{
	if (conn->answer_tail - conn->tx.cursor.answer >= conn->reads_in)
		return NULL;
	return &conn->answers[conn->answer_tail % conn->reads_in];
}

int soft_responder_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	struct soft_answer *answer = answer_room(conn);
	struct soft_region *held = NULL;
	enum soft_check check = SOFT_FINE;
	char *at;

	if (!answer)
		return WIRE_TERM_NO_BUFFER;
	*answer = (struct soft_answer){
		.sink_stag = wire_get32(body), .sink_to = wire_get64(body + 4),
		.length = wire_get32(body + 12), .stag = wire_get32(body + 16),
		.from = wire_get64(body + 20), .msn = conn->rx.seg.msn,
	};
	if (answer->length)
		check = soft_mem_remote(qp, answer->stag, answer->from, answer->length,
					IBV_ACCESS_REMOTE_READ, &at, &held);
	soft_mem_done(held);
	if (check != SOFT_FINE)
		return WIRE_TERM(0, 1, check);
	conn->answer_tail++;
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
		.msn = conn->rx.seg.msn,
	};
	conn->answer_tail++;
	return WIRE_TERM_NONE;
}

/* --- where payload goes ------------------------------------------------------------------ */

static int place_recv(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, int *term)
{
	int n = soft_mem_slice(qp->dev, receive_pd(qp), qp->taken->sge, qp->taken->sges,
			       conn->rx.send_offset, length, IBV_ACCESS_LOCAL_WRITE, iov, max);

	if (n < 0)
		*term = receive_failed(qp, IBV_WC_LOC_PROT_ERR, WIRE_TERM_LOCAL);
	return n;
}

static int place_unexpected(struct dapl_conn *conn, uint32_t length, struct iovec *iov, int *term)
{
	struct soft_unexpected *unexpected = conn->rx.unexpected;

	if (conn->peer_is_dapl && conn->unexpected_bytes + length > SOFT_WINDOW + SOFT_CHARGE + RING_CHUNK) {
		*term = WIRE_TERM_NO_BUFFER;	/* far more than the window that was granted */
		return -1;
	}
	if (!unexpected_reserve(unexpected, unexpected->length + length)) {
		*term = WIRE_TERM_LOCAL;
		return -1;
	}
	iov[0] = (struct iovec){ unexpected->data + unexpected->length, length };
	return 1;
}

/* The last bytes of a write are collected in rx->tail until the rest is in place. */
static int place_write(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		       struct iovec *iov, int max, struct soft_region **held, int *term)
{
	struct soft_rx *rx = &conn->rx;
	uint32_t body = rx->payload_left - rx->tail_length, part;
	enum soft_check check;
	char *at = NULL;
	int n = 0;

	if (rx->payload_left < rx->tail_length)
		body = 0;
	check = soft_mem_remote(qp, rx->write_stag, rx->write_to, rx->payload_left,
				IBV_ACCESS_REMOTE_WRITE, &at, held);
	if (check != SOFT_FINE) {
		*term = write_term(check);
		return -1;
	}
	if (body) {
		part = body < length ? body : length;
		iov[n++] = (struct iovec){ at, part };
		length -= part;
	}
	if (length && n < max) {
		part = rx->payload_left - body;		/* bytes of the tail that are missing */
		iov[n++] = (struct iovec){ rx->tail + rx->tail_length - part, length };
	}
	rx->tail_at = at + rx->payload_left - rx->tail_length;
	return n;
}

static int place_read(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, int *term)
{
	const struct soft_swqe *wqe = soft_swqe(qp, conn->rx.read_wqe);
	int n = soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, conn->rx.read_offset,
			       length, IBV_ACCESS_LOCAL_WRITE, iov, max);

	if (n < 0) {
		soft_qp_flush(qp, conn->rx.read_wqe, IBV_WC_LOC_PROT_ERR);
		*term = WIRE_TERM_LOCAL;
	}
	return n;
}

static int place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		 struct iovec *iov, int max, struct soft_region **held, int *term)
{
	switch (conn->rx.sink) {
	case SOFT_SINK_RECV:
		return place_recv(qp, conn, length, iov, max, term);
	case SOFT_SINK_UNEXPECTED:
		return place_unexpected(conn, length, iov, term);
	case SOFT_SINK_WRITE:
		return place_write(qp, conn, length, iov, max, held, term);
	case SOFT_SINK_READ:
		return place_read(qp, conn, length, iov, max, term);
	default:
		*term = WIRE_TERM_UNSPECIFIED;
		return -1;
	}
}

/* A payload that has no place is an error, since the caller would repeat the call for ever. */
int soft_responder_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, struct soft_region **held, int *term)
{
	int n;

	*held = NULL;
	n = place(qp, conn, length, iov, max, held, term);
	if (n || !length)
		return n;
	soft_mem_done(*held);
	*held = NULL;
	*term = WIRE_TERM_LOCAL;
	return -1;
}

void soft_responder_placed(struct dapl_conn *conn, uint32_t length)
{
	struct soft_rx *rx = &conn->rx;

	rx->payload_left -= length;
	rx->payload_done += length;
	switch (rx->sink) {
	case SOFT_SINK_RECV:
		rx->send_offset += length;
		conn->consumed += length;
		break;
	case SOFT_SINK_UNEXPECTED:
		rx->send_offset += length;
		rx->unexpected->length += length;
		conn->unexpected_bytes += length;
		break;
	case SOFT_SINK_WRITE:
		rx->write_to += length;
		if (!rx->payload_left && rx->tail_length)
			soft_store_tail(rx->tail_at, rx->tail, rx->tail_length);
		break;
	case SOFT_SINK_READ:
		rx->read_offset += length;
		break;
	default:
		break;
	}
}

/* --- the target: fast path for small messages ------------------------------------------------- */

static inline void copy_payload(char *to, const uint8_t *from, uint32_t length)
{
	if (likely(length <= RING_INLINE))
		ring_copy((uint8_t *)to, from, length);
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
		       const struct ring_message *m)
{
	const struct soft_rwqe *rwqe;
	char *at;

	if (conn->rx.send_open || !TAILQ_EMPTY(&conn->unexpected) || !(rwqe = next_receive(qp)) ||
	    rwqe->sges != 1 || m->length > rwqe->length ||
	    soft_mem_local(qp->dev, receive_pd(qp), rwqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) !=
	    SOFT_FINE)
		return false;
	copy_payload(at, m->data, m->length);
	conn->rx.msn_send++;
	conn->consumed += SOFT_CHARGE + m->length;
	conn->arrived++;
	if (qp->srq)
		return deliver(qp, conn, m->op, 0, m->length) == WIRE_TERM_NONE;
	conn->delivered++;
	soft_qp_received_next(qp, m->length, m->op == WIRE_SEND_SE);
	return true;
}

/* Executes a whole write whose last 8 bytes are an aligned word, which is stored at once. Returns false for
 * any other case. */
static bool quick_write(struct soft_qp *qp, struct dapl_conn *conn,
			const struct ring_message *m)
{
	struct soft_rx *rx = &conn->rx;
	struct soft_region *held;
	uint32_t body = m->length - 8;
	char *at;

	if (m->length < 8 || (m->to + m->length) % 8 || rx->write_open ||
	    !TAILQ_EMPTY(&conn->unexpected) ||
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
	conn->arrived++;
	conn->delivered++;
	return true;
}

bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct ring_message *m)
{
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
