/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sends frames by the port's packet socket, one or a batch, with the offloads that they ask for.
 *
 * The kernel computes checksums of TCP and UDP and segments messages, or has the device do so: a struct
 * virtio_net_hdr before the frame (PACKET_VNET_HDR) says where. The headers are copied and completed here:
 * VLAN tag, lengths, checksum of the IPv4 header, sum of the pseudo header. For a packet that ends before
 * its frame the checksum is computed here, since the kernel would add up the padding, too. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "common/bytes.h"
#include "common/frame_layout.h"
#include "common/interface.h"
#include "dapl/softeth/port_types.h"
#include "dapl/softeth/send.h"

enum {
	ADDRESSES = 12,			/* bytes before the type, where a tag is inserted */
	BATCH = 64,			/* frames of one system call, whose cost they share */
	MSS_MIN = 8,			/* bytes; newer kernels cut into no less, whatever they are told
					 * (TCP_MIN_GSO_SIZE) */
};

struct message {
	struct virtio_net_hdr vnet;
	uint8_t head[ETH_VLAN_HLEN + ETH_HEADERS_MAX];	/* a copy of the first bytes, changed */
	uint32_t head_length, total;	/* bytes; total: of the frame or of the whole message */
	struct eth_layout layout;
	struct iovec iov[ETH_MAX_PIECES + 2];	/* vnet, head, what follows it */
	int pieces;
	uint64_t frames, bytes;		/* for the counters */
	uint32_t segment;		/* bytes of a frame that the kernel cuts, from its IP header on */
};

/* Copies the first bytes, and points the pieces behind them to the rest. */
static void split(struct message *m, const struct iovec *iov, int n)
{
	uint32_t want = ETH_HEADERS_MAX;

	m->pieces = 2;
	for (int i = 0; i < n; i++) {
		uint32_t length = (uint32_t)iov[i].iov_len, some = length < want ? length : want;

		memcpy(m->head + m->head_length, iov[i].iov_base, some);
		m->head_length += some;
		want -= some;
		m->total += length;
		if (length > some)
			m->iov[m->pieces++] = (struct iovec){ (char *)iov[i].iov_base + some, length - some };
	}
}

/* ETH-23 */
static void insert_tag(struct message *m, const struct dapl_eth_send *how)
{
	memmove(m->head + ADDRESSES + ETH_VLAN_HLEN, m->head + ADDRESSES, m->head_length - ADDRESSES);
	put_be16(m->head + ADDRESSES, how->vlan_type ? how->vlan_type : ETH_P_8021Q);
	put_be16(m->head + ADDRESSES + 2, how->vlan_tci);
	m->head_length += ETH_VLAN_HLEN;
	m->total += ETH_VLAN_HLEN;
}

static void sum_ipv4_header(struct message *m, const struct eth_layout *l)
{
	uint8_t *ip = m->head + l->l3;

	if (l->version != 4)
		return;
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~eth_sum_fold(eth_sum_bytes(ip, (size_t)(l->l4 - l->l3), 0)));
}

/* The kernel continues with the sum of the pseudo header, from csum_start to the end. */
static void ask_for_checksum(struct message *m)
{
	uint8_t *at = m->head + m->layout.l4 + eth_checksum_offset(&m->layout);

	put_be16(at, eth_sum_fold(eth_sum_pseudo(m->head, &m->layout)));
	m->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	m->vnet.csum_start = m->layout.l4;
	m->vnet.csum_offset = eth_checksum_offset(&m->layout);
}

static void compute_checksum(struct message *m, const struct eth_layout *l)
{
	uint8_t *at = m->head + l->l4 + eth_checksum_offset(l);
	uint16_t sum;

	put_be16(at, 0);
	sum = (uint16_t)~eth_sum_fold(eth_sum_pieces(m->iov + 1, m->pieces - 1, l->l4, l->end - l->l4,
						     eth_sum_pseudo(m->head, l)));
	put_be16(at, sum || l->protocol != IPPROTO_UDP ? sum : 0xffff);
}

