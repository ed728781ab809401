/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.c - endpoints as objects: creating and querying. Resetting and freeing end a connection, and
 * are in conn/ep_free.c. Posting is in post.c, the states are in ep_state.c. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_attr.h"
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/recv_repost.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/mem/rmr_map.h"
#include "dapl/core/mem/zero_based.h"

static void end_ep(struct dapl_object *obj)
{
	struct dapl_ep *ep = (struct dapl_ep *)obj;

	free(ep->sq.ring);
	free(ep->rq.ring);
	dapl_saved_recv_free(ep->saved_recvs);
	dapl_map_end(ep);
	if (ep->eth)
		free(ep->eth->frames);
	free(ep->eth);
}

static DAT_RETURN arg_error(int arg)
{
	return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + arg - 1);
}

/* Checks the attributes and copies them. `attr_arg` is the number of the call's argument. */
static DAT_RETURN take_attr(struct dapl_ep *ep, const DAT_EP_ATTR *attr, int attr_arg)
{
	struct dapl_ia *ia = ep->obj.ia;
	const char *bad;
	DAT_RETURN ret;

	if (attr)
		ep->attr = *attr;
	else
		dapl_ep_default_attr(ia, &ep->attr);
	if ((bad = dapl_ep_bad_attr(ia, &ep->attr))) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "attribute %s", bad);
		return arg_error(attr_arg);
	}
	if ((ret = dapl_ep_named_attrs(ia, &ep->attr, &ep->delayed_ack, &ep->tuning,
				       arg_error(attr_arg)))) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL,
		      "attribute ep_provider_specific");
		return ret;
	}
	dapl_ep_attr_fill(ia, &ep->attr);
	ep->attr.ep_transport_specific_count = ep->attr.ep_provider_specific_count = 0;
	return DAT_SUCCESS;
}

/* No other thread can use the endpoint yet, but dapl_ep_need_qp() requires its lock. */
static DAT_RETURN make_first_qp(struct dapl_ep *ep)
{
	DAT_RETURN ret = DAT_SUCCESS;

	dapl_mutex_lock(&ep->lock);
	if (ep->pz && ep->recv_evd && ep->request_evd)
		ret = dapl_ep_need_qp(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* Counts the endpoint as a user of its PZ, SRQ and EVDs, and makes its QP if it has a PZ and both EVDs.
 * After an error it uses nothing. */
static DAT_RETURN use_parts(struct dapl_ep *ep)
{
	DAT_RETURN ret = dapl_ep_feed_evds(ep, ep->recv_evd, ep->request_evd, &ep->attr);

	if (ret)
		return ret;
	if ((ret = dapl_ep_pin_connect_evd(ep->connect_evd)))
		goto unfeed;
	if (ep->pz && !dapl_use(&ep->pz->obj)) {
		ret = BAD_HANDLE(PZ);
		goto drop_connect;
	}
	if (ep->srq && !dapl_use(&ep->srq->obj)) {
		ret = BAD_HANDLE(SRQ);
		goto unuse_pz;
	}
	if ((ret = dapl_ep_watch_receives(ep, ep->recv_evd)))
		goto unuse_srq;
	if ((ret = make_first_qp(ep)))
		goto unuse_srq;
	return DAT_SUCCESS;

unuse_srq:
	if (ep->srq)
		dapl_unuse(&ep->srq->obj);
unuse_pz:
	if (ep->pz)
		dapl_unuse(&ep->pz->obj);
drop_connect:
	dapl_ep_drop_connect_evd(ep->connect_evd);
unfeed:
	dapl_ep_unfeed_evds(ep->recv_evd, ep->request_evd, &ep->attr);
	dapl_ep_end_discards(ep);
	return ret;
}

DAT_RETURN dapl_ep_make(struct dapl_ia *ia, struct dapl_pz *pz, struct dapl_evd *recv,
			struct dapl_evd *request, struct dapl_evd *connect,
			struct dapl_srq *srq, const DAT_EP_ATTR *attr, int attr_arg,
			struct dapl_ep **made)
{
	struct dapl_ep *ep = dapl_object_new(DAPL_EP, sizeof *ep, ia, end_ep);
	DAT_RETURN ret;

	if (!ep)
		return NO_RESOURCE(MEMORY);
	dapl_mutex_init(&ep->lock, RANK_EP);
	dapl_post_lock_init(&ep->sq.lock, RANK_SQ, dapl_device_ops.posts_may_sleep);
	dapl_post_lock_init(&ep->rq.lock, RANK_RQ, dapl_device_ops.posts_may_sleep);
	ep->soft_hw = ep->hard_hw = DAT_WATERMARK_INFINITE;
	ep->comm = (DAT_COMM){ ia->attr.address.ss_family, SOCK_STREAM, IPPROTO_TCP };
	if ((ret = take_attr(ep, attr, attr_arg)))
		goto fail;
	if (srq && ep->attr.srq_soft_hw > 0)
		ep->soft_hw = ep->attr.srq_soft_hw;
	ep->pz = pz;
	ep->recv_evd = recv;
	ep->request_evd = request;
	ep->connect_evd = connect;
	WRITE_ONCE(ep->srq, srq);	/* a late post reads it without a lock */
	dapl_ep_set_post_limits(ep);
	if ((ret = use_parts(ep)))
		goto fail;
	*made = ep;
	return DAT_SUCCESS;
fail:
	dapl_object_put(&ep->obj);
	return ret;
}

/* Traces a refused dat_ep_create. There is no endpoint yet, so the line names the argument. */
static DAT_RETURN refuse(DAT_RETURN ret, const char *why)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "create refused: %s", why);
	return ret;
}

