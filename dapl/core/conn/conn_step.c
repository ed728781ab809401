/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_step.c - a step of an endpoint's connection: the state, the event, the cause of a failure, and the
 * endpoint's timer (conn_step.h). */
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/event/evd_notify.h"

bool dapl_ep_make_step(struct dapl_ep *ep, enum dapl_ep_event event,
		       const struct dapl_conn_cause *cause)
{
	struct dapl_evd *recv_evd = dapl_ep_recv_evd(ep);
	DAT_EP_STATE before = ep->state;
	DAT_EVENT_NUMBER due;

	assert_held(&ep->lock);
	if (!dapl_object_is_live(&ep->obj) || !dapl_ep_step(ep, event, &due))
		return false;
	if (event == EP_BROKEN)
		dapl_count(ep->obj.ia, DCNT_IA_CM_ERR_RESET);
	if (cause)	/* before the event, because the consumer may exit at the event */
		dapl_failure_report(ep, before, due, cause);
	if (ep->state == DAT_EP_STATE_DISCONNECTED) {
		dapl_ep_disarm(ep);
		dapl_ep_terminate(ep, due);
	} else {
		dapl_ep_post_event(ep, due);
	}
	if (event == EP_ESTABLISHED) {
		__atomic_store_n(&ep->up, true, __ATOMIC_RELEASE);
		if (recv_evd)
			dapl_evd_release(recv_evd);
	}
	return true;
}

void dapl_ep_arm(struct dapl_ep *ep, uint64_t delay_us, void (*fire)(struct dapl_timer *))
{
	assert_held(&ep->lock);
	dapl_ep_disarm(ep);
	dapl_object_get(&ep->obj);
	dapl_timer_start(&ep->timer, delay_us, fire);
}

void dapl_ep_disarm(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	if (dapl_timer_stop(&ep->timer))
		dapl_object_put(&ep->obj);
}
