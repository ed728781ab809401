/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_qp.c - the life of raw QPs: making, beginning, resetting, ending. */
#include "eth_attr.h"
#include "eth_cq.h"
#include "eth_group.h"
#include "eth_qp.h"
#include "eth_recv.h"
#include "eth_rule.h"
#include "eth_send.h"
#include "eth_types.h"
#include "eth_wq.h"
#include "hw.h"
#include "common/growth.h"
#include "common/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hw_eth_to_rts(struct ibv_qp *hw, uint8_t port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = port };
	int err = hw_errno(ibv_modify_qp(hw, &attr, IBV_QP_STATE | IBV_QP_PORT));

	for (int state = IBV_QPS_RTR; !err && state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		err = hw_errno(ibv_modify_qp(hw, &attr, IBV_QP_STATE));
	}
	return err;
}

static int to_state(struct ibv_qp *hw, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return hw_errno(ibv_modify_qp(hw, &attr, IBV_QP_STATE));
}

/* Makes the QP that core has. hw_eth_begin() makes the device's QP, since that depends on the
 * configuration. */
int hw_eth_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	struct hw_eth *q;

	if (!dev->eth) {
		hw_eth_trace(NULL, "%s: no raw Ethernet endpoints: the device has no IBV_QPT_RAW_PACKET",
			     dev->attr.device);
		return EOPNOTSUPP;
	}
	if (attr->srq) {
		hw_eth_trace(NULL, "%s: a raw Ethernet endpoint has receives of its own, not those of an SRQ",
			     dev->attr.device);
		return EOPNOTSUPP;
	}
	q = calloc(1, sizeof *q);
	if (!q)
		return ENOMEM;
	q->eth = dev->eth;
	attr->cap.max_inline_data = 0;
	q->init = *attr;
	q->verbs = *dev->verbs;
	q->verbs.ops.post_send = hw_eth_post_send;
	q->verbs.ops.post_recv = hw_eth_post_recv;
	q->qp = (struct ibv_qp){ .context = &q->verbs, .qp_context = attr->qp_context, .pd = pd,
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .qp_type = IBV_QPT_RAW_PACKET };
	dapl_mutex_init(&q->lock, RANK_VERBS_ETH_QP);
	q->rules = (struct hw_eth_rules){ .eth = dev->eth, .lock = &q->lock };
	*qp = &q->qp;
	return 0;
}

/* Makes a work queue for the receives, if the device has work queues. */
static int create_queue(struct hw_eth *q, struct ibv_qp_cap *cap)
{
	int err;

	if (!q->eth->caps.work_queues)
		return 0;
	err = hw_eth_wq_open(q, cap->max_recv_wr ? cap->max_recv_wr : 1, cap->max_recv_sge);
	cap->max_recv_wr = cap->max_recv_sge = 0;
	if (!cap->max_send_wr)		/* a QP has a send queue, even if it never sends */
		cap->max_send_wr = cap->max_send_sge = 1;
	return err;
}

static int create_hw(struct hw_eth *q)
{
	struct ibv_qp_init_attr_ex attr = { .qp_context = q->init.qp_context, .send_cq = q->init.send_cq,
		.recv_cq = q->cq, .cap = q->init.cap, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = q->init.sq_sig_all,
		.pd = q->qp.pd, .comp_mask = IBV_QP_INIT_ATTR_PD };
	int err;

	if (q->config.ring_frames) {
		attr.cap.max_recv_wr = q->config.ring_frames;
		attr.cap.max_recv_sge = 1;
	}
	attr.cap.max_recv_sge++;	/* for what does not fit */
	if (q->eth->caps.max_tso) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
		attr.max_tso_header = HW_ETH_HEADERS;
	}
	if ((err = create_queue(q, &attr.cap)))
		return err;
	if (q->config.fcs && !q->wq) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	}
	q->hw = ibv_create_qp_ex(q->eth->dev->verbs, &attr);
	if (!q->hw)
		return hw_null_errno();
	q->qp.qp_num = q->hw->qp_num;
	q->rules.target = q->wq ? q->own.qp : q->hw;
	return hw_eth_to_rts(q->hw, (uint8_t)q->eth->dev->attr.port);
}

