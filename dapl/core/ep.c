/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.c - endpoints as objects: attributes, EVDs, PZ, the queue pair behind them. What
 * happens on the network is conn.c's job, posting post.c's, states ep_state.c's.
 *
 * The QP exists as soon as the endpoint has a PZ and its EVDs, since receives may be posted
 * before connecting. An endpoint made without them gets its QP when it's first needed, with
 * a sink for completions that the consumer has no EVD for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/conn.h"
#include "dapl/core/early.h"
#include "dapl/core/ep_state.h"
#include "dapl/core/evd.h"
#include "dapl/core/map.h"
#include "dapl/core/provider.h"
#include "dapl/core/settings.h"
#include "dapl/core/ud.h"

enum { MARKERS = 2 };	/* requests of the provider's own that may be posted at once */

/* --- attributes ----------------------------------------------------------------------- */

static DAT_COUNT at_most(DAT_COUNT n, DAT_COUNT max)
{
	return n < max ? n : max;
}

void dapl_ep_default_attr(const struct dapl_ia *ia, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;

	memset(attr, 0, sizeof *attr);
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->max_message_size = max->max_message_size;
	attr->max_rdma_size = max->max_rdma_size;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->max_recv_dtos = at_most(16, max->max_dto_per_ep);
	attr->max_request_dtos = at_most(16, max->max_dto_per_ep);
	attr->max_recv_iov = at_most(4, max->max_iov_segments_per_dto);
	attr->max_request_iov = at_most(4, max->max_iov_segments_per_dto);
	attr->max_rdma_read_in = at_most(4, max->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = at_most(4, max->max_rdma_read_per_ep_out);
	attr->max_rdma_read_iov = at_most(4, max->max_iov_segments_per_rdma_read);
	attr->max_rdma_write_iov = at_most(4, max->max_iov_segments_per_rdma_write);
}

static bool in_range(DAT_COUNT n, DAT_COUNT max)
{
	return n >= 0 && n <= max;
}

static bool one_of(int value, const int *good, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (value == good[i])
			return true;
	return false;
}

/* Bits that are always available per post mean nothing in the attribute. */
#define PER_POST (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
		  DAT_COMPLETION_BARRIER_FENCE_FLAG)

static bool good_flags(const DAT_EP_ATTR *attr)
{
	static const int recv[] = { DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG };
	static const int request[] = { DAT_COMPLETION_DEFAULT_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG };

	return one_of(attr->recv_completion_flags, recv, 4) &&
		one_of(attr->request_completion_flags & ~PER_POST, request, 3);
}

/* An attribute that cannot be granted: its name and value, for the trace. */
static const char *bad_attr(const struct dapl_ia *ia, const DAT_EP_ATTR *a)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;

	if (a->service_type != DAT_SERVICE_TYPE_RC &&
	    !((int)a->service_type == (int)DAT_IB_SERVICE_TYPE_UD && ia->attr.ud))
		return "service_type";
	if (a->max_message_size > max->max_message_size)
		return "max_message_size";
	if (a->max_rdma_size > max->max_rdma_size)
		return "max_rdma_size";
	if (a->qos & ~ia->provider_attr.dat_qos_supported)
		return "qos";
	if (!good_flags(a))
		return "completion flags";
	if (!in_range(a->max_recv_dtos, max->max_dto_per_ep))
		return "max_recv_dtos";
	if (!in_range(a->max_request_dtos, max->max_dto_per_ep))
		return "max_request_dtos";
	if (!in_range(a->max_recv_iov, max->max_iov_segments_per_dto))
		return "max_recv_iov";
	if (!in_range(a->max_request_iov, max->max_iov_segments_per_dto))
		return "max_request_iov";
	if (!in_range(a->max_rdma_read_in, max->max_rdma_read_per_ep_in))
		return "max_rdma_read_in";
	if (!in_range(a->max_rdma_read_out, max->max_rdma_read_per_ep_out))
		return "max_rdma_read_out";
	if (!in_range(a->max_rdma_read_iov, max->max_iov_segments_per_rdma_read))
		return "max_rdma_read_iov";
	if (!in_range(a->max_rdma_write_iov, max->max_iov_segments_per_rdma_write))
		return "max_rdma_write_iov";
	return NULL;
}

static DAT_COUNT or_else(DAT_COUNT n, DAT_COUNT otherwise)
{
	return n ? n : otherwise;
}

