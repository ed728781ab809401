/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* execute.c - executes messages: the target's side of sends, writes, reads and atomics,
 * the initiator's side of answers and acknowledgements, and how a stream ends. Framing is tcp.c's
 * job, connection set-up cm.c's, when to look for messages engine.c's. */
#include "dapl/soft/soft.h"
#include <stdlib.h>

enum { FINE = -1 };

/* --- the target: sends ------------------------------------------------------------- */

static struct soft_late *late_new(struct dapl_conn *conn, uint8_t op, uint32_t word)
{
	struct soft_late *late = calloc(1, sizeof *late);

	if (!late)
		return NULL;
	late->op = op;
	late->word = word;
	TAILQ_INSERT_TAIL(&conn->late, late, link);
	conn->late_bytes += SOFT_CHARGE;
	return late;
}

static void late_free(struct dapl_conn *conn, struct soft_late *late)
{
	TAILQ_REMOVE(&conn->late, late, link);
	conn->late_bytes -= SOFT_CHARGE + late->length;
	free(late->data);
	free(late);
}

/* More messages without a receive than there is memory for: ours have been told, a
 * foreign peer is stopped by not reading on. */
static int late_full(struct dapl_conn *conn)
{
	if (conn->late_bytes <= SOFT_WINDOW)
		return FINE;
	if (conn->ours)
		return WIRE_TERM_NO_BUFFER;
	if (!conn->rx.paused) {
		conn->rx.paused = true;
		soft_engine_interest(conn);
	}
	return FINE;
}

static bool late_reserve(struct soft_late *late, uint32_t size)
{
	uint32_t capacity = late->capacity ? late->capacity : 256;
	uint8_t *data;

	if (size <= late->capacity)
		return true;
	while (capacity < size)
		capacity *= 2;
	data = realloc(late->data, capacity);
	if (!data)
		return false;
	late->data = data;
	late->capacity = capacity;
	return true;
}

static const struct ibv_pd *receive_pd(const struct soft_qp *qp)
{
	return qp->srq ? qp->srq->srq.pd : qp->qp.pd;
}

/* The taken receive fails; why goes to the peer. */
static int receive_failed(struct soft_qp *qp, enum ibv_wc_status status, int term)
{
	static const struct ibv_wc receive = { .opcode = IBV_WC_RECV };

	soft_qp_received(qp, status, &receive, false);
	return term;
}

int soft_target_send_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;

	if (!rx->send_open) {
		rx->send_open = true;
		rx->send_op = rx->seg.op;
		rx->send_word = rx->seg.stag;
		rx->send_offset = 0;
		rx->late = NULL;
		if (TAILQ_EMPTY(&conn->late) && soft_qp_take_receive(qp)) {
			conn->consumed += SOFT_CHARGE;
		} else {
			soft_trace(TRC_LVL_DETAIL, "qp", qp, "send without a receive");
			rx->late = late_new(conn, rx->send_op, rx->send_word);
			if (!rx->late)
				return WIRE_TERM_LOCAL;
			if (qp->srq)	/* it may be empty: ask to be called back */
				soft_qp_take_receive(qp);
		}
	}
	if (rx->send_offset + (uint64_t)rx->payload_left > SOFT_MAX_MESSAGE)
		return WIRE_TERM_TOO_LONG;
	rx->sink = rx->late ? SOFT_SINK_LATE : SOFT_SINK_RECV;
	if (rx->late)
		return late_full(conn);
	if (rx->send_offset + (uint64_t)rx->payload_left > qp->taken->length)
		return receive_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);
	return FINE;
}

/* The taken receive holds its whole message. */
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
	return FINE;
}

int soft_target_send_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;

	rx->send_open = false;
	conn->arrived++;
	if (rx->late) {
		rx->late->complete = true;
		rx->late = NULL;
		soft_target_receives(qp);
		return FINE;
	}
	return deliver(qp, conn, rx->send_op, rx->send_word, rx->send_offset);
}

int soft_target_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint32_t word = wire_get32(body), length = wire_get32(body + 4);
	struct soft_late *late;

	conn->arrived++;
	if (TAILQ_EMPTY(&conn->late) && soft_qp_take_receive(qp)) {
		conn->consumed += SOFT_CHARGE;
		return deliver(qp, conn, conn->rx.seg.op, word, length);
	}
	late = late_new(conn, conn->rx.seg.op, word);
	if (!late)
		return WIRE_TERM_LOCAL;
	late->write_length = length;
	late->complete = true;
	soft_target_receives(qp);
	return late_full(conn);
}

