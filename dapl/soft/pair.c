/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c - the rings of a connection: what tcp.c would frame goes into one as it is, what
 * the other brings is executed by execute.c like what comes over TCP. When to look, and
 * when to acknowledge, is engine.c's matter.
 *
 * A message is one segment: its place in the ring is its number, so there are no sequence
 * numbers to check. What a segment says beyond that is checked as on TCP. */
#include "dapl/soft/soft.h"
#include "dapl/soft/plain.h"
#include <stdlib.h>

enum {
	FINE = -1, HALT = -2,
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
	pair->own = segment->station[conn->passive];
	pair->door = &segment->memory->door[conn->passive];
	ring_tx_init(&pair->tx, segment->memory, conn->passive);
	ring_rx_init(&pair->rx, segment->memory, !conn->passive);
	pair->aid_out = segment->memory->aid[conn->passive];
	pair->aid_in = segment->memory->aid[!conn->passive];
	return pair;
}

void soft_pair_free(struct soft_pair *pair)
{
	if (!pair)
		return;
	soft_gate_free(pair);
	soft_mapped_free(pair);
	free(pair->loans);
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

bool soft_pair_may_lend(struct soft_pair *pair)
{
	if (pair->wanted)
		return false;
	if (unlikely(!pair->loans))
		pair->loans = calloc(RING_SLOTS, sizeof *pair->loans);
	return pair->loans != NULL;
}

void soft_pair_lend(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe,
		    uint64_t offset, const struct iovec *payload)
{
	struct soft_pair *pair = conn->pair;
	struct ring_message message = {
		.op = segment->op, .last = segment->last, .lent = true, .length = payload->iov_len,
		.word = segment->stag, .to = segment->to, .address = (uintptr_t)payload->iov_base,
		.delivered = conn->delivered, .consumed = conn->consumed,
	};

	pair->loans[pair->tx.tail % RING_SLOTS] = (struct soft_loan){
		.slot = pair->tx.tail, .wqe = wqe, .length = message.length, .offset = offset,
	};
	soft_direct_lend(pair);
	ring_lend(&pair->tx, &message);
}

/* The peer may be waiting for one: it's told. */
void soft_pair_recall(struct dapl_conn *conn)
{
	if (!conn->pair || !conn->pair->loans)
		return;
	soft_direct_recall(conn->pair);
	soft_pair_tell(conn);
}

/* Gets a copy, so that the message of the common case is never in memory. */
static __attribute__((noinline)) void put_large(struct ring_tx *tx, struct ring_message message,
						char *at)
{
	ring_put(tx, &message, &(struct iovec){ at, message.length }, 1);
}

/* One request, before which nothing is that the target has not executed, and of a size that the
 * lock may be held for. */
static inline bool is_next(const struct soft_qp *qp, const struct dapl_conn *conn,
			   const struct ibv_send_wr *wr)
{
	const struct soft_tx *tx = &conn->tx;

	return qp->sq_head == qp->sq_tail && qp->state == IBV_QPS_RTS && tx->open &&
	       !(tx->shut | tx->goodbye | tx->terminate) && wr->num_sge == 1 && !wr->next &&
	       wr->sg_list->length <= CHOICE_MAX;
}

static inline bool executed(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	if (soft_is_signalled(qp, wr->send_flags))
		soft_qp_executed(qp, wr);
	if (ONCE(qp->dev->idle_polls))
		STORE(qp->dev->idle_polls, 0);	/* the answer, too, may come without us */
	return true;
}

/* A write to a region that is mapped. False: it's not that. */
static inline bool store_ourselves(struct soft_qp *qp, struct dapl_conn *conn,
				   const struct ibv_send_wr *wr)
{
	char *at;

	return wr->wr.rdma.rkey != conn->pair->unmapped && is_next(qp, conn, wr) &&
	       plain_payload(qp, wr, &at) &&
	       soft_mapped_write(conn, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, at,
				 wr->sg_list->length) &&
	       executed(qp, wr);
}

/* From memory that is mapped, or that the kernel is to copy. */
static bool read_ourselves(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to)
{
	uint32_t rkey = wr->wr.rdma.rkey, length = wr->sg_list->length;
	uint64_t from = wr->wr.rdma.remote_addr;

	return (rkey != conn->pair->unmapped && soft_mapped_read(conn, rkey, from, to, length)) ||
	       soft_direct_read_now(conn, rkey, from, to, length);
}

static bool change_ourselves(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to)
{
	return wr->wr.atomic.rkey != conn->pair->unmapped && wr->sg_list->length == 8 &&
	       soft_mapped_atomic(conn, wr, to);
}

/* A read or an atomic; likewise. */
static __attribute__((noinline)) bool load_ourselves(struct soft_qp *qp, struct dapl_conn *conn,
						     const struct ibv_send_wr *wr)
{
	char *at;

	return conn->reads_out && is_next(qp, conn, wr) && !(wr->send_flags & IBV_SEND_INLINE) &&
	       soft_mem_local(qp->dev, qp->qp.pd, wr->sg_list, IBV_ACCESS_LOCAL_WRITE,
			      &at) == SOFT_FINE &&
	       (wr->opcode == IBV_WR_RDMA_READ ? read_ourselves(conn, wr, at)
					       : change_ourselves(conn, wr, at)) &&
	       executed(qp, wr);
}

/* The common cases of what needs no message. */
static inline bool access_ourselves(struct soft_qp *qp, struct dapl_conn *conn,
				    const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		return store_ourselves(qp, conn, wr);
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return load_ourselves(qp, conn, wr);
	default:
		return false;
	}
}

