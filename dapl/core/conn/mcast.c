/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - the multicast groups of a datagram endpoint (dat_mcast_extensions.h): joining, leaving, and
 * events. The device sends datagrams to the members; single peers are in ud.c.
 *
 * A membership is kept from dat_mcast_join until dat_mcast_leave, until joining has failed, or until
 * the endpoint is freed. The device's membership holds a reference of the endpoint until
 * dapl_up_released. */
#include <dat/dat_mcast_extensions.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "common/address.h"
#include "common/clock.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/mcast.h"
#include "dapl/core/conn/ready.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/event/evd_notify.h"

#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)

/* A group that an endpoint has joined or is joining. ep->lock guards it, and the list of groups. */
struct dapl_mcast_group {
	struct dapl_mcast_group *next;
	struct dapl_membership *in_device;
	struct sockaddr_storage address;	/* port 0, with its scope */
	DAT_CONTEXT context;
	uint64_t began_ns;
	struct dapl_ud_peer to;		/* to.ah NULL: not joined yet */
};

static bool is_multicast(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static bool is_of_link(const struct in6_addr *group)
{
	return IN6_IS_ADDR_MC_LINKLOCAL(group) || IN6_IS_ADDR_MC_NODELOCAL(group);
}

/* Sets the scope of a group's address to the interface of the IA, if its addresses are scoped. Returns
 * false if the address has the scope of another interface. */
static bool set_scope(const struct dapl_ia *ia, struct sockaddr_storage *group)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)group;
	const unsigned interface = (unsigned)ia->attr.netdev_index;

	if (group->ss_family != AF_INET6)
		return true;
	if (in6->sin6_scope_id && in6->sin6_scope_id != interface)
		return false;
	in6->sin6_scope_id = is_of_link(&in6->sin6_addr) ? interface : 0;
	return true;
}

static bool is_group_of(const struct dapl_ia *ia, const struct sockaddr *group,
			struct sockaddr_storage *address)
{
	if (!group || group->sa_family != ia->attr.address.ss_family || !is_multicast(group))
		return false;
	address_copy(address, group);
	address_set_port((struct sockaddr *)address, 0);
	return set_scope(ia, address);
}

static struct dapl_mcast_group *by_address(const struct dapl_ep *ep,
					   const struct sockaddr_storage *address)
{
	struct dapl_mcast_group *group = ep->groups;

	while (group && !address_same_host((struct sockaddr *)&group->address,
					   (const struct sockaddr *)address))
		group = group->next;
	return group;
}

static struct dapl_mcast_group *by_membership(const struct dapl_ep *ep, const struct dapl_membership *membership)
{
	struct dapl_mcast_group *group = ep->groups;

	while (group && group->in_device != membership)
		group = group->next;
	return group;
}

const struct dapl_ud_peer *dapl_mcast_by_ah(const struct dapl_ep *ep, const struct ibv_ah *ah)
{
	const struct dapl_mcast_group *group = ep->groups;

	while (group && group->to.ah != ah)
		group = group->next;
	return group ? &group->to : NULL;
}

static void trace_step(const struct dapl_ep *ep, const struct dapl_mcast_group *group,
		       const char *step)
{
	char text[DIAG_ADDRESS];

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, "multicast", "group %s: %s",
	      dapl_cause_address(&group->address, text), step);
}

static void leave(struct dapl_ep *ep, struct dapl_mcast_group *group)
{
	struct dapl_mcast_group **p;

	for (p = &ep->groups; *p != group; p = &(*p)->next)
		;
	*p = group->next;
	if (group->in_device)
		dapl_device_ops.leave(group->in_device);
	trace_step(ep, group, "left");
	free(group);
}

void dapl_mcast_end(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	while (ep->groups)
		leave(ep, ep->groups);
}

/* Called with ep->lock held and valid arguments. */
static DAT_RETURN join(struct dapl_ep *ep, const struct sockaddr_storage *address, bool send_only,
		       DAT_CONTEXT context)
{
	struct dapl_mcast_group *group;
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	if (ep->state != DAT_EP_STATE_UNCONNECTED && ep->state != DAT_EP_STATE_CONNECTED)
		return dapl_status_bad_ep_state(ep->state);
	if (by_address(ep, address))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	if ((ret = dapl_ep_make_ready(ep)))
		return ret;
	if (!(group = calloc(1, sizeof *group)))
		return NO_RESOURCE(MEMORY);
	group->address = *address;
	group->context = context;
	group->began_ns = clock_now_ns();
	group->next = ep->groups;
	ep->groups = group;
	trace_step(ep, group, send_only ? "join, to send only" : "join");
	dapl_object_get(&ep->obj);	/* the reference of the membership */
	err = dapl_device_ops.join(ep->obj.ia->dev, ep->qp, (const struct sockaddr *)address, send_only,
				   ep, &group->in_device);
	if (err) {
		group->in_device = NULL;
		leave(ep, group);
		dapl_object_put(&ep->obj);
		return dapl_failure_of_connect(ep, (const struct sockaddr *)address, err);
	}
	return DAT_SUCCESS;
}

