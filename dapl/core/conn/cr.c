/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cr.c - connection requests: querying, accepting, rejecting, handing off to another service point. Service
 * points deliver them (sp_request.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/ready.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/conn/sp_request.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"

static void end_cr(struct dapl_object *obj)
{
	free(container_of(obj, struct dapl_cr, obj)->pdata);
}

/* Copies the private data of a request, most of which have none. */
static bool keep_pdata(struct dapl_cr *cr, const struct dapl_request *request)
{
	size_t length = request->pdata_len < DAPL_CONN_PDATA_MAX ? request->pdata_len : DAPL_CONN_PDATA_MAX;

	if (!length)
		return true;
	cr->pdata = calloc(1, length);
	if (!cr->pdata)
		return false;
	memcpy(cr->pdata, request->pdata, length);
	cr->pdata_len = (int)length;
	return true;
}

/* CONN-2 */
struct dapl_cr *dapl_cr_new(struct dapl_ia *ia, struct dapl_conn *conn,
			    const struct dapl_request *request)
{
	struct dapl_cr *cr = dapl_object_new(DAPL_CR, sizeof *cr, ia, end_cr);

	if (!cr)
		return NULL;
	if (!keep_pdata(cr, request)) {
		dapl_object_bury(&cr->obj);
		return NULL;
	}
	cr->conn = conn;
	cr->ud = request->ud;
	cr->local = request->local;
	cr->remote = request->remote;
	return cr;
}

/* Of two calls that answer one request, one wins. SP-28, 33. */
static bool claim(struct dapl_cr *cr)
{
	return !__atomic_exchange_n(&cr->busy, true, __ATOMIC_ACQ_REL);
}

static void unclaim(struct dapl_cr *cr)
{
	__atomic_store_n(&cr->busy, false, __ATOMIC_RELEASE);
}

/* Gives up the endpoint of the request: a reserved one returns to the consumer, one that the
 * provider made is freed. SP-32, 43. */
static void return_endpoint(struct dapl_cr *cr)
{
	struct dapl_ep *ep = cr->ep;

	__atomic_store_n(&cr->ep, NULL, __ATOMIC_RELAXED);
	if (!ep)
		return;
	dapl_mutex_lock(&ep->lock);
	ep->cr = NULL;
	if (cr->from_rsp)
		dapl_ep_step(ep, EP_DO_REJECT, NULL);
	dapl_mutex_unlock(&ep->lock);
	if (!cr->from_rsp && dapl_object_kill(&ep->obj)) {
		dapl_object_wait_calls(&ep->obj, 0);
		dapl_ep_destroy(ep);
	}
	dapl_object_put(&ep->obj);
}

/* Ends a CR after its request was answered. Called by the call that has claimed the CR. The connection has
 * another owner by then. */
static void finish(struct dapl_cr *cr)
{
	if (!dapl_object_kill(&cr->obj))
		return;		/* dat_ia_close ends the CR */
	dapl_object_wait_calls(&cr->obj, 1);
	return_endpoint(cr);
	dapl_object_bury(&cr->obj);
}

void dapl_cr_discard(struct dapl_cr *cr)
{
	return_endpoint(cr);
	dapl_object_bury(&cr->obj);
}

void dapl_cr_refuse(DAT_CR_HANDLE handle)
{
	DAPL_ENTERED struct dapl_cr *cr = dapl_cr_enter(handle);

	if (!cr || !claim(cr))
		return;		/* the request is answered already, or dat_ia_close refuses it */
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "cr", cr, NULL, "request refused: its EVD is freed");
	dapl_device_ops.reject(cr->conn, false, NULL, 0);
	cr->conn = NULL;
	dapl_count(cr->obj.ia, DCNT_IA_CM_ERR_REJ_TX);
	finish(cr);
}

void dapl_cr_destroy(struct dapl_cr *cr)
{
	if (cr->conn)
		dapl_device_ops.release(cr->conn);	/* SP-44 */
	cr->conn = NULL;
	return_endpoint(cr);
	dapl_object_bury(&cr->obj);
}

