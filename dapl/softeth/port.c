/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c - ports over packet sockets: what a device can do, opening and closing, and the table of the library (port.h),
 * whose other functions are in the files of this folder. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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
#include "dapl/softeth/ring.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/send.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/xdp.h"

enum {
	SOCKET_BUFFER = 8 << 20,	/* bytes of frames that wait for a receive */
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
	new->lost_device_before = eth_device_drops(netdev);
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

__attribute__((visibility("default"))) const struct eth_port_ops dapl_softeth_ops = {
	.version = ETH_PORT_VERSION,
	.query = query, .open = open_port, .close = close_port, .descriptor = descriptor,
	.add_rule = eth_place_add, .free_rule = eth_place_free, .free_all_rules = eth_rule_free_all,
	.move_rule = eth_place_move, .purge = eth_rule_purge, .count_rule = eth_place_count,
	.create_group = eth_group_create, .set_group = eth_group_set, .free_group = eth_group_free,
	.send = eth_send, .send_batch = eth_send_batch, .stamp = eth_send_stamp, .check = eth_send_check,
	.has_frame = eth_has_frame, .receive = eth_receive,
	.poll = poll_ring, .release = release, .stats = eth_read_stats,
};
