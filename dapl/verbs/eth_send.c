/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_send.c - sends of raw QPs: expresses offloads by flags and opcodes of verbs, and sets the rate of the
 * send queue. The device does the work. This file checks that the headers are those that it needs, since
 * the device sends whatever it is given. */
#include "eth_send.h"
#include "eth_types.h"
#include "hw.h"
#include "common/log.h"
#include "common/frame_layout.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

enum {
	SHORTEST_IP_TCP = 40,		/* bytes: headers of IPv4 and TCP; that of IPv6 alone is as long */
	IPV4_LENGTH = 2, IPV6_LENGTH = 4,	/* offsets of the length in an IP header */
};

struct head {
	uint8_t bytes[ETH_HEADERS_MAX];
	uint32_t length, total;		/* bytes here, of the whole message */
};

/* Copies the first bytes of a message to one piece. Segments name memory by its address. */
static void gather(const struct ibv_send_wr *wr, struct head *h)
{
	h->length = h->total = 0;
	for (int i = 0; i < wr->num_sge; i++) {
		uint32_t some = (uint32_t)sizeof h->bytes - h->length;

		if (some > wr->sg_list[i].length)
			some = wr->sg_list[i].length;
		if (some)	/* an empty segment may have no address */
			memcpy(h->bytes + h->length, (const void *)(uintptr_t)wr->sg_list[i].addr, some);
		h->length += some;
		h->total += wr->sg_list[i].length;
	}
}

static const char *check_checksums(const struct head *h)
{
	struct eth_layout layout;

	if (!eth_layout_read(h->bytes, h->length, &layout))
		return "a frame that wants checksums has no whole IP header";
	return layout.end > h->total ? "the length in its IP header exceeds the frame" : NULL;
}

/* The lengths in the headers of a message to segment need not be right yet. */
static const char *check_segments(const struct hw_eth *q, struct head *h, const struct dapl_eth_send *how)
{
	struct eth_layout layout;
	uint8_t *ip;

	eth_layout_read(h->bytes, h->length, &layout);
	ip = h->bytes + layout.l3;
	if (!layout.l3 || h->length < layout.l3 + (uint32_t)SHORTEST_IP_TCP)
		return "a message to segment is not Ethernet, IP and TCP";
	memset(ip + (*ip >> 4 == 4 ? IPV4_LENGTH : IPV6_LENGTH), 0xff, 2);	/* passes any check */
	if (!eth_layout_read(h->bytes, h->length, &layout) || layout.protocol != IPPROTO_TCP || !layout.payload)
		return "a message to segment has no TCP header, or is a fragment";
	if (layout.payload != how->header_length || layout.payload > HW_ETH_HEADERS)
		return "header_length is not where the TCP header of the message ends";
	if (!how->mss || (uint32_t)(layout.payload - layout.l3) + how->mss > q->mtu)
		return "mss is 0, or frames would exceed the MTU";
	return h->total > layout.payload ? NULL : "a message to segment has no payload";
}

static const char *check(const struct hw_eth *q, struct head *h, const struct dapl_eth_send *how)
{
	if (how->flags & ETH_SEND_TSO)
		return check_segments(q, h, how);
	return how->flags & ETH_SEND_CSUM ? check_checksums(h) : NULL;
}

/* The segments behind the first `skip` bytes. Returns their number. */
static int skip_bytes(const struct ibv_send_wr *wr, uint32_t skip, struct ibv_sge *sge)
{
	int n = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		struct ibv_sge s = wr->sg_list[i];
		uint32_t some = s.length < skip ? s.length : skip;

		skip -= some;
		s.addr += some;
		s.length -= some;
		if (s.length)
			sge[n++] = s;
	}
	return n;
}

static void count(struct hw_eth *q, uint64_t frames, uint64_t bytes)
{
	if (__atomic_load_n(&q->ended, __ATOMIC_RELAXED))	/* it is flushed */
		return;
	__atomic_add_fetch(&q->stats.sent, frames, __ATOMIC_RELAXED);
	__atomic_add_fetch(&q->stats.sent_bytes, bytes, __ATOMIC_RELAXED);
}

