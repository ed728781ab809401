/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_modify.c - dat_ep_modify: replaces attributes, EVDs and PZ of an endpoint. After an error nothing has
 * changed. */
#include "dapl/core/ep/ep_attr.h"
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/srq.h"

#define FIXED_FIELDS (DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | \
		      DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL | \
		      DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | \
		      DAT_EP_FIELD_SRQ_HANDLE | DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
/* Fields whose change needs another QP. */
#define QP_FIELDS (DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
		   DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV)

/* EP-18, 19, EXT-34 */
static bool may_modify(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask)
{
	bool may_change_pz = ep->state == DAT_EP_STATE_UNCONNECTED ||
			     ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;

	return dapl_ep_is_modifiable(ep) && (may_change_pz || !(mask & DAT_EP_FIELD_PZ_HANDLE));
}

static void merge_attr(DAT_EP_ATTR *to, const DAT_EP_ATTR *from, DAT_EP_PARAM_MASK mask)
{
#define TAKE(FIELD, field) \
	if (mask & DAT_EP_FIELD_EP_ATTR_##FIELD) \
		to->field = from->field
	TAKE(SERVICE_TYPE, service_type);
	TAKE(MAX_MESSAGE_SIZE, max_message_size);
	TAKE(MAX_RDMA_SIZE, max_rdma_size);
	TAKE(QOS, qos);
	TAKE(RECV_COMPLETION_FLAGS, recv_completion_flags);
	TAKE(REQUEST_COMPLETION_FLAGS, request_completion_flags);
	TAKE(MAX_RECV_DTOS, max_recv_dtos);
	TAKE(MAX_REQUEST_DTOS, max_request_dtos);
	TAKE(MAX_RECV_IOV, max_recv_iov);
	TAKE(MAX_REQUEST_IOV, max_request_iov);
	TAKE(MAX_RDMA_READ_IN, max_rdma_read_in);
	TAKE(MAX_RDMA_READ_OUT, max_rdma_read_out);
	TAKE(MAX_RDMA_READ_IOV, max_rdma_read_iov);
	TAKE(MAX_RDMA_WRITE_IOV, max_rdma_write_iov);
	TAKE(NUM_PROVIDER_ATTR, ep_provider_specific_count);
	TAKE(PROVIDER_SPECIFIC_ATTR, ep_provider_specific);
#undef TAKE
}

/* The configuration of an endpoint. dat_ep_modify builds the new one beside the old one. */
struct ep_config {
	DAT_EP_ATTR attr;
	struct dapl_pz *pz;
	struct dapl_evd *recv, *request, *connect;
	bool delayed_ack;
	struct dapl_conn_tuning tuning;
};

static struct ep_config config_of(const struct dapl_ep *ep)
{
	return (struct ep_config){ ep->attr, ep->pz, ep->recv_evd, ep->request_evd, ep->connect_evd,
		ep->delayed_ack, ep->tuning };
}

static void set_config(struct dapl_ep *ep, const struct ep_config *config)
{
	ep->attr = config->attr;
	ep->pz = config->pz;
	ep->recv_evd = config->recv;
	dapl_post_lock(&ep->sq.lock);	/* a full queue looks for its EVD under it */
	ep->request_evd = config->request;
	dapl_post_unlock(&ep->sq.lock);
	ep->connect_evd = config->connect;
	ep->delayed_ack = config->delayed_ack;
	ep->tuning = config->tuning;
	dapl_ep_set_post_limits(ep);
}

static DAT_RETURN new_config(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param,
			     struct dapl_evd *evds[3], struct dapl_pz *pz, struct ep_config *to)
{
	struct dapl_ia *ia = ep->obj.ia;
	DAT_RETURN ret;

	ret = dapl_ep_enter_evds(ia, mask & DAT_EP_FIELD_RECV_EVD_HANDLE ? param->recv_evd_handle : NULL,
				 mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE ? param->request_evd_handle : NULL,
				 mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE ? param->connect_evd_handle : NULL, evds);
	if (ret)
		return ret;
	if (mask & DAT_EP_FIELD_RECV_EVD_HANDLE)
		to->recv = evds[0];
	if (mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE)
		to->request = evds[1];
	if (mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE)
		to->connect = evds[2];
	if (mask & DAT_EP_FIELD_PZ_HANDLE) {
		to->pz = pz;
		if (!pz || pz->obj.ia != ia)
			return BAD_HANDLE(PZ);
		if (ep->srq && to->pz != ep->srq->pz)
			return BAD_PARAM(3);
	}
	merge_attr(&to->attr, &param->ep_attr, mask);
	if (dapl_ep_bad_attr(ia, &to->attr))
		return BAD_PARAM(3);
	if ((ret = dapl_ep_named_attrs(ia, &to->attr, &to->delayed_ack, &to->tuning,
				       BAD_PARAM(3))))
		return ret;
	to->attr.ep_provider_specific_count = 0;
	to->attr.ep_provider_specific = NULL;
	dapl_ep_attr_fill(ia, &to->attr);
	return DAT_SUCCESS;
}

/* Posted receives pin the receive EVD and its completion flags. Posted receives of a UD
 * endpoint, which may complete at any time, pin the whole QP. EP-20. */
static bool qp_is_pinned(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask)
{
	DAT_EP_PARAM_MASK pins = DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE |
				 DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS;

	if (ep->is_ud)
		pins |= QP_FIELDS;
	return (mask & pins) && dapl_queue_count(&ep->rq) > 0;
}

/* Adds a use to the EVDs of the old configuration, so that they cannot be freed until the new one is in
 * place. */
static void keep_evds(const struct ep_config *config)
{
	struct dapl_evd *const evds[] = { config->recv, config->request };

	for (int i = 0; i < 2; i++)
		if (evds[i])
			dapl_use_again(&evds[i]->obj);
}

static void unkeep_evds(const struct ep_config *config)
{
	struct dapl_evd *const evds[] = { config->recv, config->request };

	for (int i = 0; i < 2; i++)
		if (evds[i])
			dapl_unuse(&evds[i]->obj);
}

/* Uses the PZ and the connect EVD of the new configuration. A connect EVD that stays is not used again: it
 * may have ended with its IA. */
static DAT_RETURN use_new(const struct ep_config *new, const struct ep_config *old)
{
	if (new->pz && !dapl_use(&new->pz->obj))
		return BAD_HANDLE(PZ);
	if (new->connect == old->connect || dapl_ep_pin_connect_evd(new->connect) == DAT_SUCCESS)
		return DAT_SUCCESS;
	if (new->pz)
		dapl_unuse(&new->pz->obj);
	return BAD_HANDLE(EVD_CONN);
}

/* Ends one use of the PZ of `config`, and the use of its connect EVD unless `other` has the same. */
static void unuse_config(const struct ep_config *config, const struct ep_config *other)
{
	if (config->pz)
		dapl_unuse(&config->pz->obj);
	if (config->connect != other->connect)
		dapl_ep_drop_connect_evd(config->connect);
}

/* Makes the QP of the new configuration. If no receives are posted and the endpoint lacks an EVD or a PZ,
 * the QP is made when it is first needed. Called with ep->lock held. */
static DAT_RETURN renew_qp(struct dapl_ep *ep, bool repost)
{
	assert_held(&ep->lock);
	if (repost)
		return dapl_ep_exchange_qp(ep);
	return ep->pz && ep->recv_evd && ep->request_evd ? dapl_ep_need_qp(ep) : DAT_SUCCESS;
}

/* Replaces the configuration. After an error the old one is in place. Called with ep->lock held. */
static DAT_RETURN replace_config(struct dapl_ep *ep, const struct ep_config *new, bool new_qp)
{
	struct ep_config old = config_of(ep);
	bool had_qp = ep->qp != NULL, repost = new_qp && had_qp && dapl_queue_count(&ep->rq) > 0;
	DAT_RETURN ret;

	assert_held(&ep->lock);
	if (repost && (uint32_t)new->attr.max_recv_dtos < dapl_queue_count(&ep->rq))
		return BAD_PARAM(3);
	if ((ret = dapl_ep_watch_receives(ep, new->recv)) || (ret = use_new(new, &old)))
		return ret;
	keep_evds(&old);
	dapl_ep_unfeed_evds(old.recv, old.request, &old.attr);
	ret = dapl_ep_feed_evds(ep, new->recv, new->request, &new->attr);
	if (ret != DAT_SUCCESS) {
		dapl_ep_feed_evds(ep, old.recv, old.request, &old.attr);
		unkeep_evds(&old);
		unuse_config(new, &old);
		return ret;
	}
	if (new_qp && !repost)
		dapl_ep_end_qp_unlocked(ep);
	set_config(ep, new);
	if (new_qp)
		ret = renew_qp(ep, repost);
	if (ret != DAT_SUCCESS) {
		dapl_ep_unfeed_evds(new->recv, new->request, &new->attr);
		set_config(ep, &old);
		dapl_ep_feed_evds(ep, old.recv, old.request, &old.attr);
		unkeep_evds(&old);
		unuse_config(new, &old);
		if (had_qp)
			dapl_ep_need_qp(ep);
		dapl_ep_set_room(ep);
		return ret;
	}
	unkeep_evds(&old);
	unuse_config(&old, new);
	dapl_ep_end_discards_unlocked(ep);
	return DAT_SUCCESS;
}

/* dat_ep_modify (doc/spec/calls.md 5): after an error nothing has changed. If the change needs another QP,
 * the posted receives are posted to it again. EP-16, 17, 21, 22. */
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAPL_ENTERED_EVDS struct dapl_evd *evds[3] = { NULL };
	DAPL_ENTERED struct dapl_pz *pz = NULL;
	struct ep_config new;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if ((mask & ~(DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL) || (mask & FIXED_FIELDS))
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	if (mask & DAT_EP_FIELD_PZ_HANDLE)
		pz = dapl_pz_enter(param->pz_handle);
	dapl_ep_lock_settled(ep);
	dapl_ep_begin_change(ep);
	if (!dapl_object_is_live(&ep->obj)) {
		ret = BAD_HANDLE(EP);
	} else if (!may_modify(ep, mask) || qp_is_pinned(ep, mask)) {
		ret = dapl_status_bad_ep_state(ep->state);
	} else {
		new = config_of(ep);
		ret = new_config(ep, mask, param, evds, pz, &new);
		if (!ret)
			ret = replace_config(ep, &new, mask & QP_FIELDS || new.delayed_ack != ep->delayed_ack);
		if (!ret && (mask & DAT_EP_FIELD_COMM))
			ep->comm = param->comm;
	}
	dapl_ep_end_change(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}