/* Zero means "no requirement" (calls.md, attribute tolerance). */
static void fill_gaps(const struct dapl_ia *ia, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;
	DAT_EP_ATTR def;

	dapl_ep_default_attr(ia, &def);
	if (!attr->max_message_size)
		attr->max_message_size = def.max_message_size;
	if (!attr->max_rdma_size)
		attr->max_rdma_size = def.max_rdma_size;
	attr->max_recv_dtos = or_else(attr->max_recv_dtos, 1);
	attr->max_request_dtos = or_else(attr->max_request_dtos, 1);
	attr->max_recv_iov = or_else(attr->max_recv_iov, 1);
	attr->max_request_iov = or_else(attr->max_request_iov, 1);
	attr->max_rdma_read_iov = or_else(attr->max_rdma_read_iov,
		at_most(attr->max_request_iov, max->max_iov_segments_per_rdma_read));
	attr->max_rdma_write_iov = or_else(attr->max_rdma_write_iov,
		at_most(attr->max_request_iov, max->max_iov_segments_per_rdma_write));
}

static bool is_true(const char *text)
{
	return text && !strcmp(text, "true");
}

/* The one provider-specific attribute: delayed_ack (seeds: AIX uDAPL). */
static DAT_RETURN named_attrs(struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool *delayed_ack,
			      DAT_RETURN bad)
{
	for (int i = 0; attr->ep_provider_specific && i < attr->ep_provider_specific_count; i++) {
		const DAT_NAMED_ATTR *a = &attr->ep_provider_specific[i];

		if (!a->name || strcmp(a->name, "delayed_ack") || !a->value ||
		    (strcmp(a->value, "true") && strcmp(a->value, "false")))
			return bad;
		if (is_true(a->value) && !ia->attr.delayed_ack)
			return NOT_SUPPORTED;
		*delayed_ack = is_true(a->value);
	}
	return DAT_SUCCESS;
}

