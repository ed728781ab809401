/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_conn.c - the rings of a connection. Segments that would be framed for TCP go into one ring as
 * they are. receive/shm_rx.c takes the messages of the other ring.
 *
 * A message is one segment. Its place in the ring is its number, so there are no sequence numbers
 * to check. Everything else in a segment is checked as on TCP. */
#include "dapl/soft/shm/shm_conn.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/once.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/fastpath.h"
#include "dapl/soft/obj/tap_record.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/shm/shm_segment.h"
#include <stdlib.h>

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

void shm_conn_put(struct dapl_conn *conn, const struct wire_segment *segment, const void *body, uint32_t body_length,
		  const struct iovec *payload, int pieces, uint32_t length)
{
	struct iovec whole = { (void *)body, body_length };
	struct soft_message message = {
		.op = segment->op, .last = segment->last, .length = body_length + length,
		.word = segment->stag, .to = segment->to,
		.delivered = conn->stream.delivered, .consumed = conn->stream.consumed,
	};

	if (body_length)
		ring_put(&conn->shm->tx, &message, &whole, 1);
	else
		ring_put(&conn->shm->tx, &message, payload, pieces);
}

bool rndv_may_send(struct shm_conn *shm)
{
	if (shm->peer_cannot_copy)
		return false;
	if (unlikely(!shm->rndv_slots))
		shm->rndv_slots = calloc(RING_SLOTS, sizeof *shm->rndv_slots);
	return shm->rndv_slots != NULL;
}