static const char *evd_named(DAT_RETURN_SUBTYPE which)
{
	return which == DAT_INVALID_HANDLE_EVD_RECV ? "recv_evd is no EVD of this IA for DTOs" :
		which == DAT_INVALID_HANDLE_EVD_REQUEST ? "request_evd is no EVD of this IA for DTOs" :
		"connect_evd is no EVD of this adapter for connection events";
}

static DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_handle, DAT_EVD_HANDLE request_handle,
			 DAT_EVD_HANDLE connect_handle, struct dapl_srq *srq,
			 const DAT_EP_ATTR *attr, int attr_arg, DAT_EP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	DAPL_ENTERED_EVDS struct dapl_evd *evds[3] = { NULL };
	DAPL_ENTERED struct dapl_pz *pz = NULL;
	struct dapl_ep *ep;
	DAT_RETURN ret;

	if (!ia)
		return refuse(BAD_HANDLE(IA), "no such IA");
	if (pz_handle && (!(pz = dapl_pz_enter(pz_handle)) || pz->obj.ia != ia))
		return refuse(BAD_HANDLE(PZ), "no PZ of this IA");
	if ((ret = dapl_ep_enter_evds(ia, recv_handle, request_handle, connect_handle, evds)))
		return refuse(ret, evd_named((DAT_RETURN_SUBTYPE)DAT_GET_SUBTYPE(ret)));
	if (srq && (!pz || pz != srq->pz))
		return refuse(BAD_PARAM(2), "the PZ is not the SRQ's");
	ret = dapl_ep_make(ia, pz, evds[0], evds[1], evds[2], srq, attr, attr_arg, &ep);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_enter_own(&ep->obj);
	dapl_object_publish(&ep->obj);
	dapl_zero_based_follow(ep);
	dapl_object_leave(&ep->obj);
	dapl_count(ia, DCNT_IA_EP_CREATE);
	*handle = (DAT_EP_HANDLE)ep;
	return DAT_SUCCESS;
}

/* dat_ep_create (doc/spec/calls.md 5). EP-2. */
DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *handle)
{
	if (!handle)
		return refuse(BAD_PARAM(7), "nowhere to put the handle");
	return create(ia, pz, recv, request, connect, NULL, attr, 6, handle);
}

/* SRQ-5 */
DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *attr,
				   DAT_EP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_srq *srq = dapl_srq_enter(srq_handle);
	DAPL_ENTERED struct dapl_ia *own = dapl_ia_enter(ia);

	if (!handle)
		return refuse(BAD_PARAM(8), "nowhere to put the handle");
	if (!own)
		return refuse(BAD_HANDLE(IA), "no such IA");
	if (!srq || srq->obj.ia != own)
		return refuse(BAD_HANDLE(SRQ), "no SRQ of this IA");
	if (!attr)
		return refuse(BAD_PARAM(7), "no attributes");
	return create(ia, pz, recv, request, connect, srq, attr, 7, handle);
}

/* --- queries --------------------------------------------------------------------------- */

static DAT_IA_ADDRESS_PTR address_ptr(struct sockaddr_storage *address)
{
	return address->ss_family ? (DAT_IA_ADDRESS_PTR)address : NULL;
}

