/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - one connection: its steps, the queue pair's way to RTS, and its end. Threads,
 * locks and lifetimes are explained in cm.c.
 *
 * The queue pair is the application's, not the rdma_cm_id's. On InfiniBand and RoCE this
 * file moves it (CONNECT_RESPONSE, then rdma_establish, on the active side; before
 * rdma_accept on the passive one); an iWARP driver does so itself in the kernel. */
#include "cm.h"
#include "address.h"
#include "siw.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/settings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINGER_US = 2000000,		/* for the answer to our disconnect */
	HANDSHAKE_US = 30000000,	/* for an iWARP driver to give up a handshake */
	RESTARTS = 8,
	REJ_BY_CONSUMER = 28,		/* InfiniBand's code; REJ 8 means no listener */
	REJ_ECE = 35,			/* what hw_refuse() gives */
	SIDR_REJECT = 2,		/* 1 means no listener */
};

static const char *const state_name[] = {
	[CONN_REQUESTED] = "requested",
	[CONN_RESOLVING_ADDRESS] = "resolving address",
	[CONN_RESOLVING_ROUTE] = "resolving route",
	[CONN_CONNECTING] = "connecting",
	[CONN_ACCEPTING] = "accepting",
	[CONN_ESTABLISHED] = "established",
	[CONN_PEER_CLOSED] = "peer closed",
	[CONN_DISCONNECTING] = "disconnecting",
	[CONN_OVER] = "over",
};

/* Lock held. */
static void trace_state(struct dapl_conn *conn, const char *was)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS], reason[DIAG_TEXT];

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "conn", conn, state_name[conn->state],
	      "was %s%s, local %s, remote %s%s%s", was, conn->ud ? ", datagrams" : "",
	      dapl_diag_address(&conn->local, local), dapl_diag_address(&conn->remote, remote),
	      conn->caused ? ": " : "",
	      conn->caused ? dapl_diag_reason(&conn->cause, reason) : "");
}

/* The only writer of conn->state after its making. Lock held. */
static void set_state(struct dapl_conn *conn, enum conn_state state)
{
	const char *was = state_name[conn->state];

	conn->state = state;
	trace_state(conn, was);
}

/* Lock held. */
static enum dapl_conn_step step_of(const struct dapl_conn *conn)
{
	switch (conn->state) {
	case CONN_REQUESTED:		return DAPL_STEP_REQUEST;
	case CONN_RESOLVING_ADDRESS:	return DAPL_STEP_RESOLVE_ADDRESS;
	case CONN_RESOLVING_ROUTE:	return DAPL_STEP_RESOLVE_ROUTE;
	case CONN_CONNECTING:
		return conn->request_sent ? DAPL_STEP_REPLY : DAPL_STEP_CONNECT;
	case CONN_ACCEPTING:		return DAPL_STEP_READY;
	default:			return DAPL_STEP_TRANSFER;
	}
}

/* Lock held, before the state changes: why the connection fails, or breaks. */
static void caused_in(struct dapl_conn *conn, enum dapl_conn_step step, int err,
		      enum dapl_code_kind kind, unsigned code, const char *text)
{
	if (conn->caused)
		return;
	conn->caused = true;
	conn->cause = (struct dapl_conn_cause){ .step = step, .err = err, .code_kind = kind,
		.code = code, .text = text };
}

static void caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		   const char *text)
{
	caused_in(conn, step_of(conn), err, kind, code, text);
}

static void caused_by_errno(struct dapl_conn *conn, int err)
{
	caused(conn, err, DAPL_CODE_NONE, 0, NULL);
}

static const char *event_text(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_ERROR:	return "CM connect error";
	case RDMA_CM_EVENT_UNREACHABLE:		return "CM unreachable";
	case RDMA_CM_EVENT_DEVICE_REMOVAL:	return "the device was removed";
	case RDMA_CM_EVENT_DISCONNECTED:	return "the peer disconnected";
	default:				return NULL;
	}
}