/* What the posting calls look at. */
static void set_post_limits(struct dapl_ep *ep)
{
	const DAT_EP_ATTR *attr = &ep->attr;

	/* The sizes asked for are needs, not limits: programs write more than they said. */
	ep->max_message = ep->obj.ia->ia_attr.max_message_size;
	ep->max_rdma = ep->obj.ia->ia_attr.max_rdma_size;
	ep->max_send_iov = attr->max_request_iov;
	ep->max_recv_iov = attr->max_recv_iov;
	ep->max_read_iov = attr->max_rdma_read_iov;
	ep->max_write_iov = attr->max_rdma_write_iov;
	ep->quiet_requests = (attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
	ep->request_flags = ep->quiet_requests ? 0 : DAT_COMPLETION_UNSIGNALLED_FLAG;
	ep->recv_flags = attr->recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG ?
		0 : DAT_COMPLETION_UNSIGNALLED_FLAG;
	ep->signaled = IBV_SEND_SIGNALED;
	if (ep->obj.ia->attr.overtakes_reads)
		ep->signaled |= IBV_SEND_FENCE;
	ep->is_ud = (int)attr->service_type == (int)DAT_IB_SERVICE_TYPE_UD;
	ep->sq.limit = attr->max_request_dtos;
	ep->rq.limit = attr->max_recv_dtos;
}

/* --- queues and the QP ------------------------------------------------------------------ */

/* The records know their endpoint, for good. */
static int make_queue(struct dapl_ep *ep, struct dapl_queue *q, uint32_t entries)
{
	uint32_t size = 1;

	while (size < entries)
		size <<= 1;
	if (q->ring && q->mask == size - 1)
		return 0;
	free(q->ring);
	q->ring = calloc(size, sizeof *q->ring);
	if (!q->ring)
		return -1;
	q->mask = size - 1;
	for (uint32_t i = 0; i < size; i++)
		q->ring[i].ep = ep;
	return 0;
}

static unsigned hash(uint32_t qpn)
{
	return (qpn ^ qpn >> 8) & 255;
}

static void list_qp(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;

	dapl_spin_lock(&ia->qp_lock);
	ep->qpn_next = ia->qps[hash(ep->qpn)];
	ia->qps[hash(ep->qpn)] = ep;
	dapl_spin_unlock(&ia->qp_lock);
}

static void unlist_qp(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct dapl_ep **p;

	dapl_spin_lock(&ia->qp_lock);
	for (p = &ia->qps[hash(ep->qpn)]; *p && *p != ep; p = &(*p)->qpn_next)
		;
	if (*p)
		*p = ep->qpn_next;
	dapl_spin_unlock(&ia->qp_lock);
}

struct dapl_ep *dapl_ep_by_qpn(struct dapl_ia *ia, uint32_t qpn)
{
	struct dapl_ep *ep;

	dapl_spin_lock(&ia->qp_lock);
	for (ep = ia->qps[hash(qpn)]; ep && ep->qpn != qpn; ep = ep->qpn_next)
		;
	dapl_spin_unlock(&ia->qp_lock);
	return ep;
}

static DAT_RETURN make_sink(struct dapl_ep *ep, struct dapl_evd *have, struct dapl_evd **sink,
			    int qlen)
{
	if (have || *sink)
		return DAT_SUCCESS;
	return dapl_evd_make(ep->obj.ia, qlen, DAT_EVD_DTO_FLAG, NULL, true, sink);
}

static int most(int a, int b, int c)
{
	int m = a > b ? a : b;

	return m > c ? m : c;
}

static void wanted_qp(const struct dapl_ep *ep, struct ibv_qp_init_attr *init)
{
	*init = (struct ibv_qp_init_attr){
		.qp_context = (void *)ep,
		.send_cq = dapl_ep_request_evd(ep)->cq,
		.recv_cq = dapl_ep_recv_evd(ep)->cq,
		.srq = ep->srq ? ep->srq->srq : NULL,
		.qp_type = ep->is_ud ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {
			.max_send_wr = ep->attr.max_request_dtos + MARKERS,
			.max_recv_wr = ep->srq ? 0 : ep->attr.max_recv_dtos,
			.max_send_sge = most(ep->attr.max_request_iov, ep->attr.max_rdma_read_iov,
					     ep->attr.max_rdma_write_iov),
			.max_recv_sge = ep->srq ? 0 : ep->attr.max_recv_iov,
			.max_inline_data = ep->obj.ia->attr.max_inline,
		},
	};
}

/* A QP and rings of what the endpoint is made of; nobody sees it yet. */
static DAT_RETURN make_qp(struct dapl_ep *ep, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr init;
	DAT_RETURN ret;
	int err;

	if (!ep->pz)
		return BAD_STATE(EP_PZ);
	if ((ret = make_sink(ep, ep->request_evd, &ep->request_sink, ep->attr.max_request_dtos)) ||
	    (ret = make_sink(ep, ep->recv_evd, &ep->recv_sink, ep->attr.max_recv_dtos)))
		return ret;
	if (make_queue(ep, &ep->sq, ep->attr.max_request_dtos + MARKERS) ||
	    (!ep->srq && make_queue(ep, &ep->rq, ep->attr.max_recv_dtos)))
		return NO_RESOURCE(MEMORY);
	wanted_qp(ep, &init);
	err = dapl_device_ops.create_qp(ep->obj.ia->dev, ep->pz->pd, &init, qp);
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL,
		      "create qp, %u sends %u receives: %s", init.cap.max_send_wr,
		      init.cap.max_recv_wr, strerror(abs(err)));
		return err == EINVAL ? NO_RESOURCE(TEP) : dapl_status(err, DAT_RESOURCE_TEP);
	}
	ep->max_inline = init.cap.max_inline_data;
	ep->qpn = (*qp)->qp_num;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_ep_need_qp(struct dapl_ep *ep)
{
	struct ibv_qp *qp;
	DAT_RETURN ret;

	if (ep->qp)
		return DAT_SUCCESS;
	ret = make_qp(ep, &qp);
	if (ret != DAT_SUCCESS)
		return ret;
	if (ep->srq)
		list_qp(ep);
	dapl_spin_lock(&ep->sq.lock);
	dapl_spin_lock(&ep->rq.lock);
	__atomic_store_n(&ep->qp, qp, __ATOMIC_RELEASE);
	dapl_spin_unlock(&ep->rq.lock);
	dapl_spin_unlock(&ep->sq.lock);
	dapl_ep_set_room(ep);
	return DAT_SUCCESS;
}

/* The QP is empty or gone, and so is every trace of its requests. */
static void empty_queues(struct dapl_ep *ep)
{
	dapl_evd_purge(dapl_ep_request_evd(ep), ep, &ep->sq);
	dapl_evd_purge(dapl_ep_recv_evd(ep), ep, &ep->rq);
	dapl_ep_set_room(ep);
}

/* The QP and every trace of its requests go. ep->lock is not held: destroying waits for
 * asynchronous events that are being handled. */
static void end_qp(struct dapl_ep *ep)
{
	struct ibv_qp *qp;

	dapl_spin_lock(&ep->sq.lock);
	dapl_spin_lock(&ep->rq.lock);
	qp = ep->qp;
	__atomic_store_n(&ep->qp, NULL, __ATOMIC_RELEASE);
	ep->sq.room = ep->rq.room = 0;
	dapl_spin_unlock(&ep->rq.lock);
	dapl_spin_unlock(&ep->sq.lock);
	if (!qp)
		return;
	dapl_device_ops.destroy_qp(qp);
	if (ep->srq)
		unlist_qp(ep);
	empty_queues(ep);
}

static void end_sink(struct dapl_evd **sink)
{
	if (*sink)
		dapl_evd_destroy(*sink);
	*sink = NULL;
}

