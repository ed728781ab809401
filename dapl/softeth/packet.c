/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - ports over packet sockets: opening, receiving one frame at a time, counters, and the table of the
 * library. Ring receive is in ring.c, sending in send.c, rules in rules.c. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/frame_layout.h"
#include "common/interface.h"
#include "dapl/softeth/bpf.h"
#include "dapl/softeth/group.h"
#include "dapl/softeth/packet.h"
#include "dapl/softeth/place.h"
#include "dapl/softeth/port.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/ring.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/send.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/validate.h"
#include "dapl/softeth/xdp.h"

enum {
	SOCKET_BUFFER = 8 << 20,	/* bytes of frames that wait for a receive */
	PARSED = 512,			/* bytes of a frame that rules look at */
};

/* --- what a device can do --------------------------------------------------------------- */

/* True if the driver reports when frames leave. */
static bool has_departures(const char *netdev)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
	struct ifreq ifr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has;

	if (fd < 0)
		return false;
	memset(&ifr, 0, sizeof ifr);
	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
	ifr.ifr_data = (char *)&info;
	has = !ioctl(fd, SIOCETHTOOL, &ifr) && (info.so_timestamping & SOF_TIMESTAMPING_TX_SOFTWARE);
	close(fd);
	return has;
}

static int query(const char *netdev, struct dapl_eth_attr *attr)
{
	struct ifreq ifr;
	int err;

	*attr = (struct dapl_eth_attr){ .clock = 1, .rx_queues = 1, .tx_queues = 1,
		.max_rules = ETH_MAX_RULES };
	attr->caps = ETH_CAP_COPY | ETH_CAP_EGRESS | ETH_CAP_PARTIAL_MASK | ETH_CAP_INNER | ETH_CAP_TUNNEL |
		ETH_CAP_VLAN_STRIP | ETH_CAP_HASH | ETH_CAP_RX_CSUM | ETH_CAP_JOIN | ETH_CAP_TX_CSUM |
		ETH_CAP_TSO | ETH_CAP_VLAN_INSERT | ETH_CAP_LRO;
	if (bpf_has_tcx())
		attr->caps |= ETH_CAP_TAKE;
	if (eth_xdp_is_there())
		attr->caps |= ETH_CAP_XDP;
	if (has_departures(netdev))
		attr->caps |= ETH_CAP_SEND_STAMP;
	attr->caps |= ETH_CAP_RSS | ETH_CAP_RSS_INNER | ETH_CAP_RSS_LOSSLESS | ETH_CAP_INNER_CSUM;
	attr->max_group = ETH_MAX_GROUP;
	attr->max_table = SPREAD_TABLE_MAX;
	attr->max_tso = ETH_HLEN + 0xffff;
	attr->max_tso_header = ETH_HEADERS_MAX;
	if ((err = interface_request(netdev, SIOCGIFMTU, &ifr)))
		return err;
	attr->mtu = (uint32_t)ifr.ifr_mtu;
	attr->max_frame = attr->mtu + ETH_HLEN;
	if ((err = interface_request(netdev, SIOCGIFHWADDR, &ifr)))
		return err;
	memcpy(attr->address, ifr.ifr_hwaddr.sa_data, 6);
	return 0;
}

/* Frames for which the device had no room; ~0: unknown. rx_dropped is not added, since it counts frames
 * that the stack did not need, too. */
static uint64_t device_drops(const char *netdev)
{
	const struct rtnl_link_stats *counters;
	uint64_t sum = ~(uint64_t)0;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return sum;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && i->ifa_data &&
		    !strcmp(i->ifa_name, netdev)) {
			counters = i->ifa_data;
			sum = counters->rx_missed_errors + counters->rx_fifo_errors;
		}
	freeifaddrs(all);
	return sum;
}

/* --- opening and closing ---------------------------------------------------------------- */

static void close_port(struct eth_port *port)
{
	eth_rule_free_all(port);
	eth_xdp_close(port);
	eth_ring_close(port);
	if (port->fd >= 0)
		close(port->fd);
	if (port->counters >= 0)
		close(port->counters);
	free(port->batch);
	free(port);
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof value) ? errno : 0;
}

