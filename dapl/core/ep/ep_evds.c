/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_evds.c - the EVDs of an endpoint: checks the consumer's handles, and counts the streams of completions
 * that feed each EVD. */
#include "dapl/core/ep/ep_attr.h"
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"

/* Enters the EVD of a handle. A null handle leaves *evd NULL. Returns an error if the handle is no EVD of
 * this IA with this stream; *evd may be entered then, too. The connect EVD may belong to another open of
 * the same adapter, because programs share it. EP-3, 4. */
static DAT_RETURN evd_argument(struct dapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS stream,
			       DAT_RETURN_SUBTYPE which, struct dapl_evd **evd)
{
	bool ours;

	if (!handle)
		return DAT_SUCCESS;
	*evd = dapl_evd_enter(handle);
	if (!*evd || !((*evd)->flags & stream))
		return DAT_ERROR(DAT_INVALID_HANDLE, which);
	ours = (*evd)->obj.ia == ia || (stream == DAT_EVD_CONNECTION_FLAG &&
					(*evd)->obj.provider == ia->obj.provider);
	return ours ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_HANDLE, which);
}

void dapl_ep_leave_evds(struct dapl_evd *(*evds)[3])
{
	for (int i = 0; i < 3; i++)
		dapl_object_leave_at(&(*evds)[i]);
}

DAT_RETURN dapl_ep_enter_evds(struct dapl_ia *ia, DAT_EVD_HANDLE recv_handle,
			      DAT_EVD_HANDLE request_handle, DAT_EVD_HANDLE connect_handle,
			      struct dapl_evd *evds[3])	/* all NULL before the call */
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

static DAT_COMPLETION_FLAGS request_notification(const DAT_EP_ATTR *attr)
{
	return (DAT_COMPLETION_FLAGS)(attr->request_completion_flags & ~DAPL_PER_POST_FLAGS);
}

void dapl_ep_unfeed_evds(struct dapl_evd *recv, struct dapl_evd *request, const DAT_EP_ATTR *attr)
{
	if (recv)
		dapl_evd_unfeed(recv, attr->recv_completion_flags);
	if (request)
		dapl_evd_unfeed(request, request_notification(attr));
}

static DAT_RETURN feed(const struct dapl_ep *ep, struct dapl_evd *evd, const char *stream,
		       DAT_COMPLETION_FLAGS flags)
{
	const char *why;
	DAT_RETURN ret = dapl_evd_feed(evd, flags, &why);

	if (ret != DAT_SUCCESS)
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL,
		      "%s_completion_flags 0x%x refused: %s", stream, (unsigned)flags, why);
	return ret;
}

DAT_RETURN dapl_ep_feed_evds(const struct dapl_ep *ep, struct dapl_evd *recv,
			     struct dapl_evd *request, const DAT_EP_ATTR *attr)
{
	DAT_RETURN ret;

	if (recv && (ret = feed(ep, recv, "recv", attr->recv_completion_flags)))
		return ret;
	if (request && (ret = feed(ep, request, "request", request_notification(attr)))) {
		dapl_ep_unfeed_evds(recv, NULL, attr);
		return ret;
	}
	return DAT_SUCCESS;
}

DAT_RETURN dapl_ep_pin_connect_evd(struct dapl_evd *connect)
{
	if (!connect)
		return DAT_SUCCESS;
	if (!dapl_use(&connect->obj))
		return BAD_HANDLE(EVD_CONN);
	dapl_evd_pin(connect);
	return DAT_SUCCESS;
}

void dapl_ep_drop_connect_evd(struct dapl_evd *connect)
{
	if (!connect)
		return;
	dapl_unuse(&connect->obj);
	dapl_evd_unpin(connect);
}
