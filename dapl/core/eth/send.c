/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sends of raw Ethernet endpoints with offloads, and their rate: checks arguments. The device
 * checks that a frame has the headers that an offload needs. ETH-21 to 26, 36, 37. */
#include <string.h>
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/eth/send.h"
#include "dapl/core/mem/zero_based.h"

static const struct {
	DAT_UINT32 flag;
	uint64_t cap;			/* the capability that the flag needs; 0: none */
} offloads[] = {
	{ DAT_ETH_SEND_CSUM, DAT_ETH_CAP_TX_CSUM },
	{ DAT_ETH_SEND_TSO, DAT_ETH_CAP_TSO },
	{ DAT_ETH_SEND_VLAN, DAT_ETH_CAP_VLAN_INSERT },
	{ DAT_ETH_SEND_LAUNCH, DAT_ETH_CAP_LAUNCH },
	{ DAT_ETH_SEND_STAMP, DAT_ETH_CAP_SEND_STAMP },
	{ DAT_ETH_SEND_INNER_CSUM, DAT_ETH_CAP_INNER_CSUM },
	{ DAT_ETH_SEND_MORE, 0 },
};

/* Returns what is wrong, or NULL. ETH-21, 36. */
static const char *find_wrong(const DAT_ETH_SEND *how)
{
	DAT_UINT32 known = 0;

	for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++)
		known |= offloads[i].flag;
	if (how->flags & ~known)
		return "an unknown flag";
	if (how->reserved0 || how->reserved)
		return "a reserved member is not 0";
	if (!(how->flags & DAT_ETH_SEND_TSO) && (how->mss || how->header_length))
		return "mss or header_length without DAT_ETH_SEND_TSO";
	if (!(how->flags & DAT_ETH_SEND_VLAN) && (how->vlan_tci || how->vlan_type))
		return "vlan_tci or vlan_type without DAT_ETH_SEND_VLAN";
	if (!(how->flags & DAT_ETH_SEND_LAUNCH) && how->launch)
		return "launch without DAT_ETH_SEND_LAUNCH";
	if ((how->flags & DAT_ETH_SEND_STAMP) && (how->flags & DAT_ETH_SEND_TSO))
		return "DAT_ETH_SEND_STAMP with DAT_ETH_SEND_TSO: the frames of a message leave at different times";
	if ((how->flags & DAT_ETH_SEND_INNER_CSUM) && (how->flags & DAT_ETH_SEND_TSO))
		return "DAT_ETH_SEND_INNER_CSUM with DAT_ETH_SEND_TSO";
	if (how->vlan_type && how->vlan_type != 0x8100 && how->vlan_type != 0x88a8)
		return "vlan_type is not 0, 0x8100 or 0x88a8";
	return NULL;
}

static bool is_able(const struct dapl_ep *ep, const DAT_ETH_SEND *how)
{
	for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++)
		if ((how->flags & offloads[i].flag) && offloads[i].cap && !(ep->eth->caps & offloads[i].cap))
			return false;
	return true;
}

/* A post returns INTERNAL_ERROR for EINVAL. Here EINVAL means that `how` does not fit the frame. */
DAT_RETURN dapl_eth_post_send(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			      const DAT_ETH_SEND *how, DAT_COMPLETION_FLAGS flags)
{
	static const struct dapl_post_kind stamped = { DAT_DTO_SEND, REQ_EXTENSION, DCNT_EP_POST_SEND };
	struct dapl_eth_wr wr = { .wr = { .opcode = IBV_WR_DRIVER1 } };
	const char *wrong;
	uint64_t room;
	DAT_RETURN ret;

	if (!how)
		return BAD_PARAM(5);
	if ((wrong = find_wrong(how))) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "dat_eth_post_send refused: %s", wrong);
		return BAD_PARAM(5);
	}
	if (!is_able(ep, how))
		return NOT_SUPPORTED;
	if (dapl_device_ops.eth->reads_headers && dapl_pz_is_zero_based(ep->pz))
		return NOT_SUPPORTED;
	memcpy(&wr.how, how, sizeof wr.how);
	room = how->flags & DAT_ETH_SEND_TSO ? ep->eth->max_tso : READ_ONCE(ep->max_message);	/* ETH-22 */
	ret = dapl_post_gather(ep, n, iov, cookie, flags, &wr.wr, READ_ONCE(ep->max_send_iov), room,
			       how->flags & DAT_ETH_SEND_STAMP ? &stamped : &DAPL_POST_SEND);
	return DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR ? BAD_PARAM(5) : ret;
}

static DAT_RETURN check_rate(const struct dapl_ep *ep, DAT_UINT64 rate)
{
	struct dapl_eth_attr attr;
	int err = dapl_device_ops.eth->query(ep->obj.ia->dev, &attr);

	if (err)
		return dapl_status(err, DAT_RESOURCE_DEVICE);
	if (rate >= attr.rate_min && rate <= attr.rate_max)
		return DAT_SUCCESS;
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL, "dat_eth_pace refused: %llu bit/s is not 0, nor between "
	      "%llu and %llu", (unsigned long long)rate, (unsigned long long)attr.rate_min,
	      (unsigned long long)attr.rate_max);
	return BAD_PARAM(2);
}

/* To end a rate, the device is not queried, because it may have been removed: sends that wait then
 * complete. ETH-25 */
DAT_RETURN dapl_eth_pace(struct dapl_ep *ep, const DAT_ETH_PACE *wanted)
{
	struct dapl_eth_pace pace;
	DAT_RETURN ret;

	if (!wanted)
		return BAD_PARAM(2);
	if (!(ep->eth->caps & DAT_ETH_CAP_PACE))
		return NOT_SUPPORTED;
	if (wanted->bits_per_s && (ret = check_rate(ep, wanted->bits_per_s)))
		return ret;
	memcpy(&pace, wanted, sizeof pace);
	dapl_mutex_lock(&ep->lock);
	ret = ep->state == DAT_EP_STATE_CONNECTED && ep->qp ?
		dapl_status(dapl_device_ops.eth->pace(ep->qp, &pace), DAT_RESOURCE_MEMORY) :
		dapl_status_bad_ep_state(ep->state);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}