void rndv_send(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe, uint64_t offset,
	       const struct iovec *payload)
{
	struct shm_conn *shm = conn->shm;
	struct soft_message message = {
		.op = segment->op, .last = segment->last, .rndv = true, .length = payload->iov_len,
		.word = segment->stag, .to = segment->to, .address = (uintptr_t)payload->iov_base,
		.delivered = conn->stream.delivered, .consumed = conn->stream.consumed,
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
static NOINLINE void put_large(struct ring_tx *tx, struct soft_message message, char *at)
{
	ring_put(tx, &message, &(struct iovec){ at, message.length }, 1);
}

static inline bool executed(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	if (soft_is_signaled(qp, wr->send_flags))
		soft_qp_executed(qp, wr);
	if (READ_ONCE(qp->dev->progress.idle_polls))
		WRITE_ONCE(qp->dev->progress.idle_polls, 0);	/* the answer, too, may come without this
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
static NOINLINE bool read_directly(const struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr,
				   enum shm_proto proto)
{
	uint32_t rkey = wr->wr.rdma.rkey, length = wr->sg_list->length;
	uint64_t from = wr->wr.rdma.remote_addr;
	char *to;

	if (!conn->stream.reads_out || (wr->send_flags & IBV_SEND_INLINE) ||
	    soft_mem_local(qp->dev, qp->qp.pd, wr->sg_list, IBV_ACCESS_LOCAL_WRITE, &to) !=
		    SOFT_FINE)
		return false;
	if (wr->opcode != IBV_WR_RDMA_READ)
		return length == 8 && rmem_map_atomic(conn, wr, to);
	return proto == PROTO_MAPPED ? rmem_map_read(conn, rkey, from, to, length)
				     : cma_read_now(conn, rkey, from, to, length);
}

/* Executes a request without a message. Returns false if it cannot be done this way, and nothing was done. */
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

static ALWAYS_INLINE enum shm_proto select_posted(const struct soft_qp *qp, struct dapl_conn *conn,
						  const struct ibv_send_wr *wr, unsigned refused)
{
	struct proto_request request = {
		.moment = PROTO_POSTED, .opcode = wr->opcode, .flags = wr->send_flags,
		.length = wr->sg_list->length, .refused = refused,
	};

	if (wr->opcode != IBV_WR_SEND)
		request.stag = stag_of(wr);
	return proto_select(qp, conn, &request);
}

/* Returns true if a message of one segment may be put into the ring now: no request is before it, and the stream,
 * the peer's window and the send queue admit it. */
static inline bool may_put(const struct soft_qp *qp, const struct dapl_conn *conn, uint32_t charge)
{
	const struct soft_tx_cursor *cur = &conn->stream.tx.cursor;

	return cur->wqe == qp->sq_tail && qp->sq_tail - qp->sq_head != qp->sq_size &&
	       qp->state == IBV_QPS_RTS && fastpath_idle(conn) &&
	       cur->charged - conn->stream.peer_consumed + charge <= SOFT_WINDOW;
}

/* Puts the message, and the request into the send queue, where it waits for its acknowledgement. */
static ALWAYS_INLINE void put_posted(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr,
				     struct soft_message *message, char *at, uint32_t charge)
{
	struct soft_tx_cursor *cur = &conn->stream.tx.cursor;
	struct shm_conn *shm = conn->shm;

	message->delivered = cur->acked_seq = conn->stream.delivered;
	message->consumed = cur->acked_consumed = conn->stream.consumed;
	if (likely(message->length <= RING_INLINE))
		ring_put_small(&shm->tx, message, at);
	else
		put_large(&shm->tx, *message, at);
	cur->charged += charge;
	cur->msn_send += wr->opcode == IBV_WR_SEND;
	cur->wqe++;
	fastpath_queue(qp, wr, SOFT_SENT, ++cur->seq);
	shm_notify(shm);
}

/* Every request of one segment but a short Send. */
static NOINLINE bool post_other(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	struct soft_message message;
	enum shm_proto proto;
	uint32_t charge, refused = 0;
	char *at;

	while ((proto = select_posted(qp, conn, wr, refused)) > PROTO_COPY) {
		if (execute_directly(qp, conn, wr, proto))
			return true;
		refused |= 1 << proto;
	}
	if (unlikely(proto == PROTO_UNDECIDED) || !fastpath_message(wr, &message) ||
	    message.length > RING_CHUNK)
		return false;
	charge = wr->opcode == IBV_WR_SEND ? SOFT_CHARGE + message.length : 0;
	if (!may_put(qp, conn, charge) || !fastpath_payload(qp, wr, &at) ||
	    !ring_room(&conn->shm->tx, message.length))
		return false;
	put_posted(qp, conn, wr, &message, at, charge);
	return true;
}

/* A short Send always goes into a slot of the ring (proto.h), so its path has no other choice. `recorded`: a capture
 * has a record of it, before the peer can see it. */
static ALWAYS_INLINE bool post_short_send(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr,
					  bool recorded)
{
	struct tap_place unused;
	uint32_t length = wr->sg_list->length, charge = SOFT_CHARGE + length;
	struct soft_message message = {
		.op = wr->send_flags & IBV_SEND_SOLICITED ? WIRE_SEND_SE : WIRE_SEND,
		.last = true, .length = length,
	};
	char *at;

	if (!may_put(qp, conn, charge) || !fastpath_payload(qp, wr, &at) ||
	    !ring_room(&conn->shm->tx, length) ||
	    (recorded && !tap_record_plain_request(qp, wr, TAP_SEND, at, &unused)))
		return false;
	put_posted(qp, conn, wr, &message, at, charge);
	return true;
}

static ALWAYS_INLINE bool is_short_send(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND && wr->sg_list->length <= RING_INLINE && !(wr->send_flags & IBV_SEND_FENCE);
}

bool shm_conn_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	assert_held(&qp->lock);
	if (unlikely(wr->num_sge != 1 || wr->next))
		return false;
	if (likely(is_short_send(wr)))
		return post_short_send(qp, conn, wr, false);
	return post_other(qp, conn, wr);
}

bool shm_conn_post_recorded(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	assert_held(&qp->lock);
	return likely(wr->num_sge == 1 && !wr->next) && likely(is_short_send(wr)) &&
	       post_short_send(qp, conn, wr, true);
}

bool shm_conn_post_cma(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->stream.tx.cursor.wqe);
	struct proto_request request;

	assert_held(&qp->lock);
	if (!conn->shm || conn->stream.tx.cursor.wqe + 1 != qp->sq_tail || qp->state != IBV_QPS_RTS ||
	    (wqe->opcode != IBV_WR_RDMA_WRITE && wqe->opcode != IBV_WR_RDMA_READ) ||
	    !fastpath_idle(conn))
		return false;
	request = proto_request_of(PROTO_QUEUED, wqe);
	return proto_select(qp, conn, &request) == PROTO_CMA && cma_execute(qp, conn, wqe);
}

void shm_conn_send_ack(struct dapl_conn *conn)
{
	ring_send_ack(&conn->shm->rx, conn->stream.delivered, conn->stream.consumed);
	conn->stream.tx.cursor.acked_seq = conn->stream.delivered;
	conn->stream.tx.cursor.acked_consumed = conn->stream.consumed;
	shm_notify(conn->shm);
}
