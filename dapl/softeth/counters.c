/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c - see counters.h. */
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include "dapl/softeth/counters.h"
#include "dapl/softeth/xdp.h"

/* rx_dropped is not added, since it counts frames that the stack did not need, too. */
uint64_t eth_device_drops(const char *netdev)
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
void eth_read_stats(struct eth_port *port, struct dapl_eth_stats *stats)
{
	uint64_t device = eth_device_drops(port->netdev);
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
