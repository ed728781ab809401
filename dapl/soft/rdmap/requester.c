/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.c - turns the send queue, and the answers that are due, into segments: decides whether the
 * next request may start (fences, ORD, the peer's receive window, the protocol of a large one), and
 * appends its segments to a batch. The work is done on a copy of the cursor; rdmap/transmit.c makes the
 * copy valid once the transport took the segments. */
#include "dapl/soft/rdmap/requester.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/tcp/fpdu.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>

/* The largest payload of one segment: whole cache lines where FPDUs are large. */
static uint32_t most_payload(const struct dapl_conn *conn, uint32_t head)
{
	uint32_t most = conn->stream.mulpdu - head;

	return most > FPDU_ALIGN_MIN ? most & ~(FPDU_ALIGN - 1u) : most;
}

enum ibv_wc_status soft_requester_fault(const struct soft_qp *qp, const struct dapl_conn *conn,
					const struct soft_swqe *wqe)
{
	int access = soft_is_read(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0;
	bool atomic = soft_is_read(wqe) && wqe->opcode != IBV_WR_RDMA_READ;

	if (wqe->length > SOFT_MAX_MESSAGE)
		return IBV_WC_LOC_LEN_ERR;
	if (soft_is_read(wqe) && !conn->stream.reads_out)
		return IBV_WC_LOC_QP_OP_ERR;
	if (atomic && (wqe->length != 8 || wqe->sges != 1))
		return IBV_WC_LOC_LEN_ERR;
	if (!conn->stream.peer_is_dapl &&
	    (atomic || wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		return IBV_WC_LOC_QP_OP_ERR;
	if (!soft_mem_check_all(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, access))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* Tells whether a large request may begin, and needs segments. */
static enum soft_step start_large(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe,
				  const struct soft_tx_cursor *cur)
{
	struct proto_request request = proto_request_of(PROTO_STARTS, wqe);

	request.alone = qp->sq_head == cur->wqe;
	switch (proto_select(qp, conn, &request)) {
	case PROTO_UNDECIDED:
		return STEP_NOTHING;
	case PROTO_CMA:
		return STEP_LOCAL;
	default:
		return STEP_FRAMED;
	}
}

/* Tells whether the request at the cursor may begin. */
static enum soft_step may_start(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe,
				const struct soft_tx_cursor *cur)
{
	uint32_t outstanding = cur->reads - conn->stream.reads_done;

	if (unlikely(wqe->state == SOFT_DONE))
		return STEP_NOTHING;		/* failed: completes after the requests before it */
	if ((wqe->flags & IBV_SEND_FENCE) && outstanding)
		return STEP_NOTHING;	/* DTO-28 */
	if (wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV)
		return STEP_LOCAL;	/* RMR-9 */
	if (unlikely(soft_requester_fault(qp, conn, wqe) != IBV_WC_SUCCESS))
		return STEP_LOCAL;
	if (soft_is_read(wqe) && outstanding >= conn->stream.reads_out)
		return STEP_NOTHING;
	if (proto_is_large(conn, wqe->opcode, wqe->length))
		return start_large(qp, conn, wqe, cur);
	return STEP_FRAMED;
}

/* Returns true if the peer has a receive for the next Send. The peer never announces more receives than a queue
 * holds. peer_ready is 0 if it is unknown: rings and older devices do not announce receives. After a
 * wrap-around of the counter 0 also counts as unknown, which is safe. */
static bool is_expected(const struct dapl_conn *conn, const struct soft_tx_cursor *cur)
{
	return conn->stream.peer_ready && conn->stream.peer_ready - cur->msn_send < SOFT_MAX_WR;
}

/* How much of `want` the peer's window admits. Only peers of this implementation have a window, and only
 * Sends that the peer has to keep until a receive is posted count. */
static uint32_t window(const struct dapl_conn *conn, const struct soft_tx_cursor *cur,
		       uint32_t charge, uint32_t want, bool *open)
{
	uint64_t used = cur->charged - conn->stream.peer_consumed;
	uint64_t left = used < SOFT_WINDOW ? SOFT_WINDOW - used : 0;
	uint32_t least = want < WINDOW_USE_MIN ? want : WINDOW_USE_MIN;

	*open = true;
	if (!conn->stream.peer_is_dapl || is_expected(conn, cur) || left >= charge + want)
		return want;
	*open = left >= charge + least;
	return *open ? left - charge : 0;
}

/* Fills iov with `length` bytes of the request's payload, from the offset on. Returns the number of
 * iovecs, negative if the memory is not registered any more. */
static int payload(const struct soft_qp *qp, const struct soft_swqe *wqe, uint32_t offset,
		   uint32_t length, struct iovec *iov)
{
	if (wqe->flags & IBV_SEND_INLINE) {
		iov[0] = (struct iovec){ (char *)wqe->sge + offset, length };
		return length != 0;
	}
	return soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, offset, length, 0, iov,
			      SOFT_MAX_SGE);
}

static uint8_t send_op(const struct soft_swqe *wqe)
{
	bool solicited = wqe->flags & IBV_SEND_SOLICITED;

	switch (wqe->opcode) {
	case IBV_WR_SEND_WITH_INV:
		return solicited ? WIRE_SEND_SE_INV : WIRE_SEND_INV;
	case IBV_WR_SEND_WITH_IMM:
		return solicited ? WIRE_SEND_SE_IMM : WIRE_SEND_IMM;
	default:
		return solicited ? WIRE_SEND_SE : WIRE_SEND;
	}
}

static enum soft_step memory_gone(struct soft_batch *b)
{
	b->term = WIRE_TERM_LOCAL;
	b->check = "memory was deregistered while it was sent";
	return STEP_BROKEN;
}

/* A part of a request's payload, from the cursor's offset on, that one message can carry. */
struct part {
	uint32_t length;
	int pieces;		/* negative: the memory was deregistered */
	bool rndv;		/* the peer copies it */
	bool split;		/* rendezvous is impossible, since the payload is in pieces */
	struct iovec iov[SOFT_MAX_SGE];
};

static void find_part(struct part *part, const struct dapl_conn *conn, const struct soft_qp *qp,
		      const struct soft_swqe *wqe, uint32_t offset, uint32_t want, uint32_t most)
{
	bool may_rndv = want > RING_CHUNK && conn->shm && wqe->proto == PROTO_RNDV &&
			rndv_may_send(conn->shm);
	uint32_t limit = may_rndv ? RING_RNDV_MAX : most;

	part->length = want < limit ? want : limit;
	part->pieces = payload(qp, wqe, offset, part->length, part->iov);
	part->rndv = may_rndv && part->pieces == 1;
	part->split = may_rndv && part->pieces > 1;
	if (part->rndv || part->length <= most || part->pieces < 0)
		return;
	part->length = most;
	part->pieces = payload(qp, wqe, offset, most, part->iov);
}

/* Appends the part. Returns false if the batch has no room. */
static bool put_part(struct soft_batch *b, const struct dapl_conn *conn, const struct part *part,
		     const struct soft_tx_cursor *cur, const struct wire_segment *segment)
{
	if (!batch_has_room(b, part->pieces, part->rndv ? 0 : part->length))
		return false;
	if (part->split)
		proto_is_mixed(conn->shm);
	if (part->rndv)
		rndv_send(b->ring, segment, cur->wqe, cur->offset, part->iov);
	else
		batch_put(b, conn->stream.crc, segment, NULL, 0, part->iov, part->pieces, part->length);
	return true;
}

static enum soft_step frame_send(struct soft_batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
				 struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	uint32_t left = wqe->length - cur->offset;
	uint32_t charge = cur->offset ? 0 : SOFT_CHARGE, length;
	struct part part;
	bool open;

	length = window(conn, cur, charge, left, &open);
	if (!open)
		return STEP_NOTHING;
	find_part(&part, conn, qp, wqe, cur->offset, length, most_payload(conn, WIRE_UNTAGGED));
	if (part.pieces < 0)
		return memory_gone(b);
	length = part.length;
	if (!put_part(b, conn, &part, cur,
		      &(struct wire_segment){ .last = length == left, .op = send_op(wqe),
			.stag = wqe->opcode == IBV_WR_SEND ? 0 : wqe->word,
			.qn = WIRE_QN_SEND, .msn = cur->msn_send, .mo = cur->offset }))
		return STEP_FULL;
	cur->charged += charge + length;
	cur->offset += length;
	if (length == left) {
		wqe->seq = ++cur->seq;
		cur->msn_send++;
		cur->wqe++;
		cur->offset = 0;
	}
	batch_note_cursor(b, cur);
	return STEP_FRAMED;
}

static enum soft_step frame_immediate(struct soft_batch *b, const struct dapl_conn *conn, struct soft_swqe *wqe,
				      struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_IMMEDIATE_LENGTH];
	bool open;

	window(conn, cur, SOFT_CHARGE, 0, &open);
	if (!open)
		return STEP_NOTHING;
	if (!batch_has_room(b, 0, sizeof body))
		return STEP_FULL;
	wire_put32(body, wqe->word);
	wire_put32(body + 4, wqe->length);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .last = true, .qn = WIRE_QN_SEND, .msn = cur->msn_send,
			.op = wqe->flags & IBV_SEND_SOLICITED ? WIRE_IMMEDIATE_SE
							      : WIRE_IMMEDIATE },
	      body, sizeof body, NULL, 0, 0);
	cur->charged += SOFT_CHARGE;
	wqe->seq = ++cur->seq;
	cur->msn_send++;
	cur->wqe++;
	cur->second = false;
	batch_note_cursor(b, cur);
	return STEP_FRAMED;
}

static enum soft_step frame_write(struct soft_batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
				  struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	uint32_t left = wqe->length - cur->offset, length;
	struct part part;

	if (cur->second)
		return frame_immediate(b, conn, wqe, cur);
	find_part(&part, conn, qp, wqe, cur->offset, left, most_payload(conn, WIRE_TAGGED));
	if (part.pieces < 0)
		return memory_gone(b);
	length = part.length;
	if (!put_part(b, conn, &part, cur,
		      &(struct wire_segment){ .tagged = true, .last = length == left, .op = WIRE_WRITE,
			.stag = wqe->rkey, .to = wqe->remote + cur->offset }))
		return STEP_FULL;
	cur->offset += length;
	if (length == left) {
		wqe->seq = ++cur->seq;
		cur->offset = 0;
		cur->second = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
		cur->wqe += !cur->second;
	}
	batch_note_cursor(b, cur);
	return STEP_FRAMED;
}

static enum soft_step frame_read(struct soft_batch *b, const struct dapl_conn *conn, struct soft_swqe *wqe,
				 struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_READ_REQUEST_LENGTH];

	if (!batch_has_room(b, 0, sizeof body))
		return STEP_FULL;
	wire_put32(body, conn->stream.sink_key + cur->msn_read);
	wire_put64(body + 4, 0);
	wire_put32(body + 12, wqe->length);
	wire_put32(body + 16, wqe->rkey);
	wire_put64(body + 20, wqe->remote);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_READ_REQUEST,
			.qn = WIRE_QN_READ, .msn = cur->msn_read },
	      body, sizeof body, NULL, 0, 0);
	return STEP_FRAMED;
}