/* ep->lock is held, and released meanwhile: both wait for callbacks that take it. */
static void end_qp_unlocked(struct dapl_ep *ep)
{
	pthread_mutex_unlock(&ep->lock);
	end_qp(ep);
	pthread_mutex_lock(&ep->lock);
}

static void end_sinks_unlocked(struct dapl_ep *ep)
{
	struct dapl_evd *recv = ep->recv_evd ? ep->recv_sink : NULL;
	struct dapl_evd *request = ep->request_evd ? ep->request_sink : NULL;

	if (recv)
		ep->recv_sink = NULL;
	if (request)
		ep->request_sink = NULL;
	pthread_mutex_unlock(&ep->lock);
	end_sink(&recv);
	end_sink(&request);
	pthread_mutex_lock(&ep->lock);
}

/* --- holding on to what an endpoint refers to --------------------------------------------- */

static DAT_RETURN feed_evds(struct dapl_evd *recv, struct dapl_evd *request,
			    struct dapl_evd *connect, const DAT_EP_ATTR *attr)
{
	DAT_COMPLETION_FLAGS request_flags =
		(DAT_COMPLETION_FLAGS)(attr->request_completion_flags & ~PER_POST);
	DAT_RETURN ret;

	if (recv && (ret = dapl_evd_feed(recv, attr->recv_completion_flags)))
		return ret;
	if (request && (ret = dapl_evd_feed(request, request_flags))) {
		if (recv)
			dapl_evd_unfeed(recv);
		return ret;
	}
	if (connect) {
		dapl_use(&connect->obj);
		dapl_evd_hold(connect);
	}
	return DAT_SUCCESS;
}

static void unfeed_evds(struct dapl_evd *recv, struct dapl_evd *request,
			struct dapl_evd *connect)
{
	if (recv)
		dapl_evd_unfeed(recv);
	if (request)
		dapl_evd_unfeed(request);
	if (connect) {
		dapl_unuse(&connect->obj);
		dapl_evd_drop(connect);
	}
}

static void end_ep(struct dapl_object *obj)
{
	struct dapl_ep *ep = (struct dapl_ep *)obj;

	free(ep->sq.ring);
	free(ep->rq.ring);
	dapl_early_free(ep->early);
	dapl_map_end(ep);
	pthread_mutex_destroy(&ep->lock);
}

static DAT_RETURN arg_error(int arg)
{
	return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + arg - 1);
}

DAT_RETURN dapl_ep_make(struct dapl_ia *ia, struct dapl_pz *pz, struct dapl_evd *recv,
			struct dapl_evd *request, struct dapl_evd *connect,
			struct dapl_srq *srq, const DAT_EP_ATTR *attr, int attr_arg,
			struct dapl_ep **made)
{
	struct dapl_ep *ep = dapl_object_new(DAPL_EP, sizeof *ep, ia, end_ep);
	const char *bad;
	DAT_RETURN ret;

	if (!ep)
		return NO_RESOURCE(MEMORY);
	pthread_mutex_init(&ep->lock, NULL);
	ep->soft_hw = ep->hard_hw = DAT_WATERMARK_INFINITE;
	ep->comm = (DAT_COMM){ ia->attr.address.ss_family, SOCK_STREAM, IPPROTO_TCP };
	if (attr)
		ep->attr = *attr;
	else
		dapl_ep_default_attr(ia, &ep->attr);
	if ((bad = bad_attr(ia, &ep->attr))) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "attribute %s", bad);
		ret = arg_error(attr_arg);
		goto fail;
	}
	if ((ret = named_attrs(ia, &ep->attr, &ep->delayed_ack, arg_error(attr_arg))))
		goto fail;
	fill_gaps(ia, &ep->attr);
	ep->attr.ep_transport_specific_count = ep->attr.ep_provider_specific_count = 0;
	if (srq && ep->attr.srq_soft_hw > 0)
		ep->soft_hw = ep->attr.srq_soft_hw;
	ep->pz = pz;
	ep->recv_evd = recv;
	ep->request_evd = request;
	ep->connect_evd = connect;
	ep->srq = srq;
	set_post_limits(ep);
	if ((ret = feed_evds(recv, request, connect, &ep->attr)))
		goto fail;
	if (pz && recv && request && (ret = dapl_ep_need_qp(ep)))
		goto unfeed;
	if (ep->is_ud && (ret = dapl_ud_begin(ep)))
		goto unfeed;
	if (pz)
		dapl_use(&pz->obj);
	if (srq)
		dapl_use(&srq->obj);
	*made = ep;
	return DAT_SUCCESS;

unfeed:
	end_qp(ep);
	unfeed_evds(recv, request, connect);
	end_sink(&ep->recv_sink);
	end_sink(&ep->request_sink);
fail:
	dapl_object_put(&ep->obj);
	return ret;
}

