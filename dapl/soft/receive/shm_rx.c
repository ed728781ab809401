/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_rx.c - takes messages and acknowledgements of the peer from shared memory. The messages are
 * executed by rdmap/, as those that come over TCP. progress/rings.c decides when to look, progress/acks.c when to
 * acknowledge. */
#include "common/compiler.h"
#include "dapl/soft/rdmap/responder_place.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/receive/shm_rx.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"

enum { FINE = -1, STALLED = -2 };

/* Acknowledgements come in messages and in struct ring_ack; an older one may be seen later. */
static int acknowledged(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			uint32_t consumed)
{
	int32_t messages = delivered - conn->stream.peer_delivered;
	int32_t bytes = consumed - (uint32_t)conn->stream.peer_consumed;

	if (messages <= 0 && bytes <= 0)
		return FINE;
	return soft_requester_acked(qp, conn, conn->stream.peer_delivered + (messages > 0 ? messages : 0),
				    conn->stream.peer_consumed + (bytes > 0 ? bytes : 0));
}

/* Where a payload is: in shared memory or, in a rendezvous, in the memory of the peer. */
struct source {
	const uint8_t *data;		/* NULL: rendezvous */
	uint64_t address;
};

static bool copy_from(struct dapl_conn *conn, struct source *from, const struct iovec *iov, int n,
		      uint32_t length)
{
	if (!from->data) {
		if (!rndv_fetch(conn, from->address, iov, n, length))
			return false;
		from->address += length;
		return true;
	}
	from->data = copy_scatter(iov, n, from->data);
	return true;
}

/* Places the next `most` bytes of payload, or less if that is all. */
static int place(struct soft_qp *qp, struct dapl_conn *conn, struct source from, uint32_t most)
{
	struct soft_region *held;
	struct iovec iov[8];
	uint32_t length;
	int n, term = FINE;
	bool copied;

	while (most && conn->stream.rx.payload_left) {
		n = soft_responder_place(qp, conn,
					 most < conn->stream.rx.payload_left ? most : conn->stream.rx.payload_left,
					 iov, 8, &held, &term);
		if (n < 0)
			return term;
		length = 0;
		for (int i = 0; i < n; i++)
			length += iov[i].iov_len;
		copied = copy_from(conn, &from, iov, n, length);
		if (copied)
			soft_responder_placed(conn, length);
		soft_mem_done(held);
		if (!copied)
			return STALLED;
		if (!length)
			return WIRE_TERM_LOCAL;
		most -= length;
	}
	return FINE;
}

static int take_ack(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;

	shm->ack_waits = false;
	return acknowledged(conn->qp, conn, shm->ack_delivered, shm->ack_consumed);
}

/* Executes a message that soft_responder_quick() does not handle. */
static int execute(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *message,
		   const char **check)
{
	int term;

	ring_look_fresh(&conn->shm->rx, message);
	*check = "acknowledgement";
	term = take_ack(conn);
	if (term != FINE || soft_stream_dropping(conn))
		return term;
	term = soft_segment_arrived(qp, conn, message, check);
	if (term != FINE)
		return term;
	*check = "place for payload";
	term = place(qp, conn, (struct source){ message->rndv ? NULL : message->data, message->address },
		     message->length);
	return term == FINE ? soft_segment_end(qp, conn, check) : term;
}

/* --- rendezvous payloads that the peer cannot copy -------------------------------------------- */

/* The payload was withdrawn: discard this message and all later ones. */
static void discard_withdrawn(struct dapl_conn *conn, const struct soft_message *message)
{
	conn->shm->rx_stalled = false;
	conn->shm->payload_withdrawn = true;
	ring_done(&conn->shm->rx, message);
}

static bool is_end_of_stream(const struct soft_message *message)
{
	return message->op == WIRE_CLOSE || message->op == WIRE_TERMINATE;
}

/* Requests the rest of the payload at the head of the ring. */
static void request_fallback(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;

	shm->rx_stalled = true;
	WRITE_ONCE(shm->rx.ack->fallback_at, conn->stream.rx.payload_done);
	WRITE_ONCE(shm->rx.ack->fallback_request, ++shm->fallbacks_requested);
	shm_conn_send_ack(conn);
}

/* The peer has put a piece of the payload, or all of it, into the fallback buffer. When all is
 * placed, the ring goes on. */
static void take_fallback(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;
	const char *check = "place for payload";
	int term = FINE;

	if (!soft_stream_dropping(conn)) {
		term = place(conn->qp, conn, (struct source){ .data = shm->fallback_in }, RING_CHUNK);
		if (term == FINE && conn->stream.rx.payload_left) {
			request_fallback(conn);
			return;
		}
		if (term == FINE)
			term = soft_segment_end(conn->qp, conn, &check);
		if (term != FINE)
			soft_stream_fail(conn->qp, conn, term, check);
	}
	shm->rx_stalled = false;
	ring_done(&shm->rx, &shm->waiting);
}