/* Is a write, posted now, to be looked at by soft_pair_direct? */
static inline bool may_be_direct(const struct soft_qp *qp, struct dapl_conn *conn, unsigned send_flags)
{
	struct soft_pair *pair = conn->pair;

	if (soft_lag_passes(&pair->lag) && likely(!soft_direct_at_rest(pair)))
		return false;
	if (soft_direct_suits(qp, conn, send_flags))
		return true;
	soft_lag_skip(&pair->lag);
	return false;
}

bool soft_pair_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	struct soft_tx_cursor *cur = &conn->tx.cursor;
	struct soft_pair *pair = conn->pair;
	struct ring_message message;
	uint32_t charge;
	char *at;

	if (access_ourselves(qp, conn, wr))
		return true;
	if (cur->wqe != qp->sq_tail || qp->sq_tail - qp->sq_head == qp->sq_size ||
	    qp->state != IBV_QPS_RTS || !plain_idle(conn) || !plain_message(wr, &message))
		return false;
	if (message.length > RING_CHUNK)
		return false;
	if (message.op == WIRE_WRITE && may_be_direct(qp, conn, wr->send_flags))
		return false;		/* soft_pair_direct's */
	charge = wr->opcode == IBV_WR_SEND ? SOFT_CHARGE + message.length : 0;
	if (cur->charged - conn->peer_consumed + charge > SOFT_WINDOW ||
	    !plain_payload(qp, wr, &at) || !ring_room(&pair->tx, message.length))
		return false;
	message.delivered = cur->told_seq = conn->delivered;
	message.consumed = cur->told_consumed = conn->consumed;
	if (likely(message.length <= RING_INLINE))
		ring_put_small(&pair->tx, &message, at);
	else
		put_large(&pair->tx, message, at);
	cur->charged += charge;
	cur->msn_send += wr->opcode == IBV_WR_SEND;
	cur->wqe++;
	plain_queue(qp, wr, SOFT_SENT, ++cur->seq);
	soft_bell(pair);
	return true;
}

/* The peer polls. Is it better not waited for? If the request is to be timed, that begins. Of the
 * large it's found out what they take in another way (choice.h). */
static bool is_late(const struct soft_qp *qp, struct dapl_conn *conn, const struct soft_swqe *wqe)
{
	struct soft_lag *lag = &conn->pair->lag;

	if (soft_lag_passes(lag))
		return false;
	if (wqe->length >= CHOICE_MIN || !soft_direct_suits(qp, conn, wqe->flags)) {
		soft_lag_skip(lag);
		return false;
	}
	if (soft_lag_decide(lag))
		return true;
	soft_lag_begin(lag, conn->tx.cursor.wqe, soft_now_ns());
	return false;
}

bool soft_pair_direct(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->tx.cursor.wqe);

	return conn->pair && conn->tx.cursor.wqe + 1 == qp->sq_tail && qp->state == IBV_QPS_RTS &&
	       (wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_READ) &&
	       plain_idle(conn) && (soft_direct_at_rest(conn->pair) || is_late(qp, conn, wqe)) &&
	       soft_direct_execute(qp, conn, wqe);
}

/* Requests are done. Was the one that is timed? */
void soft_pair_done(const struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_lag *lag = &conn->pair->lag;

	if (soft_lag_is_over(lag, qp->sq_head))
		soft_lag_end(lag, soft_now_ns());
}

void soft_pair_tell(struct dapl_conn *conn)
{
	ring_tell(&conn->pair->rx, conn->delivered, conn->consumed);
	conn->tx.cursor.told_seq = conn->delivered;
	conn->tx.cursor.told_consumed = conn->consumed;
	soft_bell(conn->pair);
}

/* --- from the peer ---------------------------------------------------------------------- */

