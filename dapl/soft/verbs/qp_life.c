/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_life.c - see qp_life.h. */
#include "dapl/soft/verbs/qp_life.h"
#include "common/bits.h"
#include "common/lock.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/async_event.h"
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
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>

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
	qp->sq_size = round_up_power_of_two(attr->cap.max_send_wr ? attr->cap.max_send_wr : 1);
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
	soft_qp_set_state(qp, attr->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT);
	qp->qp.context = &dev->verbs;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.srq = attr->srq;
	qp->qp.qp_type = attr->qp_type;
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
	soft_flush_qp(qp, 0, IBV_WC_SUCCESS);
	dapl_mutex_unlock(&qp->lock);
	return 0;
}

int soft_qp_reset(struct dapl_device *dev, struct ibv_qp *ibqp)
{
	struct soft_qp *qp = soft_qp(ibqp);

	soft_progress_lock(dev);
	cm_detach(qp);
	soft_progress_unlock(dev);
	revoke_instead_of_flush(qp);
	dapl_mutex_lock(&qp->lock);
	soft_srq_stop_waiting(qp);
	qp->sq_head = qp->sq_tail = qp->read_next = 0;
	qp->rq.head = qp->rq.tail = 0;
	qp->taken_valid = false;
	soft_qp_set_state(qp, ibqp->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT);
	dapl_mutex_unlock(&qp->lock);
	purge(qp);
	return 0;
}

int soft_qp_destroy(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = soft_qp(ibqp);
	struct dapl_device *dev = qp->dev;

	soft_progress_lock(dev);
	cm_detach(qp);
	dapl_mutex_lock(&dev->qps_lock);
	LIST_REMOVE(qp, link);
	LIST_REMOVE(qp, number_link);
	dapl_mutex_unlock(&dev->qps_lock);
	soft_progress_unlock(dev);
	revoke_instead_of_flush(qp);
	dapl_mutex_lock(&qp->lock);
	soft_srq_stop_waiting(qp);
	dapl_mutex_unlock(&qp->lock);
	soft_mw_forget_qp(qp);
	soft_event_forget(dev, &qp->last_receive, ibqp);
	purge(qp);
	hold_objects(qp, -1);
	free_qp(qp);
	return 0;
}
