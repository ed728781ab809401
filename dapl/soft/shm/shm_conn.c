/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_conn.c - the rings of a connection. Segments that would be framed for TCP go into one ring as
 * they are; messages in the other ring are executed by rdmap/responder.c, as those that come over
 * TCP. progress.c decides when to look and when to acknowledge.
 *
 * A message is one segment. Its place in the ring is its number, so there are no sequence numbers
 * to check. Everything else in a segment is checked as on TCP. */
#include "dapl/soft/shm/shm_conn.h"
#include "common/clock.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/fastpath.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/wire.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>

enum { FINE = -1, STALLED = -2 };

struct shm_conn *shm_conn_new(struct dapl_conn *conn, struct shm_segment *segment)
{
	struct shm_conn *shm = calloc(1, sizeof *shm);

	if (!shm) {
		shm_segment_put(segment);
		return NULL;
	}
	shm->conn = conn;
	shm->segment = segment;
	shm->peer = segment->process[!conn->passive];
	shm->own = segment->process[conn->passive];
	shm->grant = &segment->memory->grant[conn->passive];
	ring_tx_init(&shm->tx, segment->memory, conn->passive);
	ring_rx_init(&shm->rx, segment->memory, !conn->passive);
	shm->fallback_out = segment->memory->fallback[conn->passive];
	shm->fallback_in = segment->memory->fallback[!conn->passive];
	return shm;
}

void shm_conn_free(struct shm_conn *shm)
{
	if (!shm)
		return;
	revoke_unwatch(shm->conn);
	access_free(shm);
	rmem_map_free(shm);
	free(shm->rndv_slots);
	shm_segment_put(shm->segment);
	free(shm);
}

/* --- to the peer ---------------------------------------------------------------------- */

void shm_conn_put(struct dapl_conn *conn, const struct wire_segment *segment,
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
		ring_put(&conn->shm->tx, &message, &whole, 1);
	else
		ring_put(&conn->shm->tx, &message, payload, pieces);
}

bool rndv_may_send(struct shm_conn *shm)
{
	if (shm->fallback_request)
		return false;
	if (unlikely(!shm->rndv_slots))
		shm->rndv_slots = calloc(RING_SLOTS, sizeof *shm->rndv_slots);
	return shm->rndv_slots != NULL;
}

void rndv_send(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe,
		    uint64_t offset, const struct iovec *payload)
{
	struct shm_conn *shm = conn->shm;
	struct ring_message message = {
		.op = segment->op, .last = segment->last, .rndv = true, .length = payload->iov_len,
		.word = segment->stag, .to = segment->to, .address = (uintptr_t)payload->iov_base,
		.delivered = conn->delivered, .consumed = conn->consumed,
	};

	shm->rndv_slots[shm->tx.tail % RING_SLOTS] = (struct rndv_slot){
		.slot = shm->tx.tail, .wqe = wqe, .length = message.length, .offset = offset,
	};
	rndv_enable(shm);
	ring_put_rndv(&shm->tx, &message);
}

/* The acknowledgement tells a peer that waits for a payload. */
void rndv_cancel(struct dapl_conn *conn)
{
	if (!conn->shm || !conn->shm->rndv_slots)
		return;
	rndv_disable(conn->shm);
	shm_conn_send_ack(conn);
}

/* Takes the message by value, so that in the common case it is never stored in memory. */
static __attribute__((noinline)) void put_large(struct ring_tx *tx, struct ring_message message,
						char *at)
{
	ring_put(tx, &message, &(struct iovec){ at, message.length }, 1);
}

static inline bool executed(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	if (soft_is_signalled(qp, wr->send_flags))
		soft_qp_executed(qp, wr);
	if (READ_ONCE(qp->dev->idle_polls))
		WRITE_ONCE(qp->dev->idle_polls, 0);	/* the answer, too, may come without this
							 * thread */
	return true;
}

/* Executes a write to a mapped region. */
static inline bool write_directly(struct soft_qp *qp, struct dapl_conn *conn,
				  const struct ibv_send_wr *wr)
{
	char *at;

	return fastpath_payload(qp, wr, &at) &&
	       rmem_map_write(conn, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, at,
			      wr->sg_list->length);
}

