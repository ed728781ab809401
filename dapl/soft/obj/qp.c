/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - queue pairs: their life, posting, flushing, and completions in posting order.
 * Requests are executed by rdmap/. */
#include "dapl/soft/obj/qp.h"
#include "common/clock.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/tcp/fpdu_tx.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/ud.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>

static struct soft_qp *soft_qp(struct ibv_qp *qp)
{
	return (struct soft_qp *)qp;
}

static struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

/* --- completions, in posting order --------------------------------------------------- */

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

static inline void complete(const struct soft_qp *qp, struct ibv_cq *to, uint64_t wr_id,
			    enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t length,
			    bool solicited)
{
	struct ibv_wc wc = {
		.wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = length,
		.qp_num = qp->qp.qp_num,
	};

	soft_cq_add(soft_cq(to), &wc, solicited);
}

static void complete_send(struct soft_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode,
			  enum ibv_wc_status status, uint32_t length)
{
	complete(qp, qp->qp.send_cq, wr_id, status, wc_opcode(opcode), length, false);
}

void soft_qp_executed(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	complete_send(qp, wr->wr_id, wr->opcode, IBV_WC_SUCCESS, wr->sg_list->length);
}

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
			complete_send(qp, wqe->wr_id, wqe->opcode, IBV_WC_SUCCESS,
				      wqe->length);
	}
}

bool soft_qp_take_receive(struct soft_qp *qp)
{
	if (qp->taken_valid)
		return true;
	if (qp->srq) {
		qp->taken_valid = srq_take(qp);
	} else if (qp->rq.head != qp->rq.tail) {
		rwqe_copy(qp->taken, soft_rwqe(&qp->rq, qp->rq.head++));
		qp->taken_valid = true;
	}
	return qp->taken_valid;
}

void soft_qp_received(struct soft_qp *qp, enum ibv_wc_status status, const struct ibv_wc *is,
		      bool solicited)
{
	struct ibv_wc wc = *is;

	wc.wr_id = qp->taken->wr_id;
	wc.status = status;
	wc.qp_num = qp->qp.qp_num;
	qp->taken_valid = false;
	soft_cq_add(soft_cq(qp->qp.recv_cq), &wc, solicited);
}

void soft_qp_received_next(struct soft_qp *qp, uint32_t length, bool solicited)
{
	const struct soft_rwqe *rwqe = soft_rwqe(&qp->rq, qp->rq.head++);

	complete(qp, qp->qp.recv_cq, rwqe->wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, length, solicited);
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

void soft_qp_end_flush(struct soft_qp *qp)
{
	static const struct ibv_wc receive = { .opcode = IBV_WC_RECV };
	enum ibv_wc_status status = qp->flush_status;

	for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
		const struct soft_swqe *wqe = soft_swqe(qp, qp->sq_head);
		bool guilty = status != IBV_WC_SUCCESS && qp->sq_head == qp->flush_culprit;

		complete_send(qp, wqe->wr_id, wqe->opcode,
			      guilty ? status : IBV_WC_WR_FLUSH_ERR, 0);
	}
	if (qp->taken_valid)
		soft_qp_received(qp, IBV_WC_WR_FLUSH_ERR, &receive, false);
	if (qp->srq) {
		soft_srq_stop_waiting(qp);
		soft_event_post(qp->dev, &qp->last_receive, IBV_EVENT_QP_LAST_WQE_REACHED,
				&qp->qp);
		return;
	}
	while (soft_qp_take_receive(qp))
		soft_qp_received(qp, IBV_WC_WR_FLUSH_ERR, &receive, false);
}

/* --- posting ------------------------------------------------------------------------ */

/* Copies the segments of a request that is not inlined, or must not be. They are checked when the
 * request is sent (rdmap/requester.c). */
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
	if (soft_is_signalled(qp, wr->send_flags) || status != IBV_WC_SUCCESS)
		complete_send(qp, wr->wr_id, wr->opcode, status, 0);
	return 0;
}

/* True: what is posted completes at once, flushed. While a flush waits, it joins the queue. */
static bool is_flushed(const struct soft_qp *qp)
{
	return qp->state == IBV_QPS_ERR && !qp->flush_waits;
}

static int post_one(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	int err;

	if (qp->qp.qp_type == IBV_QPT_UD)
		return post_ud(qp, wr);
	if (unlikely(is_flushed(qp))) {
		complete_send(qp, wr->wr_id, wr->opcode, IBV_WC_WR_FLUSH_ERR, 0);
		return 0;
	}
	if (unlikely(qp->state != IBV_QPS_RTS && !qp->flush_waits))
		return EINVAL;
	if (unlikely(qp->sq_tail - qp->sq_head == qp->sq_size))
		return ENOMEM;
	err = fill_swqe(qp, soft_swqe(qp, qp->sq_tail), wr);
	if (!err)
		qp->sq_tail++;
	return err;
}

