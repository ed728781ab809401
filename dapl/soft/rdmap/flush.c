/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c - flushes a QP: revokes the peer's access to memory, then completes all requests. */
#include "dapl/soft/rdmap/flush.h"
#include "common/compiler.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_conn.h"

/* Returns true if the peer cannot access the memory of this process any more. Returns false if it is within a
 * write: the service thread flushes the QP when it has left. */
static bool revoke_access(struct soft_qp *qp)
{
	bool revoked = shm_grant_revoke(qp->conn);

	rndv_cancel(qp->conn);
	if (unlikely(!revoked))
		revoke_before_flush(qp, shm_own_access(qp->conn));
	return revoked;
}

void soft_flush_qp(struct soft_qp *qp, uint32_t culprit, enum ibv_wc_status status)
{
	assert_held(&qp->lock);
	if (qp->state == IBV_QPS_ERR)
		return;
	soft_qp_set_state(qp, IBV_QPS_ERR);
	if (qp->conn && status != IBV_WC_SUCCESS)
		soft_conn_caused(qp->conn, 0, DAPL_CODE_COMPLETION, status, "a request failed here");
	qp->flush_culprit = culprit;
	qp->flush_status = status;
	if (qp->conn && !revoke_access(qp))
		return;
	soft_qp_end_flush(qp);
}
