/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - see receive.h. */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "dapl/softeth/receive.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/validate.h"
#include "dapl/softeth/xdp.h"

enum { PARSED = 512 };	/* bytes of a frame that rules look at */

struct received {
	struct virtio_net_hdr vnet;
	struct eth_tag tag;
	uint64_t time;
	uint32_t wire_length, flags;
	bool outgoing, other_host;
};

/* aux->tp_len is not used: a frame that was looked at before (MSG_PEEK) has a wrong one. */
static void read_auxdata(const struct tpacket_auxdata *aux, struct received *r)
{
	if (aux->tp_status & TP_STATUS_VLAN_VALID) {
		r->tag.type = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETH_P_8021Q;
		r->tag.tci = aux->tp_vlan_tci;
		r->flags |= ETH_FRAME_VLAN;
	}
	if (aux->tp_status & TP_STATUS_CSUMNOTREADY)
		r->flags |= ETH_FRAME_PARTIAL;
	else if (aux->tp_status & TP_STATUS_CSUM_VALID)
		r->flags |= ETH_FRAME_L4_OK;
}

static void read_control(struct eth_port *port, struct msghdr *message, struct received *r)
{
	struct timespec at;
	uint32_t overflow;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			struct tpacket_auxdata aux;

			memcpy(&aux, CMSG_DATA(c), sizeof aux);
			read_auxdata(&aux, r);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&at, CMSG_DATA(c), sizeof at);
			r->time = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&overflow, CMSG_DATA(c), sizeof overflow);
			port->lost_pending += overflow - port->overflow_seen;
			port->overflow_seen = overflow;
		}
	}
}

/* The first bytes of the frame in one piece. */
static uint32_t gather(const struct iovec *iov, int n, uint32_t length, uint8_t head[PARSED])
{
	uint32_t have = 0;

	for (int i = 0; i < n && have < PARSED && have < length; i++) {
		uint32_t some = (uint32_t)iov[i].iov_len;

		if (some > length - have)
			some = length - have;
		if (some > PARSED - have)
			some = PARSED - have;
		memcpy(head + have, iov[i].iov_base, some);
		have += some;
	}
	return have;
}

/* Receives a message. A frame that was joined in a way that the kernel cannot describe (EINVAL) is lost. */
static ssize_t receive_message(struct eth_port *port, struct msghdr *message, int flags)
{
	ssize_t length;

	while ((length = recvmsg(port->fd, message, MSG_DONTWAIT | MSG_TRUNC | flags)) < 0 && errno == EINVAL) {
		if (flags & MSG_PEEK)
			recv(port->fd, NULL, 0, MSG_DONTWAIT);
		port->lost_pending++;
		port->stats.lost++;
	}
	return length;
}

/* Receives a frame into these pieces. The rest of a longer frame goes to `rest`, where rules see it.
 * Returns the frame's length, or -1 with errno. */
static ssize_t receive_into(struct eth_port *port, const struct iovec *iov, int n, struct received *r,
			    uint8_t head[PARSED], uint32_t *parsed, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct iovec pieces[ETH_MAX_PIECES + 2];
	struct virtio_net_hdr vnet;
	struct sockaddr_ll from;
	uint8_t rest[PARSED];
	struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = pieces,
		.msg_iovlen = (size_t)n + 2, .msg_control = &control, .msg_controllen = sizeof control };
	ssize_t length;

	pieces[0] = (struct iovec){ &vnet, sizeof vnet };
	if (n)
		memcpy(pieces + 1, iov, (size_t)n * sizeof *iov);
	pieces[n + 1] = (struct iovec){ rest, sizeof rest };
	length = receive_message(port, &message, flags);
	if (length < (ssize_t)sizeof vnet)
		return -1;
	length -= (ssize_t)sizeof vnet;
	*r = (struct received){ .vnet = vnet, .wire_length = (uint32_t)length,
		.outgoing = from.sll_pkttype == PACKET_OUTGOING,
		.other_host = from.sll_pkttype == PACKET_OTHERHOST };
	read_control(port, &message, r);
	*parsed = gather(pieces + 1, n + 1, (uint32_t)length, head);
	return length;
}

/* ETH-8 */
static int receive_one(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame)
{
	uint32_t room = 0, parsed;
	uint32_t hash = 0;
	uint8_t head[PARSED];
	struct eth_rule *rule;
	struct received r;
	ssize_t length;

	for (int i = 0; i < n; i++)
		room += (uint32_t)iov[i].iov_len;
	do {
		length = receive_into(port, iov, n, &r, head, &parsed, 0);
		if (length < 0)
			return errno;
		rule = eth_rule_find(port, head, parsed, r.tag, r.time, r.outgoing, r.other_host, &hash);
	} while (!rule);
	eth_rule_count_frames(rule, 1, r.wire_length);
	*frame = (struct dapl_eth_frame){ .length = (uint32_t)length < room ? (uint32_t)length : room,
		.wire_length = r.wire_length, .flags = r.flags | (r.outgoing ? ETH_FRAME_OUTGOING : 0),
		.tag = rule->rule.tag, .vlan_tci = r.tag.tci, .vlan_type = r.tag.type };
	if (rule->spread) {
		frame->flags |= ETH_FRAME_HASH;
		frame->hash = hash;
	}
	eth_validate(port, frame, &r.vnet, head, parsed < frame->length ? parsed : frame->length, iov, n);
	eth_rule_account(port, frame, r.time);
	return 0;
}

int eth_receive(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame)
{
	int err;

	if (n > ETH_MAX_PIECES)
		return EINVAL;
	dapl_mutex_lock(&port->lock);
	err = receive_one(port, iov, n, frame);
	dapl_mutex_unlock(&port->lock);
	return err;
}

bool eth_receive_is_ready(struct eth_port *port)
{
	uint8_t head[PARSED];
	struct received r;
	uint32_t parsed, hash;
	bool found = false;

	dapl_mutex_lock(&port->lock);
	if (port->xdp)
		found = eth_xdp_has_frame(port);
	while (!found && !port->xdp && receive_into(port, NULL, 0, &r, head, &parsed, MSG_PEEK) >= 0) {
		found = eth_rule_find(port, head, parsed, r.tag, r.time, r.outgoing, r.other_host, &hash);
		if (!found)
			recv(port->fd, NULL, 0, MSG_DONTWAIT);
	}
	dapl_mutex_unlock(&port->lock);
	return found;
}