static enum soft_step frame_atomic(struct soft_batch *b, const struct dapl_conn *conn, struct soft_swqe *wqe,
				   struct soft_tx_cursor *cur)
{
	bool swap = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint8_t body[WIRE_ATOMIC_REQUEST_LENGTH];

	if (!batch_has_room(b, 0, sizeof body))
		return STEP_FULL;
	wire_put32(body, swap ? WIRE_ATOMIC_CMP_SWAP : WIRE_ATOMIC_FETCH_ADD);
	wire_put32(body + 4, cur->msn_read);
	wire_put32(body + 8, wqe->rkey);
	wire_put64(body + 12, wqe->remote);
	wire_put64(body + 20, swap ? wqe->atomic.swap : wqe->atomic.compare_add);
	wire_put64(body + 28, swap ? ~0ull : 0);
	wire_put64(body + 36, swap ? wqe->atomic.compare_add : 0);
	wire_put64(body + 44, swap ? ~0ull : 0);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ATOMIC_REQUEST,
			.qn = WIRE_QN_READ, .msn = cur->msn_read },
	      body, sizeof body, NULL, 0, 0);
	return STEP_FRAMED;
}

/* Requests begin in the order of their posts. DTO-29, 30. */
static enum soft_step frame_request(struct soft_batch *b, struct dapl_conn *conn, struct soft_qp *qp,
				    struct soft_tx_cursor *cur)
{
	struct soft_swqe *wqe;
	enum soft_step step;

