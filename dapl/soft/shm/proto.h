/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto.h - protocol selection: how the payload of a request goes to a peer on this host.
 *
 *   INLINE  in the slot of a ring          up to 96 bytes
 *   COPY    through the ring's bulk area   everything, in pieces of up to 16 KiB
 *   RNDV    the peer copies, by CMA        writes and sends of more than 16 KiB
 *   CMA     this side copies, by CMA       reads from 8 KiB to 4 MiB; from an idle peer shorter reads, too,
 *                                          and to it writes of up to 16 KiB
 *   MAPPED  this side stores and loads     reads, writes and atomics of up to 4 MiB to regions that can
 *                                          be mapped
 *
 * proto_select() selects the protocol, by struct proto_state and the device's tables. Its answer is
 * advice. The code that executes a protocol (shm_conn.c, cma.c, rmem_map.c) may find it impossible, and
 * selects again without it. PROTO_COPY is always possible: DAPL_SOFT_DIRECT=0 selects it for all
 * requests, and test/unit/soft/copy-only tests that. */
#ifndef SOFT_PROTO_H
#define SOFT_PROTO_H
#include <infiniband/verbs.h>
#include "common/compiler.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto_table.h"
#include "dapl/soft/shm/shm_conn.h"

/* The moment at which a protocol is selected for a request. */
enum proto_moment {
	PROTO_POSTED,		/* it is being posted, and not queued yet */
	PROTO_QUEUED,		/* it is short, and at the head of the send queue */
	PROTO_STARTS,		/* it has a choice of two (proto_is_large), and is to be sent next */
};

struct proto_request {
	enum proto_moment moment;
	unsigned opcode, flags;		/* IBV_WR_*, IBV_SEND_* */
	uint32_t stag;
	uint64_t length;
	unsigned refused;		/* 1 << protocol: found to be impossible */
	struct soft_swqe *wqe;		/* when it is in the queue */
	bool alone;			/* PROTO_STARTS: all requests before it are complete */
};

static inline struct proto_request proto_request_of(enum proto_moment moment, struct soft_swqe *wqe)
{
	return (struct proto_request){
		.moment = moment, .opcode = wqe->opcode, .flags = wqe->flags, .stag = wqe->rkey,
		.length = wqe->length, .wqe = wqe,
	};
}

/* The rare cases, out of line. Those that are called while a request is posted take no pointer to struct
 * proto_request, so the compiler need not store it in memory. */
enum shm_proto proto_select_queued(const struct soft_qp *qp, struct dapl_conn *conn,
				   const struct proto_request *request);
enum shm_proto proto_select_read(const struct soft_qp *qp, struct dapl_conn *conn, uint64_t length,
				 unsigned refused);
bool proto_suits_cma(const struct soft_qp *qp, const struct dapl_conn *conn, unsigned flags);
bool proto_peer_polls(struct shm_conn *shm);

/* Returns true if the request has a choice between the ring and a copy by the kernel. */
static inline bool proto_is_large(const struct dapl_conn *conn, unsigned opcode, uint64_t length)
{
	return conn->shm && length >= (opcode == IBV_WR_RDMA_READ ? (uint64_t)PROTO_MIN
								  : (uint64_t)RING_CHUNK + 1);
}

/* Returns true if the peer's service thread drives progress, and waking it costs more than to access the peer's
 * memory. The sleep count alone does not tell: a peer that polls looks asleep as long as nothing
 * comes through its rings. When something comes, its service thread hands over to the polling
 * thread. */
static inline bool proto_peer_is_idle(struct shm_conn *shm)
{
	return unlikely(shm_is_asleep(shm->peer)) && !proto_peer_polls(shm);
}

/* Returns true if the target has executed all requests before this one, and its size allows to copy with the
 * lock held. DTO-28, 30. */
static inline bool proto_may_execute(const struct soft_qp *qp, const struct dapl_conn *conn,
				     uint64_t length)
{
	const struct soft_tx *tx = &conn->stream.tx;

	return qp->sq_head == qp->sq_tail && qp->state == IBV_QPS_RTS && tx->open &&
	       !(tx->shut | tx->close_notice | tx->terminate) && length <= PROTO_MAX;
}

static inline bool proto_may_map(const struct soft_qp *qp, const struct dapl_conn *conn,
				 const struct proto_request *request)
{
	return request->stag != conn->shm->proto.unmapped &&
	       !(request->refused & 1 << PROTO_MAPPED) &&
	       proto_may_execute(qp, conn, request->length);
}

static inline enum shm_proto proto_through_ring(uint64_t length)
{
	return length <= RING_INLINE ? PROTO_INLINE : PROTO_COPY;
}

static ALWAYS_INLINE enum shm_proto proto_select_posted(const struct soft_qp *qp, struct dapl_conn *conn,
							const struct proto_request *request)
{
	struct shm_conn *shm = conn->shm;

	switch (request->opcode) {
	case IBV_WR_RDMA_WRITE:
		if (proto_may_map(qp, conn, request))
			return PROTO_MAPPED;
		if (request->length <= CMA_SHORT_MAX && proto_peer_is_idle(shm) &&
		    proto_suits_cma(qp, conn, request->flags))
			return PROTO_UNDECIDED;
		break;
	case IBV_WR_RDMA_READ:
		if (proto_may_map(qp, conn, request))
			return PROTO_MAPPED;
		return proto_select_read(qp, conn, request->length, request->refused);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return proto_may_map(qp, conn, request) ? PROTO_MAPPED : PROTO_UNDECIDED;
	}
	return proto_through_ring(request->length);
}

/* Selects the protocol of a request. UNDECIDED: the request waits in the send queue, and its protocol
 * is selected later. qp->lock held; conn->shm is set. Inlined for posting: with the constants of that
 * caller, a short send costs two comparisons. */
static ALWAYS_INLINE enum shm_proto proto_select(const struct soft_qp *qp, struct dapl_conn *conn,
						 const struct proto_request *request)
{
	if (unlikely(!conn->dev->want_direct))
		return proto_through_ring(request->length);
	return request->moment == PROTO_POSTED ? proto_select_posted(qp, conn, request)
					       : proto_select_queued(qp, conn, request);
}

/* --- what became of a selection; qp->lock held --------------------------------------------------- */

/* The region of the peer cannot be mapped. */
static inline void proto_cannot_map(struct shm_conn *shm, uint32_t stag)
{
	shm->proto.unmapped = stag;
}

/* The time, in ns, if the large read by CMA that was selected last is measured; else 0. */
uint64_t proto_read_begins(const struct dapl_conn *conn);
/* A large read by CMA has been executed. proto_read_begins() returned begun_ns. */
void proto_read_by_cma(struct dapl_conn *conn, const struct soft_swqe *wqe, uint64_t begun_ns);
/* A large read by CMA failed, and goes through the ring. */
void proto_read_failed(struct dapl_conn *conn, struct soft_swqe *wqe);
/* Parts of a large write or send take another protocol than was selected: the series of writes that is
 * being measured is void. */
void proto_is_mixed(struct shm_conn *shm);
/* A large request for which wqe->measured is set is done. */
void proto_measured(struct dapl_conn *conn, const struct soft_swqe *wqe);

#endif
