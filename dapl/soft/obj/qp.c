/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - the queues of a QP: receives are taken, and completions made. Requests are executed by rdmap/;
 * verbs/ makes QPs and posts to them. */
#include "dapl/soft/obj/qp.h"
#include "common/compiler.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/tap_record.h"

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

void soft_qp_complete_send(struct soft_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, enum ibv_wc_status status,
			   uint32_t length)
{
	assert_held(&qp->lock);
	complete(qp, qp->qp.send_cq, wr_id, status, wc_opcode(opcode), length, false);
}

void soft_qp_executed(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	assert_held(&qp->lock);
	soft_qp_complete_send(qp, wr->wr_id, wr->opcode, IBV_WC_SUCCESS, wr->sg_list->length);
}

bool soft_qp_take_receive(struct soft_qp *qp)
{
	assert_held(&qp->lock);
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

void soft_qp_received(struct soft_qp *qp, enum ibv_wc_status status, struct ibv_wc *wc, bool solicited)
{
	assert_held(&qp->lock);
	wc->wr_id = qp->taken->wr_id;
	wc->status = status;
	wc->qp_num = qp->qp.qp_num;
	qp->taken_valid = false;
	if (unlikely(soft_detours(qp->dev) & SOFT_TAPPED))
		tap_record_receive(qp, wc, qp->taken);
	soft_cq_add(soft_cq(qp->qp.recv_cq), wc, solicited);
}

void soft_qp_received_next(struct soft_qp *qp, uint32_t length, bool solicited)
{
	const struct soft_rwqe *rwqe = soft_rwqe(&qp->rq, qp->rq.head++);

	assert_held(&qp->lock);
	complete(qp, qp->qp.recv_cq, rwqe->wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, length, solicited);
}

void soft_qp_end_flush(struct soft_qp *qp)
{
	struct ibv_wc receive = { .opcode = IBV_WC_RECV };
	enum ibv_wc_status status = qp->flush_status;

	assert_held(&qp->lock);
	for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
		const struct soft_swqe *wqe = soft_swqe(qp, qp->sq_head);
		bool guilty = status != IBV_WC_SUCCESS && qp->sq_head == qp->flush_culprit;

		soft_qp_complete_send(qp, wqe->wr_id, wqe->opcode, guilty ? status : IBV_WC_WR_FLUSH_ERR, 0);
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

struct soft_qp *soft_qp_by_number(struct dapl_device *dev, uint32_t number)
{
	struct soft_qp *qp;

	assert_held(&dev->qps_lock);
	LIST_FOREACH(qp, &dev->by_number[number % QP_BUCKETS], number_link)
		if (qp->qp.qp_num == number)
			return qp;
	return NULL;
}
