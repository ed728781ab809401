/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_done.c - completes requests: read responses, atomic responses and acknowledgements. */
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/clock.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/requester.h"
#include "dapl/soft/tcp/wire.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_conn.h"

struct soft_swqe *soft_requester_oldest_read(struct soft_qp *qp, const struct dapl_conn *conn,
					     uint32_t *index)
{
	uint32_t end = conn->tx.cursor.wqe;

	if ((int32_t)(qp->sq_head - qp->read_next) > 0)
		qp->read_next = qp->sq_head;
	for (; (int32_t)(end - qp->read_next) > 0; qp->read_next++) {
		struct soft_swqe *wqe = soft_swqe(qp, qp->read_next);

		if (wqe->state == SOFT_SENT && (wqe->opcode == IBV_WR_RDMA_READ ||
						wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
						wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
			*index = qp->read_next;
			return wqe;
		}
	}
	return NULL;
}

static void read_done(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	wqe->state = SOFT_DONE;
	conn->reads_done++;
	qp->read_next++;
	soft_qp_complete_sends(qp);
}

int soft_requester_response_begin(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_rx *rx = &conn->rx;
	struct soft_swqe *wqe;
	uint64_t end;

	if (!rx->read_open) {
		wqe = soft_requester_oldest_read(qp, conn, &rx->read_wqe);
		if (!wqe || wqe->opcode != IBV_WR_RDMA_READ)
			return WIRE_TERM_OPCODE;
		rx->read_open = true;
		rx->read_offset = 0;
	}
	wqe = soft_swqe(qp, rx->read_wqe);
	if (rx->seg.stag != conn->sink_key + wqe->seq)
		return WIRE_TERM_DDP_STAG;
	end = rx->read_offset + (uint64_t)rx->payload_left;
	if (rx->seg.to != rx->read_offset || end > wqe->length ||
	    (rx->seg.last && end != wqe->length))
		return WIRE_TERM_DDP_BOUNDS;
	rx->sink = SOFT_SINK_READ;
	return WIRE_TERM_NONE;
}

void soft_requester_response_end(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct soft_swqe *wqe = soft_swqe(qp, conn->rx.read_wqe);

	conn->rx.read_open = false;
	if (wqe->measured)
		proto_measured(conn, wqe);
	read_done(qp, conn, wqe);
	if (conn->shm)
		proto_completed(qp, conn);
}

int soft_requester_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	uint64_t value = wire_get64(body + 4);
	struct soft_swqe *wqe;
	uint32_t index;
	char *at;

	wqe = soft_requester_oldest_read(qp, conn, &index);
	if (!wqe || wqe->opcode == IBV_WR_RDMA_READ || conn->rx.read_open ||
	    wire_get32(body) != wqe->seq)
		return WIRE_TERM_OPCODE;
	if (soft_mem_local(qp->dev, qp->qp.pd, wqe->sge, IBV_ACCESS_LOCAL_WRITE, &at) !=
	    SOFT_FINE || !soft_mem_guard(qp->dev, wqe->sge->lkey, at, sizeof value)) {
		soft_qp_flush(qp, index, IBV_WC_LOC_PROT_ERR);
		return WIRE_TERM_LOCAL;
	}
	memcpy(at, &value, sizeof value);
	read_done(qp, conn, wqe);
	return WIRE_TERM_NONE;
}

int soft_requester_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed)
{
	if ((int32_t)(delivered - conn->peer_delivered) < 0 ||
	    (int32_t)(conn->tx.cursor.seq - delivered) < 0 ||
	    consumed < conn->peer_consumed || consumed > conn->tx.cursor.charged)
		return WIRE_TERM_UNSPECIFIED;
	conn->peer_delivered = delivered;
	conn->peer_consumed = consumed;
	soft_qp_complete_sends(qp);
	return WIRE_TERM_NONE;
}
