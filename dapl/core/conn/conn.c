/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - handles reports about an endpoint's connection: upcalls of the device, and the hooks of
 * event.h. The state table (ep_state.c) determines the events.
 *
 * A connection holds a reference of its endpoint from connect or accept until dapl_up_released. An
 * upcall for a connection that the endpoint has dropped is ignored: under ep->lock it finds another
 * ep->conn. CONN-27. */
#include <string.h>
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/disconnect.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/event/event.h"

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
		dapl_ep_make_step(ep, EP_BROKEN, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

bool dapl_ep_comm_established(struct dapl_ep *ep)
{
	bool now;

	dapl_mutex_lock(&ep->lock);
	now = ep->state == DAT_EP_STATE_COMPLETION_PENDING && dapl_ep_make_step(ep, EP_ESTABLISHED, NULL);
	dapl_mutex_unlock(&ep->lock);
	return now;
}

/* A completion was dequeued, and a drain or a terminal event waits for it. */
static void ep_drained(struct dapl_ep *ep)
{
	dapl_mutex_lock(&ep->lock);
	if (!dapl_object_is_live(&ep->obj))
		;	/* the endpoint was freed, so no event is due */
	else if (ep->state == DAT_EP_STATE_DISCONNECT_PENDING && dapl_ep_is_drained(ep))
		dapl_ep_make_step(ep, EP_DRAINED, NULL);
	else
		dapl_ep_deliver_event(ep);
	dapl_mutex_unlock(&ep->lock);
}

/* --- upcalls ------------------------------------------------------------------------------------ */

/* CONN-3, 30 */
static void keep_pdata(struct dapl_ep *ep, const void *pdata, size_t len)
{
	ep->pdata_len = len < sizeof ep->pdata ? len : sizeof ep->pdata;
	if (ep->pdata_len)
		memcpy(ep->pdata, pdata, ep->pdata_len);
}

/* CONN-1 */
void dapl_up_established(void *owner, struct dapl_conn *conn, const struct dapl_established *info)
{
	struct dapl_ep *ep = owner;
	bool active;

	assert_no_lock_held();
	dapl_mutex_lock(&ep->lock);
	if (ep->is_ud) {
		dapl_ud_established(ep, conn, info);
	} else if (ep->conn == conn) {
		active = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
		dapl_ep_disarm(ep);
		if (active)	/* SP-31 */
			keep_pdata(ep, info->pdata, info->pdata_len);
		if (info->local.ss_family)
			ep->local = info->local;
		if (info->remote.ss_family)
			ep->remote = info->remote;
		dapl_count(ep->obj.ia, active ? DCNT_IA_CM_ACTIVE_EST : DCNT_IA_CM_PASSIVE_EST);
		dapl_ep_make_step(ep, EP_ESTABLISHED, NULL);
	}
	dapl_mutex_unlock(&ep->lock);
}

static const enum dapl_ep_event failure_event[] = {
	[DAPL_CONN_REJECTED] = EP_REJECTED, [DAPL_CONN_REFUSED] = EP_REFUSED,
	[DAPL_CONN_UNREACHABLE] = EP_UNREACHABLE, [DAPL_CONN_TIMED_OUT] = EP_TIMED_OUT,
};
/* There is no counter for unreachable peers: they count as timeouts. */
static const unsigned failure_counter[] = {
	[DAPL_CONN_REJECTED] = DCNT_IA_CM_USER_REJ_RX, [DAPL_CONN_REFUSED] = DCNT_IA_CM_ERR_REFUSED,
	[DAPL_CONN_UNREACHABLE] = DCNT_IA_CM_ERR_TIMEOUT, [DAPL_CONN_TIMED_OUT] = DCNT_IA_CM_ERR_TIMEOUT,
};

void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t pdata_len)
{
	struct dapl_ep *ep = owner;
	struct dapl_conn_cause cause;

	assert_no_lock_held();
	dapl_mutex_lock(&ep->lock);
	if (ep->is_ud) {
		dapl_ud_failed(ep, conn, why, pdata, pdata_len);
	} else if (ep->conn == conn) {
		dapl_failure_explain(ep, conn, &cause);
		dapl_ep_disarm(ep);
		keep_pdata(ep, pdata, why == DAPL_CONN_REJECTED ? pdata_len : 0);
		dapl_count(ep->obj.ia, failure_counter[why]);
		dapl_ep_make_step(ep, failure_event[why], &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

bool dapl_up_has_requests(void *owner, const struct dapl_conn *conn)
{
	struct dapl_ep *ep = owner;
	bool has;

	assert_no_lock_held();
	dapl_mutex_lock(&ep->lock);
	has = ep->conn == conn && !ep->is_ud && (dapl_queue_count(&ep->sq) || READ_ONCE(ep->sq.failed));
	dapl_mutex_unlock(&ep->lock);
	return has;
}

/* CONN-36 */
void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly)
{
	struct dapl_ep *ep = owner;
	struct dapl_conn_cause cause;

	assert_no_lock_held();
	dapl_mutex_lock(&ep->lock);
	if (ep->conn == conn && !ep->is_ud) {
		dapl_failure_explain(ep, conn, &cause);
		if (orderly) {
			dapl_failure_code(&cause, DAPL_CODE_NONE, 0, "the peer disconnected");
			dapl_count(ep->obj.ia, DCNT_IA_CM_DREQ_RX);
		}
		dapl_ep_make_step(ep, orderly ? EP_PEER_CLOSED : EP_BROKEN, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
}

void dapl_up_released(void *owner)
{
	struct dapl_ep *ep = owner;

	dapl_object_put(&ep->obj);
}

/* --- the layers below -------------------------------------------------------------------------- */

void dapl_ep_conn_start(void)
{
	dapl_conn_hooks = (struct dapl_conn_hooks){
		.broken = dapl_ep_broken, .comm_established = dapl_ep_comm_established,
		.completed = ep_drained, .refuse_request = dapl_cr_refuse,
	};
}
