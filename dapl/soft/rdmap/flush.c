/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c - completes the requests of a QP in the order of their posts, and flushes the QP when its
 * stream ends. */
#include "dapl/soft/rdmap/flush.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"

static bool swqe_done(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	if (wqe->state != SOFT_SENT)
		return wqe->state == SOFT_DONE;
	switch (wqe->opcode) {
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return false;		/* DONE when the answer has arrived */
	}
	return qp->conn && (int32_t)(qp->conn->peer_delivered - wqe->seq) >= 0;
}

void soft_qp_complete_sends(struct soft_qp *qp)
{
	for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
		const struct soft_swqe *wqe = soft_swqe(qp, qp->sq_head);

		if (!swqe_done(qp, wqe))
			return;
		if (unlikely(wqe->status != IBV_WC_SUCCESS)) {
			soft_qp_flush(qp, qp->sq_head, wqe->status);
			if (qp->conn)
				soft_stream_abort(qp, qp->conn, "a request failed here");
			return;
		}
		if (unlikely(wqe->length > RING_CHUNK && wqe->opcode != IBV_WR_RDMA_READ &&
			     wqe->measured && qp->conn && qp->conn->shm))
			proto_measured(qp->conn, wqe);
		if (soft_is_signalled(qp, wqe->flags))
			soft_qp_complete_send(qp, wqe->wr_id, wqe->opcode, IBV_WC_SUCCESS,
				      wqe->length);
	}
}

/* True: the peer cannot access the memory of this process any more. False: it is within a write, and
 * the service thread flushes the QP when it has left. */
static bool revoke_access(struct soft_qp *qp)
{
	bool revoked = shm_grant_revoke(qp->conn);

	rndv_cancel(qp->conn);
	if (unlikely(!revoked))
		revoke_before_flush(qp, shm_own_access(qp->conn));
	return revoked;
}

void soft_qp_flush(struct soft_qp *qp, uint32_t culprit, enum ibv_wc_status status)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	qp->state = qp->qp.state = IBV_QPS_ERR;
	if (qp->conn && status != IBV_WC_SUCCESS)
		soft_conn_caused(qp->conn, 0, DAPL_CODE_COMPLETION, status, "a request failed here");
	qp->flush_culprit = culprit;
	qp->flush_status = status;
	if (qp->conn && !revoke_access(qp))
		return;
	soft_qp_end_flush(qp);
}