static void report_failure(const struct dapl_device *dev, int err)
{
	if (err == EPERM)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.err = err), "%s: raw Ethernet endpoint on %s: the process "
			   "lacks the capability CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or root)",
			   dev->attr.device, dev->attr.netdev);
	else
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "%s: raw Ethernet endpoint on %s: %s",
			   dev->attr.device, dev->attr.netdev, strerror(err));
}

static int start(struct hw_eth *q)
{
	int err = hw_eth_recv_open(q);

	if (!err)
		err = create_hw(q);
	if (err) {
		report_failure(q->eth->dev, err);
		return err;
	}
	q->drops_seen = hw_eth_drops(q->eth->dev);
	hw_eth_cq_add(q);
	return q->config.ring_frames ? hw_eth_recv_fill(q) : 0;
}

int hw_eth_begin(struct ibv_qp *qp, const struct dapl_eth_config *config)
{
	struct hw_eth *q = hw_eth_of(qp);
	struct dapl_eth_attr attr;
	int err = hw_eth_query(q->eth->dev, &attr);

	if (err)
		return err;
	if (config->verify) {
		hw_eth_trace(q, "%s: eth_checksum is verify, expected device", q->eth->dev->attr.device);
		return EOPNOTSUPP;
	}
	q->config = *config;
	q->max_frame = attr.max_frame;
	q->mtu = attr.mtu;
	return start(q);
}

int hw_eth_error_qp(struct ibv_qp *qp)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err;

	if (!q->hw)
		return 0;
	hw_group_leave_all(q);
	hw_eth_rules_end(&q->rules);
	__atomic_store_n(&q->ended, true, __ATOMIC_RELAXED);
	err = to_state(q->hw, IBV_QPS_ERR);
	return err || !q->wq ? err : hw_eth_wq_to_state(q->wq, IBV_WQS_ERR);
}

int hw_eth_reset_qp(struct ibv_qp *qp)
{
	struct hw_eth *q = hw_eth_of(qp);
	struct dapl_eth_pace none = { .bits_per_s = 0 };
	int err;

	if (!q->hw)
		return 0;
	hw_group_leave_all(q);
	hw_eth_rules_end(&q->rules);
	err = to_state(q->hw, IBV_QPS_RESET);
	if (!err && q->wq)
		err = hw_eth_wq_to_state(q->wq, IBV_WQS_RESET);
	if (err)
		return err;
	hw_eth_recv_empty(q);
	err = hw_eth_to_rts(q->hw, (uint8_t)q->eth->dev->attr.port);
	if (!err && q->wq)
		err = hw_eth_wq_to_state(q->wq, IBV_WQS_RDY);
	if (!err && q->paced)
		err = hw_eth_pace(qp, &none);
	__atomic_store_n(&q->ended, false, __ATOMIC_RELAXED);
	return err || !q->config.ring_frames ? err : hw_eth_recv_fill(q);
}

int hw_eth_destroy_qp(struct ibv_qp *qp)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err;

	hw_eth_cq_remove(q);
	hw_group_leave_all(q);
	hw_eth_rules_end(&q->rules);
	err = q->hw ? hw_errno(ibv_destroy_qp(q->hw)) : 0;
	if (err)
		return err;
	hw_eth_wq_close(q);
	hw_eth_recv_close(q);
	free(q);
	return 0;
}

/* Called with q->lock held, so that no thread takes an older value for a counter that began again. */
static uint64_t read_drops(struct hw_eth *q)
{
	uint64_t now = hw_eth_drops(q->eth->dev);

	assert_held(&q->lock);
	if (now == ~(uint64_t)0 || q->drops_seen == ~(uint64_t)0)
		return ~(uint64_t)0;
	q->drops += counter_growth(q->drops_seen, now);
	q->drops_seen = now;
	return q->drops;
}

/* Devices count frames without a receive for the port, not for a QP. */
void hw_eth_stats(struct ibv_qp *qp, struct dapl_eth_stats *stats)
{
	struct hw_eth *q = hw_eth_of(qp);

	dapl_mutex_lock(&q->lock);
	*stats = (struct dapl_eth_stats){
		.received = q->stats.received, .received_bytes = q->stats.received_bytes,
		.sent = __atomic_load_n(&q->stats.sent, __ATOMIC_RELAXED),
		.sent_bytes = __atomic_load_n(&q->stats.sent_bytes, __ATOMIC_RELAXED),
		.lost_device = read_drops(q),
	};
	dapl_mutex_unlock(&q->lock);
}