/* NULL stays NULL; a handle that is no EVD of this IA with this stream is an error. The
 * connect EVD may belong to another open of the same adapter, as programs have it. */
static DAT_RETURN evd_argument(struct dapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS stream,
			       DAT_RETURN_SUBTYPE which, struct dapl_evd **evd)
{
	bool ours;

	*evd = NULL;
	if (!handle)
		return DAT_SUCCESS;
	*evd = dapl_evd_from(handle);
	if (!*evd || !((*evd)->flags & stream))
		return DAT_ERROR(DAT_INVALID_HANDLE, which);
	ours = (*evd)->obj.ia == ia || (stream == DAT_EVD_CONNECTION_FLAG &&
					(*evd)->obj.provider == ia->obj.provider);
	return ours ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_HANDLE, which);
}

static DAT_RETURN evd_arguments(struct dapl_ia *ia, DAT_EVD_HANDLE recv_handle,
				DAT_EVD_HANDLE request_handle, DAT_EVD_HANDLE connect_handle,
				struct dapl_evd *evds[3])
{
	DAT_RETURN ret;

	if ((ret = evd_argument(ia, recv_handle, DAT_EVD_DTO_FLAG, DAT_INVALID_HANDLE_EVD_RECV,
				&evds[0])) ||
	    (ret = evd_argument(ia, request_handle, DAT_EVD_DTO_FLAG,
				DAT_INVALID_HANDLE_EVD_REQUEST, &evds[1])) ||
	    (ret = evd_argument(ia, connect_handle, DAT_EVD_CONNECTION_FLAG,
				DAT_INVALID_HANDLE_EVD_CONN, &evds[2])))
		return ret;
	return DAT_SUCCESS;
}

static DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_handle, DAT_EVD_HANDLE request_handle,
			 DAT_EVD_HANDLE connect_handle, struct dapl_srq *srq,
			 const DAT_EP_ATTR *attr, int attr_arg, DAT_EP_HANDLE *handle)
{
	struct dapl_ia *ia = dapl_ia_from(ia_handle);
	struct dapl_evd *evds[3];
	struct dapl_pz *pz = NULL;
	struct dapl_ep *ep;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (pz_handle && (!(pz = dapl_pz_from(pz_handle)) || pz->obj.ia != ia))
		return BAD_HANDLE(PZ);
	if ((ret = evd_arguments(ia, recv_handle, request_handle, connect_handle, evds)))
		return ret;
	if (srq && (!pz || pz != srq->pz))
		return BAD_PARAM(2);
	ret = dapl_ep_make(ia, pz, evds[0], evds[1], evds[2], srq, attr, attr_arg, &ep);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_publish(&ep->obj);
	dapl_count(ia, DCNT_IA_EP_CREATE);
	*handle = (DAT_EP_HANDLE)ep;
	return DAT_SUCCESS;
}

/* dat_ep_create (spec/calls.md 5). */
DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *handle)
{
	if (!handle)
		return BAD_PARAM(7);
	return create(ia, pz, recv, request, connect, NULL, attr, 6, handle);
}

DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *attr,
				   DAT_EP_HANDLE *handle)
{
	struct dapl_srq *srq = dapl_srq_from(srq_handle);

	if (!handle)
		return BAD_PARAM(8);
	if (!dapl_ia_from(ia))
		return BAD_HANDLE(IA);
	if (!srq || srq->obj.ia != dapl_ia_from(ia))
		return BAD_HANDLE(SRQ);
	if (!attr)
		return BAD_PARAM(7);
	return create(ia, pz, recv, request, connect, srq, attr, 7, handle);
}

/* --- query and modify ------------------------------------------------------------------------ */

static DAT_IA_ADDRESS_PTR address_ptr(struct sockaddr_storage *address)
{
	return address->ss_family ? (DAT_IA_ADDRESS_PTR)address : NULL;
}

DAT_PORT_QUAL dapl_port_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ?
		ntohs(((const struct sockaddr_in6 *)address)->sin6_port) :
		address->ss_family == AF_INET ?
		ntohs(((const struct sockaddr_in *)address)->sin_port) : 0;
}

static void current_param(struct dapl_ep *ep, DAT_EP_PARAM *param)
{
	param->ia_handle = dapl_ia_handle(ep->obj.ia);
	param->ep_state = ep->state;
	param->comm = ep->comm;
	param->local_ia_address_ptr = ep->local.ss_family ? address_ptr(&ep->local) :
		(DAT_IA_ADDRESS_PTR)&ep->obj.ia->attr.address;
	param->local_port_qual = dapl_port_of(&ep->local);
	param->remote_ia_address_ptr = address_ptr(&ep->remote);
	param->remote_port_qual = dapl_port_of(&ep->remote);
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
	param->ep_attr.ep_provider_specific_count = 1;
	param->ep_attr.ep_provider_specific = ep->provider_attr;
}