	if (cur->wqe == qp->sq_tail)
		return STEP_NOTHING;
	wqe = soft_swqe(qp, cur->wqe);
	if (!cur->offset && !cur->second) {
		step = may_start(qp, conn, wqe, cur);
		if (step != STEP_FRAMED)
			return step;
	}
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return frame_write(b, conn, qp, wqe, cur);
	case IBV_WR_RDMA_READ:
		step = frame_read(b, conn, wqe, cur);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		step = frame_atomic(b, conn, wqe, cur);
		break;
	default:
		return frame_send(b, conn, qp, wqe, cur);
	}
	if (step == STEP_FRAMED) {
		wqe->seq = cur->msn_read++;
		cur->reads++;
		cur->wqe++;
		batch_note_cursor(b, cur);
	}
	return step;
}

/* --- answers to the peer's reads and atomics ------------------------------------------- */

/* The answer cannot be sent, so the stream ends. */
static enum soft_step answer_fails(struct soft_batch *b, int term, const char *check)
{
	b->answer = true;
	b->term = term;
	b->check = check;
	return STEP_BROKEN;
}

static enum soft_step frame_response(struct soft_batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
				     const struct soft_answer *answer, struct soft_tx_cursor *cur)
{
	uint32_t left = answer->length - cur->answered, most = most_payload(conn, WIRE_TAGGED);
	uint32_t length = left < most ? left : most;
	struct iovec iov;
	enum soft_check check;
	char *at = NULL;

	if (b->window || b->bounce || !batch_has_room(b, 1, length))
		return STEP_FULL;
	if (length) {
		check = soft_mem_remote(qp, answer->stag, answer->from + cur->answered, length,
					IBV_ACCESS_REMOTE_READ, &at, &b->window);
		if (check != SOFT_FINE)
			return answer_fails(b, WIRE_TERM(0, 1, check), "source of a read went away");
	}
	if (conn->stream.crc && length) {
		b->bounce = malloc(length);
		if (!b->bounce)
			return answer_fails(b, WIRE_TERM_LOCAL, "memory for the answer to a read");
		memcpy(b->bounce, at, length);
		at = (char *)b->bounce;
	}
	iov = (struct iovec){ at, length };
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .tagged = true, .last = length == left,
			.op = WIRE_READ_RESPONSE, .stag = answer->sink_stag,
			.to = answer->sink_to + cur->answered },
	      NULL, 0, &iov, length != 0, length);
	if (b->ring) {			/* copied, so the window need not stay locked */
		soft_mem_done(b->window);
		b->window = NULL;
	}
	cur->answered += length;
	if (length == left) {
		cur->answered = 0;
		cur->answer++;
	}
	batch_note_cursor(b, cur);
	return STEP_FRAMED;
}