/* Executes a read, or an atomic in mapped memory. */
static __attribute__((noinline)) bool read_directly(const struct soft_qp *qp,
						    struct dapl_conn *conn,
						    const struct ibv_send_wr *wr,
						    enum shm_proto proto)
{
	uint32_t rkey = wr->wr.rdma.rkey, length = wr->sg_list->length;
	uint64_t from = wr->wr.rdma.remote_addr;
	char *to;

	if (!conn->reads_out || (wr->send_flags & IBV_SEND_INLINE) ||
	    soft_mem_local(qp->dev, qp->qp.pd, wr->sg_list, IBV_ACCESS_LOCAL_WRITE, &to) !=
		    SOFT_FINE)
		return false;
	if (wr->opcode != IBV_WR_RDMA_READ)
		return length == 8 && rmem_map_atomic(conn, wr, to);
	return proto == PROTO_MAPPED ? rmem_map_read(conn, rkey, from, to, length)
				     : cma_read_now(conn, rkey, from, to, length);
}

/* Executes a request without a message. False: it cannot be done this way, and nothing was done. */
static inline bool execute_directly(struct soft_qp *qp, struct dapl_conn *conn,
				    const struct ibv_send_wr *wr, enum shm_proto proto)
{
	return (wr->opcode == IBV_WR_RDMA_WRITE ? write_directly(qp, conn, wr)
						: read_directly(qp, conn, wr, proto)) &&
	       executed(qp, wr);
}

static inline uint32_t stag_of(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ
	       ? wr->wr.rdma.rkey : wr->wr.atomic.rkey;
}

static inline __attribute__((always_inline)) enum shm_proto
select_posted(const struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr,
	      unsigned refused)
{
	struct proto_request request = {
		.moment = PROTO_POSTED, .opcode = wr->opcode, .flags = wr->send_flags,
		.length = wr->sg_list->length, .refused = refused,
	};

	if (wr->opcode != IBV_WR_SEND)
		request.stag = stag_of(wr);
	return proto_select(qp, conn, &request);
}

bool shm_conn_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	struct soft_tx_cursor *cur = &conn->tx.cursor;
	struct shm_conn *shm = conn->shm;
	struct ring_message message;
	enum shm_proto proto;
	uint32_t charge, refused = 0;
	char *at;

	if (unlikely(wr->num_sge != 1 || wr->next))
		return false;
	while ((proto = select_posted(qp, conn, wr, refused)) > PROTO_COPY) {
		if (execute_directly(qp, conn, wr, proto))
			return true;
		refused |= 1 << proto;
	}
	if (unlikely(proto == PROTO_UNDECIDED) || cur->wqe != qp->sq_tail || qp->sq_tail - qp->sq_head == qp->sq_size ||
	    qp->state != IBV_QPS_RTS || !fastpath_idle(conn) || !fastpath_message(wr, &message))
		return false;
	if (message.length > RING_CHUNK)
		return false;
	charge = wr->opcode == IBV_WR_SEND ? SOFT_CHARGE + message.length : 0;
	if (cur->charged - conn->peer_consumed + charge > SOFT_WINDOW ||
	    !fastpath_payload(qp, wr, &at) || !ring_room(&shm->tx, message.length))
		return false;
	message.delivered = cur->acked_seq = conn->delivered;
	message.consumed = cur->acked_consumed = conn->consumed;
	if (likely(proto == PROTO_INLINE))
		ring_put_small(&shm->tx, &message, at);
	else
		put_large(&shm->tx, message, at);
	cur->charged += charge;
	cur->msn_send += wr->opcode == IBV_WR_SEND;
	cur->wqe++;
	fastpath_queue(qp, wr, SOFT_SENT, ++cur->seq);
	shm_notify(shm);
	return true;
}

bool shm_conn_post_cma(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->tx.cursor.wqe);
	struct proto_request request;

	if (!conn->shm || conn->tx.cursor.wqe + 1 != qp->sq_tail || qp->state != IBV_QPS_RTS ||
	    (wqe->opcode != IBV_WR_RDMA_WRITE && wqe->opcode != IBV_WR_RDMA_READ) ||
	    !fastpath_idle(conn))
		return false;
	request = proto_request_of(PROTO_QUEUED, wqe);
	return proto_select(qp, conn, &request) == PROTO_CMA && cma_execute(qp, conn, wqe);
}

