/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transmit.c - sends batches of segments, through the ring or over the socket, executes requests without a segment,
 * and completes requests in the order of their posts: those that the transport took, and those that were acknowledged
 * or answered. What is to be sent is decided by requester.c, FPDUs are framed by tcp/fpdu.c; sockets are opened and
 * closed by cm/.
 *
 * Sending builds a batch of whole FPDUs on the stack, for one sendmsg, working on a copy
 * of the cursor. Each frame notes the cursor behind it. If the socket takes only a part, the
 * cursor of the frame that was cut becomes valid, and the rest of that frame is copied.
 * So the consumer's memory is not referenced between two calls. */
#include "dapl/soft/rdmap/transmit.h"
#include "common/compiler.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/tap_record.h"
#include "dapl/soft/obj/fastpath.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/rdmap/requester.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/tcp/fpdu.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/shm_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* --- completions ---------------------------------------------------------------------- */

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

/* The transport took the requests from `from` up to `to`. */
static void requests_sent(struct dapl_conn *conn, uint32_t from, uint32_t to)
{
	struct soft_qp *qp = conn->qp;

	if (!qp || from == to || qp->state != IBV_QPS_RTS)
		return;
	for (; from != to; from++) {
		struct soft_swqe *wqe = soft_swqe(qp, from);

		if (wqe->state == SOFT_POSTED)
			wqe->state = soft_is_read(wqe) || conn->stream.peer_is_dapl ? SOFT_SENT : SOFT_DONE;
	}
	soft_requester_complete(qp);
}

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
	if (wqe->opcode == IBV_WR_RDMA_READ && wqe->status == IBV_WC_SUCCESS) {
		if (!cma_read(qp, conn, wqe))
			return;
		tap_record_executed(qp, wqe);
	}
	wqe->state = SOFT_DONE;
	if (wqe->status == IBV_WC_SUCCESS)
		conn->stream.tx.cursor.wqe++;
	soft_requester_complete(qp);
}

/* --- acknowledgements, and the last frame ---------------------------------------------- */

/* Appends the acknowledgement to any other frame; without one, only if it is due. */
static void frame_ack(struct soft_batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_ACK_LENGTH] = { 0 };

	if (b->ring) {			/* each message of a ring carries an acknowledgement */
		if (b->frames) {
			cur->acked_seq = conn->stream.delivered;
			cur->acked_consumed = conn->stream.consumed;
		}
		return;
	}
	if (!conn->stream.peer_is_dapl ||
	    (cur->acked_seq == conn->stream.delivered && cur->acked_consumed == conn->stream.consumed))
		return;
	if (!b->frames && !conn->stream.tx.ack_now && !conn->stream.tx.close_notice && !conn->stream.tx.terminate)
		return;
	wire_put32(body, conn->stream.delivered);
	wire_put32(body + 4, soft_deliver_ready(conn));
	wire_put64(body + 8, conn->stream.consumed);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ACK, .qn = WIRE_QN_DAPL,
			.msn = cur->msn_dapl++ },
	      body, sizeof body, NULL, 0, 0);
	cur->acked_seq = conn->stream.delivered;
	cur->acked_consumed = conn->stream.consumed;
	batch_note_cursor(b, cur);
}

static void frame_last(struct soft_batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	if (conn->stream.tx.terminate && !cur->terminate_sent) {
		batch_put(b, conn->stream.crc,
		      &(struct wire_segment){ .last = true, .op = WIRE_TERMINATE,
				.qn = WIRE_QN_TERMINATE, .msn = 1 },
		      conn->stream.tx.term, conn->stream.tx.term_length, NULL, 0, 0);
		cur->terminate_sent = true;
		batch_note_cursor(b, cur);
	} else if (conn->stream.tx.close_notice && conn->stream.peer_is_dapl && !cur->close_sent) {
		batch_put(b, conn->stream.crc,
		      &(struct wire_segment){ .last = true, .op = WIRE_CLOSE,
				.qn = WIRE_QN_DAPL, .msn = cur->msn_dapl++ },
		      NULL, 0, NULL, 0, 0);
		cur->close_sent = true;
		batch_note_cursor(b, cur);
	}
}

/* --- the socket ------------------------------------------------------------------------- */

/* The socket took `sent` bytes: finds the frame that was cut and keeps a copy of its rest. Returns false if
 * there is no memory for the copy. */