/* The rendezvous whose payload the peer requests, from byte `offset` on; NULL: there is none. */
static const struct rndv_slot *find_rndv_slot(const struct soft_qp *qp, const struct shm_conn *shm, uint32_t offset)
{
	uint32_t slot = __atomic_load_n(&shm->tx.ack->head, __ATOMIC_ACQUIRE);
	const struct rndv_slot *rndv;

	if (!shm->rndv_slots || shm->tx.tail - slot - 1 >= RING_SLOTS)
		return NULL;
	rndv = &shm->rndv_slots[slot % RING_SLOTS];
	if (rndv->slot != slot || !rndv->length || offset >= rndv->length ||
	    rndv->wqe - qp->sq_head >= qp->sq_tail - qp->sq_head)
		return NULL;
	return rndv;
}

/* The peer cannot copy the payload itself: puts a piece of it into the fallback buffer. */
static void give_fallback(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;
	struct soft_qp *qp = conn->qp;
	uint32_t offset = READ_ONCE(shm->tx.ack->fallback_at), length;
	const struct rndv_slot *rndv = find_rndv_slot(qp, shm, offset);
	struct iovec iov[SOFT_MAX_SGE];
	struct soft_swqe *wqe;
	int n;

	if (!rndv) {
		soft_stream_fail(qp, conn, WIRE_TERM_UNSPECIFIED, "request for the payload of a rendezvous");
		return;
	}
	wqe = soft_swqe(qp, rndv->wqe);
	length = rndv->length - offset < RING_CHUNK ? rndv->length - offset : RING_CHUNK;
	n = soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, rndv->offset + offset, length, 0, iov,
			   SOFT_MAX_SGE);
	if (n <= 0) {
		soft_flush_qp(qp, rndv->wqe, IBV_WC_LOC_PROT_ERR);
		soft_stream_abort(qp, conn, "memory was deregistered while it was sent");
		return;
	}
	copy_gather(shm->fallback_out, iov, n);
	if (!shm->peer_cannot_copy)
		soft_trace(TRC_LVL_DETAIL, "conn", conn, "the peer cannot copy from this process");
	shm->peer_cannot_copy = true;
	proto_is_mixed(shm);
	WRITE_ONCE(shm->rx.ack->fallback_done, ++shm->fallbacks_given);
	shm_conn_send_ack(conn);
}

/* Returns true if the message may have had an effect besides a completion. */
static bool receive_one(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;
	const char *check = "form of a message";
	struct soft_message message;
	bool quick = false;
	int term = FINE;

	if (unlikely(!ring_get(&shm->rx, &message))) {
		shm->rx_error = true;
		term = WIRE_TERM_LENGTH;
	}
	if (likely(!soft_stream_dropping(conn)) && likely(!shm->payload_withdrawn || is_end_of_stream(&message))) {
		if (likely(term == FINE)) {
			shm->ack_delivered = message.delivered;
			shm->ack_consumed = message.consumed;
			shm->ack_waits = true;
			quick = soft_responder_quick(conn->qp, conn, &message);
			if (!quick)
				term = execute(conn->qp, conn, &message, &check);
		}
		if (unlikely(term == STALLED)) {
			shm->waiting = message;
			if (rndv_is_cancelled(conn))
				discard_withdrawn(conn, &message);
			else
				request_fallback(conn);
			return true;
		}
		if (unlikely(term != FINE))
			soft_stream_fail(conn->qp, conn, term, check);
	}
	if (likely(!shm->rx_error))
		ring_done(&shm->rx, &message);
	return !quick;
}

/* Evaluates what the peer acknowledged; there may be room in the ring again. */
static void evaluate_ack(struct dapl_conn *conn, uint32_t count)
{
	struct shm_conn *shm = conn->shm;
	const struct ring_ack *ack = shm->tx.ack;
	int term;

	shm->seen = count;
	conn->stream.tx.blocked = false;
	if (soft_stream_dropping(conn))
		return;
	term = acknowledged(conn->qp, conn, __atomic_load_n(&ack->delivered, __ATOMIC_RELAXED),
			    __atomic_load_n(&ack->consumed, __ATOMIC_RELAXED));
	if (term != FINE) {
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
		return;
	}
	if (unlikely(READ_ONCE(ack->fallback_request) != shm->fallbacks_given))
		give_fallback(conn);
	if (unlikely(shm->rx_stalled) && READ_ONCE(ack->fallback_done) == shm->fallbacks_requested)
		take_fallback(conn);
	if (unlikely(shm->rx_stalled) && rndv_is_cancelled(conn))
		discard_withdrawn(conn, &shm->waiting);
}

bool shm_rx_receive(struct dapl_conn *conn, bool later)
{
	struct shm_conn *shm = conn->shm;
	uint32_t count = __atomic_load_n(&shm->tx.ack->count, __ATOMIC_ACQUIRE);
	int budget = RING_SLOTS, term;
	bool more = count != shm->seen;
	uint32_t fetched = shm->fetched;

	if (more)
		evaluate_ack(conn, count);
	/* A rendezvous takes long: its sender is notified, and the locks are free, before the next
	 * message is executed. */
	for (; budget && !(shm->rx_error | shm->rx_stalled) && shm->fetched == fetched &&
	       ring_ready(&shm->rx); budget--)
		more |= receive_one(conn);
	if (!shm->ack_waits || (later && budget > RING_SLOTS - ACKS_LATER) ||
	    soft_stream_dropping(conn))
		return more;
	term = take_ack(conn);
	if (term != FINE)
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
	return true;
}
