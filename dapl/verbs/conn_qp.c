/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_qp.c - moves the queue pair of a connection to RTS (conn_qp.h). */
#include <errno.h>
#include "conn_qp.h"
#include "hw.h"
#include "dapl/core/base/settings.h"

uint8_t hw_qp_least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

uint8_t hw_qp_least_set(uint8_t a, uint8_t b)
{
	return !a ? b : !b ? a : hw_qp_least(a, b);
}

uint8_t hw_qp_own_mtu(void)
{
	uint8_t mtu = IBV_MTU_256;

	if (!dapl_settings.ib_mtu)
		return 0;
	while (mtu < IBV_MTU_4096 && (256u << mtu) <= dapl_settings.ib_mtu)
		mtu++;
	return mtu;
}

uint8_t hw_qp_ack_retry(const struct dapl_conn *conn)
{
	return dapl_tuned(conn->tuning.ack_retry, dapl_settings.ack_retry);
}

uint8_t hw_qp_rnr_retry(const struct dapl_conn *conn)
{
	return dapl_tuned(conn->tuning.rnr_retry, dapl_settings.rnr_retry);
}

void hw_qp_set_path(struct ibv_ah_attr *ah, const struct dapl_conn *conn)
{
	int tclass = dapl_tuned(conn ? conn->tuning.traffic_class : 0, dapl_settings.tclass);

	if (tclass < 0 && conn)
		tclass = conn->tos;
	if (dapl_settings.ib_sl)
		ah->sl = dapl_settings.ib_sl;
	if (ah->is_global && dapl_settings.hop_limit)
		ah->grh.hop_limit = dapl_settings.hop_limit;
	if (ah->is_global && tclass >= 0)
		ah->grh.traffic_class = tclass;
}

static int to_rtr(struct dapl_conn *conn, bool *peer_gone)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = 0;

	if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
		*peer_gone = true;
		return errno;
	}
	attr.path_mtu = hw_qp_least_set(attr.path_mtu, hw_qp_least_set(hw_qp_own_mtu(), conn->peer_mtu));
	attr.max_dest_rd_atomic = hw_qp_least(attr.max_dest_rd_atomic, conn->reads_in);
	attr.min_rnr_timer = dapl_tuned(conn->tuning.rnr_timer, dapl_settings.rnr_timer);
	hw_qp_set_path(&attr.ah_attr, conn);
	return hw_errno(ibv_modify_qp(conn->qp, &attr, mask));
}

/* rdma_cm knows what the initiator has set. What this side wants comes first, also when it accepts. */
static int to_rts(struct dapl_conn *conn, bool *peer_gone)
{
	int ack_timeout = dapl_tuned(conn->tuning.ack_timeout, dapl_settings.ack_timer), mask = 0;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
		*peer_gone = true;
		return errno;
	}
	attr.max_rd_atomic = hw_qp_least(attr.max_rd_atomic, conn->reads_out);
	if (ack_timeout >= 0)
		attr.timeout = ack_timeout;
	attr.retry_cnt = hw_qp_ack_retry(conn);
	attr.rnr_retry = hw_qp_rnr_retry(conn);
	return hw_errno(ibv_modify_qp(conn->qp, &attr, mask));
}

int hw_qp_to_rts(struct dapl_conn *conn, bool *peer_gone)
{
	int err = to_rtr(conn, peer_gone);

	if (!err)
		err = to_rts(conn, peer_gone);
	return err;
}