static bool keep_rest(struct dapl_conn *conn, const struct soft_batch *b, size_t sent)
{
	struct soft_tx *tx = &conn->stream.tx;
	size_t skip = sent, n = 0;
	int cut = 0;

	while (cut < b->frames && b->frame[cut].end <= sent)
		cut++;
	if (cut && b->frame[cut - 1].end == sent) {
		tx->cursor = b->frame[cut - 1].cursor;
		return true;
	}
	if (!sent)
		return true;
	tx->rest_length = b->frame[cut].end - sent;
	tx->rest_sent = 0;
	tx->rest = malloc(tx->rest_length);
	if (!tx->rest)
		return false;
	for (int i = 0; n < tx->rest_length; i++) {
		size_t part = b->iov[i].iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (part > tx->rest_length - n)
			part = tx->rest_length - n;
		memcpy(tx->rest + n, (char *)b->iov[i].iov_base + skip, part);
		n += part;
		skip = 0;
	}
	tx->cursor = b->frame[cut].cursor;
	return true;
}

static void block(struct dapl_conn *conn)
{
	conn->stream.tx.blocked = true;
	soft_conn_interest(conn);
}

/* send() failed with errno. Returns true if it may be repeated at once. */
static bool send_failed(struct dapl_conn *conn)
{
	if (errno == EINTR)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
		block(conn);
	else
		conn->stream.tx.shut = true;	/* the receiving side reports the cause */
	if (conn->stream.tx.shut && !conn->stream.io_error)
		conn->stream.io_error = errno;
	return false;
}

/* Returns true if something must be sent before any new frame. */
static bool has_rest(const struct soft_tx *tx)
{
	return tx->rest || (tx->first && !tx->cursor.first_sent);
}

static bool send_rest(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->stream.tx;

	while (tx->rest_sent < tx->rest_length) {
		ssize_t n = send(conn->fd, tx->rest + tx->rest_sent,
				 tx->rest_length - tx->rest_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && !send_failed(conn))
			return false;
		if (n > 0)
			tx->rest_sent += n;
	}
	free(tx->rest);
	tx->rest = NULL;
	tx->rest_length = tx->rest_sent = 0;
	return true;
}

/* Small messages lie in one piece: send() is cheaper than sendmsg(). */
static ssize_t send_pieces(const struct dapl_conn *conn, struct soft_batch *b)
{
	struct msghdr msg = { .msg_iov = b->iov, .msg_iovlen = b->iovs };
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (b->iovs == 1)
		return send(conn->fd, b->iov->iov_base, b->iov->iov_len, flags);
	return sendmsg(conn->fd, &msg, flags);
}

/* The socket took n bytes of the batch. Returns true if that is all of it. */
static bool socket_took(struct dapl_conn *conn, const struct soft_batch *b, size_t n)
{
	uint32_t from = conn->stream.tx.cursor.wqe;

	if (likely(n == b->total)) {
		conn->stream.tx.cursor = b->frame[b->frames - 1].cursor;
	} else if (!keep_rest(conn, b, n)) {
		conn->stream.tx.shut = true;
		conn->stream.io_error = ENOMEM;
		shutdown(conn->fd, SHUT_RDWR);	/* the rest of a frame is lost */
		return false;
	} else {
		block(conn);
	}
	requests_sent(conn, from, conn->stream.tx.cursor.wqe);
	return n == b->total;
}

/* Sends the batch. Returns true if the socket took all of it. */
static bool send_batch(struct dapl_conn *conn, struct soft_batch *b)
{
	ssize_t n;

	do
		n = send_pieces(conn, b);
	while (n < 0 && send_failed(conn));
	return n >= 0 && socket_took(conn, b, n);
}

/* The segments of the batch are in the ring. Returns false if the ring is full. */
static bool ring_took(struct dapl_conn *conn, const struct soft_batch *b,
		      const struct soft_tx_cursor *cur, enum soft_step stop)
{
	uint32_t from = conn->stream.tx.cursor.wqe;

	conn->stream.tx.cursor = *cur;
	if (b->frames) {
		shm_notify(conn->shm);
		requests_sent(conn, from, cur->wqe);
	}
	if (stop == STEP_FULL && !ring_room(&conn->shm->tx, RING_CHUNK))
		conn->stream.tx.blocked = true;
	return !conn->stream.tx.blocked;
}

static void begin_batch(struct soft_batch *b, struct dapl_conn *ring)
{
	b->ring = ring;
	b->frames = b->iovs = b->term = 0;
	b->used = b->total = 0;
	b->answer = false;
	b->window = NULL;
	b->bounce = NULL;
}

/* The batch stopped with STEP_BROKEN. */
static void end_stream(struct dapl_conn *conn, const struct soft_batch *b)
{
	if (b->answer) {
		soft_stream_answer_fail(conn->qp, conn, b->term, b->check);
	} else {
		soft_flush_qp(conn->qp, conn->stream.tx.cursor.wqe, IBV_WC_LOC_PROT_ERR);
		soft_stream_abort(conn->qp, conn, b->check);
	}
}

