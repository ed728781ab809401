/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c - UD endpoints (doc/spec/extensions.md 4.1): one datagram QP that collects address handles by
 * "connecting" to any number of peers. Connected endpoints are in conn.c, multicast groups in mcast.c.
 *
 * A peer is kept from connect or accept until the consumer has freed its connection (dat_ib_ud_cm_free)
 * and its address handle (dat_ib_ud_ah_free), or the endpoint. */
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/mcast.h"
#include "dapl/core/conn/ready.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/evd_notify.h"

/* One peer of a datagram endpoint. ep->lock guards it, and the list. */
struct dapl_known_peer {
	struct dapl_known_peer *next;
	struct dapl_ep *ep;
	struct dapl_timer timer;	/* time limit of a connect; holds a reference of the endpoint */
	bool timed;			/* the timer was started, and neither fired nor was stopped */
	bool gone;			/* the peer is not listed any more, and is freed when the timer has
					 * fired */
	bool answered;
	bool cm_freed;			/* the consumer has freed the connection, so its context is
					 * invalid */
	struct dapl_conn *conn;		/* NULL after the release */
	struct dapl_ud_peer to;		/* to.ah NULL: the address handle does not exist yet, or was
					 * freed */
	struct sockaddr_storage address;
	uint64_t began_ns;
	bool active;
	int pdata_len;
	char pdata[DAPL_CONN_PDATA_MAX];
};

static void stop_timer(struct dapl_known_peer *peer)
{
	if (!peer->timed || !dapl_timer_stop(&peer->timer))
		return;
	peer->timed = false;
	dapl_object_put(&peer->ep->obj);
}

static void drop_conn(struct dapl_known_peer *peer)
{
	stop_timer(peer);
	if (peer->conn)
		dapl_device_ops.release(peer->conn);
	peer->conn = NULL;
}

static void drop_ah(struct dapl_known_peer *peer)
{
	if (peer->to.ah)
		dapl_device_ops.destroy_ah(peer->to.ah);
	peer->to.ah = NULL;
}

/* If the timer could not be stopped, its handler is waiting for the lock, and frees the peer. */
static void free_peer(struct dapl_known_peer *peer)
{
	stop_timer(peer);
	peer->gone = true;
	if (!peer->timed)
		free(peer);
}

void dapl_ud_end(struct dapl_ep *ep)
{
	struct dapl_known_peer *peer;

	assert_held(&ep->lock);
	dapl_mcast_end(ep);
	while ((peer = ep->known_peers)) {
		ep->known_peers = peer->next;
		drop_conn(peer);
		drop_ah(peer);
		free_peer(peer);
	}
}

static void forget(struct dapl_ep *ep, struct dapl_known_peer *peer)
{
	struct dapl_known_peer **p;

	for (p = &ep->known_peers; *p != peer; p = &(*p)->next)
		;
	*p = peer->next;
	free_peer(peer);
}

static struct dapl_known_peer *new_peer(struct dapl_ep *ep, bool active)
{
	struct dapl_known_peer *peer = calloc(1, sizeof *peer);

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->active = active;
	peer->began_ns = clock_now_ns();
	peer->next = ep->known_peers;
	ep->known_peers = peer;
	return peer;
}

static struct dapl_known_peer *by_conn(struct dapl_ep *ep, const struct dapl_conn *conn)
{
	struct dapl_known_peer *peer = ep->known_peers;

	while (peer && peer->conn != conn)
		peer = peer->next;
	return peer;
}

static struct dapl_known_peer *by_ah(struct dapl_ep *ep, const struct ibv_ah *ah)
{
	struct dapl_known_peer *peer = ep->known_peers;

	while (peer && (!ah || peer->to.ah != ah))
		peer = peer->next;
	return peer;
}

static void keep_pdata(struct dapl_known_peer *peer, const void *pdata, size_t len)
{
	if (!len || len > sizeof peer->pdata)	/* without data there may be no pointer */
		return;
	peer->pdata_len = (int)len;
	memcpy(peer->pdata, pdata, len);
}

