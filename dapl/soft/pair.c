/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c - the rings of a connection: what tcp.c would frame goes into one as it is, what
 * the other brings is executed by engine.c like what comes over TCP. When to look, and
 * when to acknowledge, is engine.c's matter.
 *
 * A message is one segment: its place in the ring is its number, so there are no sequence
 * numbers to check. What a segment says beyond that is checked as on TCP. */
#include "dapl/soft/soft.h"
#include <stdlib.h>

enum {
	FINE = -1,
	ACKS_LATER = 4,		/* so few messages: their acknowledgement may wait */
};

struct soft_pair *soft_pair_new(struct dapl_conn *conn, struct soft_segment *segment)
{
	struct soft_pair *pair = calloc(1, sizeof *pair);

	if (!pair) {
		soft_segment_put(segment);
		return NULL;
	}
	pair->conn = conn;
	pair->segment = segment;
	pair->peer = segment->station[!conn->passive];
	ring_tx_init(&pair->tx, segment->memory, conn->passive);
	ring_rx_init(&pair->rx, segment->memory, !conn->passive);
	return pair;
}

void soft_pair_free(struct soft_pair *pair)
{
	if (!pair)
		return;
	soft_segment_put(pair->segment);
	free(pair);
}

/* --- to the peer ---------------------------------------------------------------------- */

void soft_pair_put(struct dapl_conn *conn, const struct wire_segment *segment,
		   const void *body, uint32_t body_length, const struct iovec *payload,
		   int pieces, uint32_t length)
{
	struct iovec whole = { (void *)body, body_length };
	struct ring_message message = {
		.op = segment->op, .last = segment->last, .length = body_length + length,
		.word = segment->stag, .to = segment->to,
		.delivered = conn->delivered, .consumed = conn->consumed,
	};

	if (body_length)
		ring_put(&conn->pair->tx, &message, &whole, 1);
	else
		ring_put(&conn->pair->tx, &message, payload, pieces);
}

/* May the stream send at all, and has it nothing else to send? */
static bool is_quiet(const struct dapl_conn *conn)
{
	const struct soft_tx *tx = &conn->tx;

	return tx->open && !(tx->blocked | tx->busy | tx->shut | tx->goodbye | tx->terminate |
			     tx->cursor.second) &&
	       !tx->cursor.offset && tx->cursor.answer == conn->answer_tail;
}

/* Which message a request becomes; false: not a plain one. */
static bool plain_message(const struct soft_swqe *wqe, struct ring_message *message)
{
	if (wqe->flags & IBV_SEND_FENCE)
		return false;
	switch (wqe->opcode) {
	case IBV_WR_SEND:
		message->op = wqe->flags & IBV_SEND_SOLICITED ? WIRE_SEND_SE : WIRE_SEND;
		message->word = 0;
		message->to = 0;
		return true;
	case IBV_WR_RDMA_WRITE:
		message->op = WIRE_WRITE;
		message->word = wqe->rkey;
		message->to = wqe->remote;
		return true;
	default:
		return false;
	}
}

/* The payload as one piece; false: it's not one, or not registered. */
static bool one_piece(const struct soft_qp *qp, struct soft_swqe *wqe, struct iovec *piece)
{
	char *at = (char *)wqe->sge;

	if (!(wqe->flags & IBV_SEND_INLINE) &&
	    (wqe->sges != 1 || soft_mem_local(qp->dev, qp->qp.pd, wqe->sge, 0, &at) != SOFT_FINE))
		return false;
	*piece = (struct iovec){ at, wqe->length };
	return true;
}

bool soft_pair_quick(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_tx_cursor *cur = &conn->tx.cursor;
	struct ring_message message;
	struct soft_swqe *wqe;
	struct iovec piece;
	uint32_t charge;

	if (!conn->pair || cur->wqe + 1 != qp->sq_tail || qp->state != IBV_QPS_RTS ||
	    !is_quiet(conn))
		return false;
	wqe = soft_swqe(qp, cur->wqe);
	if (wqe->state != SOFT_POSTED || wqe->length > RING_CHUNK ||
	    !plain_message(wqe, &message))
		return false;
	charge = wqe->opcode == IBV_WR_SEND ? SOFT_CHARGE + wqe->length : 0;
	if (cur->charged - conn->peer_consumed + charge > SOFT_WINDOW ||
	    !one_piece(qp, wqe, &piece) || !ring_room(&conn->pair->tx, wqe->length))
		return false;
	message.last = true;
	message.length = wqe->length;
	message.delivered = cur->told_seq = conn->delivered;
	message.consumed = cur->told_consumed = conn->consumed;
	ring_put(&conn->pair->tx, &message, &piece, 1);
	cur->charged += charge;
	cur->msn_send += wqe->opcode == IBV_WR_SEND;
	cur->wqe++;
	wqe->seq = ++cur->seq;
	wqe->state = SOFT_SENT;
	soft_bell(conn->pair->peer);
	return true;
}

