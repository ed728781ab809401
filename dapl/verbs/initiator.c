/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* initiator.c - the active side of a connection: resolving, connecting, the peer's answer (initiator.h).
 * On InfiniBand and RoCE this file moves the queue pair, after CONNECT_RESPONSE and before
 * rdma_establish; an iWARP driver does so itself in the kernel. */
#include <errno.h>
#include <stdlib.h>
#include "address.h"
#include "conn.h"
#include "conn_cause.h"
#include "conn_qp.h"
#include "conn_report.h"
#include "conn_state.h"
#include "hw.h"
#include "initiator.h"
#include "siw.h"
#include "ud.h"
#include "dapl/core/base/settings.h"

static int resolve_address(struct dapl_conn *conn)
{
	return rdma_resolve_addr(conn->id, (struct sockaddr *)&conn->dev->attr.address,
				 (struct sockaddr *)&conn->remote,
				 dapl_settings.arp_timeout_ms) ? errno : 0;
}

/* Failures are ignored, since older kernels lack these options. */
static void set_options(struct dapl_conn *conn)
{
	int wanted = dapl_tuned(conn->tuning.ack_timeout, dapl_settings.ack_timer);
	uint8_t timer = wanted, tos = conn->tos;

	if (conn->tos > 0)	/* 0 is the default */
		rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1);
	if (conn->wire == HW_WIRE_IB && wanted >= 0)
		rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timer, 1);
}

/* The first step, with a new id. */
static int start(struct dapl_conn *conn)
{
	if (rdma_create_id(conn->dev->channel, &conn->id, &conn->target,
			   conn->ud ? RDMA_PS_UDP : RDMA_PS_TCP)) {
		conn->id = NULL;
		return errno;
	}
	set_options(conn);
	conn->retries = dapl_settings.arp_retries;
	return resolve_address(conn);
}

/* Starts again with another port. siw connects a TCP socket from the port that rdma_cm chose, which an
 * ordinary socket may have taken. */
static int start_again(struct dapl_conn *conn)
{
	rdma_destroy_id(conn->id);
	conn->id = NULL;
	conn->restarts--;
	hw_conn_set_state(conn, CONN_RESOLVING_ADDRESS);
	return start(conn);
}

void hw_initiator_address_failed(struct dapl_conn *conn, int status)
{
	int err = abs(status);

	assert_held(&conn->lock);
	if (status == -ETIMEDOUT && conn->retries) {
		conn->retries--;
		err = resolve_address(conn);
		if (!err) {
			dapl_mutex_unlock(&conn->lock);
			return;
		}
	}
	hw_caused(conn, err, DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
	hw_report_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
}

void hw_initiator_address_resolved(struct dapl_conn *conn)
{
	assert_held(&conn->lock);
	hw_report_addresses(conn);
	conn->retries = dapl_settings.route_retries;
	if (rdma_resolve_route(conn->id, dapl_settings.route_timeout_ms)) {
		hw_caused_in(conn, DAPL_STEP_RESOLVE_ROUTE, errno, DAPL_CODE_NONE, 0, NULL);
		hw_report_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
		return;
	}
	hw_conn_set_state(conn, CONN_RESOLVING_ROUTE);
	dapl_mutex_unlock(&conn->lock);
}

void hw_initiator_route_failed(struct dapl_conn *conn, int status)
{
	int err = abs(status);

	assert_held(&conn->lock);
	if (status == -ETIMEDOUT && conn->retries) {
		conn->retries--;
		if (rdma_resolve_route(conn->id, dapl_settings.route_timeout_ms) == 0) {
			dapl_mutex_unlock(&conn->lock);
			return;
		}
		err = errno;
	}
	hw_caused(conn, err, DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
	hw_report_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
}

void hw_initiator_route_resolved(struct dapl_conn *conn)
{
	struct ibv_device_attr *l = &conn->dev->attr.limits;
	struct rdma_conn_param param = {
		.private_data = conn->pdata,
		.private_data_len = conn->pdata_len,
		.responder_resources = hw_qp_least(conn->reads_in, l->max_qp_rd_atom),
		.initiator_depth = hw_qp_least(conn->reads_out, l->max_qp_init_rd_atom),
		.flow_control = !conn->srq,
		.retry_count = hw_qp_ack_retry(conn),
		.rnr_retry_count = hw_qp_rnr_retry(conn),
		.srq = conn->srq,
		.qp_num = conn->qp->qp_num,
	};
	int err;

	assert_held(&conn->lock);
	hw_siw_qp_reads(conn->qp, param.initiator_depth);
	hw_conn_set_state(conn, CONN_CONNECTING);
	dapl_mutex_unlock(&conn->lock);
	/* Without the lock, since siw waits here until TCP is connected. The id stays, since only this
	 * thread destroys it. Of the queue pair only the number is used. */
	err = rdma_connect(conn->id, &param) ? errno : 0;
	dapl_mutex_lock(&conn->lock);
	conn->request_sent = !err;
	if (!err) {
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	if (conn->released) {
		hw_conn_set_state(conn, CONN_CLOSED);
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	if (err == EADDRINUSE && conn->restarts) {
		err = start_again(conn);
		if (!err) {
			dapl_mutex_unlock(&conn->lock);
			return;
		}
	}
	hw_caused_by_errno(conn, err);
	hw_report_failed(conn, hw_conn_failure_of(err), NULL, 0);
}

/* InfiniBand and RoCE: the peer accepted; this side moves the queue pair to RTS. */
void hw_initiator_response(struct dapl_conn *conn, const struct hw_pdata *pdata)
{
	bool peer_gone = false;
	int err;

	assert_held(&conn->lock);
	conn->peer_mtu = pdata->mtu;
	err = hw_qp_to_rts(conn, &peer_gone);
	if (err && !peer_gone)
		hw_caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0,
			  "the queue pair does not go to RTS");
	else if (!err && rdma_establish(conn->id))
		err = errno;
	if (err) {
		hw_caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0, NULL);
		hw_report_refusal(conn->id, conn->wire);	/* fails if the peer has withdrawn its answer */
		hw_report_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
		return;
	}
	hw_report_established(conn, pdata->data, pdata->len, NULL);
}

void hw_initiator_ud_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
				 const struct hw_pdata *pdata)
{
	struct dapl_ud_peer peer;
	int err = hw_ud_peer_active(conn->dev, conn->qp->pd, &event->param.ud, &peer);

	assert_held(&conn->lock);
	if (err) {
		hw_caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0, "address handle");
		hw_report_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
		return;
	}
	hw_report_established(conn, pdata->data, pdata->len, &peer);
}

