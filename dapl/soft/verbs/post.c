/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.c - see post.h. A request takes the fast path of its carrier, or joins the send queue, from
 * which rdmap/ sends it. */
#include "dapl/soft/verbs/post.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/progress/owner.h"
#include <errno.h>

/* Copies the segments of a request that is not inlined, or must not be. They are checked when the
 * request is sent (rdmap/requester.c). DTO-31. */
static void keep_segments(struct soft_swqe *wqe, const struct ibv_send_wr *wr)
{
	wqe->flags &= ~(unsigned)IBV_SEND_INLINE;
	wqe->sges = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		wqe->sge[i] = wr->sg_list[i];
}

static int gather(struct soft_qp *qp, struct soft_swqe *wqe, const struct ibv_send_wr *wr)
{
	char *to = (char *)wqe->sge, *from;

	wqe->length = 0;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->max_send_sge)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		wqe->length += wr->sg_list[i].length;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		keep_segments(wqe, wr);
		return 0;
	}
	if (wqe->length > qp->max_inline)
		return EINVAL;
	wqe->sges = 0;
	for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length) {
		if (!wr->sg_list[i].length)
			continue;
		if (soft_mem_local(qp->dev, qp->qp.pd, &wr->sg_list[i], 0, &from) != SOFT_FINE) {
			keep_segments(wqe, wr);
			return 0;
		}
		memcpy(to, from, wr->sg_list[i].length);
	}
	return 0;
}

static int fill_swqe(struct soft_qp *qp, struct soft_swqe *wqe, const struct ibv_send_wr *wr)
{
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->state = SOFT_POSTED;
	wqe->status = IBV_WC_SUCCESS;
	wqe->length = 0;
	wqe->sges = 0;
	wqe->proto = PROTO_UNDECIDED;
	wqe->measured = false;
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->word = ntohl(wr->imm_data);
		wqe->remote = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return gather(qp, wqe, wr);
	case IBV_WR_RDMA_READ:
		wqe->remote = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return wr->send_flags & IBV_SEND_INLINE ? EINVAL : gather(qp, wqe, wr);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		return wr->send_flags & IBV_SEND_INLINE ? EINVAL : gather(qp, wqe, wr);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		wqe->word = ntohl(wr->imm_data);
		return gather(qp, wqe, wr);
	case IBV_WR_SEND_WITH_INV:
		wqe->word = wr->invalidate_rkey;
		return gather(qp, wqe, wr);
	case IBV_WR_LOCAL_INV:
		wqe->word = wr->invalidate_rkey;
		return 0;
	case IBV_WR_BIND_MW:
		wqe->rkey = wr->bind_mw.rkey;
		wqe->bind_type1 = false;
		wqe->bind.mw = (struct soft_mw *)wr->bind_mw.mw;
		wqe->bind.mr = (struct soft_mr *)wr->bind_mw.bind_info.mr;
		wqe->bind.addr = wr->bind_mw.bind_info.addr;
		wqe->bind.length = wr->bind_mw.bind_info.length;
		wqe->bind.access = wr->bind_mw.bind_info.mw_access_flags;
		if (wqe->bind.mw->mw.type != IBV_MW_TYPE_2)
			return EINVAL;
		wqe->bind.mw->mw.rkey = wr->bind_mw.rkey;
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

static int post_ud(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;
	int err = 0;

	if (qp->state == IBV_QPS_RTS)
		err = soft_ud_send(qp, wr, &status);
	if (err)
		return err;
	if (soft_is_signaled(qp, wr->send_flags) || status != IBV_WC_SUCCESS)
		soft_qp_complete_send(qp, wr->wr_id, wr->opcode, status, 0);
	return 0;
}

/* Returns true if what is posted completes at once, flushed. While a flush waits, it joins the queue.
 * DTO-8, 9, CONN-34. */
static bool is_flushed(const struct soft_qp *qp)
{
	return qp->state == IBV_QPS_ERR && !qp->flush_waits;
}

/* Returns an errno value if no request can join the send queue. */
static int queue_fault(const struct soft_qp *qp)
{
	if (unlikely(qp->state != IBV_QPS_RTS && !qp->flush_waits))
		return EINVAL;
	return unlikely(qp->sq_tail - qp->sq_head == qp->sq_size) ? ENOMEM : 0;
}

static int post_one(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	int err;

	if (qp->qp.qp_type == IBV_QPT_UD)
		return post_ud(qp, wr);
	if (unlikely(is_flushed(qp))) {
		soft_qp_complete_send(qp, wr->wr_id, wr->opcode, IBV_WC_WR_FLUSH_ERR, 0);
		return 0;
	}
	err = queue_fault(qp);
	if (!err)
		err = fill_swqe(qp, soft_swqe(qp, qp->sq_tail), wr);
	if (!err)
		qp->sq_tail++;
	return err;
}

int soft_qp_post_send_slow(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	assert_held(&qp->lock);
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(qp->conn) && shm_conn_post_cma(qp, qp->conn))
		soft_requester_complete(qp);
	else if (likely(qp->conn))
		soft_conn_send(qp->conn);
	return err;
}