DAT_RETURN dapl_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	struct dapl_ep *ep = dapl_ep_from(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (mask & ~(DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	pthread_mutex_lock(&ep->lock);
	current_param(ep, param);
	pthread_mutex_unlock(&ep->lock);
	return DAT_SUCCESS;
}

#define EVD_FIELDS (DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
		    DAT_EP_FIELD_CONNECT_EVD_HANDLE)
#define FIXED_FIELDS (DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | \
		      DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL | \
		      DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | \
		      DAT_EP_FIELD_SRQ_HANDLE | DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
/* Fields that the QP is made of. */
#define QP_FIELDS (DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
		   DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV | \
		   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV)

static bool may_modify(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask)
{
	bool is_ours = ep->state == DAT_EP_STATE_UNCONNECTED ||
		ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;

	return dapl_ep_is_modifiable(ep) && (is_ours || !(mask & DAT_EP_FIELD_PZ_HANDLE));
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

/* What an endpoint is made of; modify builds the new one beside the old. */
struct parts {
	DAT_EP_ATTR attr;
	struct dapl_pz *pz;
	struct dapl_evd *recv, *request, *connect;
	bool delayed_ack;
};

static struct parts parts_of(const struct dapl_ep *ep)
{
	return (struct parts){ ep->attr, ep->pz, ep->recv_evd, ep->request_evd, ep->connect_evd,
		ep->delayed_ack };
}

static void set_parts(struct dapl_ep *ep, const struct parts *parts)
{
	ep->attr = parts->attr;
	ep->pz = parts->pz;
	ep->recv_evd = parts->recv;
	ep->request_evd = parts->request;
	ep->connect_evd = parts->connect;
	ep->delayed_ack = parts->delayed_ack;
	set_post_limits(ep);
}

static DAT_RETURN new_parts(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param,
			    struct parts *to)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct dapl_evd *evds[3];
	DAT_RETURN ret;

	ret = evd_arguments(ia,
		mask & DAT_EP_FIELD_RECV_EVD_HANDLE ? param->recv_evd_handle : NULL,
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
		to->pz = dapl_pz_from(param->pz_handle);
		if (!to->pz || to->pz->obj.ia != ia)
			return BAD_HANDLE(PZ);
		if (ep->srq && to->pz != ep->srq->pz)
			return BAD_PARAM(3);
	}
	merge_attr(&to->attr, &param->ep_attr, mask);
	if (bad_attr(ia, &to->attr))
		return BAD_PARAM(3);
	if ((ret = named_attrs(ia, &to->attr, &to->delayed_ack, BAD_PARAM(3))))
		return ret;
	to->attr.ep_provider_specific_count = 0;
	to->attr.ep_provider_specific = NULL;
	fill_gaps(ia, &to->attr);
	return DAT_SUCCESS;
}

/* Receives that are posted pin the receive EVD and how it is told; and those of a UD endpoint,
 * which may complete at any time, pin the QP. */
static bool pinned(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask)
{
	DAT_EP_PARAM_MASK pins = DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE |
		DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS;

	if (ep->is_ud)
		pins |= QP_FIELDS;
	return (mask & pins) && dapl_queue_count(&ep->rq) > 0;
}

static void swap_uses(struct dapl_pz *old, struct dapl_pz *new)
{
	if (new)
		dapl_use(&new->obj);
	if (old)
		dapl_unuse(&old->obj);
}

/* What a QP consists of here, while another one takes its place. */
struct body {
	struct ibv_qp *qp;
	struct dapl_dto *sq_ring, *rq_ring;
	uint32_t sq_mask, rq_mask, max_inline, qpn;
};

static struct body body_of(const struct dapl_ep *ep, struct ibv_qp *qp)
{
	return (struct body){ qp, ep->sq.ring, ep->rq.ring, ep->sq.mask, ep->rq.mask,
		ep->max_inline, ep->qpn };
}

/* ep->lock held. Posts wait for that lock then, for there is no QP. */
static struct body take_body(struct dapl_ep *ep)
{
	struct body body;

	dapl_spin_lock(&ep->sq.lock);
	dapl_spin_lock(&ep->rq.lock);
	body = body_of(ep, ep->qp);
	__atomic_store_n(&ep->qp, NULL, __ATOMIC_RELEASE);
	ep->sq.ring = ep->rq.ring = NULL;
	ep->sq.room = ep->rq.room = 0;
	dapl_spin_unlock(&ep->rq.lock);
	dapl_spin_unlock(&ep->sq.lock);
	return body;
}

