/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acceptor.c - the passive side of a connection: a request, and the answer to it (acceptor.h). On
 * InfiniBand and RoCE the queue pair goes to RTS before rdma_accept. */
#include <errno.h>
#include <string.h>
#include "acceptor.h"
#include "conn.h"
#include "conn_cause.h"
#include "conn_qp.h"
#include "conn_report.h"
#include "conn_state.h"
#include "hw.h"
#include "tap.h"
#include "siw.h"
#include "ud.h"
#include "common/log.h"
#include "dapl/core/base/settings.h"

int hw_acceptor_from_request(struct dapl_device *dev, struct rdma_cm_id *id, bool ud,
			     const struct hw_pdata *pdata, const struct rdma_cm_event *event,
			     struct dapl_conn **out)
{
	struct dapl_conn *conn = hw_conn_new(dev, ud, CONN_REQUESTED);

	if (!conn)
		return ENOMEM;
	conn->id = id;
	id->context = &conn->target;
	conn->peer_mtu = pdata->mtu;
	conn->peer_self = pdata->self;
	if (!ud) {	/* rdma_cm names them as this side sees them */
		conn->reads_out = event->param.conn.initiator_depth;
		conn->reads_in = event->param.conn.responder_resources;
	}
	dapl_mutex_lock(&conn->lock);
	hw_report_addresses(conn);
	hw_conn_trace_new(conn);
	dapl_mutex_unlock(&conn->lock);
	*out = conn;
	return 0;
}

/* Lock held. Sends the answer. */
static int answer(struct dapl_conn *conn, const void *bytes, int len)
{
	struct ibv_device_attr *l = &conn->dev->attr.limits;
	struct rdma_conn_param param = {
		.private_data = bytes,
		.private_data_len = len,
		.responder_resources = hw_qp_least(conn->reads_in, l->max_qp_rd_atom),
		.initiator_depth = hw_qp_least(conn->reads_out, l->max_qp_init_rd_atom),
		.flow_control = !conn->srq,
		.rnr_retry_count = hw_qp_rnr_retry(conn),
		.srq = conn->srq,
		.qp_num = conn->qp->qp_num,
	};

	assert_held(&conn->lock);
	hw_siw_qp_reads(conn->qp, param.initiator_depth);
	return rdma_accept(conn->id, &param) ? errno : 0;
}

/* Lock held. After an error nothing has changed. A peer that is gone is not an error here, since the queue
 * pair may have moved already: an upcall reports the failure later. */
static int accept_locked(struct dapl_conn *conn, const struct dapl_conn_params *params,
			 const void *bytes, int len)
{
	uint8_t peer_out = conn->reads_out, peer_in = conn->reads_in;
	bool peer_gone = conn->state == CONN_CLOSED;
	int err = 0;

	assert_held(&conn->lock);
	if (!peer_gone && conn->state != CONN_REQUESTED)
		return EINVAL;
	hw_conn_adopt(conn, params);
	conn->reads_out = hw_qp_least(conn->reads_out, peer_out);
	conn->reads_in = hw_qp_least(conn->reads_in, peer_in);
	if (!peer_gone && conn->wire == HW_WIRE_IB)
		err = hw_qp_to_rts(conn, &peer_gone);
	else if (!peer_gone && conn->wire == HW_WIRE_UD)
		err = hw_ud_peer_passive(conn->dev, conn->qp->pd, rdma_get_peer_addr(conn->id),
					 &conn->peer_self, &conn->late_peer);
	if (err && !peer_gone) {
		log_line(LOG_BIT_ERROR, "%s: accept of a request failed: queue pair 0x%x: %s",
			 conn->dev->attr.device, conn->qp->qp_num, strerror(err));
		conn->owner = NULL;
		conn->qp = NULL;
		conn->reads_out = peer_out;
		conn->reads_in = peer_in;
		return err;
	}
	hw_conn_set_state(conn, CONN_ACCEPTING);
	hw_tap_connection(conn);
	if (!peer_gone)
		err = answer(conn, bytes, len);
	if (peer_gone || err) {
		hw_caused_in(conn, DAPL_STEP_ACCEPT, err, DAPL_CODE_NONE, 0, peer_gone ?
			  "the peer is gone" : NULL);
		hw_conn_fail_later(conn, DAPL_CONN_TIMED_OUT, err, NULL);
	} else if (conn->ud) {
		conn->late = LATE_ESTABLISHED;
		hw_conn_queue_task(conn);
	}
	return 0;
}

int hw_acceptor_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	uint8_t bytes[256];
	uint8_t mtu = hw_qp_least_set(hw_qp_own_mtu(), conn->peer_mtu);
	int err, len = hw_pdata_pack(bytes, conn->wire, HW_ACCEPT, params->pdata,
				     params->pdata_len, mtu, false, NULL);

	if (len < 0)
		return EMSGSIZE;
	dapl_mutex_lock(&conn->lock);
	err = accept_locked(conn, params, bytes, len);
	dapl_mutex_unlock(&conn->lock);
	return err;
}

int hw_acceptor_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len)
{
	uint8_t bytes[256];
	int n = hw_pdata_pack(bytes, conn->wire, HW_REJECT, pdata, len, 0, false, NULL);

	if (n < 0)
		return EMSGSIZE;
	dapl_mutex_lock(&conn->lock);
	if (conn->state == CONN_REQUESTED) {	/* a failure means that the peer is gone */
		if (by_consumer)
			rdma_reject(conn->id, bytes, n);
		else
			hw_report_refusal(conn->id, conn->wire);
		hw_conn_set_state(conn, CONN_CLOSED);
	}
	dapl_mutex_unlock(&conn->lock);
	hw_conn_release(conn);
	return 0;
}
