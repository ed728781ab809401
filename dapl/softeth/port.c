/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c - ports over packet sockets: what a device can do, opening and closing, and the table of the library (port.h),
 * whose other functions are in the files of this folder. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/frame_layout.h"
#include "common/interface.h"
#include "dapl/softeth/bpf.h"
#include "dapl/softeth/counters.h"
#include "dapl/softeth/group.h"
#include "dapl/softeth/place.h"
#include "dapl/softeth/port.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/receive.h"
#include "dapl/softeth/packet_ring.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/send.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/xdp.h"

enum {
	SOCKET_BUFFER = 8 << 20,	/* bytes of frames that wait for a receive */
};

/* --- what a device can do --------------------------------------------------------------- */

/* True if the driver reports when frames leave. */
static bool has_departures(int index)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };

	return !interface_ethtool(index, &info) && (info.so_timestamping & SOF_TIMESTAMPING_TX_SOFTWARE);
}

static uint64_t caps_of(int index)
{
	uint64_t caps = ETH_CAP_COPY | ETH_CAP_EGRESS | ETH_CAP_PARTIAL_MASK | ETH_CAP_INNER | ETH_CAP_TUNNEL |
			ETH_CAP_VLAN_STRIP | ETH_CAP_HASH | ETH_CAP_RX_CSUM | ETH_CAP_JOIN | ETH_CAP_TX_CSUM |
			ETH_CAP_TSO | ETH_CAP_VLAN_INSERT | ETH_CAP_LRO | ETH_CAP_RSS | ETH_CAP_RSS_INNER |
			ETH_CAP_RSS_LOSSLESS | ETH_CAP_INNER_CSUM;

	if (bpf_has_tcx())
		caps |= ETH_CAP_TAKE;
	if (eth_xdp_is_there())
		caps |= ETH_CAP_XDP;
	if (has_departures(index))
		caps |= ETH_CAP_SEND_STAMP;
	return caps;
}

/* ETH-9, 41 */
static int query(int index, struct dapl_eth_attr *attr, uint16_t *link_type)
{
	struct ifreq ifr;
	int err;

	*attr = (struct dapl_eth_attr){ .clock = 1, .max_rules = ETH_MAX_RULES, .max_group = ETH_MAX_GROUP,
		.max_table = SPREAD_TABLE_MAX, .max_tso = ETH_HLEN + 0xffff, .max_tso_header = ETH_HEADERS_MAX };
	*link_type = 0;
	if ((err = interface_request_index(index, SIOCGIFHWADDR, &ifr)))
		return err;
	*link_type = ifr.ifr_hwaddr.sa_family;
	if (!interface_type_is_ethernet(*link_type))
		return EOPNOTSUPP;
	memcpy(attr->address, ifr.ifr_hwaddr.sa_data, 6);
	if ((err = interface_request_index(index, SIOCGIFMTU, &ifr)))
		return err;
	attr->mtu = (uint32_t)ifr.ifr_mtu;
	attr->max_frame = attr->mtu + ETH_HLEN;
	interface_queues(index, &attr->rx_queues, &attr->tx_queues);
	attr->caps = caps_of(index);
	return 0;
}

/* --- opening and closing ---------------------------------------------------------------- */

static void close_port(struct eth_port *port)
{
	eth_group_leave(port);
	eth_xdp_close(port);
	packet_ring_close(port);
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
	uint16_t link_type;
	int err = query(port->index, &attr, &link_type);

	if (err || (err = set(port->fd, SOL_PACKET, PACKET_VNET_HDR, 1)))
		return err;
	port->mtu = attr.mtu;
	port->queues = attr.rx_queues;
	/* a packet socket sees a frame on lo when it is sent and when it is received: keep the second. ETH-42 */
	if (link_type == ARPHRD_LOOPBACK && (err = set(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)))
		return err;
	if (port->bypass && (err = set(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1)))
		return err;
	/* the time at which the frame came, one for all sockets: moving a rule needs it */
	if ((err = set(port->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1)))
		return err;
	if (config->xdp)
		return 0;
	if (config->ring_frames)
		return packet_ring_open(port, config->ring_frames, attr.max_frame + ETH_VLAN_HLEN);
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

	if (port->index <= 0)
		return ENODEV;
	port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (port->fd < 0)
		return errno;
	if ((err = port_filter_none(port->fd)) || (err = prepare(port, config)))	/* ETH-10 */
		return err;
	at.sll_ifindex = port->index;
	return bind(port->fd, (struct sockaddr *)&at, sizeof at) ? errno : 0;
}

static int open_port(int index, const struct dapl_eth_config *config, bool bypass,
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
	new->index = index;
	err = open_socket(new, config);
	if (!err && config->xdp)
		err = eth_xdp_open(new, config->ring_frames, new->mtu + ETH_HLEN + ETH_VLAN_HLEN, tried);
	if (err) {
		close_port(new);
		return err;
	}
	eth_counters_begin(new);
	*port = new;
	return 0;
}

static int descriptor(const struct eth_port *port)
{
	return port->xdp ? eth_xdp_descriptor(port->xdp) : port->fd;
}

/* --- the ring, of either kind ------------------------------------------------------------- */

static int poll_ring(struct eth_port *port, struct dapl_eth_frame *frames, int max)
{
	int n;

	dapl_mutex_lock(&port->lock);
	n = port->xdp ? eth_xdp_poll(port, frames, max) : packet_ring_poll(port, frames, max);
	dapl_mutex_unlock(&port->lock);
	return n;
}

static int release(struct eth_port *port, uint32_t oldest)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = port->xdp ? eth_xdp_release(port, oldest) : packet_ring_release(port, oldest);
	dapl_mutex_unlock(&port->lock);
	return err;
}

__attribute__((visibility("default"))) const struct eth_port_ops dapl_softeth_ops = {
	.version = ETH_PORT_VERSION,
	.query = query, .open = open_port, .close = close_port, .descriptor = descriptor,
	.add_rule = eth_place_add, .free_rule = eth_place_free, .free_all_rules = eth_group_leave,
	.move_rule = eth_place_move, .purge = eth_rule_purge, .count_rule = eth_place_count,
	.create_group = eth_group_create, .set_group = eth_group_set, .free_group = eth_group_free,
	.send = eth_send, .send_batch = eth_send_batch, .stamp = eth_send_stamp, .check = eth_send_check,
	.has_frame = eth_receive_is_ready, .receive = eth_receive,
	.poll = poll_ring, .release = release, .stats = eth_counters_read,
};