static void set_body(struct dapl_ep *ep, const struct body *body)
{
	dapl_spin_lock(&ep->sq.lock);
	dapl_spin_lock(&ep->rq.lock);
	ep->sq.ring = body->sq_ring;
	ep->sq.mask = body->sq_mask;
	ep->rq.ring = body->rq_ring;
	ep->rq.mask = body->rq_mask;
	ep->max_inline = body->max_inline;
	ep->qpn = body->qpn;
	__atomic_store_n(&ep->qp, body->qp, __ATOMIC_RELEASE);
	dapl_spin_unlock(&ep->rq.lock);
	dapl_spin_unlock(&ep->sq.lock);
	dapl_ep_set_room(ep);
}

/* ep->lock held: receives that another QP has as well are not to be told as flushed. */
static void silence_body(struct dapl_ep *ep, const struct body *body)
{
	if (body->qp)
		dapl_evd_silence(dapl_ep_recv_evd(ep), ep, body->qp);
}

static void end_body(struct body *body)
{
	if (body->qp)
		dapl_device_ops.destroy_qp(body->qp);
	free(body->sq_ring);
	free(body->rq_ring);
}

/* The records of the receives move to the new ring, and they are posted to the new QP. */
static DAT_RETURN carry_receives(struct dapl_ep *ep, const struct body *old, struct ibv_qp *qp)
{
	struct dapl_queue *q = &ep->rq;
	int err;

	dapl_spin_lock(&q->lock);
	for (uint32_t i = q->tail; i != q->head; i++)
		q->ring[i & q->mask] = old->rq_ring[i & old->rq_mask];
	err = dapl_early_repost(ep, qp, ep->attr.max_recv_iov);
	dapl_spin_unlock(&q->lock);
	if (err == E2BIG)
		return BAD_PARAM(3);
	if (err == ENODATA)
		return dapl_bad_ep_state(ep->state);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* Another QP, into which the receives that are posted are posted again. ep->lock held; the old
 * one is destroyed without it. All or nothing. Not for UD: nothing has completed. */
static DAT_RETURN exchange_qp(struct dapl_ep *ep)
{
	struct body old = take_body(ep), new;
	struct ibv_qp *qp = NULL;
	DAT_RETURN ret = make_qp(ep, &qp);

	if (ret == DAT_SUCCESS)
		ret = carry_receives(ep, &old, qp);
	new = body_of(ep, qp);
	if (ret != DAT_SUCCESS) {
		silence_body(ep, &new);
		set_body(ep, &old);
		end_body(&new);
		return ret;
	}
	silence_body(ep, &old);
	set_body(ep, &new);
	pthread_mutex_unlock(&ep->lock);
	end_body(&old);
	pthread_mutex_lock(&ep->lock);
	return DAT_SUCCESS;
}

/* ep->lock held. The QP of the new parts; one that holds no receives is made when its time
 * comes, if the endpoint lacks something. */
static DAT_RETURN new_body(struct dapl_ep *ep, bool carry)
{
	if (carry)
		return exchange_qp(ep);
	return ep->pz && ep->recv_evd && ep->request_evd ? dapl_ep_need_qp(ep) : DAT_SUCCESS;
}

/* ep->lock held; all or nothing. */
static DAT_RETURN replace_parts(struct dapl_ep *ep, const struct parts *new, bool new_qp)
{
	struct parts old = parts_of(ep);
	bool had_qp = ep->qp != NULL, carry = new_qp && had_qp && dapl_queue_count(&ep->rq) > 0;
	DAT_RETURN ret;

	if (carry && (uint32_t)new->attr.max_recv_dtos < dapl_queue_count(&ep->rq))
		return BAD_PARAM(3);
	unfeed_evds(old.recv, old.request, old.connect);
	ret = feed_evds(new->recv, new->request, new->connect, &new->attr);
	if (ret != DAT_SUCCESS) {
		feed_evds(old.recv, old.request, old.connect, &old.attr);
		return ret;
	}
	if (new_qp && !carry)
		end_qp_unlocked(ep);
	set_parts(ep, new);
	if (new_qp)
		ret = new_body(ep, carry);
	if (ret != DAT_SUCCESS) {
		unfeed_evds(new->recv, new->request, new->connect);
		set_parts(ep, &old);
		feed_evds(old.recv, old.request, old.connect, &old.attr);
		if (had_qp)
			dapl_ep_need_qp(ep);
		dapl_ep_set_room(ep);
		return ret;
	}
	swap_uses(old.pz, new->pz);
	end_sinks_unlocked(ep);
	return DAT_SUCCESS;
}

/* dat_ep_modify (spec/calls.md 5): all or nothing. Where the QP is made of what changes, it
 * is made anew, and receives that are posted are posted to it again. */
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	struct parts new;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if ((mask & ~(DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL) || (mask & FIXED_FIELDS))
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	pthread_mutex_lock(&ep->lock);
	if (!may_modify(ep, mask) || pinned(ep, mask)) {
		ret = dapl_bad_ep_state(ep->state);
	} else {
		new = parts_of(ep);
		ret = new_parts(ep, mask, param, &new);
		if (!ret)
			ret = replace_parts(ep, &new, (mask & QP_FIELDS) != 0);
		if (!ret && (mask & DAT_EP_FIELD_COMM))
			ep->comm = param->comm;
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle)
{
	struct dapl_ep *ep = dapl_ep_from(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	if (state)
		*state = __atomic_load_n(&ep->state, __ATOMIC_ACQUIRE);
	if (recv_idle)
		*recv_idle = (ep->srq ? ep->held <= 0 : !dapl_queue_count(&ep->rq)) ?
			DAT_TRUE : DAT_FALSE;
	if (request_idle)
		*request_idle = dapl_queue_count(&ep->sq) ? DAT_FALSE : DAT_TRUE;
	return DAT_SUCCESS;
}

/* dat_ep_recv_query: on an SRQ endpoint only the device knows. */
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *allocated, DAT_COUNT *span)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	DAT_COUNT posted;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!allocated && !span)
		return BAD_PARAM(2);
	posted = ep->srq ? DAT_VALUE_UNKNOWN : (DAT_COUNT)dapl_queue_count(&ep->rq);
	if (allocated)
		*allocated = posted;
	if (span)
		*span = posted;
	return DAT_SUCCESS;
}