int soft_qp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err = 0;

	dapl_mutex_lock(&qp->lock);
	if (likely(qp->conn) && likely(qp->conn->shm ? shm_conn_post(qp, qp->conn, wr)
						      : soft_tcp_post(qp, qp->conn, wr))) {
		dapl_mutex_unlock(&qp->lock);
		return 0;
	}
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(qp->conn) && !shm_conn_post_cma(qp, qp->conn))
		soft_tcp_send(qp->conn);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

/* Binds a window of type 1: the device chooses the new key, at once. */
int soft_qp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct soft_qp *qp = soft_qp(ibqp);
	struct soft_swqe *wqe;
	int err = 0;

	dapl_mutex_lock(&qp->lock);
	if (is_flushed(qp)) {
		complete_send(qp, bind->wr_id, IBV_WR_BIND_MW, IBV_WC_WR_FLUSH_ERR, 0);
	} else if (qp->state != IBV_QPS_RTS && !qp->flush_waits) {
		err = EINVAL;
	} else if (qp->sq_tail - qp->sq_head == qp->sq_size) {
		err = ENOMEM;
	} else {
		wqe = soft_swqe(qp, qp->sq_tail++);
		*wqe = (struct soft_swqe){
			.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW,
			.flags = bind->send_flags, .bind_type1 = true,
			.rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1 + soft_random() % 255) & 0xff),
			.bind = { (struct soft_mw *)mw, (struct soft_mr *)bind->bind_info.mr,
				  bind->bind_info.addr, bind->bind_info.length,
				  bind->bind_info.mw_access_flags },
		};
		mw->rkey = wqe->rkey;
	}
	if (qp->conn)
		soft_tcp_send(qp->conn);
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
	if (qp->conn && unlikely(!TAILQ_EMPTY(&qp->conn->unexpected)))
		soft_responder_receives(qp);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

/* --- life ----------------------------------------------------------------------------- */

struct soft_qp *soft_qp_by_number(struct dapl_device *dev, uint32_t number)
{
	struct soft_qp *qp;

	LIST_FOREACH(qp, &dev->by_number[number % QP_BUCKETS], number_link)
		if (qp->qp.qp_num == number)
			return qp;
	return NULL;
}

static void number_qp(struct dapl_device *dev, struct soft_qp *qp)
{
	dapl_mutex_lock(&dev->qps_lock);
	do {
		qp->qp.qp_num = soft_random() & 0xffffff;
	} while (qp->qp.qp_num < 2 || soft_qp_by_number(dev, qp->qp.qp_num));
	LIST_INSERT_HEAD(&dev->by_number[qp->qp.qp_num % QP_BUCKETS], qp, number_link);
	LIST_INSERT_HEAD(&dev->qps, qp, link);
	dapl_mutex_unlock(&dev->qps_lock);
}

static int alloc_rings(struct soft_qp *qp, const struct ibv_qp_init_attr *attr)
{
	uint32_t payload = attr->cap.max_send_sge * sizeof(struct ibv_sge), taken_sge;

	if (payload < attr->cap.max_inline_data)
		payload = attr->cap.max_inline_data;
	if (payload < sizeof(struct ibv_sge))
		payload = sizeof(struct ibv_sge);
	qp->max_send_sge = attr->cap.max_send_sge ? attr->cap.max_send_sge : 1;
	qp->max_inline = attr->cap.max_inline_data;
	qp->sq_stride = (sizeof(struct soft_swqe) + payload + 7) & ~7u;
	qp->sq_size = power_of_2(attr->cap.max_send_wr ? attr->cap.max_send_wr : 1);
	qp->sq = malloc((size_t)qp->sq_size * qp->sq_stride);
	if (!qp->sq)
		return ENOMEM;
	taken_sge = attr->srq ? soft_srq(attr->srq)->rq.max_sge : attr->cap.max_recv_sge;
	if (!attr->srq && soft_rq_init(&qp->rq, attr->cap.max_recv_wr, taken_sge))
		return ENOMEM;
	qp->taken = malloc(sizeof *qp->taken + (taken_sge + 1) * sizeof(struct ibv_sge));
	return qp->taken ? 0 : ENOMEM;
}