void shm_conn_send_ack(struct dapl_conn *conn)
{
	ring_send_ack(&conn->shm->rx, conn->delivered, conn->consumed);
	conn->tx.cursor.acked_seq = conn->delivered;
	conn->tx.cursor.acked_consumed = conn->consumed;
	shm_notify(conn->shm);
}

/* --- from the peer ---------------------------------------------------------------------- */

/* Acknowledgements come in messages and in struct ring_ack; an older one may be seen later. */
static int acknowledged(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			uint32_t consumed)
{
	int32_t messages = delivered - conn->peer_delivered;
	int32_t bytes = consumed - (uint32_t)conn->peer_consumed;
	int rc;

	if (messages <= 0 && bytes <= 0)
		return FINE;
	rc = soft_requester_acked(qp, conn, conn->peer_delivered + (messages > 0 ? messages : 0),
				  conn->peer_consumed + (bytes > 0 ? bytes : 0));
	proto_completed(qp, conn);
	return rc;
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
	from->data = ring_scatter(iov, n, from->data);
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

	while (most && conn->rx.payload_left) {
		n = soft_responder_place(qp, conn, most < conn->rx.payload_left ? most : conn->rx.payload_left,
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
static int execute(struct soft_qp *qp, struct dapl_conn *conn, const struct ring_message *message,
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
static void discard_withdrawn(struct dapl_conn *conn, const struct ring_message *message)
{
	conn->shm->rx_stalled = false;
	conn->shm->lost = true;
	ring_done(&conn->shm->rx, message);
}

static bool is_end_of_stream(const struct ring_message *message)
{
	return message->op == WIRE_CLOSE || message->op == WIRE_TERMINATE;
}

/* Asks for the rest of the payload at the head of the ring. */
static void request_fallback(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;

	shm->rx_stalled = true;
	WRITE_ONCE(shm->rx.ack->fallback_at, conn->rx.payload_done);
	WRITE_ONCE(shm->rx.ack->fallback_request, ++shm->asked);
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
		if (term == FINE && conn->rx.payload_left) {
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

/* The rendezvous whose payload the peer asks for; NULL: there is no such one. */
static const struct rndv_slot *find_rndv_slot(const struct soft_qp *qp, const struct shm_conn *shm,
					 uint32_t offset)
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
		soft_qp_flush(qp, rndv->wqe, IBV_WC_LOC_PROT_ERR);
		soft_stream_abort(qp, conn, "memory was deregistered while it was sent");
		return;
	}
	ring_gather(shm->fallback_out, iov, n);
	if (!shm->fallback_request)
		soft_trace(TRC_LVL_DETAIL, "conn", conn, "the peer cannot copy from this process");
	shm->fallback_request = true;
	proto_is_mixed(shm);
	WRITE_ONCE(shm->rx.ack->fallback_done, ++shm->fallback_done);
	shm_conn_send_ack(conn);
}

/* True: the message may have had an effect besides a completion. */
static bool receive_one(struct dapl_conn *conn)
{
	struct shm_conn *shm = conn->shm;
	const char *check = "form of a message";
	struct ring_message message;
	bool quick = false;
	int term = FINE;

	if (unlikely(!ring_get(&shm->rx, &message))) {
		shm->rx_error = true;
		term = WIRE_TERM_LENGTH;
	}
	if (likely(!soft_stream_dropping(conn)) && likely(!shm->lost || is_end_of_stream(&message))) {
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
	conn->tx.blocked = false;
	if (soft_stream_dropping(conn))
		return;
	term = acknowledged(conn->qp, conn, __atomic_load_n(&ack->delivered, __ATOMIC_RELAXED),
			    __atomic_load_n(&ack->consumed, __ATOMIC_RELAXED));
	if (term != FINE) {
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
		return;
	}
	if (unlikely(READ_ONCE(ack->fallback_request) != shm->fallback_done))
		give_fallback(conn);
	if (unlikely(shm->rx_stalled) && READ_ONCE(ack->fallback_done) == shm->asked)
		take_fallback(conn);
	if (unlikely(shm->rx_stalled) && rndv_is_cancelled(conn))
		discard_withdrawn(conn, &shm->waiting);
}

bool shm_conn_receive(struct dapl_conn *conn, bool later)
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
