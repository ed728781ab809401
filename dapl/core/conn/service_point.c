/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service_point.c - service points: persistent (PSP), reserved (RSP) and common (CSP). They
 * listen; an incoming request becomes a connection request (cr.c) on their EVD. */
#include <errno.h>
#include <string.h>
#include "common/descriptors.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_attr.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/evd_notify.h"

enum { BACKLOG = 1024 };	/* of the transport; DAT's own backlog is the EVD's room */

/* Of start_listening and close_sp, the later one sees the bit of the other and ends the listeners: the request
 * of an RSP may come, and close it, before the device has told core its listener. */
enum sp_life { SP_LISTENS = 1, SP_CLOSED = 2 };

/* --- making and ending --------------------------------------------------------------- */

static void end_listening(struct dapl_sp *sp)
{
	__atomic_store_n(&sp->listens, 0, __ATOMIC_RELEASE);
	if (sp->listener)
		dapl_device_ops.unlisten(sp->listener);
	if (sp->ud_listener)
		dapl_device_ops.unlisten(sp->ud_listener);
	sp->listener = sp->ud_listener = NULL;
}

static int start_listening(struct dapl_sp *sp, const struct sockaddr *address)
{
	struct dapl_ia *ia = sp->obj.ia;
	uint16_t port = dapl_qual_port(READ_ONCE(sp->qual));
	int err;

	err = dapl_device_ops.listen(ia->dev, address, &port, false, BACKLOG, sp, &sp->listener);
	if (err)
		return err;
	if (!READ_ONCE(sp->qual))
		WRITE_ONCE(sp->qual, port);	/* relaxed: a search may find it before or after */
	if (ia->attr.ud && (err = dapl_device_ops.listen(ia->dev, address, &port, true, BACKLOG, sp,
							 &sp->ud_listener)))
		trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "sp", sp, NULL, "no UD listener on %u: %s",
		      port, strerror(err));
	__atomic_store_n(&sp->listens, SP_RC | (sp->ud_listener ? SP_UD : 0), __ATOMIC_RELEASE);
	if (__atomic_fetch_or(&sp->life, SP_LISTENS, __ATOMIC_ACQ_REL) & SP_CLOSED)
		end_listening(sp);
	return 0;
}

/* Stops listening and gives up EVD and endpoint. Does nothing the second time. */
static void close_sp(struct dapl_sp *sp)
{
	struct dapl_ep *ep = sp->ep;
	unsigned life = __atomic_fetch_or(&sp->life, SP_CLOSED, __ATOMIC_ACQ_REL);

	if (life & SP_CLOSED)
		return;
	if (life & SP_LISTENS)
		end_listening(sp);
	if (ep && !__atomic_load_n(&sp->used, __ATOMIC_ACQUIRE)) {
		dapl_mutex_lock(&ep->lock);
		ep->rsp = NULL;
		dapl_ep_step(ep, EP_DO_RELEASE, NULL);
		dapl_mutex_unlock(&ep->lock);
	}
	if (ep)
		dapl_object_put(&ep->obj);
	dapl_unuse(&sp->evd->obj);
}

void dapl_sp_destroy(struct dapl_sp *sp)
{
	close_sp(sp);
	dapl_object_bury(&sp->obj);
}

static struct dapl_sp *new_sp(struct dapl_ia *ia, enum dapl_kind kind, DAT_CONN_QUAL qual,
			      struct dapl_evd *evd, DAT_PSP_FLAGS flags)
{
	struct dapl_sp *sp = dapl_object_new(kind, sizeof *sp, ia, NULL);

	if (!sp)
		return NULL;
	WRITE_ONCE(sp->qual, qual);
	sp->evd = evd;
	sp->flags = flags;
	if (!dapl_use(&evd->obj)) {
		dapl_object_put(&sp->obj);
		return NULL;
	}
	return sp;
}

/* The handle must be good before the first request comes. The event of that names it, so that
 * it may be freed before this returns: the caller's call is inside from here on. */
