/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* disconnect.c - dat_ep_disconnect: abrupt, or graceful after all posts have completed (disconnect.h). */
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/disconnect.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/polled.h"

static bool is_marker_of(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	(void)wc;
	return (dto->flags & REQ_MARKER) && dto->ep == arg;
}

bool dapl_ep_is_drained(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	return !dapl_queue_count(&ep->sq) || dapl_evd_contains(dapl_ep_request_evd(ep), is_marker_of, ep);
}

/* Times between two looks at the queue. A hardware queue drains in less than the first. */
enum { DRAIN_FIRST_US = 200, DRAIN_LATER_US = 2000 };

static void look_drained(struct dapl_timer *timer)
{
	struct dapl_ep *ep = container_of(timer, struct dapl_ep, timer);

	dapl_mutex_lock(&ep->lock);
	if (ep->state == DAT_EP_STATE_DISCONNECT_PENDING && dapl_object_is_live(&ep->obj)) {
		if (dapl_ep_is_drained(ep))
			dapl_ep_make_step(ep, EP_DRAINED, NULL);
		else
			dapl_ep_arm(ep, DRAIN_LATER_US, look_drained);
	}
	dapl_mutex_unlock(&ep->lock);
	dapl_object_put(&ep->obj);
}

/* CONN-25 */
static void disconnect_gracefully(struct dapl_ep *ep)
{
	if (!dapl_queue_count(&ep->sq)) {
		dapl_ep_make_step(ep, EP_DRAINED, NULL);
		return;
	}
	dapl_ep_post_marker(ep, false);
	dapl_ep_defer_event(ep);
	if (dapl_ep_is_drained(ep))
		dapl_ep_make_step(ep, EP_DRAINED, NULL);
	else
		dapl_ep_arm(ep, DRAIN_FIRST_US, look_drained);
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
	if (ep->is_raw)
		event = EP_DO_DISCONNECT;	/* there is no peer to drain to */
	before = ep->state;
	DAPL_PROBE2(disconnect, ep, before);
	if (!dapl_object_is_live(&ep->obj)) {
		ret = BAD_HANDLE(EP);
	} else if (ep->is_ud && !ep->is_raw) {
		ret = dapl_ud_disconnect(ep);
	} else if (!dapl_ep_may(ep, event)) {
		ret = dapl_status_bad_ep_state(before);
	} else if (before != DAT_EP_STATE_DISCONNECTED) {
		ep->counters[DCNT_EP_DISCONNECT]++;
		dapl_count(ep->obj.ia, DCNT_IA_CM_DREQ_TX);
		if (before == DAT_EP_STATE_CONNECTED && event == EP_DO_DISCONNECT_GRACEFUL) {
			dapl_ep_step(ep, event, NULL);
			disconnect_gracefully(ep);
		} else if (before != DAT_EP_STATE_DISCONNECT_PENDING ||
			   event == EP_DO_DISCONNECT) {
			dapl_ep_make_step(ep, event, NULL);
		}
	}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}
