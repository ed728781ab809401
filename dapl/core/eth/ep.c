/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.c - creating, disconnecting and freeing raw Ethernet endpoints. ETH-1 to 8, 30.
 *
 * A raw endpoint is an endpoint (ep/) of service type DAT_ETH_SERVICE_TYPE_RAW. Its QP exists from the
 * beginning, and it is CONNECTED at once. Its rules are objects that hold a reference to it; they end
 * with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/frame_layout.h"
#include "dapl/core/conn/disconnect.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/rule.h"
#include "dapl/core/mem/zero_based.h"

enum {
	DEFAULT_FRAMES = 4096,		/* frames of a ring: 7 MB with frames of 1500 bytes */
	MAX_FRAMES = 1 << 20,
	MAX_SNAP = 1 << 16,
	MIN_FRAME = 14,			/* bytes: both addresses and the type */
};

/* --- ep_provider_specific ------------------------------------------------------------- */

static bool number(const char *text, unsigned long max, uint32_t *value)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	*value = (uint32_t)n;
	return !*end && !errno && n && n <= max;
}

/* Reads one of two words; *value is true for `on`. Returns false for any other word. */
static bool choice(const char *text, const char *off, const char *on, bool *value)
{
	*value = !strcmp(text, on);
	return *value || !strcmp(text, off);
}

static bool read_receive(const char *text, bool *ring, struct dapl_eth_config *config)
{
	config->xdp = !strcmp(text, "xdp");
	*ring = config->xdp || !strcmp(text, "ring");
	return *ring || !strcmp(text, "post");
}

/* Reads the value of one attribute. Returns NULL, or what was expected. */
static const char *read_attr(const DAT_NAMED_ATTR *a, bool *ring, uint32_t *frames, struct dapl_eth_config *config)
{
	if (!strcmp(a->name, "eth_receive"))
		return read_receive(a->value, ring, config) ? NULL : "post, ring or xdp";
	if (!strcmp(a->name, "eth_frames"))
		return number(a->value, MAX_FRAMES, frames) ? NULL : "a number from 1 to 1048576";
	if (!strcmp(a->name, "eth_snap"))
		return number(a->value, MAX_SNAP, &config->snap) ? NULL : "a number from 1 to 65536";
	if (!strcmp(a->name, "eth_checksum"))
		return choice(a->value, "device", "verify", &config->verify) ? NULL : "device or verify";
	if (!strcmp(a->name, "eth_fcs"))
		return choice(a->value, "strip", "keep", &config->fcs) ? NULL : "strip or keep";
	return "a name that is eth_receive, eth_frames, eth_snap, eth_checksum or eth_fcs";
}

/* ETH-4 */
static bool read_attrs(const DAT_EP_ATTR *attr, struct dapl_eth_config *config)
{
	uint32_t frames = DEFAULT_FRAMES;
	bool ring = false;

	for (int i = 0; attr->ep_provider_specific && i < attr->ep_provider_specific_count; i++) {
		const DAT_NAMED_ATTR *a = &attr->ep_provider_specific[i];
		const char *expected = a->name && a->value ? read_attr(a, &ring, &frames, config) :
			"a name and a value that are not NULL";

		if (!expected)
			continue;
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "create refused: ep_provider_specific %d is "
		      "\"%s\" = \"%s\", expected %s", i, a->name ? a->name : "NULL", a->value ? a->value : "NULL",
		      expected);
		return false;
	}
	config->ring_frames = ring ? frames : 0;
	return true;
}

/* --- creating ------------------------------------------------------------------------- */

static DAT_RETURN begin_status(int err)
{
	if (err == ENOENT)
		return NOT_SUPPORTED;
	if (err == EBUSY)	/* ETH-40 */
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	return dapl_status(err, DAT_RESOURCE_TEP);
}

/* Returns what of the configuration the device cannot do, or NULL. */
static const char *find_missing(const struct dapl_eth_config *config, uint64_t caps)
{
	if (config->fcs && !(caps & DAT_ETH_CAP_FCS))	/* ETH-39 */
		return "eth_fcs is keep, but the device gives frames without their FCS (no DAT_ETH_CAP_FCS)";
	if (config->xdp && !(caps & DAT_ETH_CAP_XDP))	/* ETH-40 */
		return "eth_receive is xdp, but the device has no AF_XDP sockets (no DAT_ETH_CAP_XDP)";
	return NULL;
}

static void trace_xdp(const struct dapl_ep *ep)
{
	struct dapl_eth_stats stats = { .flags = 0 };

	dapl_device_ops.eth->stats(ep->qp, &stats);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, NULL, "receives by AF_XDP, %s",
	      stats.flags & ETH_STATS_ZERO_COPY ?
	      "with zero copy" : "and the kernel copies: the driver has no zero copy");
}

/* Returns the number of frames - 1. An SRQ may grow to the device's limit, so an endpoint on an SRQ has
 * that many. */
static uint32_t frame_mask(const struct dapl_ep *ep)
{
	uint32_t most = (uint32_t)ep->obj.ia->ia_attr.max_recv_per_srq, size = 1;

	if (!ep->srq)
		return ep->rq.mask;
	while (size < most)
		size *= 2;
	return size - 1;
}

/* Returns the bytes by which a send may exceed the limits of the device. The device then checks that the frame has a
 * VLAN tag. It cannot, if it reads headers by addresses that are offsets. */
static uint32_t tag_room(const struct dapl_ep *ep)
{
	return dapl_device_ops.eth->reads_headers && dapl_pz_is_zero_based(ep->pz) ? 0 : ETH_TAG_LENGTH;
}