static DAT_RETURN publish(struct dapl_sp *sp, const struct sockaddr *address)
{
	struct dapl_ia *ia = sp->obj.ia;
	int err;

	dapl_object_enter_own(&sp->obj);
	dapl_object_publish(&sp->obj);
	err = start_listening(sp, address);
	if (!err) {
		dapl_count(sp->obj.ia, DCNT_IA_CM_LISTEN);
		return DAT_SUCCESS;
	}
	if (dapl_object_kill(&sp->obj)) {
		dapl_object_wait_calls(&sp->obj, 1);
		dapl_sp_destroy(sp);
	}
	dapl_object_leave(&sp->obj);
	if (err == EADDRNOTAVAIL)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	report_no_descriptors(ia->ia_attr.adapter_name, err, "listening");
	return dapl_status(err, DAT_RESOURCE_DEVICE);
}

/* Is it one for connection requests? `evd`, if any, is entered. SP-3. */
static bool is_cr_evd(const struct dapl_ia *ia, const struct dapl_evd *evd)
{
	return evd && evd->obj.ia == ia && (evd->flags & DAT_EVD_CR_FLAG);
}

/* The service point is entered. SP-4. */
static DAT_RETURN create_psp(struct dapl_ia *ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_handle,
			     DAT_PSP_FLAGS flags, struct dapl_sp **made)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(evd_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!is_cr_evd(ia, evd))
		return BAD_HANDLE(EVD_CR);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return BAD_PARAM(4);
	if (!(sp = new_sp(ia, DAPL_PSP, qual, evd, flags)))
		return NO_RESOURCE(MEMORY);
	if ((ret = publish(sp, NULL)))
		return ret;
	*made = sp;
	return DAT_SUCCESS;
}

/* dat_psp_create (doc/spec/calls.md 7). */
DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(5);
	if ((ret = create_psp(ia, qual, evd, flags, &sp)))
		return ret;
	dapl_count(ia, DCNT_IA_PSP_CREATE);
	*handle = (DAT_PSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

/* dat_psp_create_any: the device chooses a port beyond the privileged ones. SP-5, 6. */
DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
			       DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(5);
	ret = create_psp(ia, 0, evd, flags, &sp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_count(ia, DCNT_IA_PSP_CREATE_ANY);
	*qual = READ_ONCE(sp->qual);
	*handle = (DAT_PSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

/* SP-7 */
DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_PSP);

	if (!sp)
		return BAD_HANDLE(PSP);
	if (mask & ~DAT_PSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->conn_qual = READ_ONCE(sp->qual);
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	param->psp_flags = sp->flags;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_PSP);

	if (!sp || !dapl_object_kill(&sp->obj))
		return BAD_HANDLE(PSP);
	dapl_object_wait_calls(&sp->obj, 1);
	dapl_count(sp->obj.ia, DCNT_IA_PSP_FREE);
	dapl_sp_destroy(sp);
	return DAT_SUCCESS;
}

/* --- reserved ---------------------------------------------------------------------------- */

/* SP-14, 15 */
static DAT_RETURN reserve(struct dapl_sp *sp, struct dapl_ep *ep)
{
	DAT_RETURN ret = DAT_SUCCESS;

	dapl_ep_lock_settled(ep);
	if (!dapl_object_is_live(&ep->obj)) {
		ret = BAD_HANDLE(EP);
	} else if (dapl_ep_step(ep, EP_DO_RESERVE, NULL)) {
		ep->rsp = sp;
		sp->ep = ep;
		dapl_object_get(&ep->obj);
	} else {
		ret = dapl_bad_ep_state(ep->state);
	}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* dat_rsp_create (doc/spec/calls.md 7): one request, for one endpoint. */
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			   DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	DAPL_ENTERED struct dapl_evd *evd = NULL;
	DAPL_ENTERED struct dapl_ep *ep = NULL;
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (ep_handle && (!(ep = dapl_ep_enter(ep_handle)) || ep->obj.ia != ia))
		return BAD_HANDLE(EP);
	if (!is_cr_evd(ia, evd = dapl_evd_enter(evd_handle)))
		return BAD_HANDLE(EVD_CR);
	if (!handle)
		return BAD_PARAM(5);
	if (!(sp = new_sp(ia, DAPL_RSP, qual, evd, DAT_PSP_CONSUMER_FLAG)))
		return NO_RESOURCE(MEMORY);
	if (ep && (ret = reserve(sp, ep))) {
		dapl_sp_destroy(sp);
		return ret;
	}
	*handle = (DAT_RSP_HANDLE)sp;	/* good before its request may come */
	if ((ret = publish(sp, NULL))) {
		*handle = DAT_HANDLE_NULL;
		return ret;
	}
	dapl_object_leave(&sp->obj);
	dapl_count(ia, DCNT_IA_RSP_CREATE);
	return DAT_SUCCESS;
}

/* SP-18 */
DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_RSP);

	if (!sp)
		return BAD_HANDLE(RSP);
	if (mask & ~DAT_RSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->conn_qual = READ_ONCE(sp->qual);
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	param->ep_handle = READ_ONCE(sp->used) ? DAT_HANDLE_NULL : (DAT_EP_HANDLE)sp->ep;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_RSP);

	if (!sp || !dapl_object_kill(&sp->obj))
		return BAD_HANDLE(RSP);
	dapl_object_wait_calls(&sp->obj, 1);
	dapl_count(sp->obj.ia, DCNT_IA_RSP_FREE);
	dapl_sp_destroy(sp);
	return DAT_SUCCESS;
}

