/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* validate.c - checksums of a frame that was received, and how many frames were joined in it. The kernel
 * reports that it has verified TCP or UDP. What it has not verified is added up here if the program asked
 * for that. The IPv4 header is always added up: it is short. */
#include <netinet/in.h>
#include "common/frame_layout.h"
#include "dapl/softeth/validate.h"

static bool is_right(uint32_t sum)
{
	return eth_sum_fold(sum) == 0xffff;
}

static void validate_ipv4(struct dapl_eth_frame *frame, const uint8_t *head, const struct eth_layout *l)
{
	uint32_t sum = eth_sum_bytes(head + l->l3, (size_t)(l->l4 - l->l3), 0);

	frame->flags |= is_right(sum) ? ETH_FRAME_IP_OK : ETH_FRAME_IP_BAD;
}

/* UDP over IPv4 may have no checksum: 0. */
static void validate_l4(struct dapl_eth_frame *frame, const uint8_t *head, const struct eth_layout *l,
			const struct iovec *iov, int n)
{
	const uint8_t *at = head + l->l4 + eth_checksum_offset(l);
	uint32_t sum;

	if (l->protocol != IPPROTO_TCP && l->version == 4 && !at[0] && !at[1])
		return;
	sum = eth_sum_pieces(iov, n, l->l4, l->end - l->l4, eth_sum_pseudo(head, l));
	frame->flags |= is_right(sum) ? ETH_FRAME_L4_OK : ETH_FRAME_L4_BAD;
}

static void count_segments(struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
			   const struct eth_layout *l)
{
	uint32_t payload;

	if (vnet->gso_type == VIRTIO_NET_HDR_GSO_NONE || !vnet->gso_size || !l->payload ||
	    frame->wire_length <= l->payload)
		return;
	payload = frame->wire_length - l->payload;
	frame->segments = (uint16_t)((payload + vnet->gso_size - 1) / vnet->gso_size);
}

static bool read_layout(const struct dapl_eth_frame *frame, const uint8_t *head, uint32_t parsed, struct eth_layout *l)
{
	return eth_layout_read(head, parsed, l) ||
	       (frame->wire_length > UINT16_MAX && eth_layout_read_unsized(head, parsed, l));
}

/* ETH-24 */
void eth_validate(const struct eth_port *port, struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
		  const uint8_t *head, uint32_t parsed, const struct iovec *iov, int n)
{
	struct eth_layout l;

	if (!read_layout(frame, head, parsed, &l))
		return;
	count_segments(frame, vnet, &l);
	if (l.version == 4 && !(frame->flags & ETH_FRAME_PARTIAL))
		validate_ipv4(frame, head, &l);
	if (port->verify && l.payload && l.end <= frame->length && !frame->segments &&
	    !(frame->flags & (ETH_FRAME_L4_OK | ETH_FRAME_PARTIAL)))
		validate_l4(frame, head, &l, iov, n);
}
