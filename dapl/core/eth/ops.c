/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ops.c - the calls of dat_eth_extensions.h: checks arguments, calls the device, translates its answers.
 * ETH-9, 15 to 20, 35. */
#include <errno.h>
#include <string.h>
#include "dapl/core/eth/group.h"
#include "dapl/core/eth/ops.h"
#include "dapl/core/eth/rule.h"
#include "dapl/core/eth/send.h"
#include "dapl/core/event/evd_notify.h"

/* The structs of a device have the layout of the public ones, so they are copied and cast. */
#define SAME(dat, device, member) \
	_Static_assert(sizeof(dat) == sizeof(device) && offsetof(dat, member) == offsetof(device, member), \
		       "one layout")
SAME(DAT_ETH_ATTR, struct dapl_eth_attr, caps);
SAME(DAT_ETH_ATTR, struct dapl_eth_attr, max_table);
SAME(DAT_ETH_SEND, struct dapl_eth_send, launch);
SAME(DAT_ETH_PACE, struct dapl_eth_pace, frame);
SAME(DAT_ETH_FRAME, struct dapl_eth_frame, time);
SAME(DAT_ETH_FRAME, struct dapl_eth_frame, segments);
SAME(DAT_ETH_KEY, struct dapl_eth_key, ip_dst);
SAME(DAT_ETH_KEY, struct dapl_eth_key, tunnel);
SAME(DAT_ETH_RULE, struct dapl_eth_rule, inner_mask);
SAME(DAT_ETH_STATS, struct dapl_eth_stats, cut);
_Static_assert(sizeof(DAT_ETH_FRAME) <= 56, "fits into event_extension_data");

/* Copies a struct, at most `size` bytes: the caller may use an older header. */
static DAT_RETURN give(void *to, DAT_UINT32 size, void *from, size_t have)
{
	if (size < sizeof size)
		return BAD_PARAM(2);
	*(DAT_UINT32 *)from = size;
	memcpy(to, from, size < have ? size : have);
	return DAT_SUCCESS;
}

/* ETH-9 */
static DAT_RETURN query(DAT_HANDLE handle, DAT_ETH_ATTR *attr)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);
	struct dapl_eth_attr found;
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!attr)
		return BAD_PARAM(2);
	err = dapl_device_ops.eth->query(ia->dev, &found);
	if (err)
		return err == ENOENT ? NOT_SUPPORTED : dapl_status(err, DAT_RESOURCE_DEVICE);
	return give(attr, attr->size, &found, sizeof found);
}

/* ETH-27 */
static DAT_RETURN read_clock(DAT_HANDLE handle, va_list args)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);
	DAT_UINT64 *device = va_arg(args, DAT_UINT64 *);
	DAT_UINT64 *system = va_arg(args, DAT_UINT64 *);
	DAT_UINT64 *error = va_arg(args, DAT_UINT64 *);
	uint64_t found[3];
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!device)
		return BAD_PARAM(2);
	if (!system)
		return BAD_PARAM(3);
	if (!error)
		return BAD_PARAM(4);
	err = dapl_device_ops.eth->clock(ia->dev, &found[0], &found[1], &found[2]);
	if (err)
		return err == ENOENT ? NOT_SUPPORTED : dapl_status(err, DAT_RESOURCE_DEVICE);
	*device = found[0];
	*system = found[1];
	*error = found[2];
	return DAT_SUCCESS;
}

/* Returns DAT_SUCCESS if the ring may be used. Called with ep->lock held. ETH-7. */
static DAT_RETURN ring_state(const struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	if (!ep->eth->ring)
		return NOT_SUPPORTED;
	return ep->state == DAT_EP_STATE_CONNECTED && ep->qp ? DAT_SUCCESS : dapl_status_bad_ep_state(ep->state);
}