/* What an event of the CM says: a reason of the CM's protocol, an errno, or nothing. */
static void caused_by_event(struct dapl_conn *conn, const struct rdma_cm_event *event)
{
	const char *text = event_text(event->event);
	int status = event->status;

	if (status < 0 && event->event == RDMA_CM_EVENT_REJECTED && conn->wire == HW_WIRE_IWARP)
		caused(conn, -status, DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
	else if (status < 0)
		caused(conn, -status, DAPL_CODE_CM_STATUS, (unsigned)status, text);
	else if (status && conn->ud)
		caused(conn, 0, DAPL_CODE_SIDR, (unsigned)status, NULL);
	else if (status && event->event == RDMA_CM_EVENT_REJECTED)
		caused(conn, 0, DAPL_CODE_IB_REJECT, (unsigned)status, NULL);
	else if (status)
		caused(conn, 0, DAPL_CODE_CM_STATUS, (unsigned)status, text);
	else
		caused(conn, 0, DAPL_CODE_NONE, 0, text);
}

/* Lock held, service thread: the id knows its addresses now. */
static void learn_addresses(struct dapl_conn *conn)
{
	struct sockaddr *local = conn->id ? rdma_get_local_addr(conn->id) : NULL;
	struct sockaddr *remote = conn->id ? rdma_get_peer_addr(conn->id) : NULL;

	if (local && address_length(local))
		address_copy(&conn->local, local);
	if (remote && address_length(remote))
		address_copy(&conn->remote, remote);
}

static enum hw_wire wire_of(const struct dapl_device *dev, bool ud)
{
	return ud ? HW_WIRE_UD : dev->attr.iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
}

static struct dapl_conn *conn_new(struct dapl_device *dev, bool ud, enum conn_state state)
{
	struct dapl_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->dev = dev;
	conn->ud = ud;
	conn->wire = wire_of(dev, ud);
	conn->state = state;
	conn->restarts = RESTARTS;
	conn->local = dev->attr.address;
	dapl_mutex_init(&conn->lock, RANK_VERBS_CONN);
	dapl_mutex_lock(&dev->lock);
	conn->next = dev->conns;
	conn->prev = &dev->conns;
	if (conn->next)
		conn->next->prev = &conn->next;
	dev->conns = conn;
	dapl_mutex_unlock(&dev->lock);
	return conn;
}

void hw_conn_destroy(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	dapl_timer_stop(&conn->linger);
	if (conn->id)
		rdma_destroy_id(conn->id);
	if (conn->late_peer.ah)
		ibv_destroy_ah(conn->late_peer.ah);
	dapl_mutex_lock(&dev->lock);
	*conn->prev = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	dapl_mutex_unlock(&dev->lock);
	free(conn);
}

/* The only other reason than "consumer" that librdmacm can give is what ECE uses; it
 * tells OFA's provider, too, that no consumer was asked. Older kernels refuse it. */
void hw_refuse(struct rdma_cm_id *id, enum hw_wire wire)
{
	uint8_t bytes[256];
	int len = hw_pdata_pack(bytes, wire, HW_REJECT, NULL, 0, 0, true, NULL);

	if (wire != HW_WIRE_IB || rdma_reject_ece(id, bytes, len))
		rdma_reject(id, bytes, len);
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static uint8_t least_told(uint8_t a, uint8_t b)	/* 0: not told */
{
	return !a ? b : !b ? a : least(a, b);
}

/* DAPL_IB_MTU as an enum ibv_mtu, 0 for none. */
static uint8_t own_mtu(void)
{
	uint8_t mtu = IBV_MTU_256;

	if (!dapl_settings.ib_mtu)
		return 0;
	while (mtu < IBV_MTU_4096 && (256u << mtu) <= dapl_settings.ib_mtu)
		mtu++;
	return mtu;
}

/* --- the queue pair --- */

/* Hop limit and traffic class belong to the route of a packet, SL to its path. */
static void set_path(struct ibv_ah_attr *ah)
{
	if (dapl_settings.ib_sl)
		ah->sl = dapl_settings.ib_sl;
	if (ah->is_global && dapl_settings.hop_limit)
		ah->grh.hop_limit = dapl_settings.hop_limit;
	if (ah->is_global && dapl_settings.tclass >= 0)
		ah->grh.traffic_class = dapl_settings.tclass;
}

/* 0; or an errno with *peer_gone true if rdma_cm has nothing to tell any more. */
static int to_rtr(struct dapl_conn *conn, bool *peer_gone)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = 0;

	if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
		*peer_gone = true;
		return errno;
	}
	attr.path_mtu = least_told(attr.path_mtu, least_told(own_mtu(), conn->peer_mtu));
	attr.max_dest_rd_atomic = least(attr.max_dest_rd_atomic, conn->reads_in);
	attr.min_rnr_timer = dapl_settings.rnr_timer;
	set_path(&attr.ah_attr);
	return hw_errno(ibv_modify_qp(conn->qp, &attr, mask));
}