/* --- reset and free ------------------------------------------------------------------------- */

/* The QP as new: the same one, or where the device cannot reset one (EOPNOTSUPP) another.
 * ep->lock is held, and released while a QP is destroyed: see end_qp. */
static DAT_RETURN empty_qp(struct dapl_ep *ep)
{
	int err;

	if (!ep->qp) {
		dapl_queue_empty(&ep->sq);
		dapl_queue_empty(&ep->rq);
		return DAT_SUCCESS;
	}
	err = dapl_device_ops.reset_qp(ep->obj.ia->dev, ep->qp);
	if (err == EOPNOTSUPP) {
		end_qp_unlocked(ep);
		return dapl_ep_need_qp(ep);
	}
	if (!err)
		empty_queues(ep);
	return dapl_status(err, DAT_RESOURCE_TEP);
}

/* dat_ep_reset: DISCONNECTED -> UNCONNECTED with an empty QP. What waited for completions
 * that vanish now is told first. */
DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE handle)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EP_STATE before;

	if (!ep)
		return BAD_HANDLE(EP);
	pthread_mutex_lock(&ep->lock);
	before = ep->state;
	if (!dapl_ep_may(ep, EP_DO_RESET)) {
		pthread_mutex_unlock(&ep->lock);
		return dapl_bad_ep_state(before);
	}
	if (before == DAT_EP_STATE_DISCONNECTED) {
		dapl_ep_settle(ep);
		ret = empty_qp(ep);
		if (ret == DAT_SUCCESS) {
			ep->held = 0;
			ep->pdata_len = 0;
			ep->remote.ss_family = ep->local.ss_family = AF_UNSPEC;
			dapl_ep_step(ep, EP_DO_RESET, NULL);
		}
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

void dapl_ep_destroy(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	dapl_ep_disarm(ep);
	if (ep->is_ud)
		dapl_ud_end(ep);
	if (ep->conn && ep->qp)
		dapl_device_ops.error_qp(ep->qp);
	dapl_ep_drop_conn(ep);
	__atomic_store_n(&ep->deferred, false, __ATOMIC_RELAXED);
	ep->terminal = 0;
	pthread_mutex_unlock(&ep->lock);
	end_qp(ep);
	unfeed_evds(ep->recv_evd, ep->request_evd, ep->connect_evd);
	end_sink(&ep->recv_sink);
	end_sink(&ep->request_sink);
	if (ep->pz)
		dapl_unuse(&ep->pz->obj);
	if (ep->srq)
		dapl_unuse(&ep->srq->obj);
	dapl_object_put(&ep->obj);
}

/* dat_ep_free (spec/calls.md 5): drops whatever connection there is. */
DAT_RETURN dapl_ep_free(DAT_EP_HANDLE handle)
{
	struct dapl_ep *ep = dapl_ep_from(handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return BAD_HANDLE(EP);
	pthread_mutex_lock(&ep->lock);
	if (!dapl_ep_may(ep, EP_DO_FREE))
		ret = dapl_bad_ep_state(ep->state);
	else if (!dapl_object_kill(&ep->obj))
		ret = BAD_HANDLE(EP);
	pthread_mutex_unlock(&ep->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_count(ep->obj.ia, DCNT_IA_EP_FREE);
	dapl_ep_destroy(ep);
	return DAT_SUCCESS;
}