/* Called with ep->lock held. */
static void trace_step(const struct dapl_ep *ep, const struct dapl_known_peer *peer, const char *step)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS];

	assert_held(&ep->lock);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, "datagram", "%s peer %p: %s, local %s, "
	      "remote %s", peer->active ? "active" : "passive", (const void *)peer, step,
	      dapl_cause_address(&ep->obj.ia->attr.address, local),
	      dapl_cause_address(&peer->address, remote));
}

static void failed(struct dapl_ep *ep, struct dapl_known_peer *peer, enum dapl_conn_failure why,
		   const struct dapl_conn_cause *cause, const void *pdata, size_t len);

/* EXT-25 */
static void connect_timeout(struct dapl_timer *timer)
{
	struct dapl_known_peer *peer = container_of(timer, struct dapl_known_peer, timer);
	struct dapl_conn_cause cause;
	struct dapl_ep *ep = peer->ep;

	dapl_mutex_lock(&ep->lock);
	peer->timed = false;
	if (peer->gone) {
		free(peer);
	} else if (peer->conn && !peer->answered) {
		dapl_count(ep->obj.ia, DCNT_IA_CM_ERR_TIMEOUT);
		dapl_failure_explain(ep, peer->conn, &cause);
		dapl_failure_time_limit(&cause);
		failed(ep, peer, DAPL_CONN_TIMED_OUT, &cause, NULL, 0);
	}
	dapl_mutex_unlock(&ep->lock);
	dapl_object_put(&ep->obj);
}

DAT_RETURN dapl_ud_connect(struct dapl_ep *ep, const struct sockaddr *to, DAT_TIMEOUT timeout,
			   int len, const void *data)
{
	struct dapl_conn_params params;
	struct dapl_known_peer *peer;
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	if ((ret = dapl_ep_make_ready(ep)))
		return ret;
	if (!(peer = new_peer(ep, true)))
		return NO_RESOURCE(MEMORY);
	memcpy(&peer->address, to, to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
	       sizeof(struct sockaddr_in));
	trace_step(ep, peer, "connect");
	dapl_ep_conn_params(ep, &params, data, len);
	params.remote = to;
	dapl_object_get(&ep->obj);
	err = dapl_device_ops.connect(ep->obj.ia->dev, &params, &peer->conn);
	if (err) {
		peer->conn = NULL;
		forget(ep, peer);
		dapl_object_put(&ep->obj);
		return dapl_failure_of_connect(ep, to, err);
	}
	if (timeout != DAT_TIMEOUT_INFINITE) {
		peer->timed = true;
		dapl_object_get(&ep->obj);
		dapl_timer_start(&peer->timer, timeout, connect_timeout);
	}
	ep->counters[DCNT_EP_CONNECT]++;
	dapl_count(ep->obj.ia, DCNT_IA_CM_AH_REQ_TX);
	return DAT_SUCCESS;
}

/* From here on the consumer owns an endpoint that the provider made or an RSP reserved. Like any other it
 * is UNCONNECTED until its first peer is established. EXT-27, 28. */