static int to_rts(struct dapl_conn *conn, bool *peer_gone)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	int mask = 0;

	if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
		*peer_gone = true;
		return errno;
	}
	attr.max_rd_atomic = least(attr.max_rd_atomic, conn->reads_out);
	attr.retry_cnt = dapl_settings.ack_retry;
	attr.rnr_retry = dapl_settings.rnr_retry;
	return hw_errno(ibv_modify_qp(conn->qp, &attr, mask));
}

static int qp_to_rts(struct dapl_conn *conn, bool *peer_gone)
{
	int err = to_rtr(conn, peer_gone);

	if (!err)
		err = to_rts(conn, peer_gone);
	return err;
}

/* --- upcalls --- */

/* Lock held on entry, not on return. Service thread. The cause was noted. */
static void tell_failed(struct dapl_conn *conn, enum dapl_conn_failure why, const void *pdata,
			size_t len)
{
	set_state(conn, CONN_OVER);
	dapl_mutex_unlock(&conn->lock);
	dapl_up_failed(conn->owner, conn, why, pdata, len);
}

/* Lock held on entry, not on return. Service thread. */
static void tell_established(struct dapl_conn *conn, const void *pdata, size_t len,
			     const struct dapl_ud_peer *peer)
{
	struct dapl_established info = { .pdata = pdata, .pdata_len = len, .ud = peer };

	learn_addresses(conn);
	set_state(conn, CONN_ESTABLISHED);
	info.local = conn->local;
	info.remote = conn->remote;
	dapl_mutex_unlock(&conn->lock);
	dapl_up_established(conn->owner, conn, &info);
}

static void tell_disconnected(struct dapl_conn *conn, enum conn_state next, bool orderly)
{
	set_state(conn, next);
	dapl_mutex_unlock(&conn->lock);
	dapl_up_disconnected(conn->owner, conn, orderly);
}

/* --- the active side --- */

static enum dapl_conn_failure failure_of(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return DAPL_CONN_TIMED_OUT;
	case ECONNREFUSED: case ECONNRESET:
		return DAPL_CONN_REFUSED;
	default:
		return DAPL_CONN_UNREACHABLE;
	}
}

static int resolve_address(struct dapl_conn *conn)
{
	return rdma_resolve_addr(conn->id, (struct sockaddr *)&conn->dev->attr.address,
				 (struct sockaddr *)&conn->remote,
				 dapl_settings.arp_timeout_ms) ? errno : 0;
}

/* Both options may fail: older kernels do not know them. */
static void set_options(struct dapl_conn *conn)
{
	uint8_t timer = dapl_settings.ack_timer;

	if (conn->tos)
		rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &conn->tos, 1);
	if (conn->wire == HW_WIRE_IB && dapl_settings.ack_timer >= 0)
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

/* siw connects a TCP socket from the port that rdma_cm chose, which an ordinary socket
 * may have taken. */
static int start_again(struct dapl_conn *conn)
{
	rdma_destroy_id(conn->id);
	conn->id = NULL;
	conn->restarts--;
	set_state(conn, CONN_RESOLVING_ADDRESS);
	return start(conn);
}