/* ETH-21 */
static const char *add_checksums(struct message *m)
{
	sum_ipv4_header(m, &m->layout);
	if (m->layout.end > m->total)
		return "the length in its IP header exceeds the frame";
	if (!m->layout.payload)
		return NULL;
	if (m->layout.end == m->total)
		ask_for_checksum(m);
	else
		compute_checksum(m, &m->layout);
	return NULL;
}

/* Completes the headers within a tunnel. The kernel computes one checksum of a frame only, so these are
 * computed here. */
static const char *add_inner_checksums(struct message *m)
{
	struct eth_layout inner;

	if (!eth_layout_inner(m->head, m->head_length, &m->layout, &inner))
		return "a frame that wants inner checksums has no whole IP header within a tunnel";
	if (inner.end > m->total)
		return "the length in its inner IP header exceeds the frame";
	sum_ipv4_header(m, &inner);
	if (inner.payload)
		compute_checksum(m, &inner);
	return NULL;
}

/* ETH-22 */
static const char *add_segmentation(struct message *m, const struct dapl_eth_send *how, uint32_t mtu)
{
	struct eth_layout *l = &m->layout;
	uint32_t header = how->header_length + (how->flags & ETH_SEND_VLAN ? ETH_VLAN_HLEN : 0);
	uint32_t payload = m->total - l->payload, mss = how->mss;

	if (l->protocol != IPPROTO_TCP || !l->payload)
		return "a message to segment has no TCP header, or is a fragment";
	if (l->payload != header)
		return "header_length is not where the TCP header of the message ends";
	if (mss < MSS_MIN || l->payload - l->l3 + mss > mtu)
		return "mss is less than 8, or frames would exceed the MTU";
	sum_ipv4_header(m, &m->layout);
	ask_for_checksum(m);
	m->vnet.hdr_len = l->payload;
	if (payload <= mss)
		return NULL;
	m->vnet.gso_type = l->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	m->vnet.gso_size = how->mss;
	m->segment = l->payload - l->l3 + mss;
	m->frames = (payload + mss - 1) / mss;
	m->bytes = payload + m->frames * l->payload;
	return NULL;
}

/* The lengths in the headers become those of the whole message. */
static const char *set_lengths(struct message *m)
{
	struct eth_layout *l = &m->layout;
	uint32_t length = m->total - l->l3;

	if (length > 0xffff)
		return "a message to segment is longer than max_tso";
	if (l->version == 4)
		put_be16(m->head + l->l3 + 2, length);
	else
		put_be16(m->head + l->l3 + 4, length - 40);
	l->end = m->total;
	return NULL;
}

/* Returns what is wrong with the message, or NULL. */
static const char *prepare(struct message *m, const struct dapl_eth_send *how, uint32_t mtu)
{
	const char *wrong;

	if (how->flags & ETH_SEND_VLAN)
		insert_tag(m, how);
	m->iov[1] = (struct iovec){ m->head, m->head_length };
	m->frames = 1;
	m->bytes = m->total;
	if (!(how->flags & (ETH_SEND_CSUM | ETH_SEND_TSO | ETH_SEND_INNER_CSUM)))
		return NULL;
	if (how->flags & ETH_SEND_TSO) {
		if (!eth_layout_read_unsized(m->head, m->head_length, &m->layout))
			return "a message to segment is not Ethernet, IP and TCP";
		wrong = set_lengths(m);
		return wrong ? wrong : add_segmentation(m, how, mtu);
	}
	if (!eth_layout_read(m->head, m->head_length, &m->layout))
		return "a frame that wants checksums has no whole IP header";
	if ((how->flags & ETH_SEND_INNER_CSUM) && (wrong = add_inner_checksums(m)))
		return wrong;
	return how->flags & ETH_SEND_CSUM ? add_checksums(m) : NULL;
}

/* --- times of departure -------------------------------------------------------------------- */

/* The kernel puts the time of a frame that asked for it into the socket's error queue, once the frame has
 * left. Only one frame asks at a time, so times need no number. Returns the last time in the queue. */
