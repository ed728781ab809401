/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - an endpoint on the network: connecting, disconnecting, upcalls of the device about the
 * connection, and their events. Incoming requests are in service_point.c and cr.c, the state table
 * is in ep_state.c.
 *
 * A connection holds a reference of its endpoint from connect or accept until
 * dapl_up_released. An upcall for a connection that the endpoint has dropped meanwhile is
 * recognised by ep->conn under ep->lock, and ignored.
 *
 * Terminal events (DISCONNECTED, BROKEN, ...) come after the flushed completions when both
 * go to one EVD: then the event is kept in ep->terminal, ep->deferred makes the dequeuing
 * side call dapl_ep_drained, and the last completion releases it. */
#include <string.h>
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/conn_hooks.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/ia/provider.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/ud.h"

/* --- events ----------------------------------------------------------------------------- */

void dapl_ep_tell(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	bool has_data = number == DAT_CONNECTION_EVENT_ESTABLISHED ||
		number == DAT_CONNECTION_EVENT_PEER_REJECTED;

	if (!ep->connect_evd || !number)
		return;
	memset(&event, 0, sizeof event);
	event.event_number = number;
	event.event_data.connect_event_data.ep_handle = (DAT_EP_HANDLE)ep;
	if (has_data && ep->pdata_len > 0) {
		event.event_data.connect_event_data.private_data_size = ep->pdata_len;
		event.event_data.connect_event_data.private_data = ep->pdata;
	}
	/* other endpoints tell it theirs at the same time */
	__atomic_add_fetch(&ep->connect_evd->counters[DCNT_EVD_CONN_CALLBACK], 1,
			   __ATOMIC_RELAXED);
	dapl_evd_post(ep->connect_evd, &event);
}

/* Completions of this endpoint that go to its connect EVD and are not dequeued yet. */
static bool must_wait(struct dapl_ep *ep)
{
	if (!ep->connect_evd)
		return false;
	return (ep->connect_evd == ep->request_evd && dapl_queue_count(&ep->sq)) ||
		(ep->connect_evd == ep->recv_evd && dapl_queue_count(&ep->rq));
}

static bool of_this_ep(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	const struct dapl_ep *ep = arg;

	return (dto->flags & REQ_SRQ) && wc->qp_num == ep->qpn;
}

/* Devices do not report when an SRQ endpoint has returned its last buffer, but consumers wait
 * for that event before they free the SRQ. */