static void address_failed(struct dapl_conn *conn, int status)
{
	int err = abs(status);

	if (status == -ETIMEDOUT && conn->retries) {
		conn->retries--;
		err = resolve_address(conn);
		if (!err) {
			dapl_mutex_unlock(&conn->lock);
			return;
		}
	}
	caused(conn, err, DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
	tell_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
}

static void address_resolved(struct dapl_conn *conn)
{
	learn_addresses(conn);
	conn->retries = dapl_settings.route_retries;
	if (rdma_resolve_route(conn->id, dapl_settings.route_timeout_ms)) {
		caused_in(conn, DAPL_STEP_RESOLVE_ROUTE, errno, DAPL_CODE_NONE, 0, NULL);
		tell_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
		return;
	}
	set_state(conn, CONN_RESOLVING_ROUTE);
	dapl_mutex_unlock(&conn->lock);
}

static void route_failed(struct dapl_conn *conn, int status)
{
	int err = abs(status);

	if (status == -ETIMEDOUT && conn->retries) {
		conn->retries--;
		if (rdma_resolve_route(conn->id, dapl_settings.route_timeout_ms) == 0) {
			dapl_mutex_unlock(&conn->lock);
			return;
		}
		err = errno;
	}
	caused(conn, err, DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
	tell_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
}

static void route_resolved(struct dapl_conn *conn)
{
	struct ibv_device_attr *l = &conn->dev->attr.limits;
	struct rdma_conn_param param = {
		.private_data = conn->pdata,
		.private_data_len = conn->pdata_len,
		.responder_resources = least(conn->reads_in, l->max_qp_rd_atom),
		.initiator_depth = least(conn->reads_out, l->max_qp_init_rd_atom),
		.flow_control = !conn->srq,
		.retry_count = dapl_settings.ack_retry,
		.rnr_retry_count = dapl_settings.rnr_retry,
		.srq = conn->srq,
		.qp_num = conn->qp->qp_num,
	};
	int err;

	hw_siw_qp_reads(conn->qp, param.initiator_depth);
	set_state(conn, CONN_CONNECTING);
	dapl_mutex_unlock(&conn->lock);
	/* Without the lock: siw waits in here until TCP is connected. The id is safe, it is
	 * this thread that destroys it, and of the queue pair only the number is used. */
	err = rdma_connect(conn->id, &param) ? errno : 0;
	dapl_mutex_lock(&conn->lock);
	conn->request_sent = !err;
	if (!err) {
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	if (conn->released) {
		set_state(conn, CONN_OVER);
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
	caused_by_errno(conn, err);
	tell_failed(conn, failure_of(err), NULL, 0);
}

/* InfiniBand and RoCE: the peer accepted, the rest is ours. */
static void response(struct dapl_conn *conn, const struct hw_pdata *pdata)
{
	bool peer_gone = false;
	int err;

	conn->peer_mtu = pdata->mtu;
	err = qp_to_rts(conn, &peer_gone);
	if (err && !peer_gone)
		caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0,
			  "the queue pair does not go to RTS");
	else if (!err && rdma_establish(conn->id))
		err = errno;
	if (err) {
		caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0, NULL);
		hw_refuse(conn->id, conn->wire);	/* or the peer took its answer back */
		tell_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
		return;
	}
	tell_established(conn, pdata->data, pdata->len, NULL);
}

static void ud_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
			   const struct hw_pdata *pdata)
{
	struct dapl_ud_peer peer;
	int err = hw_ud_peer_active(conn->dev, conn->qp->pd, &event->param.ud, &peer);

	if (err) {
		caused_in(conn, DAPL_STEP_READY, err, DAPL_CODE_NONE, 0, "address handle");
		tell_failed(conn, DAPL_CONN_UNREACHABLE, NULL, 0);
		return;
	}
	tell_established(conn, pdata->data, pdata->len, &peer);
}

/* The active side. rdma_cm tells the two depths that were agreed on, but names them differently for
 * different drivers: the smaller one allows no read too many. 0 is no limit, for reads go one way
 * only then. */
static void iwarp_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
			      const struct hw_pdata *pdata)
{
	const struct rdma_conn_param *agreed = &event->param.conn;

	hw_siw_qp_reads(conn->qp, least(agreed->initiator_depth, agreed->responder_resources));
	tell_established(conn, pdata->data, pdata->len, NULL);
}