DAT_RETURN dapl_ud_accept(struct dapl_ep *ep, struct dapl_cr *cr, int len, const void *data)
{
	struct dapl_conn_params params;
	struct dapl_known_peer *peer;
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	if (!dapl_ep_may(ep, EP_DO_ACCEPT_UD) || (ep->cr && ep->cr != cr))
		return dapl_status_bad_ep_state(ep->state);
	if ((ret = dapl_ep_make_ready(ep)))
		return ret;
	if (!(peer = new_peer(ep, false)))
		return NO_RESOURCE(MEMORY);
	peer->conn = cr->conn;
	dapl_failure_remote(cr->conn, &peer->address);
	trace_step(ep, peer, "accept");
	dapl_ep_conn_params(ep, &params, data, len);
	dapl_object_get(&ep->obj);
	err = dapl_device_ops.accept(cr->conn, &params);
	if (err) {
		peer->conn = NULL;
		forget(ep, peer);
		dapl_object_put(&ep->obj);
	} else {
		dapl_ep_step(ep, EP_DO_ACCEPT_UD, NULL);
		ep->cr = NULL;
	}
	return err == EMSGSIZE ? BAD_PARAM(3) : dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* There is no connection to end: frees the communication identifiers, and keeps the address handles.
 * EXT-19. */
DAT_RETURN dapl_ud_disconnect(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	for (struct dapl_known_peer *peer = ep->known_peers; peer; peer = peer->next)
		drop_conn(peer);
	return DAT_SUCCESS;
}

static void post_ud_event(struct dapl_ep *ep, struct dapl_known_peer *peer, DAT_IB_EVENT_NUMBER number,
			  DAT_IB_EXT_TYPE type)
{
	DAT_IB_EXTENSION_EVENT_DATA *ext;
	DAT_EVENT event;

	if (!ep->connect_evd)
		return;
	memset(&event, 0, sizeof event);
	event.event_number = (DAT_EVENT_NUMBER)number;
	event.event_data.connect_event_data.ep_handle = (DAT_EP_HANDLE)ep;
	if (peer->pdata_len) {
		event.event_data.connect_event_data.private_data_size = peer->pdata_len;
		event.event_data.connect_event_data.private_data = peer->pdata;
	}
	ext = (void *)event.event_extension_data;
	ext->type = type;
	ext->status = type == DAT_IB_UD_REMOTE_AH || type == DAT_IB_UD_PASSIVE_REMOTE_AH ?
		DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	ext->remote_ah.ah = peer->to.ah;
	ext->remote_ah.qpn = peer->to.qpn;
	memcpy(&ext->remote_ah.ia_addr, &peer->address, sizeof ext->remote_ah.ia_addr);
	ext->context.as_ptr = peer;
	dapl_evd_post(ep->connect_evd, &event);
}

void dapl_ud_established(struct dapl_ep *ep, struct dapl_conn *conn,
			 const struct dapl_established *info)
{
	struct dapl_known_peer *peer = by_conn(ep, conn);

	assert_held(&ep->lock);
	if (!peer || !info->ud) {
		if (info->ud && info->ud->ah)
			dapl_device_ops.destroy_ah(info->ud->ah);
		return;
	}
	peer->answered = true;
	stop_timer(peer);
	peer->to = *info->ud;
	peer->address = info->remote;
	if (peer->active)
		keep_pdata(peer, info->pdata, info->pdata_len);
	trace_step(ep, peer, "established");
	dapl_count(ep->obj.ia, DCNT_IA_CM_AH_RESOLVED);
	if (ep->state == DAT_EP_STATE_UNCONNECTED) {
		dapl_ep_step(ep, EP_DO_CONNECT, NULL);
		dapl_ep_step(ep, EP_ESTABLISHED, NULL);
	}
	post_ud_event(ep, peer, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
		      peer->active ? DAT_IB_UD_REMOTE_AH : DAT_IB_UD_PASSIVE_REMOTE_AH);
}

/* EXT-21, 22 */
static void failed(struct dapl_ep *ep, struct dapl_known_peer *peer, enum dapl_conn_failure why,
		   const struct dapl_conn_cause *cause, const void *pdata, size_t len)
{
	bool rejected = why == DAPL_CONN_REJECTED;

	if (rejected)
		keep_pdata(peer, pdata, len);
	trace_step(ep, peer, rejected ? "rejected" : "failed");
	dapl_failure_report_ud(ep, peer->active, peer->began_ns, rejected, cause);
	drop_conn(peer);
	post_ud_event(ep, peer, rejected ? DAT_IB_UD_CONNECTION_REJECT_EVENT :
		      DAT_IB_UD_CONNECTION_ERROR_EVENT,
		      rejected ? DAT_IB_UD_CONNECT_REJECT : DAT_IB_UD_CONNECT_ERROR);
}

void dapl_ud_failed(struct dapl_ep *ep, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t len)
{
	struct dapl_known_peer *peer = by_conn(ep, conn);
	struct dapl_conn_cause cause;

	assert_held(&ep->lock);
	if (!peer)
		return;
	dapl_failure_explain(ep, conn, &cause);
	failed(ep, peer, why, &cause, pdata, len);
}

static const struct dapl_ud_peer *destination(struct dapl_ep *ep, const struct ibv_ah *ah)
{
	const struct dapl_known_peer *peer = by_ah(ep, ah);

	return peer ? &peer->to : dapl_mcast_by_ah(ep, ah);
}

/* EXT-20, 23 */
DAT_RETURN dapl_ud_send(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			const DAT_IB_ADDR_HANDLE *to, DAT_DTO_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags)
{
	static const struct dapl_post_kind kind = { DAT_IB_DTO_SEND_UD, REQ_EXTENSION, DCNT_EP_POST_SEND_UD };
	struct dapl_device_attr *dev = &ep->obj.ia->attr;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = (struct ibv_sge *)iov,
		.num_sge = n };
	uint64_t total = 0;
	const struct dapl_ud_peer *peer;

	if (!READ_ONCE(ep->is_ud) || READ_ONCE(ep->is_raw))
		return BAD_PARAM(1);
	if (n < 0 || n > READ_ONCE(ep->max_send_iov))
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	if (!to || !to->ah)
		return BAD_PARAM(4);
	for (int i = 0; i < n; i++)
		total += iov[i].segment_length;
	if (total > __atomic_load_n(&dev->mtu, __ATOMIC_RELAXED))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	dapl_mutex_lock(&ep->lock);
	peer = destination(ep, to->ah);
	if (peer) {
		wr.wr.ud.ah = peer->ah;
		wr.wr.ud.remote_qpn = to->qpn;
		wr.wr.ud.remote_qkey = peer->qkey;
	}
	dapl_mutex_unlock(&ep->lock);
	if (!peer)
		return BAD_PARAM(4);
	wr.send_flags = IBV_SEND_INLINE;	/* if dapl_ep_post_request() finds that it may */
	return dapl_ep_post_request(ep, &wr, (uint32_t)total, cookie, flags, &kind);
}

