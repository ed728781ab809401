/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto.c - protocol selection (proto.h) for reads, for idle peers, and for large requests. */
#include "dapl/soft/shm/proto.h"
#include "common/clock.h"
#include "common/once.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shared.h"
#include "dapl/soft/tunables.h"

/* --- idle peers ----------------------------------------------------------------------------- */

bool proto_peer_polls(struct shm_conn *shm)
{
	struct proto_state *state = &shm->proto;
	uint64_t now = clock_now_ns(), since = now - state->looked_ns;
	uint32_t polls;

	if (since >= PEER_LOOK_NS) {
		polls = READ_ONCE(shm->peer->mr_dir->polls);
		state->polls_often = (polls - state->polls) * (uint64_t)PEER_POLL_NS > since;
		state->polls = polls;
		state->looked_ns = now;
	}
	return state->polls_often;
}

/* Order: all requests posted before are complete, so the target has executed them. An application
 * that posts before it has taken the last completion, or whose request is not signaled, does not wait
 * for this request: then a ring carries more. */
bool proto_suits_cma(const struct soft_qp *qp, const struct dapl_conn *conn, unsigned flags)
{
	const struct soft_cq *cq = soft_cq(qp->qp.send_cq);

	return READ_ONCE(conn->shm->peer->reach) != SOFT_REACH_NO &&
	       qp->sq_head == conn->stream.tx.cursor.wqe && soft_is_signaled(qp, flags) &&
	       READ_ONCE(cq->head) == READ_ONCE(cq->tail);
}

static enum shm_proto select_short(const struct soft_qp *qp, struct dapl_conn *conn,
				   const struct proto_request *request)
{
	if (proto_peer_is_idle(conn->shm) && request->wqe->state == SOFT_POSTED && request->length &&
	    request->length <= CMA_SHORT_MAX &&
	    (request->opcode != IBV_WR_RDMA_READ || conn->stream.reads_out) &&
	    proto_suits_cma(qp, conn, request->flags))
		return PROTO_CMA;
	return proto_through_ring(request->length);
}

/* --- large requests ---------------------------------------------------------------------------- */

enum shm_proto proto_select_read(const struct soft_qp *qp, struct dapl_conn *conn, uint64_t length,
				 unsigned refused)
{
	if (!(refused & 1 << PROTO_CMA) && length >= PROTO_MIN && proto_may_execute(qp, conn, length) &&
	    (proto_peer_is_idle(conn->shm) ||
	     proto_known(&conn->dev->shm.protocols->reads, length, clock_now_ns()) == PROTO_CMA))
		return PROTO_CMA;
	return PROTO_UNDECIDED;
}

/* By CMA the initiator copies the payload of a read, the target that of a write or a send. */
static enum shm_proto choose_large(struct dapl_conn *conn, const struct proto_request *request)
{
	struct shm_conn *shm = conn->shm;
	bool read = request->opcode == IBV_WR_RDMA_READ;
	enum shm_proto proto;

	shm->proto.trying = false;
	if (read ? request->length > PROTO_MAX || READ_ONCE(shm->peer->reach) == SOFT_REACH_NO
		 : shm->peer_cannot_copy)
		return PROTO_COPY;
	if (read && proto_peer_is_idle(shm))
		return PROTO_CMA;
	proto = proto_choose(read ? &conn->dev->shm.protocols->reads : &conn->dev->shm.protocols->writes,
			     request->length, clock_now_ns(), &shm->proto.trying);
	return proto == PROTO_CMA && !read ? PROTO_RNDV : proto;
}

/* A write that measures a protocol, and the writes after it, wait for writes of the other protocol, so
 * that the measured time is that of one protocol. */
static bool waits_for_other_protocol(const struct proto_state *state, const struct soft_swqe *wqe)
{
	return wqe->proto != state->last && (state->trying || state->probing);
}

/* A request of the other protocol that is under way at the same time invalidates the measured
 * series. */
static void note_write(struct proto_state *state, const struct soft_swqe *wqe, bool alone)
{
	if (!alone && wqe->proto != state->last)
		proto_series_cancel(&state->writes);
	state->last = wqe->proto;
	state->probing = state->trying;
}

/* Selects as late as possible: when the requests before it are under way. A read by CMA is executed at
 * once, so it waits until the requests before it are complete. */
static enum shm_proto select_large(struct dapl_conn *conn, const struct proto_request *request)
{
	struct proto_state *state = &conn->shm->proto;
	bool read = request->opcode == IBV_WR_RDMA_READ, alone = request->alone;
	struct soft_swqe *wqe = request->wqe;

	if (wqe->proto == PROTO_UNDECIDED)
		wqe->proto = choose_large(conn, request);
	if (!alone && (read ? wqe->proto == PROTO_CMA : waits_for_other_protocol(state, wqe)))
		return PROTO_UNDECIDED;
	if (wqe->proto == PROTO_CMA)
		return PROTO_CMA;
	if (!read)
		note_write(state, wqe, alone);
	if (state->trying && !wqe->measured)	/* true if an earlier call joined, but found no room */
		wqe->measured = proto_series_join(read ? &state->reads : &state->writes, alone,
						  alone ? clock_now_ns() : 0);
	return wqe->proto;
}

enum shm_proto proto_select_queued(const struct soft_qp *qp, struct dapl_conn *conn,
				   const struct proto_request *request)
{
	return request->moment == PROTO_QUEUED ? select_short(qp, conn, request)
					       : select_large(conn, request);
}

/* --- what became of a selection --------------------------------------------------------------- */

uint64_t proto_read_begins(const struct dapl_conn *conn)
{
	return conn->shm->proto.trying ? clock_now_ns() : 0;
}

void proto_read_by_cma(struct dapl_conn *conn, const struct soft_swqe *wqe, uint64_t begun_ns)
{
	if (begun_ns)
		proto_learn(&conn->dev->shm.protocols->reads, PROTO_CMA, wqe->length, clock_now_ns() - begun_ns);
}

void proto_read_failed(struct dapl_conn *conn, struct soft_swqe *wqe)
{
	proto_avoid_cma(&conn->dev->shm.protocols->reads, wqe->length, clock_now_ns());
	wqe->proto = PROTO_COPY;
}

void proto_is_mixed(struct shm_conn *shm)
{
	proto_series_cancel(&shm->proto.writes);
}

/* Time that was spent on faulting memory in says nothing about the protocol. */
void proto_measured(struct dapl_conn *conn, const struct soft_swqe *wqe)
{
	bool read = wqe->opcode == IBV_WR_RDMA_READ;
	struct shm_conn *shm = conn->shm;
	struct proto_series *series = read ? &shm->proto.reads : &shm->proto.writes;
	bool *fresh = read ? &shm->rx.fresh : &shm->tx.fresh;

	if (!proto_series_ends(series, wqe->length))
		return;
	if (series->begun_ns && !*fresh)
		proto_learn(read ? &conn->dev->shm.protocols->reads : &conn->dev->shm.protocols->writes, wqe->proto,
			    wqe->length, proto_series_share(series, wqe->length, clock_now_ns()));
	*fresh = false;
}