static void rejected(struct dapl_conn *conn, const struct rdma_cm_event *event,
		     bool by_consumer, const uint8_t *bytes, size_t len)
{
	struct hw_pdata pdata;

	hw_pdata_unpack(&pdata, conn->wire, HW_REJECT, bytes, len);
	if (by_consumer ? pdata.refused : event->status == REJ_ECE)
		caused_in(conn, DAPL_STEP_REPLY, 0, DAPL_CODE_MPA, 0,
			  "refused by the peer's provider");
	else if (by_consumer)
		caused_in(conn, DAPL_STEP_REPLY, 0, DAPL_CODE_MPA, 0,
			  "rejected by the peer's program");
	else
		caused_by_event(conn, event);
	if (!by_consumer || pdata.refused)
		tell_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
	else
		tell_failed(conn, DAPL_CONN_REJECTED, pdata.data, pdata.len);
}

/* --- events --- */

static bool pending(enum conn_state state)
{
	return state >= CONN_RESOLVING_ADDRESS && state <= CONN_ACCEPTING;
}

/* The connection failed or broke, other than by a disconnect. */
static void broken(struct dapl_conn *conn, const struct rdma_cm_event *event,
		   const uint8_t *bytes, size_t len)
{
	int status = event->status;

	if (conn->state == CONN_CONNECTING && event->event == RDMA_CM_EVENT_REJECTED) {
		rejected(conn, event, status == REJ_BY_CONSUMER || status == -ECONNRESET, bytes, len);
	} else if (conn->state == CONN_CONNECTING && conn->ud && status > 0) {
		rejected(conn, event, status == SIDR_REJECT, bytes, len);
	} else if (conn->state == CONN_CONNECTING && event->event == RDMA_CM_EVENT_CONNECT_ERROR &&
		   conn->wire == HW_WIRE_IWARP) {
		/* The peer answered, but not in a way that the driver takes for an answer. siw
		 * also says so when it finds the peer's first message behind the answer. */
		caused_in(conn, DAPL_STEP_REPLY, abs(status), DAPL_CODE_CM_STATUS,
			  (unsigned)status, NULL);
		tell_failed(conn, status == -ETIMEDOUT ? DAPL_CONN_TIMED_OUT : DAPL_CONN_REFUSED,
			    NULL, 0);
	} else if (pending(conn->state)) {
		caused_by_event(conn, event);
		tell_failed(conn, event->event == RDMA_CM_EVENT_REJECTED ? DAPL_CONN_REFUSED :
			    failure_of(-status), NULL, 0);
	} else if (conn->state == CONN_ESTABLISHED) {
		caused_by_event(conn, event);
		tell_disconnected(conn, CONN_OVER, false);
	} else {
		caused_by_event(conn, event);
		set_state(conn, CONN_OVER);
		dapl_mutex_unlock(&conn->lock);
	}
}

static void disconnected(struct dapl_conn *conn, const struct rdma_cm_event *event)
{
	switch (conn->state) {
	case CONN_ACCEPTING:
		/* It came up and went before the last handshake message arrived. */
		tell_established(conn, NULL, 0, NULL);
		dapl_mutex_lock(&conn->lock);
		if (conn->state != CONN_ESTABLISHED || conn->released)
			break;
		/* fall through */
	case CONN_ESTABLISHED:
		if (event->status)
			caused(conn, abs(event->status), DAPL_CODE_CM_STATUS,
			       (unsigned)event->status, NULL);
		tell_disconnected(conn, CONN_PEER_CLOSED, event->status == 0);
		return;
	case CONN_DISCONNECTING:
		tell_disconnected(conn, CONN_OVER, true);
		return;
	case CONN_CONNECTING:
		caused_by_event(conn, event);
		tell_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
		return;
	case CONN_REQUESTED:
		caused_by_event(conn, event);
		set_state(conn, CONN_OVER);
		break;
	default:
		break;
	}
	dapl_mutex_unlock(&conn->lock);
}