/* Copies what came of a late message into the taken receive; the rest of a segment that is
 * coming just now must find room there too. */
static int late_copy(struct soft_qp *qp, const struct dapl_conn *conn,
		     const struct soft_late *late)
{
	bool coming = !late->complete && conn->rx.sink == SOFT_SINK_LATE;
	uint64_t length = late->length + (uint64_t)(coming ? conn->rx.payload_left : 0);
	struct iovec iov[SOFT_MAX_SGE];
	int n;

	if (length > qp->taken->length)
		return receive_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);
	n = soft_mem_slice(qp->dev, receive_pd(qp), qp->taken->sge, qp->taken->sges, 0,
			   late->length, IBV_ACCESS_LOCAL_WRITE, iov, SOFT_MAX_SGE);
	if (n < 0)
		return receive_failed(qp, IBV_WC_LOC_PROT_ERR, WIRE_TERM_LOCAL);
	ring_scatter(iov, n, late->data);
	return FINE;
}

static int late_deliver(struct soft_qp *qp, struct dapl_conn *conn, struct soft_late *late)
{
	bool immediate = late->op == WIRE_IMMEDIATE || late->op == WIRE_IMMEDIATE_SE;
	int term = late_copy(qp, conn, late);

	if (term == FINE && late->complete)
		term = deliver(qp, conn, late->op, late->word,
			       immediate ? late->write_length : late->length);
	if (term != FINE)
		return term;
	conn->consumed += SOFT_CHARGE + late->length;
	if (late->complete)
		conn->delivered += late->writes_after;
	else
		conn->rx.late = NULL;	/* what follows goes straight into the receive */
	if (conn->rx.sink == SOFT_SINK_LATE && !late->complete)
		conn->rx.sink = SOFT_SINK_RECV;
	late_free(conn, late);
	return FINE;
}

static void terminate(struct soft_qp *qp, struct dapl_conn *conn, int term, bool read,
		      uint32_t index, const char *check);

void soft_target_receives(struct soft_qp *qp)
{
	struct dapl_conn *conn = qp->conn;
	struct soft_late *late;
	int term = FINE;

	if (!conn || qp->state != IBV_QPS_RTS || conn->tx.terminate || conn->tx.goodbye)
		return;
	while (term == FINE && (late = TAILQ_FIRST(&conn->late)) && soft_qp_take_receive(qp))
		term = late_deliver(qp, conn, late);
	if (term != FINE) {
		terminate(qp, conn, term, false, conn->delivered + 1, "delivery of a late send");
		return;
	}
	if (conn->rx.paused && conn->late_bytes <= SOFT_WINDOW / 2) {
		conn->rx.paused = false;
		soft_engine_interest(conn);
	}
	soft_engine_want_ack(conn);
}

/* Those of a shared queue don't count: others may take them. While messages wait there is none. */
uint32_t soft_target_ready(const struct dapl_conn *conn)
{
	const struct soft_qp *qp = conn->qp;
	uint32_t come = conn->rx.msn_send - 1;

	if (!qp || !TAILQ_EMPTY(&conn->late))
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

int soft_target_write_begin(struct soft_qp *qp, struct dapl_conn *conn)
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
		return FINE;
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
	return FINE;
}

void soft_target_write_end(struct dapl_conn *conn)
{
	struct soft_late *last = TAILQ_LAST(&conn->late, soft_late_head);

	conn->rx.write_open = false;
	conn->arrived++;
	if (last)
		last->writes_after++;
	else
		conn->delivered++;
}

/* Room to answer? The peer must not have more reads out than was agreed. */
static struct soft_answer *answer_room(struct dapl_conn *conn)
{
	if (conn->answer_tail - conn->tx.cursor.answer >= conn->reads_in)
		return NULL;
	return &conn->answers[conn->answer_tail % conn->reads_in];
}

int soft_target_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
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
	return FINE;
}

int soft_target_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
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
	return FINE;
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

static int place_late(struct dapl_conn *conn, uint32_t length, struct iovec *iov, int *term)
{
	struct soft_late *late = conn->rx.late;

	if (conn->ours && conn->late_bytes + length > SOFT_WINDOW + SOFT_CHARGE + RING_CHUNK) {
		*term = WIRE_TERM_NO_BUFFER;	/* far more than we have told */
		return -1;
	}
	if (!late_reserve(late, late->length + length)) {
		*term = WIRE_TERM_LOCAL;
		return -1;
	}
	iov[0] = (struct iovec){ late->data + late->length, length };
	return 1;
}