/* rdma_cm reports the two depths that were agreed on, but which of them is which depends on the driver. The
 * smaller one never allows too many reads. If it is 0, reads go in one direction only, and there is no
 * limit. */
void hw_initiator_iwarp_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
				    const struct hw_pdata *pdata)
{
	const struct rdma_conn_param *agreed = &event->param.conn;

	assert_held(&conn->lock);
	hw_siw_qp_reads(conn->qp, hw_qp_least(agreed->initiator_depth, agreed->responder_resources));
	hw_report_established(conn, pdata->data, pdata->len, NULL);
}

int hw_initiator_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
			 struct dapl_conn **out)
{
	struct dapl_conn *conn;
	struct hw_ud_self self = { 0 };
	bool same_family;
	int err, len;

	if (!address_length(params->remote))
		return EAFNOSUPPORT;
	if (params->ud && !dev->attr.ud)
		return EOPNOTSUPP;
	conn = hw_conn_new(dev, params->ud, CONN_RESOLVING_ADDRESS);
	if (!conn)
		return ENOMEM;
	if (params->ud)
		hw_ud_self(dev, params->qp, &self);
	len = hw_pdata_pack(conn->pdata, conn->wire, HW_REQUEST, params->pdata, params->pdata_len,
			    hw_qp_own_mtu(), false, &self);
	if (len < 0) {
		hw_conn_destroy(conn);
		return EMSGSIZE;
	}
	conn->pdata_len = len;
	address_copy(&conn->remote, params->remote);
	hw_address_fill_scope((struct sockaddr *)&conn->remote,
			      (struct sockaddr *)&dev->attr.address);
	*out = conn;
	dapl_mutex_lock(&conn->lock);	/* it is listed: the service thread may look at it */
	hw_conn_adopt(conn, params);
	same_family = conn->remote.ss_family == dev->attr.address.ss_family;
	err = same_family ? start(conn) : ENETUNREACH;
	if (same_family && !conn->id) {
		dapl_mutex_unlock(&conn->lock);
		hw_conn_destroy(conn);
		return err;
	}
	hw_conn_trace_new(conn);
	if (err)
		hw_conn_fail_later(conn, DAPL_CONN_UNREACHABLE, err, NULL);
	dapl_mutex_unlock(&conn->lock);
	return 0;
}