/* After release only one question is left: how much longer the id must be kept. */
static void event_after_release(struct dapl_conn *conn, enum rdma_cm_event_type type)
{
	bool lingering = conn->lingering;

	if (type == RDMA_CM_EVENT_ADDR_CHANGE) {
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	set_state(conn, CONN_OVER);
	dapl_mutex_unlock(&conn->lock);
	if (lingering)
		hw_conn_destroy(conn);
}

void hw_conn_event(struct dapl_conn *conn, const struct rdma_cm_event *event,
		   const uint8_t *bytes, size_t len)
{
	struct hw_pdata pdata;

	dapl_mutex_lock(&conn->lock);
	if (conn->released) {
		event_after_release(conn, event->event);
		return;
	}
	hw_pdata_unpack(&pdata, conn->wire, HW_ACCEPT, bytes, len);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (conn->state != CONN_RESOLVING_ADDRESS)
			break;
		address_resolved(conn);
		return;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (!pending(conn->state))
			break;
		address_failed(conn, event->status);
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (conn->state != CONN_RESOLVING_ROUTE)
			break;
		route_resolved(conn);
		return;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (!pending(conn->state))
			break;
		route_failed(conn, event->status);
		return;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (conn->state != CONN_CONNECTING)
			break;
		response(conn, &pdata);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (conn->state == CONN_CONNECTING && conn->ud)
			ud_established(conn, event, &pdata);
		else if (conn->state == CONN_CONNECTING)
			iwarp_established(conn, event, &pdata);
		else if (conn->state == CONN_ACCEPTING)
			tell_established(conn, NULL, 0, NULL);
		else
			break;
		return;
	case RDMA_CM_EVENT_CONNECT_ERROR: case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED: case RDMA_CM_EVENT_DEVICE_REMOVAL:
		broken(conn, event, bytes, len);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(conn, event);
		return;
	default:
		break;
	}
	dapl_mutex_unlock(&conn->lock);
}

/* --- the task: upcalls that are due, and the end --- */

static void linger_over(struct dapl_timer *timer)
{
	hw_conn_destroy(container_of(timer, struct dapl_conn, linger));
}

/* Service thread only. The connection was released, so no other thread refers to it. */
static void finish(struct dapl_conn *conn)
{
	uint64_t wait = 0;

	switch (conn->state) {
	case CONN_REQUESTED:
		hw_refuse(conn->id, conn->wire);
		break;
	case CONN_CONNECTING:
		/* rdma_destroy_id would wait for an iWARP driver's handshake to end. */
		if (conn->wire == HW_WIRE_IWARP)
			wait = HANDSHAKE_US;
		break;
	case CONN_ESTABLISHED:
		if (!conn->ud && rdma_disconnect(conn->id) == 0 && conn->wire == HW_WIRE_IB)
			wait = LINGER_US;
		break;
	case CONN_DISCONNECTING:
		/* TCP closes by itself; elsewhere the id repeats what was lost. */
		if (conn->wire == HW_WIRE_IB)
			wait = LINGER_US;
		break;
	default:
		break;
	}
	if (conn->owner)
		dapl_up_released(conn->owner);
	if (!wait) {
		hw_conn_destroy(conn);
		return;
	}
	conn->lingering = true;
	dapl_timer_start(&conn->linger, wait, linger_over);
}

static void conn_task(struct dapl_task *task)
{
	struct dapl_conn *conn = container_of(task, struct dapl_conn, task);
	struct dapl_ud_peer peer = conn->late_peer;

	dapl_mutex_lock(&conn->lock);
	if (conn->released) {
		dapl_mutex_unlock(&conn->lock);
		finish(conn);
	} else if (conn->late == LATE_FAILED) {
		conn->late = LATE_NOTHING;
		tell_failed(conn, conn->why, NULL, 0);
	} else if (conn->late == LATE_ESTABLISHED) {
		conn->late = LATE_NOTHING;
		conn->late_peer.ah = NULL;
		tell_established(conn, NULL, 0, &peer);
	} else {
		dapl_mutex_unlock(&conn->lock);
	}
}

/* Lock held. Makes the upcall that is due on the service thread. */
static void fail_later(struct dapl_conn *conn, enum dapl_conn_failure why, int err,
		       const char *text)
{
	caused(conn, err, DAPL_CODE_NONE, 0, text);
	conn->late = LATE_FAILED;
	conn->why = why;
	dapl_task_queue(&conn->task, conn_task);
}