/* --- common -------------------------------------------------------------------------------- */

static bool good_comm(const DAT_COMM *comm, const struct sockaddr *address)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) &&
		comm->domain == address->sa_family && comm->type == SOCK_STREAM &&
		(comm->protocol == 0 || comm->protocol == IPPROTO_TCP);
}

/* dat_csp_create (DAT 2.0): a listener at a socket address; port 0 lets the device choose. */
DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	const struct sockaddr *at = (const struct sockaddr *)address;
	DAPL_ENTERED struct dapl_evd *evd = NULL;
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!comm)
		return BAD_PARAM(2);
	if (!address)
		return BAD_PARAM(3);
	if (!is_cr_evd(ia, evd = dapl_evd_enter(evd_handle)))
		return BAD_HANDLE(EVD_CR);
	if (!handle)
		return BAD_PARAM(5);
	if (!good_comm(comm, at))
		return DAT_ERROR(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!(sp = new_sp(ia, DAPL_CSP, 0, evd, DAT_PSP_CONSUMER_FLAG)))
		return NO_RESOURCE(MEMORY);
	sp->comm = *comm;
	address_copy(&sp->address, at);
	WRITE_ONCE(sp->qual, dapl_port_of(&sp->address));
	ret = publish(sp, (struct sockaddr *)&sp->address);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DAT_ERROR(DAT_PORT_IN_USE, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		return ret;
	((struct sockaddr_in *)&sp->address)->sin_port = htons(READ_ONCE(sp->qual));
	*handle = (DAT_CSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_CSP);

	if (!sp)
		return BAD_HANDLE(CSP);
	if (mask & ~DAT_CSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->comm = &sp->comm;
	param->address_ptr = (DAT_IA_ADDRESS_PTR)&sp->address;
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_CSP);

	if (!sp || !dapl_object_kill(&sp->obj))
		return BAD_HANDLE(CSP);
	dapl_object_wait_calls(&sp->obj, 1);
	dapl_sp_destroy(sp);
	return DAT_SUCCESS;
}

/* --- requests -------------------------------------------------------------------------------- */

/* A request may come before core knows which port the device has chosen. */
static DAT_CONN_QUAL qual_of(const struct dapl_sp *sp, const struct dapl_cr *cr)
{
	DAT_CONN_QUAL qual = READ_ONCE(sp->qual);

	return qual ? qual : dapl_port_of(&cr->local);
}