/* Acknowledgements come in messages and by telling; an older one may be seen later. */
static int acknowledged(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			uint32_t consumed)
{
	int32_t messages = delivered - conn->peer_delivered;
	int32_t bytes = consumed - (uint32_t)conn->peer_consumed;
	int rc;

	if (messages <= 0 && bytes <= 0)
		return FINE;
	rc = soft_initiator_acked(qp, conn, conn->peer_delivered + (messages > 0 ? messages : 0),
				  conn->peer_consumed + (bytes > 0 ? bytes : 0));
	soft_pair_done(qp, conn);
	return rc;
}

/* Payload from where it is: in shared memory, or lent, in the peer's. */
struct source {
	const uint8_t *data;		/* NULL: lent */
	uint64_t address;
};

static bool copy_from(struct dapl_conn *conn, struct source *from, const struct iovec *iov, int n,
		      uint32_t length)
{
	if (!from->data) {
		if (!soft_direct_fetch(conn, from->address, iov, n, length))
			return false;
		from->address += length;
		return true;
	}
	from->data = ring_scatter(iov, n, from->data);
	return true;
}

/* The next `most` bytes of payload, or less if that's all. */
static int place(struct soft_qp *qp, struct dapl_conn *conn, struct source from, uint32_t most)
{
	struct soft_region *held;
	struct iovec iov[8];
	uint32_t length;
	int n, term = FINE;
	bool copied;

	while (most && conn->rx.payload_left) {
		n = soft_target_place(qp, conn, most < conn->rx.payload_left ? most : conn->rx.payload_left,
				      iov, 8, &held, &term);
		if (n < 0)
			return term;
		length = 0;
		for (int i = 0; i < n; i++)
			length += iov[i].iov_len;
		copied = copy_from(conn, &from, iov, n, length);
		if (copied)
			soft_target_placed(conn, length);
		soft_mem_done(held);
		if (!copied)
			return HALT;
		if (!length)
			return WIRE_TERM_LOCAL;
		most -= length;
	}
	return FINE;
}

static int take_ack(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;

	pair->ack_waits = false;
	return acknowledged(conn->qp, conn, pair->ack_delivered, pair->ack_consumed);
}

/* A message that is not one of the quick ones. */
static int execute(struct soft_qp *qp, struct dapl_conn *conn, const struct ring_message *message,
		   const char **check)
{
	int term;

	ring_look_fresh(&conn->pair->rx, message);
	*check = "acknowledgement";
	term = take_ack(conn);
	if (term != FINE || soft_stream_dropping(conn))
		return term;
	term = soft_segment_arrived(qp, conn, message, check);
	if (term != FINE)
		return term;
	*check = "place for payload";
	term = place(qp, conn, (struct source){ message->lent ? NULL : message->data, message->address },
		     message->length);
	return term == FINE ? soft_segment_end(qp, conn, check) : term;
}

/* --- what was lent and can't be copied ---------------------------------------------------- */

/* It will not be there any more, so nothing that was posted after it is to be executed either. */
static void lose(struct dapl_conn *conn, const struct ring_message *message)
{
	conn->pair->halted = false;
	conn->pair->lost = true;
	ring_done(&conn->pair->rx, message);
}

static bool tells_of_the_end(const struct ring_message *message)
{
	return message->op == WIRE_GOODBYE || message->op == WIRE_TERMINATE;
}

/* The rest of what is at the head is wanted. */
static void ask(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;

	pair->halted = true;
	STORE(pair->rx.told->wanted_at, conn->rx.payload_done);
	STORE(pair->rx.told->wanted, ++pair->asked);
	soft_pair_tell(conn);
}

/* The peer put it into aid: a piece, or all. Then the ring goes on. */
static void resume(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;
	const char *check = "place for payload";
	int term = FINE;

	if (!soft_stream_dropping(conn)) {
		term = place(conn->qp, conn, (struct source){ .data = pair->aid_in }, RING_CHUNK);
		if (term == FINE && conn->rx.payload_left) {
			ask(conn);
			return;
		}
		if (term == FINE)
			term = soft_segment_end(conn->qp, conn, &check);
		if (term != FINE)
			soft_stream_fail(conn->qp, conn, term, check);
	}
	pair->halted = false;
	ring_done(&pair->rx, &pair->waiting);
}

/* The loan that the peer asks for; NULL: there is none of that kind. */
static const struct soft_loan *find_loan(const struct soft_qp *qp, const struct soft_pair *pair,
					 uint32_t offset)
{
	uint32_t slot = __atomic_load_n(&pair->tx.told->head, __ATOMIC_ACQUIRE);
	const struct soft_loan *loan;

	if (!pair->loans || pair->tx.tail - slot - 1 >= RING_SLOTS)
		return NULL;
	loan = &pair->loans[slot % RING_SLOTS];
	if (loan->slot != slot || !loan->length || offset >= loan->length ||
	    loan->wqe - qp->sq_head >= qp->sq_tail - qp->sq_head)
		return NULL;
	return loan;
}