/* The last bytes of a write wait in rx->tail until the rest is there. */
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
		part = rx->payload_left - body;		/* of the tail, still to come */
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
	case SOFT_SINK_LATE:
		return place_late(conn, length, iov, term);
	case SOFT_SINK_WRITE:
		return place_write(qp, conn, length, iov, max, held, term);
	case SOFT_SINK_READ:
		return place_read(qp, conn, length, iov, max, term);
	default:
		*term = WIRE_TERM_UNSPECIFIED;
		return -1;
	}
}

/* No place at all for something is an error too, or its receiver would try for ever. */
int soft_target_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
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

void soft_target_placed(struct dapl_conn *conn, uint32_t length)
{
	struct soft_rx *rx = &conn->rx;

	rx->payload_left -= length;
	rx->payload_done += length;
	switch (rx->sink) {
	case SOFT_SINK_RECV:
		rx->send_offset += length;
		conn->consumed += length;
		break;
	case SOFT_SINK_LATE:
		rx->send_offset += length;
		rx->late->length += length;
		conn->late_bytes += length;
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

/* --- the target: small messages in one straight line ---------------------------------------- */

static inline void copy_quickly(char *to, const uint8_t *from, uint32_t length)
{
	if (likely(length <= RING_INLINE))
		ring_copy((uint8_t *)to, from, length);
	else
		memcpy(to, from, length);
}

/* The receive that the next Send goes into, or NULL; of a shared queue it is taken with that. */
static const struct soft_rwqe *next_receive(struct soft_qp *qp)
{
	if (qp->srq)
		return soft_qp_take_receive(qp) ? qp->taken : NULL;
	if (qp->taken_valid || qp->rq.head == qp->rq.tail)
		return NULL;
	return soft_rwqe(&qp->rq, qp->rq.head);
}

/* A whole Send into a receive of one segment. */
static bool quick_send(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct ring_message *m)
{
	const struct soft_rwqe *rwqe;
	char *at;

	if (conn->rx.send_open || !TAILQ_EMPTY(&conn->late) || !(rwqe = next_receive(qp)) ||
	    rwqe->sges != 1 || m->length > rwqe->length ||
	    soft_mem_local(qp->dev, receive_pd(qp), rwqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) !=
	    SOFT_FINE)
		return false;
	copy_quickly(at, m->data, m->length);
	conn->rx.msn_send++;
	conn->consumed += SOFT_CHARGE + m->length;
	conn->arrived++;
	if (qp->srq)
		return deliver(qp, conn, m->op, 0, m->length) == FINE;
	conn->delivered++;
	soft_qp_received_next(qp, m->length, m->op == WIRE_SEND_SE);
	return true;
}

/* A whole write; up to 8 bytes that are an aligned word are stored at once. */
static bool quick_write(struct soft_qp *qp, struct dapl_conn *conn,
			const struct ring_message *m)
{
	struct soft_rx *rx = &conn->rx;
	struct soft_region *held;
	uint32_t body = m->length - 8;
	char *at;

	if (m->length < 8 || (m->to + m->length) % 8 || rx->write_open ||
	    !TAILQ_EMPTY(&conn->late) ||
	    soft_mem_remote(qp, m->word, m->to, m->length, IBV_ACCESS_REMOTE_WRITE, &at,
			    &held) != SOFT_FINE)
		return false;
	if ((uintptr_t)(at + body) % 8) {	/* zero-based region */
		soft_mem_done(held);
		return false;
	}
	copy_quickly(at, m->data, body);
	soft_store_tail(at + body, m->data + body, 8);
	soft_mem_done(held);
	rx->write_length = m->length;
	conn->arrived++;
	conn->delivered++;
	return true;
}

bool soft_target_quick(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct ring_message *m)
{
	if (!m->last || m->lent)
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

/* --- the initiator ------------------------------------------------------------------------- */

/* The oldest read or atomic that is not answered. */
static struct soft_swqe *oldest_read(struct soft_qp *qp, const struct dapl_conn *conn,
				     uint32_t *index)
{
	uint32_t end = conn->tx.cursor.wqe;

	if ((int32_t)(qp->sq_head - qp->read_next) > 0)
		qp->read_next = qp->sq_head;
	for (; (int32_t)(end - qp->read_next) > 0; qp->read_next++) {
		struct soft_swqe *wqe = soft_swqe(qp, qp->read_next);

		if (wqe->state == SOFT_SENT && (wqe->opcode == IBV_WR_RDMA_READ ||
						wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
						wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
			*index = qp->read_next;
			return wqe;
		}
	}
	return NULL;
}

static void read_done(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	wqe->state = SOFT_DONE;
	conn->reads_done++;
	qp->read_next++;
	soft_qp_complete_sends(qp);
}

int soft_initiator_response_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;
	struct soft_swqe *wqe;
	uint64_t end;

	if (!rx->read_open) {
		wqe = oldest_read(qp, conn, &rx->read_wqe);
		if (!wqe || wqe->opcode != IBV_WR_RDMA_READ)
			return WIRE_TERM_OPCODE;
		rx->read_open = true;
		rx->read_offset = 0;
	}
	wqe = soft_swqe(qp, rx->read_wqe);
	if (rx->seg.stag != conn->sink_key + wqe->seq)
		return WIRE_TERM_DDP_STAG;
	end = rx->read_offset + (uint64_t)rx->payload_left;
	if (rx->seg.to != rx->read_offset || end > wqe->length ||
	    (rx->seg.last && end != wqe->length))
		return WIRE_TERM_DDP_BOUNDS;
	rx->sink = SOFT_SINK_READ;
	return FINE;
}

/* A read by the ring is done. What it took is told, if memory was not what took the time. */
static void learn(struct dapl_conn *conn, const struct soft_swqe *wqe)
{
	struct soft_pair *pair = conn->pair;

	if (!soft_series_ends(&pair->reads, wqe->length))
		return;
	if (!pair->rx.fresh)
		soft_choice_learn(&conn->dev->reads, SOFT_WAY_RING, wqe->length,
				  soft_series_share(&pair->reads, wqe->length, soft_now_ns()));
	pair->rx.fresh = false;
}

void soft_initiator_response_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->rx.read_wqe);

	conn->rx.read_open = false;
	if (wqe->large.counts)
		learn(conn, wqe);
	read_done(qp, conn, wqe);
	if (conn->pair)
		soft_pair_done(qp, conn);
}

int soft_initiator_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint64_t value = wire_get64(body + 4);
	struct soft_swqe *wqe;
	uint32_t index;
	char *at;

	wqe = oldest_read(qp, conn, &index);
	if (!wqe || wqe->opcode == IBV_WR_RDMA_READ || conn->rx.read_open ||
	    wire_get32(body) != wqe->seq)
		return WIRE_TERM_OPCODE;
	if (soft_mem_local(qp->dev, qp->qp.pd, wqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) !=
	    SOFT_FINE) {
		soft_qp_flush(qp, index, IBV_WC_LOC_PROT_ERR);
		return WIRE_TERM_LOCAL;
	}
	memcpy(at, &value, sizeof value);
	read_done(qp, conn, wqe);
	return FINE;
}