static int send_segments(struct hw_eth *q, struct ibv_send_wr *wr, struct head *h, const struct dapl_eth_send *how)
{
	uint32_t payload = h->total - how->header_length;
	uint64_t frames = (payload + how->mss - 1) / how->mss;
	struct ibv_sge sge[HW_ETH_MAX_SGE];
	struct ibv_send_wr *bad;
	int err;

	wr->num_sge = skip_bytes(wr, how->header_length, sge);
	wr->sg_list = sge;
	wr->opcode = IBV_WR_TSO;
	wr->send_flags |= IBV_SEND_IP_CSUM;
	wr->tso.hdr = h->bytes;
	wr->tso.hdr_sz = how->header_length;
	wr->tso.mss = how->mss;
	err = hw_errno(ibv_post_send(q->hw, wr, &bad));
	if (!err)
		count(q, frames, payload + frames * how->header_length);
	return err;
}

static int send_frame(struct hw_eth *q, struct ibv_send_wr *wr, bool checksums)
{
	uint64_t length = 0;
	struct ibv_send_wr *bad;
	int err;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	wr->opcode = IBV_WR_SEND;
	if (checksums)
		wr->send_flags |= IBV_SEND_IP_CSUM;
	err = hw_errno(ibv_post_send(q->hw, wr, &bad));
	if (!err)
		count(q, 1, length);
	return err;
}

/* Core lets a send exceed the limits of the device by a VLAN tag, which the frame must have. ETH-5. */
static bool is_too_long(const struct hw_eth *q, const struct ibv_send_wr *wr)
{
	const struct dapl_eth_send *how = wr->opcode == IBV_WR_DRIVER1 ? &((const struct dapl_eth_wr *)wr)->how : NULL;
	const uint32_t most = how && (how->flags & ETH_SEND_TSO) ? q->config.max_tso : q->config.max_frame;
	uint64_t length = 0;
	struct head h;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length <= most)
		return false;
	gather(wr, &h);
	return !eth_pieces_tagged(&(struct iovec){ h.bytes, h.length }, 1);
}

static int send_how(struct hw_eth *q, struct ibv_send_wr *wr, const struct dapl_eth_send *how)
{
	const char *wrong;
	struct head h;

	gather(wr, &h);
	wrong = wr->num_sge > HW_ETH_MAX_SGE ? "it has too many segments" : check(q, &h, how);
	if (wrong) {
		hw_eth_trace(q, "%s: dat_eth_post_send refused: %s", q->eth->dev->attr.device, wrong);
		return EINVAL;
	}
	if (how->flags & ETH_SEND_TSO) {
		gather(wr, &h);		/* again, since check() has changed the lengths in the headers */
		return send_segments(q, wr, &h, how);
	}
	return send_frame(q, wr, how->flags & ETH_SEND_CSUM);
}

int hw_eth_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err = 0;

	*bad = wr;
	if (!q->hw)
		return EINVAL;
	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr;

		*bad = wr;
		one.next = NULL;
		if (is_too_long(q, wr))
			err = EMSGSIZE;
		else if (wr->opcode == IBV_WR_DRIVER1)
			err = send_how(q, &one, &((const struct dapl_eth_wr *)wr)->how);
		else
			err = wr->opcode == IBV_WR_SEND ? send_frame(q, &one, false) : EINVAL;
	}
	return err;
}

/* The device's unit is kbit/s: rounded down. */
int hw_eth_pace(struct ibv_qp *qp, const struct dapl_eth_pace *pace)
{
	struct hw_eth *q = hw_eth_of(qp);
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = (uint32_t)(pace->bits_per_s / 1000),
		.max_burst_sz = pace->burst, .typical_pkt_sz = pace->frame > 0xffff ? 0xffff : (uint16_t)pace->frame };
	int err;

	if (!pace->bits_per_s)
		attr.max_burst_sz = attr.typical_pkt_sz = 0;
	err = hw_errno(ibv_modify_qp_rate_limit(q->hw, &attr));
	if (!err)
		q->paced = pace->bits_per_s;
	return err;
}
