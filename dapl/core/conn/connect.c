/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - dat_ep_connect, dat_ep_common_connect and dat_ep_dup_connect. Incoming requests are in
 * service_point.c and cr.c, reports of the device in conn.c. */
#include <string.h>
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/connect.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/ready.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_slow.h"

/* CONN-13 */
static void connect_timeout(struct dapl_timer *timer)
{
	struct dapl_ep *ep = container_of(timer, struct dapl_ep, timer);
	struct dapl_conn_cause cause;

	dapl_mutex_lock(&ep->lock);
	if (ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) {
		dapl_count(ep->obj.ia, DCNT_IA_CM_ERR_TIMEOUT);
		dapl_failure_explain(ep, ep->conn, &cause);
		dapl_failure_time_limit(&cause);
		dapl_ep_make_step(ep, EP_TIMED_OUT, &cause);
	}
	dapl_mutex_unlock(&ep->lock);
	dapl_object_put(&ep->obj);
}

static bool same_family(const struct dapl_ep *ep, const struct sockaddr *to)
{
	return to->sa_family == ep->obj.ia->attr.address.ss_family;
}

static void remember_remote(struct dapl_ep *ep, const struct sockaddr *to, DAT_CONN_QUAL qual)
{
	address_copy(&ep->remote, to);
	ep->remote_qual = qual;	/* SP-38 */
	ep->pdata_len = 0;
}

/* Called with ep->lock held and valid arguments. */
static DAT_RETURN start_connect(struct dapl_ep *ep, const struct sockaddr *to,
				DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, int len,
				const void *data, DAT_QOS qos)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct dapl_conn_params params;
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	if (!dapl_ep_may(ep, EP_DO_CONNECT))
		return dapl_status_bad_ep_state(ep->state);
	if ((ret = dapl_ep_make_ready(ep)))
		return ret;
	if (!same_family(ep, to))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	dapl_ep_conn_params(ep, &params, data, len);
	params.remote = to;
	if (qos != DAT_QOS_BEST_EFFORT)
		params.qos = dapl_ep_ready_qos(qos);
	dapl_object_get(&ep->obj);	/* the reference of the connection */
	err = dapl_device_ops.connect(ia->dev, &params, &ep->conn);
	if (err) {
		ep->conn = NULL;
		dapl_object_put(&ep->obj);
		return dapl_failure_of_connect(ep, to, err);
	}
	remember_remote(ep, to, qual);
	DAPL_PROBE2(connect, ep, ep->remote_qual);
	ep->counters[DCNT_EP_CONNECT]++;
	dapl_count(ia, DCNT_IA_CM_REQ_TX);
	dapl_ep_step(ep, EP_DO_CONNECT, NULL);
	if (timeout != DAT_TIMEOUT_INFINITE)
		dapl_ep_arm(ep, timeout, connect_timeout);
	return DAT_SUCCESS;
}

static DAT_RETURN connect_to(struct dapl_ep *ep, const struct sockaddr *to, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
			     int len, const void *data, DAT_QOS qos)
{
	DAT_RETURN ret;

	dapl_ep_lock_settled(ep);
	if (!dapl_object_is_live(&ep->obj))
		ret = BAD_HANDLE(EP);
	else if (ep->is_raw)
		ret = NOT_SUPPORTED;	/* ETH-7 */
	else
		ret = ep->is_ud ? dapl_ud_connect(ep, to, timeout, len, data) :
			start_connect(ep, to, qual, timeout, len, data, qos);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* Makes the socket address that the device connects to, from an IA address and a connection qualifier. */
static DAT_RETURN with_port(const struct sockaddr *address, DAT_CONN_QUAL qual,
			    struct sockaddr_storage *to)
{
	if (!qual)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	memset(to, 0, sizeof *to);
	if (address->sa_family == AF_INET) {
		memcpy(to, address, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)to)->sin_port = htons(dapl_qual_port(qual));
	} else if (address->sa_family == AF_INET6) {
		memcpy(to, address, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)to)->sin6_port = htons(dapl_qual_port(qual));
	} else {
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	}
	return DAT_SUCCESS;
}

/* The device found the private data too long: it may take less for datagrams than the provider
 * attributes say. `bad` names the argument of the call. */
static DAT_RETURN name_length(DAT_RETURN ret, DAT_RETURN bad)
{
	return DAT_GET_TYPE(ret) == DAT_LENGTH_ERROR ? bad : ret;
}

static bool pdata_fits(const struct dapl_ep *ep, DAT_COUNT len)
{
	return len >= 0 && len <= ep->obj.ia->provider_attr.max_private_data_size;
}

/* dat_ep_connect (doc/spec/calls.md 5). timeout in microseconds. CONN-4, 5, 6, 7. */
DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	struct sockaddr_storage to;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!address)
		return BAD_PARAM(2);
	if (!timeout)
		return BAD_PARAM(4);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(5);
	if (len && !data)
		return BAD_PARAM(6);
	if (qos & ~ep->obj.ia->provider_attr.dat_qos_supported)
		return BAD_PARAM(7);
	if (flags & ~(DAT_CONNECT_MULTIPATH_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return BAD_PARAM(8);
	if (flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG)
		return NOT_SUPPORTED;
	if ((ret = with_port((const struct sockaddr *)address, qual, &to)))
		return ret;
	return name_length(connect_to(ep, (struct sockaddr *)&to, qual, timeout, len, data, qos), BAD_PARAM(5));
}

/* dat_ep_common_connect (DAT 2.0): the address includes the port. */
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	struct sockaddr_storage to;
	DAT_CONN_QUAL qual;
	DAT_RETURN ret;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!address)
		return BAD_PARAM(2);
	if (!timeout)
		return BAD_PARAM(3);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(4);
	if (len && !data)
		return BAD_PARAM(5);
	/* the port is at the same place in both families */
	qual = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
	if ((ret = with_port((const struct sockaddr *)address, qual, &to)))
		return ret;
	return name_length(connect_to(ep, (struct sockaddr *)&to, qual, timeout, len, data, DAT_QOS_BEST_EFFORT),
			   BAD_PARAM(4));
}

/* dat_ep_dup_connect: connects to the peer of another endpoint. CONN-18, 19, 20. */
DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle), *dup = dapl_ep_enter(dup_handle);
	struct sockaddr_storage to;
	DAT_CONN_QUAL qual;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep || !dup)
		return BAD_HANDLE(EP);
	if (!timeout)
		return BAD_PARAM(3);
	if (!pdata_fits(ep, len))
		return BAD_PARAM(4);
	if (len && !data)
		return BAD_PARAM(5);
	if (qos & ~ep->obj.ia->provider_attr.dat_qos_supported)
		return BAD_PARAM(6);
	dapl_mutex_lock(&dup->lock);
	if (dup->state != DAT_EP_STATE_CONNECTED)
		ret = dapl_status_bad_ep_state(dup->state);
	to = dup->remote;
	qual = dup->remote_qual;
	dapl_mutex_unlock(&dup->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	return name_length(connect_to(ep, (struct sockaddr *)&to, qual, timeout, len, data, qos), BAD_PARAM(4));
}