/* EXT-19 */
DAT_RETURN dapl_ud_cm_free(struct dapl_ep *ep, DAT_CONTEXT cm)
{
	DAT_RETURN ret = BAD_PARAM(2);

	if (!READ_ONCE(ep->is_ud) || READ_ONCE(ep->is_raw))
		return BAD_PARAM(1);
	dapl_mutex_lock(&ep->lock);
	for (struct dapl_known_peer *peer = ep->known_peers; peer; peer = peer->next)
		if (peer == cm.as_ptr && !peer->cm_freed) {
			drop_conn(peer);
			peer->cm_freed = true;
			peer->pdata_len = 0;
			if (!peer->to.ah)
				forget(ep, peer);
			ret = DAT_SUCCESS;
			break;
		}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* EXT-20 */
DAT_RETURN dapl_ud_ah_free(struct dapl_ep *ep, DAT_IB_ADDR_HANDLE *ah)
{
	struct dapl_known_peer *peer;

	if (!READ_ONCE(ep->is_ud) || READ_ONCE(ep->is_raw))
		return BAD_PARAM(1);
	if (!ah)
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	peer = by_ah(ep, ah->ah);
	if (peer) {
		drop_ah(peer);
		if (!peer->conn)
			forget(ep, peer);
		ah->ah = NULL;
	}
	dapl_mutex_unlock(&ep->lock);
	return peer ? DAT_SUCCESS : BAD_PARAM(2);
}
