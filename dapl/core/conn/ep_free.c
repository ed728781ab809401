/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_free.c - resets and frees endpoints, and ends their connections (ep_free.h). */
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/watermark.h"

/* dat_ep_reset: DISCONNECTED -> UNCONNECTED with an empty QP. A terminal event that waits for completions
 * is delivered first, because the reset discards these completions. EP-26, 27, 28, CONN-16, 34. */
DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EP_STATE before;
	struct ibv_qp *qp;

	if (!ep)
		return BAD_HANDLE(EP);
	dapl_ep_lock_settled(ep);
	before = ep->state;
	if (!dapl_object_is_live(&ep->obj)) {
		dapl_mutex_unlock(&ep->lock);
		return BAD_HANDLE(EP);
	}
	if (!dapl_ep_may(ep, EP_DO_RESET)) {
		dapl_mutex_unlock(&ep->lock);
		return dapl_status_bad_ep_state(before);
	}
	if (before == DAT_EP_STATE_DISCONNECTED) {
		dapl_ep_begin_change(ep);
		dapl_ep_deliver_deferred(ep);
		ret = dapl_ep_take_emptied_qp(ep, &qp);
		if (ret == DAT_SUCCESS) {
			dapl_watermark_forget(ep, dapl_ep_recv_evd(ep));
			ep->pdata_len = 0;
			ep->remote.ss_family = ep->local.ss_family = AF_UNSPEC;
			dapl_ep_step(ep, EP_DO_RESET, NULL);
		}
		if (qp)
			dapl_ep_give_qp(ep, qp);
		if (ret == DAT_SUCCESS && ep->is_raw)
			dapl_ep_begin_raw(ep);
		dapl_ep_end_change(ep);
	}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

void dapl_ep_destroy(struct dapl_ep *ep)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_disarm(ep);
	if (ep->is_ud && !ep->is_raw)
		dapl_ud_end(ep);
	if (ep->conn && ep->qp)
		dapl_device_ops.error_qp(ep->qp);
	dapl_ep_drop_conn(ep);	/* EP-25, IA-11, CONN-35 */
	__atomic_store_n(&ep->deferred, false, __ATOMIC_RELAXED);
	ep->terminal = 0;
	dapl_mutex_unlock(&ep->lock);
	dapl_ep_end_qp(ep);
	dapl_ep_unfeed_evds(ep->recv_evd, ep->request_evd, &ep->attr);
	dapl_ep_drop_connect_evd(ep->connect_evd);
	dapl_ep_end_discards(ep);
	if (ep->pz)
		dapl_unuse(&ep->pz->obj);
	if (ep->srq)
		dapl_unuse(&ep->srq->obj);
	dapl_object_bury(&ep->obj);
}

/* The sum of an IA's endpoints does not get smaller by a free (dapl_counters_each_total). Two calls that free one
 * endpoint may come here. */
static void keep_counters(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;

	assert_held(&ep->lock);
	dapl_mutex_lock(&ia->lock);
	if (!ep->counters_kept) {
		struct dapl_evd *evd = dapl_ep_lock_counters(ep);

		for (int i = 0; i < DCNT_EP_ALL_COUNTERS; i++)
			ia->freed_counters[i] += __atomic_load_n(&ep->counters[i], __ATOMIC_RELAXED);
		dapl_ep_unlock_counters(ep, evd);
	}
	ep->counters_kept = true;
	dapl_mutex_unlock(&ia->lock);
}

/* dat_ep_free (doc/spec/calls.md 5): ends a connection that the endpoint has. EP-23, 24. */
DAT_RETURN dapl_ep_free(DAT_EP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return BAD_HANDLE(EP);
	dapl_mutex_lock(&ep->lock);
	if (!dapl_ep_may(ep, EP_DO_FREE))
		ret = dapl_status_bad_ep_state(ep->state);
	else {
		keep_counters(ep);
		if (!dapl_object_kill(&ep->obj))
			ret = BAD_HANDLE(EP);
	}
	dapl_mutex_unlock(&ep->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_wait_calls(&ep->obj, 1);
	dapl_count(ep->obj.ia, DCNT_IA_EP_FREE);
	dapl_ep_destroy(ep);
	return DAT_SUCCESS;
}