/* --- operations --- */

static uint8_t tos_of(enum dapl_qos qos)
{
	/* Differentiated services code points, in the upper six bits. */
	static const uint8_t tos[] = {
		[DAPL_QOS_THROUGHPUT] = 10 << 2,	/* AF11 */
		[DAPL_QOS_LATENCY] = 46 << 2,		/* EF */
		[DAPL_QOS_ECONOMY] = 8 << 2,		/* CS1 */
		[DAPL_QOS_PREMIUM] = 34 << 2,		/* AF41 */
	};

	if (dapl_settings.tos >= 0)
		return dapl_settings.tos;
	return qos < sizeof(tos) ? tos[qos] : 0;
}

static void adopt(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	conn->owner = params->owner;
	conn->qp = params->qp;
	conn->srq = params->srq;
	conn->reads_out = params->reads_out;
	conn->reads_in = params->reads_in;
	conn->tos = tos_of(params->qos);
}

int hw_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
	       struct dapl_conn **out)
{
	struct dapl_conn *conn;
	struct hw_ud_self self = { 0 };
	int err, len;

	if (!address_length(params->remote))
		return EAFNOSUPPORT;
	if (params->ud && !dev->attr.ud)
		return EOPNOTSUPP;
	conn = conn_new(dev, params->ud, CONN_RESOLVING_ADDRESS);
	if (!conn)
		return ENOMEM;
	if (params->ud)
		hw_ud_self(dev, params->qp, &self);
	len = hw_pdata_pack(conn->pdata, conn->wire, HW_REQUEST, params->pdata, params->pdata_len,
			    own_mtu(), false, &self);
	if (len < 0) {
		hw_conn_destroy(conn);
		return EMSGSIZE;
	}
	conn->pdata_len = len;
	address_copy(&conn->remote, params->remote);
	hw_address_fill_scope((struct sockaddr *)&conn->remote,
			      (struct sockaddr *)&dev->attr.address);
	adopt(conn, params);
	*out = conn;
	dapl_mutex_lock(&conn->lock);
	if (conn->remote.ss_family != dev->attr.address.ss_family)
		err = ENETUNREACH;
	else
		err = start(conn);
	if (err && (!conn->id && conn->remote.ss_family == dev->attr.address.ss_family)) {
		dapl_mutex_unlock(&conn->lock);
		hw_conn_destroy(conn);
		return err;
	}
	trace_state(conn, "new");
	if (err)
		fail_later(conn, DAPL_CONN_UNREACHABLE, err, NULL);
	dapl_mutex_unlock(&conn->lock);
	return 0;
}

int hw_conn_from_request(struct dapl_device *dev, struct rdma_cm_id *id, bool ud,
			 const struct hw_pdata *pdata, const struct rdma_cm_event *event,
			 struct dapl_conn **out)
{
	struct dapl_conn *conn = conn_new(dev, ud, CONN_REQUESTED);

	if (!conn)
		return ENOMEM;
	conn->id = id;
	id->context = &conn->target;
	conn->peer_mtu = pdata->mtu;
	conn->peer_self = pdata->self;
	if (!ud) {	/* rdma_cm tells them from our point of view */
		conn->reads_out = event->param.conn.initiator_depth;
		conn->reads_in = event->param.conn.responder_resources;
	}
	dapl_mutex_lock(&conn->lock);
	learn_addresses(conn);
	trace_state(conn, "new");
	dapl_mutex_unlock(&conn->lock);
	*out = conn;
	return 0;
}

/* Lock held. Accepts on the passive side. */
static int answer(struct dapl_conn *conn, const void *bytes, int len)
{
	struct ibv_device_attr *l = &conn->dev->attr.limits;
	struct rdma_conn_param param = {
		.private_data = bytes,
		.private_data_len = len,
		.responder_resources = least(conn->reads_in, l->max_qp_rd_atom),
		.initiator_depth = least(conn->reads_out, l->max_qp_init_rd_atom),
		.flow_control = !conn->srq,
		.rnr_retry_count = dapl_settings.rnr_retry,
		.srq = conn->srq,
		.qp_num = conn->qp->qp_num,
	};

	hw_siw_qp_reads(conn->qp, param.initiator_depth);
	return rdma_accept(conn->id, &param) ? errno : 0;
}

