/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.c - the byte stream: frames requests and answers into FPDUs and sends them, cuts
 * what arrives into FPDUs and checks their form. What a message does to memory and queues
 * is execute.c's job; sockets are opened and closed by cm.c.
 *
 * Sending builds a batch of whole FPDUs on the stack, for one sendmsg, working on a copy
 * of the cursor. Every frame remembers the cursor behind it; when the socket takes less,
 * the cursor of the frame that was cut counts, and the rest of that frame is copied.
 * So no consumer's memory is referenced between two calls. */
#include "dapl/soft/soft.h"
#include "dapl/soft/plain.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

/* --- sending: a batch -------------------------------------------------------------- */

enum {
	BATCH_FRAMES = 32, BATCH_IOV = 160, BATCH_BYTES = 12 << 10,
	BATCH_LIMIT = 1 << 20,		/* payload bytes */
	COPY_MAX = 256,			/* payloads up to this are copied beside their header */
};

struct batch {
	struct dapl_conn *ring;		/* goes into its ring, not over the socket; or NULL */
	int frames, iovs;
	size_t used, total;
	struct soft_region *held;	/* a window that a read response comes from */
	uint8_t *bounce;		/* a stable copy for the CRC */
	int term;			/* broken: why */
	bool answer;			/* broken: it's the answer's fault */
	const char *check;
	struct {
		size_t end;
		struct soft_tx_cursor cursor;
	/* has_room leaves place for an acknowledgement and a last frame */
	} frame[BATCH_FRAMES + 3];
	struct iovec iov[BATCH_IOV + 6];
	uint8_t bytes[BATCH_BYTES + 512];
};

enum step { FRAMED, NOTHING, FULL, LOCAL, BROKEN };