int eth_send_stamp(struct eth_port *port, uint64_t *time)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct scm_timestamping stamp;
	int err = EAGAIN;

	for (;;) {
		struct msghdr message = { .msg_control = &control, .msg_controllen = sizeof control };

		if (recvmsg(port->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return err;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
			if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING)
				continue;
			memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
			*time = (uint64_t)stamp.ts[0].tv_sec * 1000000000u + (uint64_t)stamp.ts[0].tv_nsec;
			err = 0;
		}
	}
}

struct stamp_request {
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(uint32_t))];
	} control;
};

/* Times of frames before this one are forgotten. */
static int ask_for_stamp(struct eth_port *port, struct stamp_request *request, struct msghdr *message)
{
	uint32_t how = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY, what = SOF_TIMESTAMPING_TX_SOFTWARE;
	uint64_t forgotten;

	if (!__atomic_load_n(&port->stamping, __ATOMIC_RELAXED)) {
		if (setsockopt(port->fd, SOL_SOCKET, SO_TIMESTAMPING, &how, sizeof how))
			return errno;
		__atomic_store_n(&port->stamping, true, __ATOMIC_RELAXED);
	}
	eth_send_stamp(port, &forgotten);
	memset(request, 0, sizeof *request);
	request->control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SO_TIMESTAMPING,
		.cmsg_len = CMSG_LEN(sizeof what) };
	memcpy(CMSG_DATA(&request->control.header), &what, sizeof what);
	message->msg_control = request;
	message->msg_controllen = CMSG_SPACE(sizeof what);
	return 0;
}

/* --- sending -------------------------------------------------------------------------------- */

static void count(struct eth_port *port, uint64_t frames, uint64_t bytes)
{
	__atomic_add_fetch(&port->stats.sent, frames, __ATOMIC_RELAXED);
	__atomic_add_fetch(&port->stats.sent_bytes, bytes, __ATOMIC_RELAXED);
}

/* Ends the bypass of the queueing discipline. The kernel drops a message to segment that bypasses it, if
 * the device cannot segment. Later frames must not overtake those that pass through it from now on. ETH-38.
 */
static int end_bypass(struct eth_port *port)
{
	int off = 0;

	if (setsockopt(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &off, sizeof off))
		return errno;
	port->bypass = false;
	return 0;
}

/* With the bypass, a device without carrier gives the same error as one with a full queue. ETH-38. */
static int send_error(const struct eth_port *port, int err)
{
	struct ifreq ifr;

	if (err == ENOBUFS && port->bypass && !interface_request_index(port->index, SIOCGIFFLAGS, &ifr) &&
	    !(ifr.ifr_flags & IFF_RUNNING))
		return ENETDOWN;
	return err;
}

/* True if the MTU has become too small for the frames of a message to segment. The kernel checks single
 * frames against the current MTU, but not the frames that it cuts: they would be lost without an error.
 * ETH-22. */
static bool exceeds_mtu(const struct eth_port *port, const struct message *m)
{
	struct ifreq ifr = { .ifr_ifindex = port->index };

	if (!m->vnet.gso_type)
		return false;
	return !ioctl(port->fd, SIOCGIFNAME, &ifr) && !ioctl(port->fd, SIOCGIFMTU, &ifr) &&
	       m->segment > (uint32_t)ifr.ifr_mtu;
}

static int send_message(struct eth_port *port, struct message *m, bool stamped)
{
	struct msghdr message = { .msg_iov = m->iov, .msg_iovlen = (size_t)m->pieces };
	struct stamp_request request;
	ssize_t sent;
	int err;

	if (exceeds_mtu(port, m))
		return EMSGSIZE;
	if (m->vnet.gso_type && port->bypass && (err = end_bypass(port)))
		return err;
	if (stamped && (err = ask_for_stamp(port, &request, &message)))
		return err;
	m->iov[0] = (struct iovec){ &m->vnet, sizeof m->vnet };
	sent = sendmsg(port->fd, &message, MSG_DONTWAIT);
	if (sent < 0 && errno == ENETDOWN)	/* of an earlier time? The socket reports it once. ETH-19 */
		sent = sendmsg(port->fd, &message, MSG_DONTWAIT);
	if (sent < 0)
		return send_error(port, errno);
	count(port, m->frames, m->bytes);
	return 0;
}