int soft_qp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err;

	dapl_mutex_lock(&qp->lock);
	err = soft_qp_post_send_locked(qp, wr, bad);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

/* Queues the bind of a window of type 1. The device chooses the new key, another one than the last. */
static void queue_bind(struct soft_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	uint32_t key = (mw->rkey + 1 + soft_random() % 255) & 0xff;

	mw->rkey = (mw->rkey & ~0xffu) | key;
	*soft_swqe(qp, qp->sq_tail++) = (struct soft_swqe){
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .flags = bind->send_flags,
		.bind_type1 = true, .rkey = mw->rkey,
		.bind = { (struct soft_mw *)mw, (struct soft_mr *)bind->bind_info.mr,
			  bind->bind_info.addr, bind->bind_info.length, bind->bind_info.mw_access_flags },
	};
}

int soft_qp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err = 0;

	dapl_mutex_lock(&qp->lock);
	if (is_flushed(qp))
		soft_qp_complete_send(qp, bind->wr_id, IBV_WR_BIND_MW, IBV_WC_WR_FLUSH_ERR, 0);
	else if (!(err = queue_fault(qp)))
		queue_bind(qp, mw, bind);
	if (qp->conn)
		soft_conn_send(qp->conn);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

int soft_qp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	struct ibv_wc flushed = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };
	int err = 0;

	if (qp->srq) {
		*bad = wr;
		return EINVAL;
	}
	dapl_mutex_lock(&qp->lock);
	for (; wr; wr = wr->next) {
		if (unlikely(is_flushed(qp))) {
			flushed.wr_id = wr->wr_id;
			flushed.qp_num = ibqp->qp_num;
			soft_cq_add(soft_cq(ibqp->recv_cq), &flushed, false);
			continue;
		}
		err = rq_post(&qp->rq, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (qp->conn && unlikely(!TAILQ_EMPTY(&qp->conn->stream.unexpected)))
		soft_unexpected_deliver(qp);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

int soft_srq_post(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_srq *srq = soft_srq(ibsrq);
	bool waited;
	int err = 0;

	dapl_spin_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		err = rq_post(&srq->rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	waited = !TAILQ_EMPTY(&srq->waiting);
	dapl_spin_unlock(&srq->lock);
	if (unlikely(waited))
		soft_progress_srq_posted(srq);
	return err;
}

/* --- completion queues --------------------------------------------------------------------------- */

/* A poll that finds the CQ empty drives progress. */
int soft_cq_poll(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq(ibcq);
	int n = soft_cq_take(cq, entries, wc);

	if (n || entries < 1)
		return n;
	return soft_progress_poll(cq) ? soft_cq_take(cq, entries, wc) : 0;
}

int soft_cq_arm(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_cq *cq = soft_cq(ibcq);

	dapl_spin_lock(&cq->lock);
	__atomic_store_n(&cq->armed, cq->armed | (solicited_only ? SOFT_ARMED_SOLICITED
								 : SOFT_ARMED), __ATOMIC_RELAXED);
	dapl_spin_unlock(&cq->lock);
	soft_owner_sleep(cq->dev);
	return 0;
}