static void current_param(struct dapl_ep *ep, DAT_EP_PARAM *param)
{
	param->ia_handle = dapl_ia_handle(ep->obj.ia);
	param->ep_state = ep->state;
	param->comm = ep->comm;
	param->local_ia_address_ptr = ep->local.ss_family ? address_ptr(&ep->local) :
		(DAT_IA_ADDRESS_PTR)&ep->obj.ia->attr.address;
	param->local_port_qual = dapl_port_of(&ep->local);
	param->remote_ia_address_ptr = address_ptr(&ep->remote);	/* CONN-31 */
	param->remote_port_qual = ep->remote.ss_family ? ep->remote_qual : 0;
	param->pz_handle = (DAT_PZ_HANDLE)ep->pz;
	param->recv_evd_handle = (DAT_EVD_HANDLE)ep->recv_evd;
	param->request_evd_handle = (DAT_EVD_HANDLE)ep->request_evd;
	param->connect_evd_handle = (DAT_EVD_HANDLE)ep->connect_evd;
	param->srq_handle = (DAT_SRQ_HANDLE)ep->srq;
	param->ep_attr = ep->attr;
	ep->provider_attr[0].name = "delayed_ack";
	ep->provider_attr[0].value = ep->delayed_ack ? "true" : "false";
	param->ep_attr.ep_transport_specific_count = 0;
	param->ep_attr.ep_transport_specific = NULL;
	param->ep_attr.ep_provider_specific_count = dapl_ep_list_tuning(ep, 1);
	param->ep_attr.ep_provider_specific = ep->provider_attr;
}

/* EP-10, 11, 12 */
DAT_RETURN dapl_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (mask & ~(DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	dapl_mutex_lock(&ep->lock);
	current_param(ep, param);
	dapl_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}

struct taken {
	const struct dapl_ep *ep;
	DAT_COUNT *n;
};

/* Counts a buffer of this endpoint. Returns false, so that the search goes on. */
static bool count_taken(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	const struct taken *taken = arg;

	*taken->n += (dto->flags & REQ_SRQ) && wc->qp_num == taken->ep->qpn;
	return false;
}

/* Returns the number of SRQ buffers that have received for this endpoint and are not dequeued. Only the
 * device knows of buffers that a message is filling. */
static DAT_COUNT srq_buffers(struct dapl_ep *ep)
{
	struct taken taken = { ep, &(DAT_COUNT){ 0 } };

	dapl_mutex_lock(&ep->lock);
	if (ep->qp)
		dapl_evd_contains(dapl_ep_recv_evd(ep), count_taken, &taken);
	dapl_mutex_unlock(&ep->lock);
	return *taken.n;
}

/* Returns the number of buffers that the endpoint holds: posted receives, or buffers of its SRQ. */
static DAT_COUNT recv_buffers(struct dapl_ep *ep)
{
	return ep->srq ? srq_buffers(ep) : (DAT_COUNT)dapl_queue_count(&ep->rq);
}

/* EP-13, 14, 15 */
DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (state)
		*state = __atomic_load_n(&ep->state, __ATOMIC_ACQUIRE);
	if (recv_idle)
		*recv_idle = recv_buffers(ep) ? DAT_FALSE : DAT_TRUE;
	if (request_idle)
		*request_idle = dapl_queue_count(&ep->sq) ? DAT_FALSE : DAT_TRUE;
	return DAT_SUCCESS;
}

/* dat_ep_recv_query (doc/spec/calls.md 5). Receives complete in order, so the span is the count.
 * EP-30, SRQ-19. */
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *allocated, DAT_COUNT *span)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_COUNT n;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!allocated && !span)
		return BAD_PARAM(2);
	n = recv_buffers(ep);
	if (allocated)
		*allocated = n;
	if (span)
		*span = n;
	return DAT_SUCCESS;
}

/* Receives are counted under the lock of the EVD that they complete to. */
struct dapl_evd *dapl_ep_lock_counters(struct dapl_ep *ep)
{
	struct dapl_evd *evd = dapl_ep_recv_evd(ep);

	assert_held(&ep->lock);
	if (evd)
		dapl_spin_lock(&evd->lock);
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	return evd;
}

void dapl_ep_unlock_counters(struct dapl_ep *ep, struct dapl_evd *evd)
{
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	if (evd)
		dapl_spin_unlock(&evd->lock);
}