/* EXT-39 */
static bool is_available(const struct dapl_ep *ep)
{
	return dapl_device_ops.join && ep->obj.ia->attr.multicast;
}

/* EXT-35, 36, 37, 38 */
DAT_RETURN dapl_mcast_join(struct dapl_ep *ep, const struct sockaddr *group, DAT_UINT32 flags,
			   DAT_CONTEXT context)
{
	struct sockaddr_storage address;
	DAT_RETURN ret;

	if (!is_available(ep))
		return NOT_IMPLEMENTED;
	if (!READ_ONCE(ep->is_ud) || READ_ONCE(ep->is_raw))
		return BAD_PARAM(1);
	if (!is_group_of(ep->obj.ia, group, &address))
		return BAD_PARAM(2);
	if (flags & ~(DAT_UINT32)DAT_MCAST_SEND_ONLY)
		return BAD_PARAM(3);
	dapl_ep_lock_settled(ep);
	ret = dapl_object_is_live(&ep->obj) ? join(ep, &address, flags & DAT_MCAST_SEND_ONLY, context)
					    : BAD_HANDLE(EP);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* EXT-36, 37 */
DAT_RETURN dapl_mcast_leave(struct dapl_ep *ep, const struct sockaddr *address)
{
	struct sockaddr_storage wanted;
	struct dapl_mcast_group *group;

	if (!is_available(ep))
		return NOT_IMPLEMENTED;
	if (!READ_ONCE(ep->is_ud) || READ_ONCE(ep->is_raw))
		return BAD_PARAM(1);
	if (!is_group_of(ep->obj.ia, address, &wanted))
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	group = by_address(ep, &wanted);
	if (group)
		leave(ep, group);
	dapl_mutex_unlock(&ep->lock);
	return group ? DAT_SUCCESS : BAD_PARAM(2);
}

/* --- what the device reports ------------------------------------------------------------------ */

static void post_event(struct dapl_ep *ep, const struct dapl_mcast_group *group, bool joined)
{
	DAT_IB_EXTENSION_EVENT_DATA *ext;
	DAT_EVENT event;

	if (!ep->connect_evd)
		return;
	memset(&event, 0, sizeof event);
	event.event_number = (DAT_EVENT_NUMBER)(joined ? DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED
						       : DAT_IB_UD_CONNECTION_ERROR_EVENT);
	event.event_data.connect_event_data.ep_handle = (DAT_EP_HANDLE)ep;
	ext = (void *)event.event_extension_data;
	ext->type = joined ? DAT_IB_UD_REMOTE_AH : DAT_IB_UD_CONNECT_ERROR;
	ext->status = joined ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	ext->remote_ah.ah = group->to.ah;
	ext->remote_ah.qpn = group->to.qpn;
	memcpy(&ext->remote_ah.ia_addr, &group->address, sizeof ext->remote_ah.ia_addr);
	ext->context = group->context;
	dapl_evd_post(ep->connect_evd, &event);
}

static void joined(struct dapl_ep *ep, struct dapl_mcast_group *group,
		   const struct dapl_ud_peer *to)
{
	group->to = *to;
	trace_step(ep, group, "joined");
	if (ep->state == DAT_EP_STATE_UNCONNECTED) {
		dapl_ep_step(ep, EP_DO_CONNECT, NULL);
		dapl_ep_step(ep, EP_ESTABLISHED, NULL);
	}
	post_event(ep, group, true);
}

static void failed(struct dapl_ep *ep, struct dapl_mcast_group *group, int err)
{
	struct dapl_conn_cause cause = {
		.step = group->to.ah ? DAPL_STEP_TRANSFER : DAPL_STEP_CONNECT, .err = err,
		.text = "multicast group", .local = ep->obj.ia->attr.address,
		.remote = group->address,
	};

	trace_step(ep, group, "failed");
	dapl_failure_report_ud(ep, true, group->began_ns, false, &cause);
	post_event(ep, group, false);
	if (!group->to.ah)
		leave(ep, group);
}

void dapl_up_joined(void *owner, struct dapl_membership *membership, int err,
		    const struct dapl_ud_peer *to)
{
	struct dapl_ep *ep = owner;
	struct dapl_mcast_group *group;

	assert_no_lock_held();
	dapl_mutex_lock(&ep->lock);
	group = by_membership(ep, membership);
	if (group && err)
		failed(ep, group, err);
	else if (group)
		joined(ep, group, to);
	dapl_mutex_unlock(&ep->lock);
}
