/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sp_request.c - delivers a request that reaches a service point: makes a connection request (cr.c), with
 * an endpoint if the service point has or makes one, and an event on its EVD. Rejects a request that finds
 * no room. SP-36. */
#include <string.h>
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/conn/sp_request.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_attr.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/event/evd_notify.h"

/* Returns the qualifier of a request. It may arrive before the device has returned the port that it has
 * chosen. SP-38, 39, 41, EXT-26. */
static DAT_CONN_QUAL qual_of(const struct dapl_sp *sp, const struct dapl_cr *cr)
{
	DAT_CONN_QUAL qual = READ_ONCE(sp->qual);

	return qual ? qual : dapl_port_of(&cr->local);
}

/* Returns false if the EVD is full. SP-13. */
static bool queue_request_event(struct dapl_sp *sp, struct dapl_cr *cr)
{
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	event.event_number = cr->ud ? (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT :
		DAT_CONNECTION_REQUEST_EVENT;
	data = &event.event_data.cr_arrival_event_data;
	/* The event names an RSP, too, unlike SP-16, because programs compare the handle. The RSP no longer
	 * listens, but its handle stays valid until dat_rsp_free, which programs call. */
	data->sp_handle.psp_handle = (DAT_PSP_HANDLE)sp;
	data->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->local;
	data->conn_qual = qual_of(sp, cr);
	data->cr_handle = (DAT_CR_HANDLE)cr;
	data->truncate_flag = DAT_FALSE;
	if (cr->ud)
		((DAT_IB_EXTENSION_EVENT_DATA *)(void *)event.event_extension_data)->type =
			DAT_IB_UD_CONNECT_REQUEST;
	if (!dapl_evd_offer(sp->evd, &event))
		return false;
	dapl_count(sp->obj.ia, DCNT_IA_SP_CR);
	return true;
}

/* Makes the provider's own endpoint for a request. The consumer configures it before it accepts. SP-12. */
static struct dapl_ep *provider_ep(struct dapl_ia *ia, struct dapl_cr *cr)
{
	DAT_EP_ATTR attr;
	struct dapl_ep *ep;

	dapl_ep_default_attr(ia, &attr);
	if (cr->ud)
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	if (dapl_ep_make(ia, NULL, NULL, NULL, NULL, NULL, &attr, 6, &ep) != DAT_SUCCESS)
		return NULL;
	dapl_mutex_lock(&ep->lock);
	dapl_ep_begin_tentative(ep);
	dapl_mutex_unlock(&ep->lock);
	ep->cr = cr;
	dapl_object_publish(&ep->obj);
	dapl_count(ia, DCNT_IA_EP_CREATE);
	return ep;
}

/* Gives the CR an endpoint if the service point has or makes one. Returns false if the reserved endpoint is
 * not reserved any more, or if there is no room for the event or no memory. */
static bool give_endpoint(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool reserved = sp->obj.kind == DAPL_RSP && sp->ep;

	if (reserved) {
		struct dapl_ep *ep = sp->ep;

		dapl_mutex_lock(&ep->lock);
		reserved = dapl_object_is_live(&ep->obj) && dapl_ep_step(ep, EP_REQUEST_ARRIVED, NULL);
		if (reserved) {
			ep->rsp = NULL;
			ep->cr = cr;
			cr->ep = ep;
			cr->from_rsp = true;
			dapl_object_get(&ep->obj);
		}
		dapl_mutex_unlock(&ep->lock);
		return reserved;
	}
	if (sp->obj.kind != DAPL_RSP && !(sp->flags & DAT_PSP_PROVIDER_FLAG))
		return true;
	if (!dapl_evd_has_room(sp->evd, 1))
		return false;	/* without room for the event, make no endpoint */
	cr->ep = provider_ep(sp->obj.ia, cr);
	if (cr->ep)
		dapl_object_get(&cr->ep->obj);
	return cr->ep != NULL;
}

/* Reserves the reserved endpoint again after its request could not be queued. An endpoint that the provider
 * made stays with the CR, and ends with it. SP-45. */
static void take_back_endpoint(struct dapl_sp *sp, struct dapl_cr *cr)
{
	struct dapl_ep *ep = cr->ep;

	if (!ep || !cr->from_rsp)
		return;
	dapl_mutex_lock(&ep->lock);
	ep->cr = NULL;
	ep->rsp = sp;
	dapl_ep_step(ep, EP_DO_REJECT, NULL);
	dapl_ep_step(ep, EP_DO_RESERVE, NULL);
	dapl_mutex_unlock(&ep->lock);
	cr->ep = NULL;
	dapl_object_put(&ep->obj);
}

/* Publishes the CR and queues its event. Returns false if the EVD is full. Returns true also if
 * dat_ia_close has killed the CR meanwhile: it then refuses the request. */
static bool publish_request(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool queued;

	dapl_object_enter_own(&cr->obj);	/* the request may be answered before queue_request_event
						 * returns */
	dapl_object_publish(&cr->obj);
	queued = queue_request_event(sp, cr) || !dapl_object_kill(&cr->obj);
	if (!queued) {
		dapl_object_wait_calls(&cr->obj, 1);
		take_back_endpoint(sp, cr);
	}
	dapl_object_leave(&cr->obj);
	return queued;
}

static void end_used_rsp(struct dapl_task *task)
{
	struct dapl_sp *sp = container_of(task, struct dapl_sp, task);

	dapl_sp_close(sp);
	dapl_object_put(&sp->obj);
}

bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool one_shot = sp->obj.kind == DAPL_RSP;

	if (one_shot && __atomic_exchange_n(&sp->used, true, __ATOMIC_ACQ_REL))
		return false;	/* its request has arrived before, and it may have given up its EVD.
				 * SP-16 */
	if (!give_endpoint(sp, cr) || !publish_request(sp, cr)) {
		if (one_shot)
			__atomic_store_n(&sp->used, false, __ATOMIC_RELEASE);
		return false;
	}
	if (one_shot) {
		dapl_object_get(&sp->obj);	/* the reference of the task */
		dapl_task_queue(&sp->task, end_used_rsp);
	}
	return true;
}

void dapl_up_request(void *owner, struct dapl_conn *conn, const struct dapl_request *request)
{
	struct dapl_sp *sp = owner;
	struct dapl_cr *cr = dapl_cr_new(sp->obj.ia, conn, request);

	assert_no_lock_held();
	dapl_count(sp->obj.ia, request->ud ? DCNT_IA_CM_AH_REQ_RX : DCNT_IA_CM_REQ_RX);
	if (cr && dapl_sp_deliver(sp, cr))
		return;
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "sp", sp, NULL, "request refused on %llu: %s",
	      (unsigned long long)READ_ONCE(sp->qual), cr ? "no room, or no endpoint" : "no memory");
	dapl_count(sp->obj.ia, DCNT_IA_CM_ERR_REJ_TX);
	if (cr)
		dapl_cr_discard(cr);
	dapl_device_ops.reject(conn, false, NULL, 0);
}