/* Lock held. An error means that nothing was done; a peer that is gone is no error
 * here, since the queue pair may have moved: the failure follows as an upcall. */
static int accept_locked(struct dapl_conn *conn, const struct dapl_conn_params *params,
			 const void *bytes, int len)
{
	uint8_t peer_out = conn->reads_out, peer_in = conn->reads_in;
	bool peer_gone = conn->state == CONN_OVER;
	int err = 0;

	if (!peer_gone && conn->state != CONN_REQUESTED)
		return EINVAL;
	adopt(conn, params);
	conn->reads_out = least(conn->reads_out, peer_out);
	conn->reads_in = least(conn->reads_in, peer_in);
	if (!peer_gone && conn->wire == HW_WIRE_IB)
		err = qp_to_rts(conn, &peer_gone);
	else if (!peer_gone && conn->wire == HW_WIRE_UD)
		err = hw_ud_peer_passive(conn->dev, conn->qp->pd, rdma_get_peer_addr(conn->id),
					 &conn->peer_self, &conn->late_peer);
	if (err && !peer_gone) {
		log_line(HW_LOG_ERR, "%s: accept of a request failed: queue pair 0x%x: %s",
			 conn->dev->attr.device, conn->qp->qp_num, strerror(err));
		conn->owner = NULL;
		conn->qp = NULL;
		conn->reads_out = peer_out;
		conn->reads_in = peer_in;
		return err;
	}
	set_state(conn, CONN_ACCEPTING);
	if (!peer_gone)
		err = answer(conn, bytes, len);
	if (peer_gone || err) {
		caused_in(conn, DAPL_STEP_ACCEPT, err, DAPL_CODE_NONE, 0, peer_gone ?
			  "the peer is gone" : NULL);
		fail_later(conn, DAPL_CONN_TIMED_OUT, err, NULL);
	} else if (conn->ud) {
		conn->late = LATE_ESTABLISHED;
		dapl_task_queue(&conn->task, conn_task);
	}
	return 0;
}

int hw_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	uint8_t bytes[256];
	uint8_t mtu = least_told(own_mtu(), conn->peer_mtu);
	int err, len = hw_pdata_pack(bytes, conn->wire, HW_ACCEPT, params->pdata,
				     params->pdata_len, mtu, false, NULL);

	if (len < 0)
		return EMSGSIZE;
	dapl_mutex_lock(&conn->lock);
	err = accept_locked(conn, params, bytes, len);
	dapl_mutex_unlock(&conn->lock);
	return err;
}

int hw_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len)
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
			hw_refuse(conn->id, conn->wire);
		set_state(conn, CONN_OVER);
	}
	dapl_mutex_unlock(&conn->lock);
	hw_release(conn);
	return 0;
}

int hw_disconnect(struct dapl_conn *conn)
{
	dapl_mutex_lock(&conn->lock);
	if (conn->ud) {
		set_state(conn, CONN_OVER);
	} else if (conn->state == CONN_ESTABLISHED) {
		rdma_disconnect(conn->id);
		set_state(conn, CONN_DISCONNECTING);
	} else if (conn->state == CONN_PEER_CLOSED) {
		rdma_disconnect(conn->id);
		set_state(conn, CONN_OVER);
	}
	dapl_mutex_unlock(&conn->lock);
	return 0;
}

void hw_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	dapl_mutex_lock(&conn->lock);
	*cause = conn->cause;
	if (!conn->caused)
		cause->step = step_of(conn);
	cause->local = conn->local;
	cause->remote = conn->remote;
	dapl_mutex_unlock(&conn->lock);
}

void hw_release(struct dapl_conn *conn)
{
	dapl_mutex_lock(&conn->lock);
	conn->released = true;
	conn->qp = NULL;
	dapl_task_queue(&conn->task, conn_task);
	dapl_mutex_unlock(&conn->lock);
}