int soft_initiator_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed)
{
	if ((int32_t)(delivered - conn->peer_delivered) < 0 ||
	    (int32_t)(conn->tx.cursor.seq - delivered) < 0 ||
	    consumed < conn->peer_consumed || consumed > conn->tx.cursor.charged)
		return WIRE_TERM_UNSPECIFIED;
	conn->peer_delivered = delivered;
	conn->peer_consumed = consumed;
	soft_qp_complete_sends(qp);
	return FINE;
}

/* --- ends -------------------------------------------------------------------------------------- */

/* What the peer's completion will say. */
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

/* Core learns of the end once. */
static void tell_over(struct dapl_conn *conn, bool orderly)
{
	if (!__atomic_exchange_n(&conn->over, true, __ATOMIC_RELAXED))
		soft_cm_tell(conn, orderly ? SOFT_UP_CLOSED : SOFT_UP_BROKEN);
}

static void terminate(struct soft_qp *qp, struct dapl_conn *conn, int term, bool read,
		      uint32_t index, const char *check)
{
	struct soft_tx *tx = &conn->tx;
	uint8_t *p = tx->term;

	if (tx->terminate || tx->goodbye)
		return;
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "conn", conn, NULL,
	      "terminate %d/%d/%d: %s, op %d msn %u, qp %06x", term >> 12, term >> 8 & 15,
	      term & 255, check, conn->rx.seg.op, conn->rx.seg.msn, qp->qp.qp_num);
	wire_terminate_put(p, term);
	tx->term_length = 4;
	if (conn->ours) {
		memset(p + 4, 0, WIRE_TERMINATE_EXTRA);
		p[4] = read;
		p[5] = term_status(term);
		wire_put32(p + 8, index);
		wire_put32(p + 12, conn->delivered);
		tx->term_length += WIRE_TERMINATE_EXTRA;
	}
	tx->terminate = true;
	soft_qp_flush(qp, 0, IBV_WC_SUCCESS);
	tell_over(conn, false);
	soft_tcp_send(conn);
}