static void push(struct batch *b, void *p, size_t length)
{
	struct iovec *last = b->iovs ? &b->iov[b->iovs - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += length;
	else
		b->iov[b->iovs++] = (struct iovec){ p, length };
	b->total += length;
}

static bool has_room(const struct batch *b, int pieces, uint32_t length)
{
	if (b->ring)
		return ring_room(&b->ring->pair->tx, length);
	return b->frames < BATCH_FRAMES && b->total < BATCH_LIMIT &&
	       b->iovs + pieces + 2 <= BATCH_IOV &&
	       b->used + WIRE_HEAD_MAX + 64 + COPY_MAX + 8 <= BATCH_BYTES;
}

/* Appends one FPDU; the caller has checked has_room and then notes the cursor (framed). */
static void frame(struct batch *b, bool crc_on, const struct wire_segment *seg,
		  const void *body, uint32_t body_length, const struct iovec *payload,
		  int pieces, uint32_t length)
{
	uint8_t *start = b->bytes + b->used, *p = start + WIRE_FPDU_LENGTH;
	uint32_t crc = WIRE_CRC_START, ulpdu, pad;
	bool copy = length <= COPY_MAX;

	if (b->ring) {
		soft_pair_put(b->ring, seg, body, body_length, payload, pieces, length);
		return;
	}
	p += wire_segment_put(p, seg);
	if (body_length)
		memcpy(p, body, body_length);
	p += body_length;
	ulpdu = p - start - WIRE_FPDU_LENGTH + length;
	pad = -(WIRE_FPDU_LENGTH + ulpdu) & 3;
	wire_put16(start, ulpdu);
	if (copy)
		p = ring_gather(p, payload, pieces);
	push(b, start, p - start);
	if (crc_on)
		crc = wire_crc(crc, start, p - start);
	for (int i = 0; !copy && i < pieces; i++) {
		push(b, payload[i].iov_base, payload[i].iov_len);
		if (crc_on)
			crc = wire_crc(crc, payload[i].iov_base, payload[i].iov_len);
	}
	start = p;
	memset(p, 0, pad + WIRE_CRC);
	p += pad;
	if (crc_on)
		wire_crc_put(p, wire_crc(crc, start, pad));
	p += WIRE_CRC;
	push(b, start, p - start);
	b->used = p - b->bytes;
}

static void framed(struct batch *b, const struct soft_tx_cursor *cursor)
{
	if (b->ring) {
		b->frames++;
		return;
	}
	b->frame[b->frames].end = b->total;
	b->frame[b->frames++].cursor = *cursor;
}

/* Payload of one segment: whole cache lines where FPDUs are large. */
static uint32_t most_payload(const struct dapl_conn *conn, uint32_t head)
{
	uint32_t most = conn->mulpdu - head;

	return most > 4096 ? most & ~63u : most;
}

/* --- sending: requests ---------------------------------------------------------------- */

static bool is_read(const struct soft_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What is wrong with a request before anything of it is sent. */
static enum ibv_wc_status fault(const struct soft_qp *qp, const struct dapl_conn *conn,
				const struct soft_swqe *wqe)
{
	int access = is_read(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0;
	bool atomic = is_read(wqe) && wqe->opcode != IBV_WR_RDMA_READ;

	if (wqe->length > SOFT_MAX_MESSAGE)
		return IBV_WC_LOC_LEN_ERR;
	if (is_read(wqe) && !conn->reads_out)
		return IBV_WC_LOC_QP_OP_ERR;
	if (atomic && (wqe->length != 8 || wqe->sges != 1))
		return IBV_WC_LOC_LEN_ERR;
	if (!conn->ours && (atomic || wqe->opcode == IBV_WR_SEND_WITH_IMM ||
			    wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		return IBV_WC_LOC_QP_OP_ERR;
	if (!soft_mem_check_all(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, access))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* Can it go by the ring or by the kernel's copy? Of reads we make that, of others the peer. */
static bool has_two_ways(const struct dapl_conn *conn, const struct soft_swqe *wqe)
{
	uint32_t least = wqe->opcode == IBV_WR_RDMA_READ ? CHOICE_MIN : RING_CHUNK + 1;

	return conn->pair && wqe->length >= least;
}

static bool must_wait(const struct soft_pair *pair, const struct soft_swqe *wqe)
{
	return wqe->large.way != pair->way && (wqe->large.try || pair->trying);
}

/* What goes the other way meanwhile spoils the series. */
static void note_way(struct soft_pair *pair, const struct soft_swqe *wqe, bool alone)
{
	if (!alone && wqe->large.way != pair->way)
		soft_series_spoil(&pair->writes);
	pair->way = wqe->large.way;
	pair->trying = wqe->large.try;
}

/* It is chosen only now, when those before it are under way, which way a large request goes. A read
 * that the kernel copies it copies at once: all before it is to be executed first. Writes of a try, and
 * those that follow, wait for what goes the other way, so that it can be told what they took. */
static enum step start_large(const struct soft_qp *qp, const struct dapl_conn *conn,
			     struct soft_swqe *wqe, const struct soft_tx_cursor *cur)
{
	bool alone = qp->sq_head == cur->wqe, read = wqe->opcode == IBV_WR_RDMA_READ, by_us;

	if (wqe->large.way == SOFT_WAY_OPEN)
		soft_direct_choose(conn, wqe);
	by_us = wqe->large.way == SOFT_WAY_KERNEL && read;
	if (!alone && (read ? by_us : must_wait(conn->pair, wqe)))
		return NOTHING;
	if (by_us)
		return LOCAL;
	if (!read)
		note_way(conn->pair, wqe, alone);
	if (!wqe->large.counts)		/* it may have been here before, and found no room */
		wqe->large.counts = soft_series_join(read ? &conn->pair->reads : &conn->pair->writes,
						     alone, alone ? soft_now_ns() : 0);
	return FRAMED;
}

/* May the request at the cursor begin? */
static enum step may_start(const struct soft_qp *qp, const struct dapl_conn *conn,
			   struct soft_swqe *wqe, const struct soft_tx_cursor *cur)
{
	uint32_t outstanding = cur->reads - conn->reads_done;

	if (unlikely(wqe->state == SOFT_DONE))
		return NOTHING;		/* failed; waits until all before it completed */
	if ((wqe->flags & IBV_SEND_FENCE) && outstanding)
		return NOTHING;
	if (wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV)
		return LOCAL;
	if (unlikely(fault(qp, conn, wqe) != IBV_WC_SUCCESS))
		return LOCAL;
	if (is_read(wqe) && outstanding >= conn->reads_out)
		return NOTHING;
	if (has_two_ways(conn, wqe))
		return start_large(qp, conn, wqe, cur);
	return FRAMED;
}

/* Does the peer have a receive for the next Send? It never tells of more than a queue holds. 0 says
 * nothing: rings and older devices tell no more, when numbers come round again, too. */
static bool is_expected(const struct dapl_conn *conn, const struct soft_tx_cursor *cur)
{
	return conn->peer_ready && conn->peer_ready - cur->msn_send < SOFT_MAX_WR;
}

/* How much of `want` the peer's window lets through; ours only. Not held by it is what the peer
 * need not keep. */
static uint32_t window(const struct dapl_conn *conn, const struct soft_tx_cursor *cur,
		       uint32_t charge, uint32_t want, bool *open)
{
	uint64_t used = cur->charged - conn->peer_consumed;
	uint64_t left = used < SOFT_WINDOW ? SOFT_WINDOW - used : 0;
	uint32_t least = want < 4096 ? want : 4096;

	*open = true;
	if (!conn->ours || is_expected(conn, cur) || left >= charge + want)
		return want;
	*open = left >= charge + least;
	return *open ? left - charge : 0;
}

/* `length` bytes of the request's payload from the cursor's offset on. */
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

static enum step memory_gone(struct batch *b)
{
	b->term = WIRE_TERM_LOCAL;
	b->check = "memory was deregistered while it was sent";
	return BROKEN;
}

/* A part of a request's payload, from the cursor's offset on, that one message can carry. */
struct part {
	uint32_t length;
	int pieces;		/* negative: its memory is gone */
	bool lent;		/* the peer copies it */
	bool split;		/* ... and could not, as it's in pieces */
	struct iovec iov[SOFT_MAX_SGE];
};

static void find_part(struct part *part, const struct dapl_conn *conn, const struct soft_qp *qp,
		      const struct soft_swqe *wqe, uint32_t offset, uint32_t want, uint32_t most)
{
	bool may_lend = want > RING_CHUNK && conn->pair && wqe->large.way == SOFT_WAY_KERNEL &&
			soft_pair_may_lend(conn->pair);
	uint32_t limit = may_lend ? RING_LENT : most;

	part->length = want < limit ? want : limit;
	part->pieces = payload(qp, wqe, offset, part->length, part->iov);
	part->lent = may_lend && part->pieces == 1;
	part->split = may_lend && part->pieces > 1;
	if (part->lent || part->length <= most || part->pieces < 0)
		return;
	part->length = most;
	part->pieces = payload(qp, wqe, offset, most, part->iov);
}

/* False: no room. */
static bool put_part(struct batch *b, const struct dapl_conn *conn, const struct part *part,
		     const struct soft_tx_cursor *cur, const struct wire_segment *segment)
{
	if (!has_room(b, part->pieces, part->lent ? 0 : part->length))
		return false;
	if (part->split)
		soft_series_spoil(&conn->pair->writes);	/* it goes both ways */
	if (part->lent)
		soft_pair_lend(b->ring, segment, cur->wqe, cur->offset, part->iov);
	else
		frame(b, conn->crc, segment, NULL, 0, part->iov, part->pieces, part->length);
	return true;
}

static enum step frame_send(struct batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
			    struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	uint32_t left = wqe->length - cur->offset;
	uint32_t charge = cur->offset ? 0 : SOFT_CHARGE, length;
	struct part part;
	bool open;

	length = window(conn, cur, charge, left, &open);
	if (!open)
		return NOTHING;
	find_part(&part, conn, qp, wqe, cur->offset, length, most_payload(conn, WIRE_UNTAGGED));
	if (part.pieces < 0)
		return memory_gone(b);
	length = part.length;
	if (!put_part(b, conn, &part, cur,
		      &(struct wire_segment){ .last = length == left, .op = send_op(wqe),
			.stag = wqe->opcode == IBV_WR_SEND ? 0 : wqe->word,
			.qn = WIRE_QN_SEND, .msn = cur->msn_send, .mo = cur->offset }))
		return FULL;
	cur->charged += charge + length;
	cur->offset += length;
	if (length == left) {
		wqe->seq = ++cur->seq;
		cur->msn_send++;
		cur->wqe++;
		cur->offset = 0;
	}
	framed(b, cur);
	return FRAMED;
}

static enum step frame_immediate(struct batch *b, const struct dapl_conn *conn,
				 struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_IMMEDIATE_LENGTH];
	bool open;

	window(conn, cur, SOFT_CHARGE, 0, &open);
	if (!open)
		return NOTHING;
	if (!has_room(b, 0, sizeof body))
		return FULL;
	wire_put32(body, wqe->word);
	wire_put32(body + 4, wqe->length);
	frame(b, conn->crc,
	      &(struct wire_segment){ .last = true, .qn = WIRE_QN_SEND, .msn = cur->msn_send,
			.op = wqe->flags & IBV_SEND_SOLICITED ? WIRE_IMMEDIATE_SE
							      : WIRE_IMMEDIATE },
	      body, sizeof body, NULL, 0, 0);
	cur->charged += SOFT_CHARGE;
	wqe->seq = ++cur->seq;
	cur->msn_send++;
	cur->wqe++;
	cur->second = false;
	framed(b, cur);
	return FRAMED;
}

static enum step frame_write(struct batch *b, const struct dapl_conn *conn, struct soft_qp *qp,
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
		return FULL;
	cur->offset += length;
	if (length == left) {
		wqe->seq = ++cur->seq;
		cur->offset = 0;
		cur->second = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
		cur->wqe += !cur->second;
	}
	framed(b, cur);
	return FRAMED;
}

static enum step frame_read(struct batch *b, const struct dapl_conn *conn,
			    struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_READ_REQUEST_LENGTH];

	if (!has_room(b, 0, sizeof body))
		return FULL;
	wire_put32(body, conn->sink_key + cur->msn_read);
	wire_put64(body + 4, 0);
	wire_put32(body + 12, wqe->length);
	wire_put32(body + 16, wqe->rkey);
	wire_put64(body + 20, wqe->remote);
	frame(b, conn->crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_READ_REQUEST,
			.qn = WIRE_QN_READ, .msn = cur->msn_read },
	      body, sizeof body, NULL, 0, 0);
	return FRAMED;
}

static enum step frame_atomic(struct batch *b, const struct dapl_conn *conn,
			      struct soft_swqe *wqe, struct soft_tx_cursor *cur)
{
	bool swap = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint8_t body[WIRE_ATOMIC_REQUEST_LENGTH];

	if (!has_room(b, 0, sizeof body))
		return FULL;
	wire_put32(body, swap ? WIRE_ATOMIC_CMP_SWAP : WIRE_ATOMIC_FETCH_ADD);
	wire_put32(body + 4, cur->msn_read);
	wire_put32(body + 8, wqe->rkey);
	wire_put64(body + 12, wqe->remote);
	wire_put64(body + 20, swap ? wqe->atomic.swap : wqe->atomic.compare_add);
	wire_put64(body + 28, swap ? ~0ull : 0);
	wire_put64(body + 36, swap ? wqe->atomic.compare_add : 0);
	wire_put64(body + 44, swap ? ~0ull : 0);
	frame(b, conn->crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ATOMIC_REQUEST,
			.qn = WIRE_QN_READ, .msn = cur->msn_read },
	      body, sizeof body, NULL, 0, 0);
	return FRAMED;
}

static enum step frame_request(struct batch *b, const struct dapl_conn *conn,
			       struct soft_qp *qp, struct soft_tx_cursor *cur)
{
	struct soft_swqe *wqe;
	enum step step;

	if (cur->wqe == qp->sq_tail)
		return NOTHING;
	wqe = soft_swqe(qp, cur->wqe);
	if (!cur->offset && !cur->second) {
		step = may_start(qp, conn, wqe, cur);
		if (step != FRAMED)
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
	if (step == FRAMED) {
		wqe->seq = cur->msn_read++;
		cur->reads++;
		cur->wqe++;
		framed(b, cur);
	}
	return step;
}

/* --- sending: answers and control ------------------------------------------------------- */

static enum step frame_response(struct batch *b, const struct dapl_conn *conn,
				struct soft_qp *qp, const struct soft_answer *answer,
				struct soft_tx_cursor *cur)
{
	uint32_t left = answer->length - cur->answered, most = most_payload(conn, WIRE_TAGGED);
	uint32_t length = left < most ? left : most;
	struct iovec iov;
	enum soft_check check;
	char *at = NULL;

	if (b->held || b->bounce || !has_room(b, 1, length))
		return FULL;
	if (length) {
		check = soft_mem_remote(qp, answer->stag, answer->from + cur->answered, length,
					IBV_ACCESS_REMOTE_READ, &at, &b->held);
		if (check != SOFT_FINE) {
			b->answer = true;
			b->term = WIRE_TERM(0, 1, check);
			b->check = "source of a read went away";
			return BROKEN;
		}
	}
	if (conn->crc && length) {
		b->bounce = malloc(length);
		if (!b->bounce)
			return memory_gone(b);
		memcpy(b->bounce, at, length);
		at = (char *)b->bounce;
	}
	iov = (struct iovec){ at, length };
	frame(b, conn->crc,
	      &(struct wire_segment){ .tagged = true, .last = length == left,
			.op = WIRE_READ_RESPONSE, .stag = answer->sink_stag,
			.to = answer->sink_to + cur->answered },
	      NULL, 0, &iov, length != 0, length);
	if (b->ring) {			/* copied: it may go */
		soft_mem_done(b->held);
		b->held = NULL;
	}
	cur->answered += length;
	if (length == left) {
		cur->answered = 0;
		cur->answer++;
	}
	framed(b, cur);
	return FRAMED;
}

static enum step frame_answer(struct batch *b, const struct dapl_conn *conn,
			      struct soft_qp *qp, struct soft_tx_cursor *cur)
{
	const struct soft_answer *answer;
	uint8_t body[WIRE_ATOMIC_RESPONSE_LENGTH];

	if (cur->answer == conn->answer_tail)
		return NOTHING;
	answer = &conn->answers[cur->answer % conn->reads_in];
	if (!answer->atomic)
		return frame_response(b, conn, qp, answer, cur);
	if (!has_room(b, 0, sizeof body))
		return FULL;
	wire_put32(body, answer->sink_stag);
	wire_put64(body + 4, answer->sink_to);
	frame(b, conn->crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ATOMIC_RESPONSE,
			.qn = WIRE_QN_ATOMIC, .msn = cur->msn_atomic },
	      body, sizeof body, NULL, 0, 0);
	cur->msn_atomic++;
	cur->answer++;
	framed(b, cur);
	return FRAMED;
}

/* The acknowledgement rides along with anything else, or goes alone when it's due. */
static void frame_ack(struct batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	uint8_t body[WIRE_ACK_LENGTH] = { 0 };

	if (b->ring) {			/* each message carries it */
		if (b->frames) {
			cur->told_seq = conn->delivered;
			cur->told_consumed = conn->consumed;
		}
		return;
	}
	if (!conn->ours || (cur->told_seq == conn->delivered &&
			    cur->told_consumed == conn->consumed))
		return;
	if (!b->frames && !conn->tx.ack_now && !conn->tx.goodbye && !conn->tx.terminate)
		return;
	wire_put32(body, conn->delivered);
	wire_put32(body + 4, soft_target_ready(conn));
	wire_put64(body + 8, conn->consumed);
	frame(b, conn->crc,
	      &(struct wire_segment){ .last = true, .op = WIRE_ACK, .qn = WIRE_QN_OURS,
			.msn = cur->msn_ours++ },
	      body, sizeof body, NULL, 0, 0);
	cur->told_seq = conn->delivered;
	cur->told_consumed = conn->consumed;
	framed(b, cur);
}

static void frame_last(struct batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	if (conn->tx.terminate && !cur->terminate_sent) {
		frame(b, conn->crc,
		      &(struct wire_segment){ .last = true, .op = WIRE_TERMINATE,
				.qn = WIRE_QN_TERMINATE, .msn = 1 },
		      conn->tx.term, conn->tx.term_length, NULL, 0, 0);
		cur->terminate_sent = true;
		framed(b, cur);
	} else if (conn->tx.goodbye && conn->ours && !cur->goodbye_sent) {
		frame(b, conn->crc,
		      &(struct wire_segment){ .last = true, .op = WIRE_GOODBYE,
				.qn = WIRE_QN_OURS, .msn = cur->msn_ours++ },
		      NULL, 0, NULL, 0, 0);
		cur->goodbye_sent = true;
		framed(b, cur);
	}
}

/* Fills the batch. What made it stop: FULL, NOTHING, LOCAL, BROKEN. */
static enum step fill(struct batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur)
{
	struct soft_qp *qp = conn->qp;
	enum step request = NOTHING, answer = NOTHING;

	if (conn->tx.first && !cur->first_sent) {
		frame(b, conn->crc, &(struct wire_segment){ .tagged = true, .last = true,
				.op = WIRE_WRITE, .stag = 1 }, NULL, 0, NULL, 0, 0);
		cur->first_sent = true;
		cur->seq++;
		framed(b, cur);
	}
	if (conn->tx.terminate || conn->tx.goodbye || !qp || qp->state != IBV_QPS_RTS)
		return NOTHING;
	do {
		/* A foreign peer gets no two messages interleaved. */
		answer = !conn->ours && (cur->offset || cur->second) ? NOTHING
			 : frame_answer(b, conn, qp, cur);
		if (answer == BROKEN)
			return BROKEN;
		request = !conn->ours && cur->answered ? NOTHING
			  : frame_request(b, conn, qp, cur);
		if (request == BROKEN)
			return BROKEN;
	} while (answer == FRAMED || request == FRAMED);
	if (answer == FULL || request == FULL)
		return FULL;
	return request == LOCAL ? LOCAL : NOTHING;
}

/* --- sending: the socket ------------------------------------------------------------------ */

/* Marks what the cursor has passed. */
static void passed(struct dapl_conn *conn, uint32_t from, uint32_t to)
{
	struct soft_qp *qp = conn->qp;

	if (!qp || from == to || qp->state != IBV_QPS_RTS)
		return;
	for (; from != to; from++) {
		struct soft_swqe *wqe = soft_swqe(qp, from);

		if (wqe->state == SOFT_POSTED)
			wqe->state = is_read(wqe) || conn->ours ? SOFT_SENT : SOFT_DONE;
	}
	soft_qp_complete_sends(qp);
}

/* The socket took `sent` bytes: finds the frame that was cut, keeps a copy of its rest. */
static bool keep_rest(struct dapl_conn *conn, const struct batch *b, size_t sent)
{
	struct soft_tx *tx = &conn->tx;
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
	conn->tx.blocked = true;
	soft_engine_interest(conn);
}

/* What send returned when it took nothing: may it be tried again? */
static bool send_failed(struct dapl_conn *conn)
{
	if (errno == EINTR)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
		block(conn);
	else
		conn->tx.shut = true;	/* the receiving side finds out why */
	return false;
}

/* Does something come before all that is framed anew? */
static bool has_rest(const struct soft_tx *tx)
{
	return tx->rest || (tx->first && !tx->cursor.first_sent);
}

static bool send_rest(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->tx;

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

/* Small messages lie in one piece, which spares the kernel a list. */
static ssize_t send_pieces(const struct dapl_conn *conn, struct batch *b)
{
	struct msghdr msg = { .msg_iov = b->iov, .msg_iovlen = b->iovs };
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (b->iovs == 1)
		return send(conn->fd, b->iov->iov_base, b->iov->iov_len, flags);
	return sendmsg(conn->fd, &msg, flags);
}

/* The socket took n bytes of the batch. True: all of it. */
static bool socket_took(struct dapl_conn *conn, const struct batch *b, size_t n)
{
	uint32_t from = conn->tx.cursor.wqe;

	if (likely(n == b->total)) {
		conn->tx.cursor = b->frame[b->frames - 1].cursor;
	} else if (!keep_rest(conn, b, n)) {
		conn->tx.shut = true;
		shutdown(conn->fd, SHUT_RDWR);	/* out of memory in mid-frame */
		return false;
	} else {
		block(conn);
	}
	passed(conn, from, conn->tx.cursor.wqe);
	return n == b->total;
}

/* Sends the batch. True: all of it. */
static bool send_batch(struct dapl_conn *conn, struct batch *b)
{
	ssize_t n;

	do
		n = send_pieces(conn, b);
	while (n < 0 && send_failed(conn));
	return n >= 0 && socket_took(conn, b, n);
}

/* A request that nothing is sent for: a bind, an invalidate, a read that the kernel copies, or
 * one that is wrong. */
static void execute_local(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;
	struct soft_swqe *wqe = soft_swqe(qp, conn->tx.cursor.wqe);

	if (wqe->opcode == IBV_WR_BIND_MW)
		wqe->status = soft_mw_bind(qp, wqe);
	else if (wqe->opcode == IBV_WR_LOCAL_INV)
		wqe->status = soft_mw_invalidate(qp, wqe->word);
	else
		wqe->status = fault(qp, conn, wqe);
	if (wqe->opcode == IBV_WR_RDMA_READ && wqe->status == IBV_WC_SUCCESS &&
	    !soft_direct_read(qp, conn, wqe))
		return;
	wqe->state = SOFT_DONE;
	if (wqe->status == IBV_WC_SUCCESS)
		conn->tx.cursor.wqe++;
	soft_qp_complete_sends(qp);
}

static void broken(struct dapl_conn *conn, const struct batch *b)
{
	if (b->answer) {
		soft_stream_answer_fail(conn->qp, conn, b->term, b->check);
	} else {
		soft_qp_flush(conn->qp, conn->tx.cursor.wqe, IBV_WC_LOC_PROT_ERR);
		soft_stream_abort(conn->qp, conn, b->check);
	}
}

/* The ring has what was framed. True: all there was room for, and there may be room. */
static bool ring_took(struct dapl_conn *conn, const struct batch *b,
		      const struct soft_tx_cursor *cur, enum step stop)
{
	uint32_t from = conn->tx.cursor.wqe;

	conn->tx.cursor = *cur;
	if (b->frames) {
		soft_bell(conn->pair);
		passed(conn, from, cur->wqe);
	}
	if (stop == FULL && !ring_room(&conn->pair->tx, RING_CHUNK))
		conn->tx.blocked = true;
	return !conn->tx.blocked;
}

static void begin_batch(struct batch *b, struct dapl_conn *ring)
{
	b->ring = ring;
	b->frames = b->iovs = b->term = 0;
	b->used = b->total = 0;
	b->answer = false;
	b->held = NULL;
	b->bounce = NULL;
}

/* One batch. True: there may be more. */
static bool send_some(struct dapl_conn *conn)
{
	struct soft_tx_cursor cur = conn->tx.cursor;
	struct batch b;
	enum step stop;
	bool all = true;

	begin_batch(&b, conn->pair ? conn : NULL);
	stop = fill(&b, conn, &cur);
	frame_ack(&b, conn, &cur);
	frame_last(&b, conn, &cur);
	if (b.ring)
		all = ring_took(conn, &b, &cur, stop);
	else if (b.frames)
		all = send_batch(conn, &b);
	soft_mem_done(b.held);
	free(b.bounce);
	if (!all)
		return false;
	conn->tx.ack_now = false;
	if (stop == LOCAL)
		execute_local(conn);
	if (stop == BROKEN)
		broken(conn, &b);
	return stop != NOTHING;
}

/* Of a pair the ring has told; its socket is closed then. */
static void finish(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->tx;

	if (tx->shut || tx->blocked || (!tx->terminate && !tx->goodbye))
		return;
	tx->shut = true;
	if (!conn->pair || tx->terminate)
		shutdown(conn->fd, SHUT_WR);
}

/* Is there nothing to be sent? */
static bool is_idle(const struct dapl_conn *conn)
{
	const struct soft_tx *tx = &conn->tx;

	if (!plain_idle(conn) || !conn->qp || tx->cursor.wqe != conn->qp->sq_tail)
		return false;
	return conn->pair || !(tx->ack_now | has_rest(tx));
}

void soft_tcp_send(struct dapl_conn *conn)
{
	struct soft_tx *tx = &conn->tx;

	if (unlikely(tx->busy)) {
		tx->again = true;
		return;
	}
	if (tx->shut || tx->blocked || !(tx->open || tx->goodbye || tx->terminate) ||
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

/* --- sending: a small message in one straight line --------------------------------------------- */

/* What the request becomes, with the acknowledgement that is due. */
static void frame_plain(struct batch *b, const struct dapl_conn *conn, struct soft_tx_cursor *cur,
			const struct ring_message *m, char *at)
{
	bool write = m->op == WIRE_WRITE;
	struct iovec payload = { at, m->length };

	begin_batch(b, NULL);
	frame(b, conn->crc,
	      &(struct wire_segment){ .tagged = write, .last = true, .op = m->op, .stag = m->word,
			.to = m->to, .qn = WIRE_QN_SEND, .msn = cur->msn_send },
	      NULL, 0, &payload, 1, m->length);
	if (!write) {
		cur->msn_send++;
		cur->charged += SOFT_CHARGE + m->length;
	}
	cur->seq++;
	cur->wqe++;
	framed(b, cur);
	frame_ack(b, conn, cur);
}

bool soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	struct soft_tx *tx = &conn->tx;
	struct soft_tx_cursor cur = tx->cursor;
	struct ring_message message;
	struct batch b;
	ssize_t n;
	char *at;

	if (cur.wqe != qp->sq_tail || qp->sq_tail - qp->sq_head == qp->sq_size ||
	    qp->state != IBV_QPS_RTS || !plain_idle(conn) || has_rest(tx) ||
	    !plain_message(wr, &message) || message.length > COPY_MAX ||
	    cur.charged - conn->peer_consumed + SOFT_CHARGE + message.length > SOFT_WINDOW ||
	    !plain_payload(qp, wr, &at))
		return false;
	frame_plain(&b, conn, &cur, &message, at);
	n = send_pieces(conn, &b);
	if (unlikely(n <= 0))
		return false;		/* it's tried again, and waits */
	plain_queue(qp, wr, SOFT_POSTED, cur.seq);
	if (likely(socket_took(conn, &b, n)))
		tx->ack_now = false;
	return true;
}

/* --- receiving: the form of a segment -------------------------------------------------------- */

enum {
	FINE = -1,
	BULK_MIN = 8192,		/* payload of a segment that's large, */
	BULK_HEAD = 2048,		/* ... and what is read of one before it goes into place */
};

/* What an opcode looks like: queue, exact length of its body (-1: streaming payload). */
static const struct {
	bool tagged, ours;
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
	[WIRE_ACK] = { false, true, WIRE_QN_OURS, WIRE_ACK_LENGTH },
	[WIRE_GOODBYE] = { false, true, WIRE_QN_OURS, 0 },
};

static uint32_t head_length(bool tagged)
{
	return WIRE_FPDU_LENGTH + (tagged ? WIRE_TAGGED : WIRE_UNTAGGED);
}

/* The first 4 bytes are there: length and control. Sets how much makes the header. */
static int check_control(const struct dapl_conn *conn, struct soft_rx *rx, const char **check)
{
	uint32_t ulpdu = wire_get16(rx->part);
	uint8_t first = rx->part[2], second = rx->part[3];
	bool tagged = first >> 7;
	uint32_t head = head_length(tagged) - WIRE_FPDU_LENGTH;
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
	if (form[rx->seg.op].tagged != tagged || (form[rx->seg.op].ours && !conn->ours))
		return WIRE_TERM_OPCODE;
	*check = "ULPDU length";
	body = form[rx->seg.op].body;
	if (ulpdu < head)
		return WIRE_TERM_LENGTH;
	if (rx->seg.op == WIRE_TERMINATE)
		body = ulpdu - head;
	if (body >= 0 && (uint32_t)body != ulpdu - head)
		return WIRE_TERM_LENGTH;
	if (body > 64 || (rx->seg.op == WIRE_TERMINATE && body < 4))
		return WIRE_TERM_LENGTH;
	rx->part_need = WIRE_FPDU_LENGTH + head + (body > 0 ? body : 0);
	rx->payload_left = body < 0 ? ulpdu - head : 0;
	rx->payload_done = 0;
	rx->trailer_left = (-(WIRE_FPDU_LENGTH + ulpdu) & 3) + WIRE_CRC;
	return FINE;
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
	case WIRE_QN_OURS:
		return rx->msn_ours;
	default:
		return 1;
	}
}

/* Does the segment fit what came before? */
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
	return FINE;
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
	if (conn->rx.seg.op == WIRE_WRITE) {
		*check = "target of a write";
		return soft_target_write_begin(qp, conn);
	}
	*check = "read response";
	return soft_initiator_response_begin(qp, conn);
}

/* A message of one small segment says that no large ones come; the small end of a large one
 * doesn't. */
static void note_size(struct soft_rx *rx)
{
	bool begun = rx->seg.tagged ? rx->write_open || rx->read_open : rx->send_open;

	if (rx->payload_left >= BULK_MIN)
		rx->bulk = true;
	else if (rx->payload_left && !begun)
		rx->bulk = false;
}

/* The whole header is there: where does the payload go? */
static int begin_segment(struct soft_qp *qp, struct dapl_conn *conn, const char **check)
{
	struct soft_rx *rx = &conn->rx;
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
	if (term != FINE || form[seg->op].body >= 0)
		return term;
	*check = "receive for a send";
	return soft_target_send_begin(qp, conn);
}

int soft_segment_arrived(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct ring_message *message, const char **check)
{
	struct soft_rx *rx = &conn->rx;
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
	if (term != FINE)
		return term;
	if (body < 0) {
		*check = "receive for a send";
		return soft_target_send_begin(qp, conn);
	}
	*check = "length of a message";
	if (message->op == WIRE_TERMINATE ? message->length < 4 || message->length > 64
					  : message->length != (uint32_t)body)
		return WIRE_TERM_LENGTH;
	memcpy(rx->part + WIRE_HEAD_MAX, message->data, message->length);
	rx->part_need = WIRE_HEAD_MAX + message->length;
	return FINE;
}

static int acknowledged(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	conn->rx.msn_ours++;
	conn->peer_ready = wire_get32(body + 4);
	return soft_initiator_acked(qp, conn, wire_get32(body), wire_get64(body + 8));
}

/* The segment is complete. */
int soft_segment_end(struct soft_qp *qp, struct dapl_conn *conn, const char **check)
{
	struct soft_rx *rx = &conn->rx;
	const uint8_t *body = rx->part + WIRE_HEAD_MAX;

	conn->tx.open = true;		/* the initiator's first FPDU opens our side */
	switch (rx->seg.op) {
	case WIRE_WRITE:
		if (rx->seg.last)
			soft_target_write_end(conn);
		return FINE;
	case WIRE_READ_RESPONSE:
		if (rx->seg.last)
			soft_initiator_response_end(qp, conn);
		return FINE;
	case WIRE_READ_REQUEST:
		rx->msn_read++;
		*check = "read request";
		return soft_target_read(qp, conn, body);
	case WIRE_ATOMIC_REQUEST:
		rx->msn_read++;
		*check = "atomic request";
		return soft_target_atomic(qp, conn, body);
	case WIRE_ATOMIC_RESPONSE:
		rx->msn_atomic++;
		*check = "atomic response";
		return soft_initiator_atomic(qp, conn, body);
	case WIRE_IMMEDIATE:
	case WIRE_IMMEDIATE_SE:
		rx->msn_send++;
		*check = "receive for an immediate";
		return soft_target_immediate(qp, conn, body);
	case WIRE_ACK:
		*check = "acknowledgement";
		return acknowledged(qp, conn, body);
	case WIRE_GOODBYE:
		rx->msn_ours++;
		rx->goodbye = true;
		if (conn->pair)
			soft_cm_tell(conn, SOFT_UP_GOODBYE);
		return FINE;
	case WIRE_TERMINATE:
		soft_initiator_terminated(qp, conn, body,
					  rx->part_need - WIRE_HEAD_MAX);
		return FINE;
	default:	/* the Sends */
		if (!rx->seg.last)
			return FINE;
		rx->msn_send++;
		*check = "delivery of a send";
		return soft_target_send_end(qp, conn);
	}
}

/* --- receiving: cutting the stream -------------------------------------------------------------- */

static int consume_head(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			size_t *n, const char **check)
{
	struct soft_rx *rx = &conn->rx;
	int term = FINE;

	while (term == FINE && *n) {
		uint32_t part = rx->part_need - rx->part_length;

		if (part > *n)
			part = *n;
		memcpy(rx->part + rx->part_length, *p, part);
		rx->part_length += part;
		*p += part;
		*n -= part;
		if (rx->part_length < rx->part_need)
			break;
		if (rx->part_need == 4) {
			term = check_control(conn, rx, check);
			continue;
		}
		term = begin_segment(qp, conn, check);
		rx->phase = rx->payload_left ? SOFT_RX_PAYLOAD : SOFT_RX_TRAILER;
		break;
	}
	return term;
}

static int consume_payload(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			   size_t *n)
{
	struct soft_rx *rx = &conn->rx;
	uint32_t length = rx->payload_left < *n ? rx->payload_left : *n;
	struct soft_region *held;
	struct iovec iov[8];
	int pieces, term = FINE;

	pieces = soft_target_place(qp, conn, length, iov, 8, &held, &term);
	if (pieces < 0)
		return term;
	length = ring_scatter(iov, pieces, *p) - *p;
	*p += length;
	*n -= length;
	soft_target_placed(conn, length);
	soft_mem_done(held);
	if (!rx->payload_left)
		rx->phase = SOFT_RX_TRAILER;
	return FINE;
}

static int consume_trailer(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			   size_t *n, const char **check)
{
	struct soft_rx *rx = &conn->rx;
	uint32_t part = rx->trailer_left < *n ? rx->trailer_left : *n;

	*p += part;
	*n -= part;
	rx->trailer_left -= part;
	if (rx->trailer_left)
		return FINE;
	rx->phase = SOFT_RX_HEAD;
	rx->part_length = 0;
	rx->part_need = 4;
	return soft_segment_end(qp, conn, check);
}

/* --- receiving: small messages in one straight line ---------------------------------------------- */

enum {
	NOT_QUICK = -2,			/* it's nothing of that, and nothing was done */
	FIRST_UNTAGGED = 0x41,		/* the first control byte: DDP version 1, last segment */
	FIRST_TAGGED = 0xc1,
	SECOND = 0x40,			/* the second: RDMAP version 1; and the opcode */
	AT_WORD = 4, AT_TO = 8, AT_QN = 8, AT_MSN = 12, AT_MO = 16,
};

static int quick_ack(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p, uint32_t length,
		     const char **check)
{
	if (!conn->ours || length != WIRE_ACK_LENGTH || wire_get32(p + AT_QN) != WIRE_QN_OURS ||
	    wire_get32(p + AT_MSN) != conn->rx.msn_ours)
		return NOT_QUICK;
	conn->rx.seg = (struct wire_segment){ .op = WIRE_ACK, .last = true };
	*check = "acknowledgement";
	return acknowledged(qp, conn, p + WIRE_HEAD_MAX);
}

static int quick_message(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct ring_message *message)
{
	if (message->length >= BULK_MIN || !soft_target_quick(qp, conn, message))
		return NOT_QUICK;
	conn->rx.bulk &= !message->length;
	return FINE;
}

/* The FPDU at p is there whole; nothing but its length was checked. Is it a Send or a write of one
 * segment, or an acknowledgement? `length` is what its ULPDU has beyond an untagged header. */
static int quick_segment(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p,
			 uint32_t length, const char **check)
{
	struct ring_message message = {
		.op = p[3] & 15, .last = true, .length = length, .word = wire_get32(p + AT_WORD),
		.data = p + WIRE_HEAD_MAX,
	};

	if ((p[3] & 0xf0) != SECOND)
		return NOT_QUICK;
	if (p[2] == FIRST_TAGGED && message.op == WIRE_WRITE) {
		message.to = wire_get64(p + AT_TO);
		message.length += WIRE_UNTAGGED - WIRE_TAGGED;
		message.data -= WIRE_UNTAGGED - WIRE_TAGGED;
		return quick_message(qp, conn, &message);
	}
	if (p[2] != FIRST_UNTAGGED || wire_get32(p + AT_MO))
		return NOT_QUICK;
	if (message.op == WIRE_ACK)
		return quick_ack(qp, conn, p, length, check);
	if ((message.op != WIRE_SEND && message.op != WIRE_SEND_SE) ||
	    wire_get32(p + AT_QN) != WIRE_QN_SEND || wire_get32(p + AT_MSN) != conn->rx.msn_send)
		return NOT_QUICK;
	return quick_message(qp, conn, &message);
}

/* What does not fit goes the general way, which says what is wrong with it. */
static int consume_quickly(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p, size_t *n,
			   const char **check)
{
	uint32_t ulpdu, size;
	int term;

	if (conn->rx.part_length || *n < WIRE_HEAD_MAX + WIRE_CRC)
		return NOT_QUICK;
	ulpdu = wire_get16(*p);
	size = ((WIRE_FPDU_LENGTH + ulpdu + 3) & ~3u) + WIRE_CRC;
	if (ulpdu < WIRE_UNTAGGED || size > *n)
		return NOT_QUICK;
	term = quick_segment(qp, conn, *p, ulpdu - WIRE_UNTAGGED, check);
	if (term == NOT_QUICK)
		return term;
	conn->tx.open = true;		/* the initiator's first FPDU opens our side */
	*p += size;
	*n -= size;
	return term;
}

/* Takes bytes of the stream, in the order they came. */
static void consume(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p, size_t n)
{
	struct soft_rx *rx = &conn->rx;
	const char *check = "place for payload";
	int term = FINE;

	while (n && term == FINE && !soft_stream_dropping(conn)) {
		switch (rx->phase) {
		case SOFT_RX_PAYLOAD:
			term = consume_payload(qp, conn, &p, &n);
			break;
		case SOFT_RX_TRAILER:
			term = consume_trailer(qp, conn, &p, &n, &check);
			break;
		default:
			term = consume_quickly(qp, conn, &p, &n, &check);
			if (term == NOT_QUICK)
				term = consume_head(qp, conn, &p, &n, &check);
		}
	}
	if (unlikely(term != FINE))
		soft_stream_fail(qp, conn, term, check);
}

static bool reserve_whole(struct soft_rx *rx, uint32_t size)
{
	uint8_t *p;

	if (size <= rx->whole_size)
		return true;
	p = realloc(rx->whole, size);
	if (!p)
		return false;
	rx->whole = p;
	rx->whole_size = size;
	return true;
}

/* With CRC, nothing of an FPDU counts before its CRC was right. */
static void consume_checked(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p,
			    size_t n)
{
	struct soft_rx *rx = &conn->rx;
	uint32_t want, part;
	uint8_t crc[4];

	while (n && !soft_stream_dropping(conn)) {
		want = WIRE_FPDU_LENGTH;
		if (rx->whole_length >= want)
			want = ((WIRE_FPDU_LENGTH + wire_get16(rx->whole) + 3) & ~3u) + WIRE_CRC;
		if (!reserve_whole(rx, want)) {
			soft_stream_fail(qp, conn, WIRE_TERM_LOCAL, "memory for an FPDU");
			return;
		}
		part = want - rx->whole_length < n ? want - rx->whole_length : n;
		memcpy(rx->whole + rx->whole_length, p, part);
		rx->whole_length += part;
		p += part;
		n -= part;
		if (rx->whole_length < want || want == WIRE_FPDU_LENGTH)
			continue;
		wire_crc_put(crc, wire_crc(WIRE_CRC_START, rx->whole, want - WIRE_CRC));
		if (memcmp(crc, rx->whole + want - WIRE_CRC, WIRE_CRC)) {
			soft_stream_fail(qp, conn, WIRE_TERM_CRC, "CRC");
			return;
		}
		rx->whole_length = 0;
		consume(qp, conn, rx->whole, want);
	}
}

/* --- receiving: the socket ------------------------------------------------------------------------ */

enum {
	DIRECT_MIN = 2048,		/* payload still due that is received in place */
	RECEIVE_BUDGET = 1 << 20,
};

/* How much is read beyond a segment's payload: among large ones the next header and no more, so that
 * all of the next payload goes into place, too. */
static size_t beyond_payload(const struct soft_rx *rx)
{
	return rx->bulk ? rx->trailer_left + head_length(rx->seg.tagged) : 4096;
}

/* One recvmsg straight into place, and what follows into the scratch buffer. */
static ssize_t receive_direct(struct soft_qp *qp, struct dapl_conn *conn, size_t *asked)
{
	struct dapl_device *dev = conn->dev;
	struct iovec iov[SOFT_MAX_SGE + 2];
	struct msghdr msg = { .msg_iov = iov };
	struct soft_region *held;
	size_t placed = 0, direct;
	int pieces, term = FINE;
	ssize_t n;

	*asked = 0;
	pieces = soft_target_place(qp, conn, conn->rx.payload_left, iov, SOFT_MAX_SGE + 1, &held,
				   &term);
	if (pieces < 0) {
		soft_stream_fail(qp, conn, term, "place for payload");
		return 1;
	}
	for (int i = 0; i < pieces; i++)
		placed += iov[i].iov_len;
	iov[pieces] = (struct iovec){ dev->scratch, beyond_payload(&conn->rx) };
	msg.msg_iovlen = pieces + 1;
	*asked = placed + iov[pieces].iov_len;
	n = recvmsg(conn->fd, &msg, MSG_DONTWAIT);
	direct = n > 0 ? (size_t)n < placed ? (size_t)n : placed : 0;
	soft_target_placed(conn, direct);
	soft_mem_done(held);
	if (n <= 0)
		return n;
	if (!conn->rx.payload_left && conn->rx.phase == SOFT_RX_PAYLOAD)
		conn->rx.phase = SOFT_RX_TRAILER;
	consume(qp, conn, dev->scratch, n - direct);
	return n;
}

static ssize_t receive_scratch(struct soft_qp *qp, struct dapl_conn *conn, size_t *asked)
{
	struct dapl_device *dev = conn->dev;
	ssize_t n;

	/* Of large messages only the beginning, so that the rest goes into place. */
	*asked = conn->rx.bulk && !conn->crc ? BULK_HEAD : SOFT_SCRATCH;
	n = recv(conn->fd, dev->scratch, *asked, MSG_DONTWAIT);
	if (n <= 0 || soft_stream_dropping(conn))
		return n;
	if (conn->crc)
		consume_checked(qp, conn, dev->scratch, n);
	else
		consume(qp, conn, dev->scratch, n);
	return n;
}

static bool at_boundary(const struct dapl_conn *conn)
{
	const struct soft_rx *rx = &conn->rx;

	return rx->phase == SOFT_RX_HEAD && !rx->part_length && !rx->whole_length &&
	       !rx->send_open && !rx->write_open;
}

/* The peer's FIN, or a reset. A killed peer of ours says no goodbye. */
static void ended(struct soft_qp *qp, struct dapl_conn *conn, bool reset)
{
	bool orderly = conn->rx.goodbye || (!conn->ours && !reset && at_boundary(conn));

	soft_stream_over(qp, conn, orderly);
}

/* Where data goes through rings, the socket is there to say that the peer is gone. All
 * that the peer sent before is in the ring by then, and is received in one go; what
 * somebody stores later is nobody's. */
static bool receive_end(struct dapl_conn *conn)
{
	ssize_t n = recv(conn->fd, conn->dev->scratch, SOFT_SCRATCH, MSG_DONTWAIT);
	int turns = 0;

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	do
		soft_pair_receive(conn, false);
	while (soft_pair_ready(conn->pair) && ++turns < RING_SLOTS);
	ended(conn->qp, conn, n < 0);
	return false;
}

bool soft_tcp_receive(struct dapl_conn *conn, bool *came)
{
	struct soft_qp *qp = conn->qp;
	size_t budget = RECEIVE_BUDGET, asked;
	ssize_t n;

	*came = true;
	if (conn->pair)
		return receive_end(conn);
	*came = false;
	while (!conn->rx.paused) {
		if (!soft_stream_dropping(conn) && !conn->crc && conn->rx.phase == SOFT_RX_PAYLOAD &&
		    conn->rx.payload_left >= DIRECT_MIN)
			n = receive_direct(qp, conn, &asked);
		else
			n = receive_scratch(qp, conn, &asked);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		*came = true;
		if (n <= 0) {
			ended(qp, conn, n < 0);
			return false;
		}
		if ((size_t)n < asked || (size_t)n >= budget)
			return true;
		budget -= n;
	}
	return true;
}