/* Called with ep->lock held. */
static DAT_RETURN begin_locked(struct dapl_ep *ep, struct dapl_eth_config *config)
{
	struct dapl_eth_attr attr;
	DAT_RETURN ret = dapl_ep_need_qp(ep);
	const char *missing;
	int err;

	assert_held(&ep->lock);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!(ep->eth = calloc(1, sizeof *ep->eth)))
		return NO_RESOURCE(MEMORY);
	ep->eth->frame_mask = frame_mask(ep);
	if (!(ep->eth->frames = calloc((size_t)ep->eth->frame_mask + 1, sizeof *ep->eth->frames)))
		return NO_RESOURCE(MEMORY);
	config->frames = ep->eth->frames;
	config->mask = ep->eth->frame_mask;
	ep->eth->ring = config->ring_frames != 0;
	ep->eth->xdp = config->xdp;
	ep->eth->ready = (struct dapl_dto){ .ep = ep, .op = DAT_DTO_RECEIVE, .flags = REQ_EXTENSION };
	if ((err = dapl_device_ops.eth->query(ep->obj.ia->dev, &attr)))
		return begin_status(err);
	if ((missing = find_missing(config, attr.caps))) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "create refused: %s", missing);
		return NOT_SUPPORTED;
	}
	config->max_frame = attr.max_frame;
	config->max_tso = attr.max_tso;
	if ((err = dapl_device_ops.eth->begin(ep->qp, config)))
		return begin_status(err);
	if (config->xdp)
		trace_xdp(ep);
	ep->eth->max_tso = attr.max_tso + tag_room(ep);
	ep->eth->caps = attr.caps;
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	WRITE_ONCE(ep->min_message, MIN_FRAME);	/* ETH-5 */
	WRITE_ONCE(ep->max_message, attr.max_frame + tag_room(ep));	/* ETH-5 */
	WRITE_ONCE(ep->max_rdma, 0);	/* RDMA takes the slow path, which refuses it */
	ep->max_inline = 0;
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	dapl_ep_begin_raw(ep);
	return DAT_SUCCESS;
}

static DAT_RETURN begin(DAT_EP_HANDLE handle, struct dapl_eth_config *config)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_RETURN ret;

	if (!ep)	/* another thread closed its IA meanwhile */
		return BAD_HANDLE(IA);
	dapl_mutex_lock(&ep->lock);
	ret = begin_locked(ep, config);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* Makes an endpoint without the named attributes, which are for this file only. `srq` NULL: it has receives
 * of its own. */
static DAT_RETURN create_plain(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			       DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *made)
{
	DAT_EP_ATTR plain = *attr;

	plain.ep_provider_specific_count = 0;
	if (srq)
		return dapl_ep_create_with_srq(ia, pz, recv, request, DAT_HANDLE_NULL, srq, &plain, made);
	return dapl_ep_create(ia, pz, recv, request, DAT_HANDLE_NULL, &plain, made);
}

static DAT_RETURN create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			 DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, bool has_srq,
			 DAT_EP_HANDLE *handle)
{
	struct dapl_eth_config config = { .snap = 0 };
	DAT_EP_HANDLE made;
	DAT_RETURN ret;

	if (!pz)
		return BAD_HANDLE(PZ);
	if (connect)
		return BAD_HANDLE(EVD_CONN);
	if (!read_attrs(attr, &config))
		return has_srq ? BAD_PARAM(7) : BAD_PARAM(6);
	if (has_srq && config.ring_frames)
		return NOT_SUPPORTED;
	ret = create_plain(ia, pz, recv, request, srq, attr, &made);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = begin(made, &config);
	if (ret == DAT_SUCCESS)
		*handle = made;
	else
		dapl_ep_free(made);
	return ret;
}

static bool is_raw(const DAT_EP_ATTR *attr)
{
	return attr && attr->service_type == DAT_ETH_SERVICE_TYPE_RAW && dapl_device_ops.eth;
}

/* ETH-1, 2, 3 */
DAT_RETURN dapl_eth_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			      DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *handle)
{
	if (!is_raw(attr) || !handle)
		return dapl_ep_create(ia, pz, recv, request, connect, attr, handle);
	return create(ia, pz, recv, request, connect, DAT_HANDLE_NULL, attr, false, handle);
}

/* ETH-30 */
DAT_RETURN dapl_eth_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
				       DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				       DAT_EP_HANDLE *handle)
{
	if (!is_raw(attr) || !handle || !srq)
		return dapl_ep_create_with_srq(ia, pz, recv, request, connect, srq, attr, handle);
	return create(ia, pz, recv, request, connect, srq, attr, true, handle);
}

/* --- disconnecting and freeing --------------------------------------------------------- */

/* Returns the endpoint of a handle with a reference, or NULL if it is not raw. */
static struct dapl_ep *raw_ep(DAT_EP_HANDLE handle)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep || !ep->eth)
		return NULL;
	dapl_object_get(&ep->obj);
	return ep;
}

static void after_end(struct dapl_ep *ep, DAT_RETURN ret)
{
	if (!ep)
		return;
	if (ret == DAT_SUCCESS)
		dapl_eth_rules_end(ep);
	dapl_object_put(&ep->obj);
}

/* ETH-6 */
DAT_RETURN dapl_eth_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct dapl_ep *ep = raw_ep(handle);
	DAT_RETURN ret = dapl_ep_disconnect(handle, flags);

	after_end(ep, ret);
	return ret;
}

DAT_RETURN dapl_eth_ep_free(DAT_EP_HANDLE handle)
{
	struct dapl_ep *ep = raw_ep(handle);
	DAT_RETURN ret = dapl_ep_free(handle);

	after_end(ep, ret);
	return ret;
}