void soft_pair_tell(struct dapl_conn *conn)
{
	ring_tell(&conn->pair->rx, conn->delivered, conn->consumed);
	conn->tx.cursor.told_seq = conn->delivered;
	conn->tx.cursor.told_consumed = conn->consumed;
	soft_bell(conn->pair->peer);
}

/* --- from the peer ---------------------------------------------------------------------- */

/* Acknowledgements come in messages and by telling; an older one may be seen later. */
static int acknowledged(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			uint32_t consumed)
{
	int32_t messages = delivered - conn->peer_delivered;
	int32_t bytes = consumed - (uint32_t)conn->peer_consumed;

	if (messages <= 0 && bytes <= 0)
		return FINE;
	return soft_initiator_acked(qp, conn, conn->peer_delivered + (messages > 0 ? messages : 0),
				    conn->peer_consumed + (bytes > 0 ? bytes : 0));
}

static int place(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *from)
{
	struct soft_region *held;
	struct iovec iov[8];
	uint32_t length;
	int n, term = FINE;

	while (conn->rx.payload_left) {
		n = soft_target_place(qp, conn, conn->rx.payload_left, iov, 8, &held, &term);
		if (n < 0)
			return term;
		length = 0;
		for (int i = 0; i < n; length += iov[i++].iov_len)
			memcpy(iov[i].iov_base, from + length, iov[i].iov_len);
		soft_target_placed(conn, length);
		soft_mem_done(held);
		from += length;
		if (!length)
			return WIRE_TERM_LOCAL;
	}
	return FINE;
}

static int take_ack(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;

	pair->ack_waits = false;
	return acknowledged(conn->qp, conn, pair->ack_delivered, pair->ack_consumed);
}

static int execute(struct soft_qp *qp, struct dapl_conn *conn, const struct ring_message *message,
		   const char **check)
{
	struct soft_pair *pair = conn->pair;
	int term = FINE;

	pair->ack_delivered = message->delivered;
	pair->ack_consumed = message->consumed;
	pair->ack_waits = true;
	if (soft_target_quick(qp, conn, message))
		return FINE;
	*check = "acknowledgement";
	term = take_ack(conn);
	if (term != FINE || soft_stream_dropping(conn))
		return term;
	term = soft_segment_arrived(qp, conn, message, check);
	if (term != FINE)
		return term;
	*check = "place for payload";
	term = place(qp, conn, message->data);
	return term == FINE ? soft_segment_end(qp, conn, check) : term;
}

static void receive_one(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;
	const char *check = "form of a message";
	struct ring_message message;
	int term = FINE;

	if (!ring_get(&pair->rx, &message)) {
		pair->spoiled = true;
		term = WIRE_TERM_LENGTH;
	}
	if (!soft_stream_dropping(conn)) {
		if (term == FINE)
			term = execute(conn->qp, conn, &message, &check);
		if (unlikely(term != FINE))
			soft_stream_fail(conn->qp, conn, term, check);
	}
	if (!pair->spoiled)
		ring_done(&pair->rx, &message);
}

/* What the peer told: acknowledgements, and that there is room again. */
static void take_note(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;
	const struct ring_told *told = pair->tx.told;
	uint32_t count = __atomic_load_n(&told->count, __ATOMIC_ACQUIRE);
	int term;

	if (count == pair->seen)
		return;
	pair->seen = count;
	conn->tx.blocked = false;
	if (soft_stream_dropping(conn))
		return;
	term = acknowledged(conn->qp, conn, __atomic_load_n(&told->delivered, __ATOMIC_RELAXED),
			    __atomic_load_n(&told->consumed, __ATOMIC_RELAXED));
	if (term != FINE)
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
}

void soft_pair_receive(struct dapl_conn *conn, bool later)
{
	struct soft_pair *pair = conn->pair;
	int budget = RING_SLOTS, term;

	take_note(conn);
	for (; budget && !pair->spoiled && ring_ready(&pair->rx); budget--)
		receive_one(conn);
	if (!pair->ack_waits || (later && budget > RING_SLOTS - ACKS_LATER) ||
	    soft_stream_dropping(conn))
		return;
	term = take_ack(conn);
	if (term != FINE)
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
}