/* False: the EVD is full. */
static bool tell_request(struct dapl_sp *sp, struct dapl_cr *cr)
{
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	event.event_number = cr->ud ? (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT :
		DAT_CONNECTION_REQUEST_EVENT;
	data = &event.event_data.cr_arrival_event_data;
	/* An RSP is named too, since programs compare it. It no longer listens, but its handle
	 * stays good until dat_rsp_free, which programs call. */
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

/* The provider's own endpoint for a request; the consumer configures it before it accepts. */
static struct dapl_ep *provider_ep(struct dapl_ia *ia, struct dapl_cr *cr)
{
	DAT_EP_ATTR attr;
	struct dapl_ep *ep;

	dapl_ep_default_attr(ia, &attr);
	if (cr->ud)
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	if (dapl_ep_make(ia, NULL, NULL, NULL, NULL, NULL, &attr, 6, &ep) != DAT_SUCCESS)
		return NULL;
	dapl_ep_begin_tentative(ep);
	ep->by_provider = true;
	ep->cr = cr;
	dapl_object_publish(&ep->obj);
	dapl_count(ia, DCNT_IA_EP_CREATE);
	return ep;
}

/* False: there is no memory for one, or the reserved one was lost. */
static bool give_endpoint(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool reserved = sp->obj.kind == DAPL_RSP && sp->ep;

	if (reserved) {
		struct dapl_ep *ep = sp->ep;

		dapl_mutex_lock(&ep->lock);
		reserved = dapl_object_is_live(&ep->obj) &&
			dapl_ep_step(ep, EP_REQUEST_ARRIVED, NULL);
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
	if (sp->obj.kind != DAPL_RSP && sp->flags != DAT_PSP_PROVIDER_FLAG)
		return true;
	if (!dapl_evd_has_room(sp->evd, 1))
		return false;	/* no room for the event, so make no endpoint */
	cr->ep = provider_ep(sp->obj.ia, cr);
	if (cr->ep)
		dapl_object_get(&cr->ep->obj);
	return cr->ep != NULL;
}

/* The reserved endpoint of a request that could not be told is reserved again. One that the
 * provider made stays with the CR, and goes with it. */
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

/* The CR has an event on the EVD. True also when dat_ia_close has condemned the CR meanwhile,
 * and so refuses it. The EVD may have become full since it was looked at. */
static bool publish_request(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool told;

	dapl_object_enter_own(&cr->obj);	/* it may be answered before the event is told */
	dapl_object_publish(&cr->obj);
	told = tell_request(sp, cr) || !dapl_object_kill(&cr->obj);
	if (!told) {
		dapl_object_wait_calls(&cr->obj, 1);
		take_back_endpoint(sp, cr);
	}
	dapl_object_leave(&cr->obj);
	return told;
}

static void end_used_rsp(struct dapl_task *task)
{
	struct dapl_sp *sp = container_of(task, struct dapl_sp, task);

	close_sp(sp);
	dapl_object_put(&sp->obj);
}

bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr)
{
	bool one_shot = sp->obj.kind == DAPL_RSP;

	if (one_shot && __atomic_exchange_n(&sp->used, true, __ATOMIC_ACQ_REL))
		return false;	/* its request came before; it may have let its EVD go */
	if (!give_endpoint(sp, cr) || !publish_request(sp, cr)) {
		if (one_shot)
			__atomic_store_n(&sp->used, false, __ATOMIC_RELEASE);
		return false;
	}
	if (one_shot) {
		dapl_object_get(&sp->obj);	/* the task's */
		dapl_task_queue(&sp->task, end_used_rsp);
	}
	return true;
}

static struct dapl_sp *find_in(struct dapl_object *list, DAT_CONN_QUAL qual)
{
	for (; list; list = list->next) {
		struct dapl_sp *sp = (struct dapl_sp *)list;

		if (READ_ONCE(sp->qual) == qual)
			return dapl_object_enter((DAT_HANDLE)sp, sp->obj.kind);
	}
	return NULL;
}

struct dapl_sp *dapl_sp_find(struct dapl_ia *ia, DAT_CONN_QUAL qual)
{
	struct dapl_sp *sp;

	dapl_mutex_lock(&ia->lock);
	if (!(sp = find_in(ia->objects[DAPL_PSP], qual)) &&
	    !(sp = find_in(ia->objects[DAPL_RSP], qual)))
		sp = find_in(ia->objects[DAPL_CSP], qual);
	dapl_mutex_unlock(&ia->lock);
	return sp;
}

void dapl_up_request(void *owner, struct dapl_conn *conn, const struct dapl_request *request)
{
	struct dapl_sp *sp = owner;
	struct dapl_cr *cr = dapl_cr_new(sp->obj.ia, conn, request);

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