/* The peer can't copy what is lent to it. */
static void give(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;
	struct soft_qp *qp = conn->qp;
	uint32_t offset = ONCE(pair->tx.told->wanted_at), length;
	const struct soft_loan *loan = find_loan(qp, pair, offset);
	struct iovec iov[SOFT_MAX_SGE];
	struct soft_swqe *wqe;
	int n;

	if (!loan) {
		soft_stream_fail(qp, conn, WIRE_TERM_UNSPECIFIED, "loan of a payload");
		return;
	}
	wqe = soft_swqe(qp, loan->wqe);
	length = loan->length - offset < RING_CHUNK ? loan->length - offset : RING_CHUNK;
	n = soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, loan->offset + offset, length, 0, iov,
			   SOFT_MAX_SGE);
	if (n <= 0) {
		soft_qp_flush(qp, loan->wqe, IBV_WC_LOC_PROT_ERR);
		soft_stream_abort(qp, conn, "memory was deregistered while it was sent");
		return;
	}
	ring_gather(pair->aid_out, iov, n);
	if (!pair->wanted)
		soft_trace(TRC_LVL_DETAIL, "conn", conn, "the peer can't copy from this process");
	pair->wanted = true;
	soft_series_spoil(&pair->writes);
	STORE(pair->rx.told->given, ++pair->given);
	soft_pair_tell(conn);
}

/* True: more than something to be handed up may have come of it. */
static bool receive_one(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;
	const char *check = "form of a message";
	struct ring_message message;
	bool quick = false;
	int term = FINE;

	if (unlikely(!ring_get(&pair->rx, &message))) {
		pair->spoiled = true;
		term = WIRE_TERM_LENGTH;
	}
	if (likely(!soft_stream_dropping(conn)) && likely(!pair->lost || tells_of_the_end(&message))) {
		if (likely(term == FINE)) {
			pair->ack_delivered = message.delivered;
			pair->ack_consumed = message.consumed;
			pair->ack_waits = true;
			quick = soft_target_quick(conn->qp, conn, &message);
			if (!quick)
				term = execute(conn->qp, conn, &message, &check);
		}
		if (unlikely(term == HALT)) {
			pair->waiting = message;
			if (soft_direct_recalled(conn))
				lose(conn, &message);
			else
				ask(conn);
			return true;
		}
		if (unlikely(term != FINE))
			soft_stream_fail(conn->qp, conn, term, check);
	}
	if (likely(!pair->spoiled))
		ring_done(&pair->rx, &message);
	return !quick;
}

/* What the peer told: acknowledgements, and that there is room again. */
static void take_note(struct dapl_conn *conn, uint32_t count)
{
	struct soft_pair *pair = conn->pair;
	const struct ring_told *told = pair->tx.told;
	int term;

	pair->seen = count;
	conn->tx.blocked = false;
	if (soft_stream_dropping(conn))
		return;
	term = acknowledged(conn->qp, conn, __atomic_load_n(&told->delivered, __ATOMIC_RELAXED),
			    __atomic_load_n(&told->consumed, __ATOMIC_RELAXED));
	if (term != FINE) {
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
		return;
	}
	if (unlikely(ONCE(told->wanted) != pair->given))
		give(conn);
	if (unlikely(pair->halted) && ONCE(told->given) == pair->asked)
		resume(conn);
	if (unlikely(pair->halted) && soft_direct_recalled(conn))
		lose(conn, &pair->waiting);
}

bool soft_pair_receive(struct dapl_conn *conn, bool later)
{
	struct soft_pair *pair = conn->pair;
	uint32_t count = __atomic_load_n(&pair->tx.told->count, __ATOMIC_ACQUIRE);
	int budget = RING_SLOTS, term;
	bool more = count != pair->seen;
	uint32_t fetched = pair->fetched;

	if (more)
		take_note(conn, count);
	/* What was lent takes long: its sender is told, and locks are free, before the next. */
	for (; budget && !(pair->spoiled | pair->halted) && pair->fetched == fetched &&
	       ring_ready(&pair->rx); budget--)
		more |= receive_one(conn);
	if (!pair->ack_waits || (later && budget > RING_SLOTS - ACKS_LATER) ||
	    soft_stream_dropping(conn))
		return more;
	term = take_ack(conn);
	if (term != FINE)
		soft_stream_fail(conn->qp, conn, term, "acknowledgement");
	return true;
}