static void tell_last_buffer(struct dapl_ep *ep)
{
	if (!ep->owes_last_buffer || dapl_evd_holds(dapl_ep_recv_evd(ep), of_this_ep, ep))
		return;
	ep->owes_last_buffer = false;
	dapl_async_post(ep->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
}

/* Delivers a deferred event if it need not wait any more. */
static void deliver_deferred(struct dapl_ep *ep)
{
	DAT_EVENT_NUMBER number = ep->terminal;

	if (number && !must_wait(ep)) {
		ep->terminal = 0;
		dapl_ep_tell(ep, number);
	}
	tell_last_buffer(ep);
	if (!ep->terminal && !ep->owes_last_buffer && ep->state == DAT_EP_STATE_DISCONNECTED)
		__atomic_store_n(&ep->deferred, false, __ATOMIC_SEQ_CST);
}

void dapl_ep_deliver_deferred(struct dapl_ep *ep)
{
	DAT_EVENT_NUMBER number = ep->terminal;

	__atomic_store_n(&ep->deferred, false, __ATOMIC_SEQ_CST);
	ep->owes_last_buffer = false;
	ep->terminal = 0;
	dapl_ep_tell(ep, number);
}

/* From now on the dequeuing side calls dapl_ep_drained after each completion. A dequeue that
 * looked at the flag before has given its record back once its EVD's lock was free. */
static void defer(struct dapl_ep *ep)
{
	struct dapl_evd *evds[2] = { dapl_ep_request_evd(ep), dapl_ep_recv_evd(ep) };

	__atomic_store_n(&ep->deferred, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		if (evds[i]) {
			dapl_spin_lock(&evds[i]->lock);
			dapl_spin_unlock(&evds[i]->lock);
		}
}

/* Marks the queue: later posts complete without the device. */
static void end_posting(struct dapl_queue *q)
{
	dapl_spin_lock(&q->lock);
	q->in_error = true;
	q->room = 0;
	dapl_spin_unlock(&q->lock);
}

/* Moves the QP to ERR: all posts complete. */
static void flush(struct dapl_ep *ep)
{
	bool unsignaled;

	dapl_device_ops.error_qp(ep->qp);
	if (ep->obj.ia->attr.no_late_flush) {
		/* posts that were not complete when error_qp returned */
		dapl_evd_flush_posts(dapl_ep_request_evd(ep), ep, &ep->sq, true);
		if (!ep->srq)
			dapl_evd_flush_posts(dapl_ep_recv_evd(ep), ep, &ep->rq, true);
		return;
	}
	/* Successful suppressed requests made no completion and now never will:
	 * a marker that flushes behind them gives their records back. */
	dapl_spin_lock(&ep->sq.lock);
	unsignaled = ep->sq.unsignaled != 0;
	dapl_spin_unlock(&ep->sq.lock);
	if (unsignaled)
		dapl_ep_post_marker(ep, true);
}

void dapl_ep_terminate(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	dapl_ep_disarm(ep);
	end_posting(&ep->sq);
	end_posting(&ep->rq);
	if (ep->qp)
		flush(ep);
	dapl_ep_drop_conn(ep);
	ep->terminal = number;
	ep->owes_last_buffer = ep->srq != NULL && ep->qp != NULL;
	defer(ep);
	deliver_deferred(ep);
}

void dapl_ep_drop_conn(struct dapl_ep *ep)
{
	struct dapl_conn *conn = ep->conn;

	if (!conn)
		return;
	ep->conn = NULL;
	dapl_device_ops.disconnect(conn);
	dapl_device_ops.release(conn);
}

/* Freed by the consumer: only short-lived references keep the memory, and events are ignored. */
static bool is_freed(const struct dapl_ep *ep)
{
	return __atomic_load_n(&ep->obj.magic, __ATOMIC_ACQUIRE) == 0;
}

/* A step that the network made, with its event; `cause` of a failure, else NULL. */
static bool happened_because(struct dapl_ep *ep, enum dapl_ep_event event,
			     const struct dapl_conn_cause *cause)
{
	struct dapl_evd *recv_evd = dapl_ep_recv_evd(ep);
	DAT_EP_STATE before = ep->state;
	DAT_EVENT_NUMBER tell;

	if (is_freed(ep) || !dapl_ep_step(ep, event, &tell))
		return false;
	if (cause)	/* before the event: the consumer may exit at once when it has it */
		dapl_failure_report(ep, before, tell, cause);
	if (ep->state == DAT_EP_STATE_DISCONNECTED)
		dapl_ep_terminate(ep, tell);
	else
		dapl_ep_tell(ep, tell);
	if (event == EP_ESTABLISHED) {
		__atomic_store_n(&ep->up, true, __ATOMIC_RELEASE);
		if (recv_evd)
			dapl_evd_unhold(recv_evd);
	}
	return true;
}

static bool happened(struct dapl_ep *ep, enum dapl_ep_event event)
{
	return happened_because(ep, event, NULL);
}

/* --- timers ----------------------------------------------------------------------------- */

static void arm(struct dapl_ep *ep, uint64_t delay_us, void (*fire)(struct dapl_timer *))
{
	dapl_ep_disarm(ep);
	dapl_object_get(&ep->obj);
	dapl_timer_start(&ep->timer, delay_us, fire);
}

void dapl_ep_disarm(struct dapl_ep *ep)
{
	if (dapl_timer_stop(&ep->timer))
		dapl_object_put(&ep->obj);
}

static void connect_timeout(struct dapl_timer *timer)
{
	struct dapl_ep *ep = container_of(timer, struct dapl_ep, timer);
	struct dapl_conn_cause cause;

	dapl_mutex_lock(&ep->lock);
	if (ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) {
		dapl_count(ep->obj.ia, DCNT_IA_CM_ERR_TIMEOUT);
		dapl_failure_explain(ep, ep->conn, &cause);
		dapl_failure_time_limit(&cause);
		happened_because(ep, EP_TIMED_OUT, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
	dapl_object_put(&ep->obj);
}

/* --- connecting --------------------------------------------------------------------------- */

static enum dapl_qos device_qos(DAT_QOS qos)
{
	if (qos & DAT_QOS_PREMIUM)
		return DAPL_QOS_PREMIUM;
	if (qos & DAT_QOS_LOW_LATENCY)
		return DAPL_QOS_LATENCY;
	if (qos & DAT_QOS_HIGH_THROUGHPUT)
		return DAPL_QOS_THROUGHPUT;
	if (qos & DAT_QOS_ECONOMY)
		return DAPL_QOS_ECONOMY;
	return DAPL_QOS_DEFAULT;
}

void dapl_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
		      int len)
{
	*params = (struct dapl_conn_params){
		.qp = ep->qp, .owner = ep, .pdata = pdata, .pdata_len = len,
		.reads_out = ep->attr.max_rdma_read_out, .reads_in = ep->attr.max_rdma_read_in,
		.srq = ep->srq != NULL, .ud = ep->is_ud, .delayed_ack = ep->delayed_ack,
		.qos = device_qos(ep->attr.qos),
	};
}

/* CONN-9, 10 */
DAT_RETURN dapl_ep_ready(struct dapl_ep *ep)
{
	if (!ep->connect_evd)
		return BAD_HANDLE(EVD_CONN);
	if (!ep->pz)
		return BAD_STATE(EP_NOTREADY);
	return dapl_ep_need_qp(ep);
}

static bool same_family(const struct dapl_ep *ep, const struct sockaddr *to)
{
	return to->sa_family == ep->obj.ia->attr.address.ss_family;
}

static void remember_remote(struct dapl_ep *ep, const struct sockaddr *to, DAT_CONN_QUAL qual,
			    DAT_CONNECT_FLAGS flags)
{
	address_copy(&ep->remote, to);
	ep->remote_qual = qual;
	ep->connect_flags = flags;
	ep->pdata_len = 0;
}

/* ep->lock held, all arguments good. */
static DAT_RETURN start_connect(struct dapl_ep *ep, const struct sockaddr *to,
				DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, int len,
				const void *data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct dapl_conn_params params;
	DAT_RETURN ret;
	int err;

	if (!dapl_ep_may(ep, EP_DO_CONNECT))
		return dapl_bad_ep_state(ep->state);
	if ((ret = dapl_ep_ready(ep)))
		return ret;
	if (!same_family(ep, to))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	remember_remote(ep, to, qual, flags);
	dapl_conn_params(ep, &params, data, len);
	params.remote = (struct sockaddr *)&ep->remote;
	if (qos != DAT_QOS_BEST_EFFORT)
		params.qos = device_qos(qos);
	dapl_object_get(&ep->obj);	/* the connection's */
	err = dapl_device_ops.connect(ia->dev, &params, &ep->conn);
	if (err) {
		ep->conn = NULL;
		dapl_object_put(&ep->obj);
		return dapl_failure_of_connect(ep, to, err);
	}
	DAPL_PROBE2(connect, ep, ep->remote_qual);
	ep->counters[DCNT_EP_CONNECT]++;
	dapl_count(ia, DCNT_IA_CM_REQ_TX);
	dapl_ep_step(ep, EP_DO_CONNECT, NULL);
	if (timeout != DAT_TIMEOUT_INFINITE)
		arm(ep, timeout, connect_timeout);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_ep_start_connect(struct dapl_ep *ep, const struct sockaddr *to,
				 DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, int len,
				 const void *data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	DAT_RETURN ret;

	dapl_ep_lock_settled(ep);
	if (is_freed(ep))
		ret = BAD_HANDLE(EP);
	else
		ret = ep->is_ud ? dapl_ud_connect(ep, to, timeout, len, data) :
			start_connect(ep, to, qual, timeout, len, data, qos, flags);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* An IA address with a connection qualifier: what the device connects to. */
static DAT_RETURN with_port(const struct sockaddr *address, DAT_CONN_QUAL qual,
			    struct sockaddr_storage *to)
{
	if (!qual)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	memset(to, 0, sizeof *to);
	if (address->sa_family == AF_INET) {
		memcpy(to, address, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)to)->sin_port = htons(dapl_qual_port(qual));
	} else if (address->sa_family == AF_INET6) {
		memcpy(to, address, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)to)->sin6_port = htons(dapl_qual_port(qual));
	} else {
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	}
	return DAT_SUCCESS;
}

static bool pdata_fits(const struct dapl_ep *ep, DAT_COUNT len)
{
	return len >= 0 && len <= ep->obj.ia->provider_attr.max_private_data_size;
}

/* dat_ep_connect (doc/spec/calls.md 5). timeout in microseconds. CONN-4, 5, 6, 7. */
DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	struct sockaddr_storage to;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!address)
		return BAD_PARAM(2);
	if (!timeout)
		return BAD_PARAM(4);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(5);
	if (len && !data)
		return BAD_PARAM(6);
	if (qos & ~ep->obj.ia->provider_attr.dat_qos_supported)
		return BAD_PARAM(7);
	if (flags & ~(DAT_CONNECT_MULTIPATH_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return BAD_PARAM(8);
	if (flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG)
		return NOT_SUPPORTED;
	if ((ret = with_port((const struct sockaddr *)address, qual, &to)))
		return ret;
	return dapl_ep_start_connect(ep, (struct sockaddr *)&to, qual, timeout, len, data, qos,
				     flags);
}

/* dat_ep_common_connect (DAT 2.0): the address has the port. */
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	struct sockaddr_storage to;
	DAT_CONN_QUAL qual;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!address)
		return BAD_PARAM(2);
	if (!timeout)
		return BAD_PARAM(3);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(4);
	if (len && !data)
		return BAD_PARAM(5);
	/* the port is at the same place in both families */
	qual = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
	if ((ret = with_port((const struct sockaddr *)address, qual, &to)))
		return ret;
	return dapl_ep_start_connect(ep, (struct sockaddr *)&to, qual, timeout, len, data,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* dat_ep_dup_connect: connects to the peer of another endpoint. CONN-18, 19, 20. */
DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle), *dup = dapl_ep_enter(dup_handle);
	struct sockaddr_storage to;
	DAT_CONN_QUAL qual;
	DAT_CONNECT_FLAGS flags;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep || !dup)
		return BAD_HANDLE(EP);
	if (!timeout)
		return BAD_PARAM(3);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(4);
	if (len && !data)
		return BAD_PARAM(5);
	if (qos & ~ep->obj.ia->provider_attr.dat_qos_supported)
		return BAD_PARAM(6);
	dapl_mutex_lock(&dup->lock);
	if (dup->state != DAT_EP_STATE_CONNECTED)
		ret = dapl_bad_ep_state(dup->state);
	to = dup->remote;
	qual = dup->remote_qual;
	flags = dup->connect_flags;
	dapl_mutex_unlock(&dup->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	return dapl_ep_start_connect(ep, (struct sockaddr *)&to, qual, timeout, len, data, qos,
				     flags);
}

/* --- disconnecting -------------------------------------------------------------------------- */

static bool is_marker_of(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	(void)wc;
	return (dto->flags & REQ_MARKER) && dto->ep == arg;
}

/* DISCONNECT_PENDING: has the device completed all posts? No other thread may be dequeuing. */
static bool drained(struct dapl_ep *ep)
{
	return !dapl_queue_count(&ep->sq) ||
		dapl_evd_holds(dapl_ep_request_evd(ep), is_marker_of, ep);
}

enum { DRAIN_FIRST_US = 200, DRAIN_LATER_US = 2000 };

static void look_drained(struct dapl_timer *timer)
{
	struct dapl_ep *ep = container_of(timer, struct dapl_ep, timer);

	dapl_mutex_lock(&ep->lock);
	if (ep->state == DAT_EP_STATE_DISCONNECT_PENDING && !is_freed(ep)) {
		if (drained(ep))
			happened(ep, EP_DRAINED);
		else
			arm(ep, DRAIN_LATER_US, look_drained);
	}
	dapl_mutex_unlock(&ep->lock);
	dapl_object_put(&ep->obj);
}

static void disconnect_gracefully(struct dapl_ep *ep)
{
	if (!dapl_queue_count(&ep->sq)) {
		happened(ep, EP_DRAINED);
		return;
	}
	dapl_ep_post_marker(ep, false);
	defer(ep);
	if (drained(ep))
		happened(ep, EP_DRAINED);
	else
		arm(ep, DRAIN_FIRST_US, look_drained);
}

/* dat_ep_disconnect (doc/spec/calls.md 5). CONN-21, 22, 23, 32. */
DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	enum dapl_ep_event event = flags == DAT_CLOSE_GRACEFUL_FLAG ? EP_DO_DISCONNECT_GRACEFUL :
		EP_DO_DISCONNECT;
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EP_STATE before;

	if (!ep)
		return BAD_HANDLE(EP);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	before = ep->state;
	DAPL_PROBE2(disconnect, ep, before);
	if (is_freed(ep)) {
		ret = BAD_HANDLE(EP);
	} else if (ep->is_ud) {
		ret = dapl_ud_disconnect(ep);
	} else if (!dapl_ep_may(ep, event)) {
		ret = dapl_bad_ep_state(before);
	} else if (before != DAT_EP_STATE_DISCONNECTED) {
		ep->counters[DCNT_EP_DISCONNECT]++;
		dapl_count(ep->obj.ia, DCNT_IA_CM_DREQ_TX);
		if (before == DAT_EP_STATE_CONNECTED && event == EP_DO_DISCONNECT_GRACEFUL) {
			dapl_ep_step(ep, event, NULL);
			disconnect_gracefully(ep);
		} else if (before != DAT_EP_STATE_DISCONNECT_PENDING ||
			   event == EP_DO_DISCONNECT) {
			happened(ep, event);
		}
	}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* --- what the dequeuing side has noticed ------------------------------------------------------ */

void dapl_ep_broken(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code,
		    const char *text)
{
	struct dapl_conn_cause cause;

	dapl_mutex_lock(&ep->lock);
	DAPL_PROBE1(error, ep);
	if (!ep->is_ud) {
		dapl_failure_explain(ep, ep->conn, &cause);
		dapl_failure_code(&cause, kind, code, text);
		happened_because(ep, EP_BROKEN, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

bool dapl_ep_comm_established(struct dapl_ep *ep)
{
	bool now;

	dapl_mutex_lock(&ep->lock);
	now = ep->state == DAT_EP_STATE_COMPLETION_PENDING && happened(ep, EP_ESTABLISHED);
	dapl_mutex_unlock(&ep->lock);
	return now;
}

void dapl_ep_drained(struct dapl_ep *ep)
{
	dapl_mutex_lock(&ep->lock);
	if (is_freed(ep))
		;	/* no event is due */
	else if (ep->state == DAT_EP_STATE_DISCONNECT_PENDING && drained(ep))
		happened(ep, EP_DRAINED);
	else
		deliver_deferred(ep);
	dapl_mutex_unlock(&ep->lock);
}

/* --- upcalls ------------------------------------------------------------------------------------ */

static void keep_pdata(struct dapl_ep *ep, const void *pdata, size_t len)
{
	ep->pdata_len = len < sizeof ep->pdata ? len : sizeof ep->pdata;
	if (ep->pdata_len)
		memcpy(ep->pdata, pdata, ep->pdata_len);
}

void dapl_up_established(void *owner, struct dapl_conn *conn, const struct dapl_established *info)
{
	struct dapl_ep *ep = owner;
	bool active;

	dapl_mutex_lock(&ep->lock);
	if (ep->is_ud) {
		dapl_ud_established(ep, conn, info);
	} else if (ep->conn == conn) {
		active = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
		dapl_ep_disarm(ep);
		if (active)
			keep_pdata(ep, info->pdata, info->pdata_len);
		if (info->local.ss_family)
			ep->local = info->local;
		if (info->remote.ss_family)
			ep->remote = info->remote;
		dapl_count(ep->obj.ia, active ? DCNT_IA_CM_ACTIVE_EST : DCNT_IA_CM_PASSIVE_EST);
		happened(ep, EP_ESTABLISHED);
	}
	dapl_mutex_unlock(&ep->lock);
}

static const enum dapl_ep_event failure_event[] = {
	[DAPL_CONN_REJECTED] = EP_REJECTED, [DAPL_CONN_REFUSED] = EP_REFUSED,
	[DAPL_CONN_UNREACHABLE] = EP_UNREACHABLE, [DAPL_CONN_TIMED_OUT] = EP_TIMED_OUT,
};

void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t pdata_len)
{
	struct dapl_ep *ep = owner;
	struct dapl_conn_cause cause;

	dapl_mutex_lock(&ep->lock);
	if (ep->is_ud) {
		dapl_ud_failed(ep, conn, why, pdata, pdata_len);
	} else if (ep->conn == conn) {
		dapl_failure_explain(ep, conn, &cause);
		dapl_ep_disarm(ep);
		keep_pdata(ep, pdata, why == DAPL_CONN_REJECTED ? pdata_len : 0);
		dapl_count(ep->obj.ia, why == DAPL_CONN_REJECTED ? DCNT_IA_CM_USER_REJ_RX :
			   why == DAPL_CONN_REFUSED ? DCNT_IA_CM_ERR_REFUSED :
			   DCNT_IA_CM_ERR_TIMEOUT);
		happened_because(ep, failure_event[why], &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly)
{
	struct dapl_ep *ep = owner;
	struct dapl_conn_cause cause;

	dapl_mutex_lock(&ep->lock);
	if (ep->conn == conn && !ep->is_ud) {
		dapl_failure_explain(ep, conn, &cause);
		if (orderly)
			dapl_failure_code(&cause, DAPL_CODE_NONE, 0, "the peer disconnected");
		dapl_count(ep->obj.ia, DCNT_IA_CM_DREQ_RX);
		happened_because(ep, orderly ? EP_PEER_CLOSED : EP_BROKEN, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

void dapl_up_released(void *owner)
{
	struct dapl_ep *ep = owner;

	dapl_object_put(&ep->obj);
}

/* --- the layers below -------------------------------------------------------------------------- */

void dapl_conn_start(void)
{
	dapl_conn_hooks = (struct dapl_conn_hooks){
		.broken = dapl_ep_broken, .comm_established = dapl_ep_comm_established,
		.completed = dapl_ep_drained, .refuse_request = dapl_cr_refuse,
	};
}