/* ETH-15 */
static DAT_RETURN poll(struct dapl_ep *ep, DAT_ETH_FRAME *frames, DAT_COUNT max, DAT_COUNT *got)
{
	DAT_RETURN ret;
	int n = 0;

	if (!frames)
		return BAD_PARAM(2);
	if (max < 1)
		return BAD_PARAM(3);
	if (!got)
		return BAD_PARAM(4);
	dapl_mutex_lock(&ep->lock);
	ret = ring_state(ep);
	if (ret == DAT_SUCCESS)
		n = dapl_device_ops.eth->poll(ep->qp, (struct dapl_eth_frame *)frames, max);
	dapl_mutex_unlock(&ep->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	if (n < 0)
		return dapl_status(n, DAT_RESOURCE_DEVICE);
	*got = n;
	return n ? DAT_SUCCESS : (DAT_RETURN)DAT_QUEUE_EMPTY;
}

/* ETH-16 */
static DAT_RETURN release(struct dapl_ep *ep, DAT_COUNT oldest)
{
	DAT_RETURN ret;

	if (oldest < 0)
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	ret = ring_state(ep);
	if (ret == DAT_SUCCESS && dapl_device_ops.eth->release(ep->qp, (uint32_t)oldest))
		ret = BAD_PARAM(2);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* Arms the ring. If frames are there (EALREADY), notifies: a thread that already waits does not look at the
 * CQ again by itself. */
static DAT_RETURN arm_locked(struct dapl_ep *ep)
{
	int err = dapl_device_ops.eth->arm(ep->qp, (uintptr_t)&ep->eth->ready);

	if (err != EALREADY)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	dapl_evd_notify(ep->recv_evd);
	return DAT_SUCCESS;
}

/* ETH-17 */
static DAT_RETURN arm(struct dapl_ep *ep)
{
	DAT_RETURN ret;

	dapl_mutex_lock(&ep->lock);
	ret = ring_state(ep);
	if (ret == DAT_SUCCESS && !ep->recv_evd)
		ret = BAD_HANDLE(EVD_RECV);
	if (ret == DAT_SUCCESS)
		ret = arm_locked(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* ETH-18 */
static DAT_RETURN stats(struct dapl_ep *ep, DAT_ETH_STATS *to)
{
	struct dapl_eth_stats now = { .size = 0 };
	DAT_RETURN ret = DAT_SUCCESS;

	if (!to)
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	if (ep->qp)
		dapl_device_ops.eth->stats(ep->qp, &now);
	else
		ret = dapl_status_bad_ep_state(ep->state);
	dapl_mutex_unlock(&ep->lock);
	return ret == DAT_SUCCESS ? give(to, to->size, &now, sizeof now) : ret;
}

/* ETH-35 */
static DAT_RETURN moderate(DAT_HANDLE handle, va_list args)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);
	DAT_COUNT frames = va_arg(args, DAT_COUNT);
	DAT_UINT32 microseconds = va_arg(args, DAT_UINT32);
	int err;

	if (!evd || !evd->cq)
		return BAD_HANDLE(EVD_REQUEST);
	if (frames < 0)
		return BAD_PARAM(2);
	if (frames && !microseconds)	/* without a time limit, fewer completions would never notify */
		return BAD_PARAM(3);
	if (!dapl_device_ops.eth->moderate)
		return NOT_SUPPORTED;
	dapl_mutex_lock(&evd->mutex);
	err = dapl_device_ops.eth->moderate(evd->cq, (uint32_t)frames, microseconds);
	dapl_mutex_unlock(&evd->mutex);
	return err == EINVAL ? BAD_PARAM(2) : dapl_status(err, DAT_RESOURCE_DEVICE);
}

static DAT_RETURN post_send(struct dapl_ep *ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	const DAT_LMR_TRIPLET *iov = va_arg(args, const DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const DAT_ETH_SEND *how = va_arg(args, const DAT_ETH_SEND *);

	return dapl_eth_post_send(ep, n, iov, cookie, how, va_arg(args, DAT_COMPLETION_FLAGS));
}

static DAT_RETURN ep_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_ETH_FRAME *frames;
	DAT_COUNT max;

	if (!ep || !ep->eth)
		return BAD_HANDLE(EP);
	switch ((int)op) {
	case DAT_ETH_POLL_OP:
		frames = va_arg(args, DAT_ETH_FRAME *);
		max = va_arg(args, DAT_COUNT);
		return poll(ep, frames, max, va_arg(args, DAT_COUNT *));
	case DAT_ETH_RELEASE_OP:
		return release(ep, va_arg(args, DAT_COUNT));
	case DAT_ETH_ARM_OP:
		return arm(ep);
	case DAT_ETH_POST_SEND_OP:
		return post_send(ep, args);
	case DAT_ETH_PACE_OP:
		return dapl_eth_pace(ep, va_arg(args, const DAT_ETH_PACE *));
	case DAT_ETH_STATS_OP:
		return stats(ep, va_arg(args, DAT_ETH_STATS *));
	default:
		return NOT_SUPPORTED;
	}
}

static DAT_RETURN rule_add(DAT_HANDLE handle, va_list args)
{
	const DAT_ETH_RULE *rule = va_arg(args, const DAT_ETH_RULE *);

	return dapl_eth_rule_add(handle, rule, va_arg(args, DAT_ETH_RULE_HANDLE *));
}

static DAT_RETURN group_create(DAT_HANDLE ia, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	const DAT_EP_HANDLE *eps = va_arg(args, const DAT_EP_HANDLE *);
	const DAT_ETH_RSS *rss = va_arg(args, const DAT_ETH_RSS *);

	return dapl_eth_group_create(ia, n, eps, rss, va_arg(args, DAT_ETH_GROUP_HANDLE *));
}

static DAT_RETURN rule_query(DAT_HANDLE handle, va_list args)
{
	DAT_ETH_RULE *rule = va_arg(args, DAT_ETH_RULE *);
	DAT_UINT64 *frames = va_arg(args, DAT_UINT64 *);

	return dapl_eth_rule_query(handle, rule, frames, va_arg(args, DAT_UINT64 *));
}

DAT_RETURN dapl_eth_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	if (!dapl_device_ops.eth)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	switch ((int)op) {
	case DAT_ETH_QUERY_OP:
		return query(handle, va_arg(args, DAT_ETH_ATTR *));
	case DAT_ETH_CLOCK_OP:
		return read_clock(handle, args);
	case DAT_ETH_GROUP_CREATE_OP:
		return group_create(handle, args);
	case DAT_ETH_GROUP_SET_OP:
		return dapl_eth_group_set(handle, va_arg(args, const uint16_t *));
	case DAT_ETH_GROUP_FREE_OP:
		return dapl_eth_group_free(handle);
	case DAT_ETH_MODERATE_OP:
		return moderate(handle, args);
	case DAT_ETH_RULE_ADD_OP:
		return rule_add(handle, args);
	case DAT_ETH_RULE_FREE_OP:
		return dapl_eth_rule_free(handle);
	case DAT_ETH_RULE_MOVE_OP:
		return dapl_eth_rule_move(handle, va_arg(args, DAT_HANDLE));
	case DAT_ETH_RULE_QUERY_OP:
		return rule_query(handle, args);
	default:
		return ep_op(handle, op, args);
	}
}