static int prepare(struct eth_port *port, const struct dapl_eth_config *config)
{
	struct dapl_eth_attr attr;
	int err = query(port->netdev, &attr);

	if (err || (err = set(port->fd, SOL_PACKET, PACKET_VNET_HDR, 1)))
		return err;
	port->mtu = attr.mtu;
	if (port->bypass && (err = set(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1)))
		return err;
	/* the time at which the frame came, one for all sockets: moving a rule needs it */
	if ((err = set(port->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1)))
		return err;
	if (config->xdp)
		return 0;
	if (config->ring_frames)
		return eth_ring_open(port, config->ring_frames, attr.max_frame + ETH_VLAN_HLEN);
	if (set(port->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER))
		set(port->fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
	if ((err = set(port->fd, SOL_PACKET, PACKET_AUXDATA, 1)))
		return err;
	return set(port->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
}

static int open_socket(struct eth_port *port, const struct dapl_eth_config *config)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int err;

	port->index = (int)if_nametoindex(port->netdev);
	if (!port->index)
		return ENODEV;
	port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (port->fd < 0)
		return errno;
	if ((err = port_filter_none(port->fd)) || (err = prepare(port, config)))	/* ETH-10 */
		return err;
	at.sll_ifindex = port->index;
	return bind(port->fd, (struct sockaddr *)&at, sizeof at) ? errno : 0;
}

static int open_port(const char *netdev, const struct dapl_eth_config *config, bool bypass,
		     void (*want_purge)(void *context), void *context, const char **tried, struct eth_port **port)
{
	struct eth_port *new = calloc(1, sizeof *new);
	int err;

	*tried = NULL;
	if (!new)
		return ENOMEM;
	new->fd = new->counters = new->link = -1;
	new->snap = config->ring_frames ? config->snap : 0;
	new->verify = config->verify;
	new->bypass = bypass;
	new->want_purge = want_purge;
	new->context = context;
	dapl_mutex_init(&new->lock, RANK_SOFT_ETH);
	snprintf(new->netdev, sizeof new->netdev, "%s", netdev);
	err = open_socket(new, config);
	if (!err && config->xdp)
		err = eth_xdp_open(new, config->ring_frames, new->mtu + ETH_HLEN + ETH_VLAN_HLEN, tried);
	if (err) {
		close_port(new);
		return err;
	}
	new->lost_device_before = device_drops(netdev);
	*port = new;
	return 0;
}

static int descriptor(const struct eth_port *port)
{
	return port->xdp ? eth_xdp_descriptor(port->xdp) : port->fd;
}

/* --- receiving -------------------------------------------------------------------------- */

uint32_t eth_read_drops(struct eth_port *port)
{
	struct tpacket_stats_v3 now = { 0 };	/* longer than that of other versions */
	socklen_t size = sizeof now;

	if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &now, &size))
		return 0;
	port->stats.lost += now.tp_drops;
	return now.tp_drops;
}

void eth_account(struct eth_port *port, struct dapl_eth_frame *frame, uint64_t time)
{
	if (time < port->last_time)	/* frames of several processors */
		time = port->last_time;
	port->last_time = time;
	frame->time = time;
	frame->lost = port->lost_pending;
	port->lost_pending = 0;
	port->stats.received++;
	port->stats.received_bytes += frame->wire_length;
	port->stats.bad += (frame->flags & (ETH_FRAME_IP_BAD | ETH_FRAME_L4_BAD)) != 0;
}

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
	eth_account(port, frame, r.time);
	return 0;
}

static int receive(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame)
{
	int err;

	if (n > ETH_MAX_PIECES)
		return EINVAL;
	dapl_mutex_lock(&port->lock);
	err = receive_one(port, iov, n, frame);
	dapl_mutex_unlock(&port->lock);
	return err;
}

static bool has_frame(struct eth_port *port)
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

static int poll_ring(struct eth_port *port, struct dapl_eth_frame *frames, int max)
{
	int n;

	dapl_mutex_lock(&port->lock);
	n = port->xdp ? eth_xdp_poll(port, frames, max) : eth_ring_poll(port, frames, max);
	dapl_mutex_unlock(&port->lock);
	return n;
}

static int release(struct eth_port *port, uint32_t oldest)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = port->xdp ? eth_xdp_release(port, oldest) : eth_ring_release(port, oldest);
	dapl_mutex_unlock(&port->lock);
	return err;
}

/* port->lock held. Senders do not take it: they count with atomics. */
static void copy_stats(struct dapl_eth_stats *to, const struct dapl_eth_stats *from)
{
	*to = (struct dapl_eth_stats){
		.size = from->size, .received = from->received, .received_bytes = from->received_bytes,
		.sent = __atomic_load_n(&from->sent, __ATOMIC_RELAXED),
		.sent_bytes = __atomic_load_n(&from->sent_bytes, __ATOMIC_RELAXED),
		.lost = from->lost, .late = from->late, .bad = from->bad,
	};
}

/* Posted receives learn of losses by SO_RXQ_OVFL; the sum of the counter read here is the same. */
static void read_stats(struct eth_port *port, struct dapl_eth_stats *stats)
{
	uint64_t device = device_drops(port->netdev);
	uint32_t drops;

	dapl_mutex_lock(&port->lock);
	drops = port->xdp ? eth_xdp_read_drops(port) : eth_read_drops(port);
	if (port->ring.map || port->xdp)
		port->lost_pending += drops;
	copy_stats(stats, &port->stats);
	if (port->xdp && eth_xdp_is_zero_copy(port->xdp))
		stats->flags = ETH_STATS_ZERO_COPY;
	dapl_mutex_unlock(&port->lock);
	stats->lost_device = device == ~(uint64_t)0 || port->lost_device_before == ~(uint64_t)0 ?
		~(uint64_t)0 : (uint32_t)(device - port->lost_device_before);	/* counters of 32 bits */
}

__attribute__((visibility("default"))) const struct eth_port_ops dapl_softeth_ops = {
	.version = ETH_PORT_VERSION,
	.query = query, .open = open_port, .close = close_port, .descriptor = descriptor,
	.add_rule = eth_place_add, .free_rule = eth_place_free, .free_all_rules = eth_rule_free_all,
	.move_rule = eth_place_move, .purge = eth_rule_purge, .count_rule = eth_place_count,
	.create_group = eth_group_create, .set_group = eth_group_set, .free_group = eth_group_free,
	.send = eth_send, .send_batch = eth_send_batch, .stamp = eth_send_stamp, .check = eth_send_check,
	.has_frame = has_frame, .receive = receive,
	.poll = poll_ring, .release = release, .stats = read_stats,
};