/* SP-19, 20, 21 */
DAT_RETURN dapl_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	DAPL_ENTERED struct dapl_cr *cr = dapl_cr_enter(handle);

	if (!cr)
		return BAD_HANDLE(CR);
	if (mask & ~DAT_CR_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->remote;
	param->remote_port_qual = dapl_port_of(&cr->remote);
	param->private_data_size = cr->pdata_len;
	param->private_data = cr->pdata;
	param->local_ep_handle = (DAT_EP_HANDLE)__atomic_load_n(&cr->ep, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

/* True if the peer closed before it was accepted. The consumer gets an event about that, so the accept
 * succeeds. SP-29. */
static bool peer_is_gone(int err)
{
	switch (err) {
	case ECONNRESET: case ENOTCONN: case ECONNABORTED: case EPIPE: case ETIMEDOUT:
	case EINVAL:
		return true;
	default:
		return false;
	}
}

/* A device may take less private data in some replies than in others. */
static DAT_RETURN accept_error(int err)
{
	return err == EMSGSIZE ? BAD_PARAM(3) : dapl_status(err, DAT_RESOURCE_TEP);
}

/* Called with ep->lock held. */
static DAT_RETURN accept_on(struct dapl_cr *cr, struct dapl_ep *ep, int len, const void *data)
{
	struct dapl_conn_params params;
	DAT_EVENT_NUMBER due;
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	if (!dapl_object_is_live(&ep->obj))
		return BAD_HANDLE(EP);
	if (!dapl_ep_may(ep, EP_DO_ACCEPT) || (ep->cr && ep->cr != cr))
		return dapl_status_bad_ep_state(ep->state);	/* SP-22 */
	if ((ret = dapl_ep_make_ready(ep)))	/* SP-25 */
		return ret;
	dapl_ep_conn_params(ep, &params, data, len);
	dapl_object_get(&ep->obj);	/* the reference of the connection */
	ep->conn = cr->conn;
	err = dapl_device_ops.accept(cr->conn, &params);
	if (err && !peer_is_gone(err)) {
		ep->conn = NULL;
		dapl_object_put(&ep->obj);
		return accept_error(err);
	}
	DAPL_PROBE2(accept, ep, cr);
	ep->cr = NULL;
	ep->local = cr->local;
	ep->remote = cr->remote;
	ep->remote_qual = dapl_port_of(&cr->remote);
	dapl_ep_step(ep, EP_DO_ACCEPT, NULL);
	if (err) {
		trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, NULL, "accept: %s", strerror(err));
		dapl_object_put(&ep->obj);	/* the device has no owner for the connection, so no upcall
						 * drops the reference */
		dapl_ep_step(ep, EP_PEER_CLOSED, &due);
		dapl_ep_terminate(ep, due);
	}
	return DAT_SUCCESS;
}

static DAT_RETURN accept_with(struct dapl_cr *cr, struct dapl_ep *ep, int len, const void *data)
{
	DAT_RETURN ret;

	dapl_ep_lock_settled(ep);
	if (ep->is_raw)
		ret = NOT_SUPPORTED;	/* ETH-7 */
	else if (ep->is_ud != cr->ud)
		ret = BAD_HANDLE(EP);
	else if (cr->ud)
		ret = dapl_ud_accept(ep, cr, len, data);
	else
		ret = accept_on(cr, ep, len, data);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* dat_cr_accept (doc/spec/calls.md 7). After an error the CR stays valid, and the EP has not changed.
 * SP-23, 24, 26, 27, 30. */
DAT_RETURN dapl_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT len,
			  const DAT_PVOID data)
{
	DAPL_ENTERED struct dapl_cr *cr = dapl_cr_enter(handle);
	DAPL_ENTERED struct dapl_ep *given = NULL;
	DAT_RETURN ret;

	if (!cr)
		return BAD_HANDLE(CR);
	if (len < 0 || len > (DAT_COUNT)cr->obj.ia->attr.pdata_accept)
		return BAD_PARAM(3);
	if (len && !data)
		return BAD_PARAM(4);
	if (!claim(cr))
		return BAD_HANDLE(CR);
	given = dapl_ep_enter(ep_handle);
	if (cr->ep ? ep_handle != DAT_HANDLE_NULL : !given || given->obj.ia != cr->obj.ia)
		ret = BAD_HANDLE(EP);
	else
		ret = accept_with(cr, cr->ep ? cr->ep : given, len, data);
	if (ret != DAT_SUCCESS) {
		unclaim(cr);
		return ret;
	}
	dapl_count(cr->obj.ia, DCNT_IA_SP_CR_ACCEPTED);
	dapl_count(cr->obj.ia, DCNT_IA_CM_REP_TX);
	if (cr->ep)
		dapl_object_put(&cr->ep->obj);
	__atomic_store_n(&cr->ep, NULL, __ATOMIC_RELAXED);	/* dat_cr_query may read it at the same
								 * time */
	cr->conn = NULL;
	finish(cr);
	return DAT_SUCCESS;
}

/* dat_cr_reject (doc/spec/calls.md 7). CONN-14, 15. */
DAT_RETURN dapl_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT len, const DAT_PVOID data)
{
	DAPL_ENTERED struct dapl_cr *cr = dapl_cr_enter(handle);
	struct dapl_ia *ia;

	if (!cr)
		return BAD_HANDLE(CR);
	ia = cr->obj.ia;
	if (len < 0 || len > (DAT_COUNT)ia->attr.pdata_reject)
		return BAD_PARAM(2);
	if (len && !data)
		return BAD_PARAM(3);
	if (!claim(cr))
		return BAD_HANDLE(CR);
	if (dapl_device_ops.reject(cr->conn, true, data, len) == EMSGSIZE) {
		unclaim(cr);
		return BAD_PARAM(2);
	}
	cr->conn = NULL;
	dapl_count(ia, DCNT_IA_SP_CR_REJECTED);
	dapl_count(ia, DCNT_IA_CM_USER_REJ_TX);
	finish(cr);
	return DAT_SUCCESS;
}

/* dat_cr_handoff: delivers the request as if it had come to another service point of the IA. SP-34, 41. */
DAT_RETURN dapl_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qual)
{
	DAPL_ENTERED struct dapl_cr *cr = dapl_cr_enter(handle);
	struct dapl_cr *new;
	struct dapl_request request;
	DAPL_ENTERED struct dapl_sp *sp = NULL;

	if (!cr)
		return BAD_HANDLE(CR);
	sp = dapl_sp_find(cr->obj.ia, qual);
	if (!sp)
		return BAD_PARAM(2);
	if (!claim(cr))
		return BAD_HANDLE(CR);
	request = (struct dapl_request){ .local = cr->local, .remote = cr->remote,
		.pdata = cr->pdata, .pdata_len = cr->pdata_len, .ud = cr->ud };
	new = dapl_cr_new(cr->obj.ia, cr->conn, &request);
	if (!new || !dapl_sp_deliver(sp, new)) {
		if (new)
			dapl_cr_discard(new);
		unclaim(cr);
		return NO_RESOURCE(MEMORY);
	}
	cr->conn = NULL;
	finish(cr);
	return DAT_SUCCESS;
}