void soft_stream_fail(struct soft_qp *qp, struct dapl_conn *conn, int term, const char *check)
{
	uint8_t op = conn->rx.seg.op;
	bool read = op == WIRE_READ_REQUEST || op == WIRE_ATOMIC_REQUEST;
	uint32_t index = read ? conn->rx.seg.msn : conn->arrived + 1;

	if (op == WIRE_SEND_INV || op == WIRE_SEND_SE_INV)
		index -= term == WIRE_TERM_INVALIDATE;	/* it had arrived */
	terminate(qp, conn, term, read, index, check);
}

void soft_stream_answer_fail(struct soft_qp *qp, struct dapl_conn *conn, int term,
			     const char *check)
{
	uint32_t answer = conn->tx.cursor.answer;

	terminate(qp, conn, term, true, conn->answers[answer % conn->reads_in].msn, check);
}

void soft_stream_abort(struct soft_qp *qp, struct dapl_conn *conn, const char *check)
{
	terminate(qp, conn, WIRE_TERM_LOCAL, false, 0, check);
}

/* The request that the peer's Terminate is about. */
static uint32_t find_culprit(const struct soft_qp *qp, bool read, uint32_t index)
{
	for (uint32_t i = qp->sq_head; i != qp->sq_tail; i++) {
		const struct soft_swqe *wqe = soft_swqe(qp, i);
		bool reads = wqe->opcode == IBV_WR_RDMA_READ ||
			     wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			     wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

		if (wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV ||
		    wqe->state == SOFT_DONE || reads != read)
			continue;
		if (wqe->state == SOFT_POSTED)
			return i;	/* under way: nothing behind it was sent */
		if (wqe->seq == index || (!read && (int32_t)(wqe->seq - index) >= 0))
			return i;
	}
	return qp->sq_tail;
}

void soft_initiator_terminated(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body,
			       uint32_t length)
{
	unsigned term = wire_terminate_get(body, conn->swaps);
	enum ibv_wc_status status = term_status(term);
	uint32_t culprit = qp->sq_tail;

	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "conn", conn, NULL,
	      "peer terminated %d/%d/%d, qp %06x", term >> 12, term >> 8 & 15, term & 255,
	      qp->qp.qp_num);
	if (conn->ours && length >= 4 + WIRE_TERMINATE_EXTRA) {
		soft_initiator_acked(qp, conn, wire_get32(body + 12), conn->peer_consumed);
		if (body[5] == IBV_WC_REM_ACCESS_ERR || body[5] == IBV_WC_REM_INV_REQ_ERR ||
		    body[5] == IBV_WC_REM_OP_ERR)
			status = body[5];
		if (wire_get32(body + 8))	/* 0: no message of ours */
			culprit = find_culprit(qp, body[4], wire_get32(body + 8));
	} else if (conn->reads_done != conn->tx.cursor.reads) {
		oldest_read(qp, conn, &culprit);
	}
	soft_qp_flush(qp, culprit, status);
	conn->tx.goodbye = true;	/* nothing more but our FIN */
	tell_over(conn, false);
	soft_tcp_send(conn);
}

void soft_stream_over(struct soft_qp *qp, struct dapl_conn *conn, bool orderly)
{
	bool sent;

	if (qp && qp->state == IBV_QPS_RTS) {
		sent = qp->sq_head != qp->sq_tail &&
		       soft_swqe(qp, qp->sq_head)->state != SOFT_POSTED;
		soft_qp_flush(qp, qp->sq_head, !orderly && sent ? IBV_WC_RETRY_EXC_ERR
								: IBV_WC_SUCCESS);
	}
	if (!conn->tx.goodbye)
		tell_over(conn, orderly);
	soft_cm_stream_over(conn);
}

void soft_stream_free(struct dapl_conn *conn)
{
	struct soft_late *late;

	while ((late = TAILQ_FIRST(&conn->late)))
		late_free(conn, late);
	conn->rx.late = NULL;
	free(conn->rx.whole);
	conn->rx.whole = NULL;
	conn->rx.whole_size = 0;
	free(conn->tx.rest);
	conn->tx.rest = NULL;
	free(conn->answers);
	conn->answers = NULL;
	soft_pair_free(conn->pair);
	conn->pair = NULL;
}
