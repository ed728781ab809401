/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.h - the verbs of the data path: they post requests and receives, and poll and arm a CQ. */
#ifndef SOFT_VERBS_POST_H
#define SOFT_VERBS_POST_H
#include <infiniband/verbs.h>
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/shm_conn.h"

int soft_qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int soft_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int soft_qp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int soft_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

int soft_cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int soft_cq_arm(struct ibv_cq *cq, int solicited_only);

/* Requests that the fast path of a carrier does not take. Called with qp->lock held. */
int soft_qp_post_send_slow(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* HOT: soft_qp_post_send(), called with qp->lock held. */
static ALWAYS_INLINE int soft_qp_post_send_locked(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	assert_held(&qp->lock);
	if (likely(qp->conn) &&
	    likely(qp->conn->shm ? shm_conn_post(qp, qp->conn, wr) : soft_tcp_post(qp, qp->conn, wr)))
		return 0;
	return soft_qp_post_send_slow(qp, wr, bad);
}

#endif