static enum soft_step frame_answer(struct soft_batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
				   struct soft_tx_cursor *cur)
{
	const struct soft_answer *answer;
	uint8_t body[WIRE_ATOMIC_RESPONSE_LENGTH];

	if (cur->answer == conn->stream.answer_tail)
		return STEP_NOTHING;
	answer = &conn->stream.answers[cur->answer % conn->stream.reads_in];
	if (!answer->atomic)
		return frame_response(b, conn, qp, answer, cur);
	if (!batch_has_room(b, 0, sizeof body))
		return STEP_FULL;
	wire_put32(body, answer->sink_stag);
	wire_put64(body + 4, answer->sink_to);
	batch_put(b, conn->stream.crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ATOMIC_RESPONSE,
			.qn = WIRE_QN_ATOMIC, .msn = cur->msn_atomic },
	      body, sizeof body, NULL, 0, 0);
	cur->msn_atomic++;
	cur->answer++;
	batch_note_cursor(b, cur);
	return STEP_FRAMED;
}

enum soft_step soft_requester_fill(struct soft_batch *b, struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	struct soft_qp *qp = conn->qp;
	enum soft_step request = STEP_NOTHING, answer = STEP_NOTHING;

	if (conn->stream.tx.first && !cur->first_sent) {
		batch_put(b, conn->stream.crc, &(struct wire_segment){ .tagged = true, .last = true,
				.op = WIRE_WRITE, .stag = 1 }, NULL, 0, NULL, 0, 0);
		cur->first_sent = true;
		cur->seq++;
		batch_note_cursor(b, cur);
	}
	if (conn->stream.tx.terminate || conn->stream.tx.close_notice || !qp || qp->state != IBV_QPS_RTS)
		return STEP_NOTHING;
	do {
		/* Messages are interleaved only for peers of this implementation. */
		answer = !conn->stream.peer_is_dapl && (cur->offset || cur->second) ? STEP_NOTHING
									     : frame_answer(b, conn, qp, cur);
		if (answer == STEP_BROKEN)
			return STEP_BROKEN;
		request = !conn->stream.peer_is_dapl && cur->answered ? STEP_NOTHING : frame_request(b, conn, qp, cur);
		if (request == STEP_BROKEN)
			return STEP_BROKEN;
	} while (answer == STEP_FRAMED || request == STEP_FRAMED);
	if (answer == STEP_FULL || request == STEP_FULL)
		return STEP_FULL;
	return request == STEP_LOCAL ? STEP_LOCAL : STEP_NOTHING;
}