/* Sends one batch. Returns true if there may be more to send. */
static bool send_some(struct dapl_conn *conn)
{
	struct soft_tx_cursor cur = conn->stream.tx.cursor;
	struct soft_batch b;
	enum soft_step stop;
	bool all = true;

	begin_batch(&b, conn->shm ? conn : NULL);
	stop = soft_requester_fill(&b, conn, &cur);
	frame_ack(&b, conn, &cur);
	frame_last(&b, conn, &cur);
	if (b.ring)
		all = ring_took(conn, &b, &cur, stop);
	else if (b.frames)
		all = send_batch(conn, &b);
	soft_mem_done(b.window);
	free(b.bounce);
	if (!all)
		return false;
	conn->stream.tx.ack_now = false;
	if (stop == STEP_LOCAL)
		soft_requester_execute_local(conn);
	if (stop == STEP_BROKEN)
		end_stream(conn, &b);
	return stop != STEP_NOTHING;
}

/* After the last frame, ends the stream of the socket. A shared-memory connection sent its close notification
 * through the ring; its socket is closed later. */
static void finish(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->stream.tx;

	if (tx->shut || tx->blocked || (!tx->terminate && !tx->close_notice))
		return;
	tx->shut = true;
	if (!conn->shm || tx->terminate)
		shutdown(conn->fd, SHUT_WR);
}

/* Returns true if nothing is to be sent. */
static bool is_idle(const struct dapl_conn *conn)
{
	const struct soft_tx *tx = &conn->stream.tx;

	if (!fastpath_idle(conn) || !conn->qp || tx->cursor.wqe != conn->qp->sq_tail)
		return false;
	return conn->shm || !(tx->ack_now | has_rest(tx));
}

void soft_conn_send(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->stream.tx;

	if (unlikely(tx->busy)) {
		tx->again = true;
		return;
	}
	if (tx->shut || tx->blocked || !(tx->open || tx->close_notice || tx->terminate) ||
	    is_idle(conn))
		return;
	tx->busy = true;
	do {
		tx->again = false;
		if (tx->rest && !send_rest(conn))
			break;
		while (!tx->blocked && !tx->shut && send_some(conn))
			;
	} while (tx->again && !tx->blocked && !tx->shut);
	tx->busy = false;
	finish(conn);
}

/* --- fast path for one small message ----------------------------------------------------- */

/* Frames the request, and the acknowledgement that is due. */
static void frame_fastpath(struct soft_batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur,
			   const struct soft_message *m, char *at)
{
	bool write = m->op == WIRE_WRITE;
	struct iovec payload = { at, m->length };

	begin_batch(b, NULL);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .tagged = write, .last = true, .op = m->op, .stag = m->word,
			.to = m->to, .qn = WIRE_QN_SEND, .msn = cur->msn_send },
	      NULL, 0, &payload, 1, m->length);
	if (!write) {
		cur->msn_send++;
		cur->charged += SOFT_CHARGE + m->length;
	}
	cur->seq++;
	cur->wqe++;
	batch_note_cursor(b, cur);
	frame_ack(b, conn, cur);
}

bool soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	struct soft_tx *tx = &conn->stream.tx;
	struct soft_tx_cursor cur = tx->cursor;
	struct soft_message message;
	struct soft_batch b;
	ssize_t n;
	char *at;

	if (cur.wqe != qp->sq_tail || qp->sq_tail - qp->sq_head == qp->sq_size ||
	    qp->state != IBV_QPS_RTS || !fastpath_idle(conn) || has_rest(tx) ||
	    !fastpath_message(wr, &message) || message.length > BATCH_COPY_MAX ||
	    cur.charged - conn->stream.peer_consumed + SOFT_CHARGE + message.length > SOFT_WINDOW ||
	    !fastpath_payload(qp, wr, &at))
		return false;
	frame_fastpath(&b, conn, &cur, &message, at);
	n = send_pieces(conn, &b);
	if (unlikely(n <= 0))
		return false;		/* the general path tries again, and waits */
	fastpath_queue(qp, wr, SOFT_POSTED, cur.seq);
	if (likely(socket_took(conn, &b, n)))
		tx->ack_now = false;
	return true;
}

bool soft_owes_ack(const struct dapl_conn *conn)
{
	return conn->stream.peer_is_dapl &&
	       (conn->stream.delivered != conn->stream.tx.cursor.acked_seq ||
		conn->stream.consumed != conn->stream.tx.cursor.acked_consumed ||
		(conn->shm && ring_ack_due(&conn->shm->rx)));
}

/* Outside of a poll, the acknowledgement is not delayed. */
void soft_send_ack(struct dapl_conn *conn)
{
	if (!soft_owes_ack(conn))
		return;
	if (conn->shm) {
		shm_conn_send_ack(conn);
		return;
	}
	conn->stream.tx.ack_now = true;
	soft_conn_send(conn);
}