static bool changes_headers(const struct dapl_eth_send *how)
{
	return how && (how->flags & (ETH_SEND_CSUM | ETH_SEND_TSO | ETH_SEND_VLAN | ETH_SEND_INNER_CSUM));
}

/* Returns what is wrong with the frame, or NULL. */
static const char *fill(struct eth_port *port, struct message *m, const struct iovec *iov, int n,
			const struct dapl_eth_send *how)
{
	if (n > ETH_MAX_PIECES)
		return "it has too many segments";
	m->vnet = (struct virtio_net_hdr){ .flags = 0 };
	m->head_length = m->total = 0;
	if (changes_headers(how)) {
		split(m, iov, n);
		return prepare(m, how, port->mtu);
	}
	memcpy(m->iov + 1, iov, (size_t)n * sizeof *iov);
	m->pieces = n + 1;
	m->frames = 1;
	m->bytes = 0;
	for (int i = 0; i < n; i++)
		m->bytes += iov[i].iov_len;
	return NULL;
}

int eth_send(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how,
	     const char **wrong)
{
	struct message m;

	*wrong = fill(port, &m, iov, n, how);
	return *wrong ? EINVAL : send_message(port, &m, how && (how->flags & ETH_SEND_STAMP));
}

const char *eth_send_check(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how)
{
	struct message m;

	return fill(port, &m, iov, n, how);
}

/* --- a batch ---------------------------------------------------------------------------------- */

struct eth_batch {
	struct message messages[BATCH];
	struct mmsghdr headers[BATCH];
};

static void count_batch(struct eth_port *port, int from, int n)
{
	uint64_t frames = 0, bytes = 0;

	for (int i = from; i < from + n; i++) {
		frames += port->batch->messages[i].frames;
		bytes += port->batch->messages[i].bytes;
	}
	count(port, frames, bytes);
}

/* sendmmsg() returns how many frames have left; the next call returns the error of the frame behind them. */
static int send_filled(struct eth_port *port, int n, int *sent)
{
	bool told_down = false;
	int got;

	while (*sent < n) {
		got = sendmmsg(port->fd, port->batch->headers + *sent, (unsigned)(n - *sent), MSG_DONTWAIT);
		if (got < 0 && (errno != ENETDOWN || told_down))
			return send_error(port, errno);
		told_down = got < 0;	/* of an earlier time? The socket reports it once */
		if (got > 0) {
			count_batch(port, *sent, got);
			*sent += got;
		}
	}
	return 0;
}

static int send_first(struct eth_port *port, const struct eth_out *frame, int *sent, const char **wrong)
{
	int err = eth_send(port, frame->iov, frame->n, frame->how, wrong);

	*sent = !err;
	return err;
}

int eth_send_batch(struct eth_port *port, const struct eth_out *frames, int n, int *sent, const char **wrong)
{
	bool segments = false, too_long = false;
	int filled = 0, err = 0;

	*sent = 0;
	*wrong = NULL;
	if (!port->batch && !(port->batch = malloc(sizeof *port->batch)))
		return send_first(port, frames, sent, wrong);
	for (; filled < n && filled < BATCH; filled++) {
		struct message *m = &port->batch->messages[filled];

		if ((*wrong = fill(port, m, frames[filled].iov, frames[filled].n, frames[filled].how)))
			break;
		if ((too_long = exceeds_mtu(port, m)))
			break;
		segments |= m->vnet.gso_type != 0;
		m->iov[0] = (struct iovec){ &m->vnet, sizeof m->vnet };
		port->batch->headers[filled].msg_hdr = (struct msghdr){ .msg_iov = m->iov,
			.msg_iovlen = (size_t)m->pieces };
	}
	if (segments && port->bypass)
		err = end_bypass(port);
	if (!err)
		err = send_filled(port, filled, sent);
	if (err)
		*wrong = NULL;	/* of a frame behind that one */
	else if (too_long)
		err = EMSGSIZE;
	return *wrong ? EINVAL : err;
}