static void free_qp(struct soft_qp *qp)
{
	free(qp->taken);
	free(qp->rq.ring);
	free(qp->sq);
	free(qp);
}

static void hold_objects(struct soft_qp *qp, int by)
{
	__atomic_add_fetch(&((struct soft_pd *)qp->qp.pd)->refs, by, __ATOMIC_RELEASE);
	__atomic_add_fetch(&soft_cq(qp->qp.send_cq)->refs, by, __ATOMIC_RELEASE);
	__atomic_add_fetch(&soft_cq(qp->qp.recv_cq)->refs, by, __ATOMIC_RELEASE);
	if (qp->srq)
		__atomic_add_fetch(&qp->srq->refs, by, __ATOMIC_RELEASE);
}

int soft_qp_create(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **ibqp)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	struct soft_qp *qp;
	int err;

	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > SOFT_MAX_WR ||
	    cap->max_recv_wr > SOFT_MAX_WR || cap->max_send_sge > SOFT_MAX_SGE ||
	    cap->max_recv_sge > SOFT_MAX_SGE || cap->max_inline_data > SOFT_MAX_INLINE)
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD &&
	    attr->qp_type != IBV_QPT_RAW_PACKET)
		return EOPNOTSUPP;
	if (attr->qp_type == IBV_QPT_UD) {
		err = soft_ud_open(dev);
		if (err)
			return err;
	}
	qp = calloc(1, sizeof *qp);
	if (!qp)
		return ENOMEM;
	if (alloc_rings(qp, attr)) {
		free_qp(qp);
		return ENOMEM;
	}
	dapl_mutex_init(&qp->lock, RANK_SOFT_QP);
	qp->dev = dev;
	qp->sig_all = attr->sq_sig_all;
	qp->srq = attr->srq ? soft_srq(attr->srq) : NULL;
	qp->qkey = soft_random();
	qp->state = attr->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT;
	qp->qp.context = &dev->verbs;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.srq = attr->srq;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = qp->state;
	attr->cap.max_send_wr = qp->sq_size;
	attr->cap.max_recv_wr = qp->rq.size;
	attr->cap.max_send_sge = qp->max_send_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	hold_objects(qp, 1);
	number_qp(dev, qp);
	*ibqp = &qp->qp;
	return 0;
}

static void purge(struct soft_qp *qp)
{
	soft_cq_purge(soft_cq(qp->qp.send_cq), qp->qp.qp_num);
	soft_cq_purge(soft_cq(qp->qp.recv_cq), qp->qp.qp_num);
}

int soft_qp_map_remote(struct ibv_qp *ibqp, uint32_t rkey, uint64_t remote, uint64_t length,
		       struct dapl_mapping *mapping)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err = EOPNOTSUPP;

	dapl_mutex_lock(&qp->lock);
	if (qp->conn)
		err = rmem_map_for_consumer(qp->conn, rkey, remote, length, mapping);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

int soft_qp_error(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = soft_qp(ibqp);

	dapl_mutex_lock(&qp->lock);
	soft_qp_flush(qp, 0, IBV_WC_SUCCESS);
	dapl_mutex_unlock(&qp->lock);
	return 0;
}

int soft_qp_reset(struct dapl_device *dev, struct ibv_qp *ibqp)
{
	struct soft_qp *qp = soft_qp(ibqp);

	soft_progress_lock(dev);
	soft_cm_detach(qp);
	soft_progress_unlock(dev);
	revoke_instead_of_flush(qp);
	dapl_mutex_lock(&qp->lock);
	soft_srq_stop_waiting(qp);
	qp->sq_head = qp->sq_tail = qp->read_next = 0;
	qp->rq.head = qp->rq.tail = 0;
	qp->taken_valid = false;
	qp->state = qp->qp.state = ibqp->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT;
	dapl_mutex_unlock(&qp->lock);
	purge(qp);
	return 0;
}

int soft_qp_destroy(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = soft_qp(ibqp);
	struct dapl_device *dev = qp->dev;

	soft_progress_lock(dev);
	soft_cm_detach(qp);
	dapl_mutex_lock(&dev->qps_lock);
	LIST_REMOVE(qp, link);
	LIST_REMOVE(qp, number_link);
	dapl_mutex_unlock(&dev->qps_lock);
	soft_progress_unlock(dev);
	revoke_instead_of_flush(qp);
	soft_srq_stop_waiting(qp);
	soft_mem_forget_qp(qp);
	soft_event_forget(dev, &qp->last_receive, ibqp);
	purge(qp);
	hold_objects(qp, -1);
	free_qp(qp);
	return 0;
}
