/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c - see counters.h. */
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include "common/growth.h"
#include "dapl/softeth/counters.h"
#include "dapl/softeth/xdp.h"

/* Reads the counters of the device, rx_missed_errors and rx_fifo_errors. rx_dropped is not read, since it counts
 * frames that the stack did not need, too. Returns false if the device has none. */
static bool read_device(int index, uint32_t *missed, uint32_t *fifo)
{
	const struct rtnl_link_stats *counters = NULL;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && i->ifa_data &&
		    ((const struct sockaddr_ll *)i->ifa_addr)->sll_ifindex == index)
			counters = i->ifa_data;
	if (counters) {
		*missed = counters->rx_missed_errors;
		*fifo = counters->rx_fifo_errors;
	}
	freeifaddrs(all);
	return counters;
}

void eth_counters_begin(struct eth_port *port)
{
	port->device.unknown = !read_device(port->index, &port->device.missed, &port->device.fifo);
}

/* port->lock held, so that no thread takes an older value for a counter that began again. ETH-18. */
static uint64_t read_device_losses(struct eth_port *port)
{
	struct eth_device_counts *d = &port->device;
	uint32_t missed, fifo;

	assert_held(&port->lock);
	if (d->unknown || !read_device(port->index, &missed, &fifo))
		return ~(uint64_t)0;
	d->lost += counter_growth32(d->missed, missed) + counter_growth32(d->fifo, fifo);
	d->missed = missed;
	d->fifo = fifo;
	return d->lost;
}

uint32_t eth_counters_read_drops(struct eth_port *port)
{
	struct tpacket_stats_v3 now = { 0 };	/* longer than that of other versions */
	socklen_t size = sizeof now;

	if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &now, &size))
		return 0;
	port->stats.lost += now.tp_drops;
	return now.tp_drops;
}

/* port->lock held. Senders do not take it: they count with atomics. */
static void copy_stats(struct dapl_eth_stats *to, const struct dapl_eth_stats *from)
{
	*to = (struct dapl_eth_stats){
		.size = from->size, .received = from->received, .received_bytes = from->received_bytes,
		.sent = __atomic_load_n(&from->sent, __ATOMIC_RELAXED),
		.sent_bytes = __atomic_load_n(&from->sent_bytes, __ATOMIC_RELAXED),
		.lost = from->lost, .late = from->late, .bad = from->bad, .cut = from->cut,
	};
}

/* Posted receives learn of losses by SO_RXQ_OVFL; the sum of the counter read here is the same. */
void eth_counters_read(struct eth_port *port, struct dapl_eth_stats *stats)
{
	uint32_t drops;

	dapl_mutex_lock(&port->lock);
	drops = port->xdp ? eth_xdp_read_drops(port) : eth_counters_read_drops(port);
	if (port->ring.map || port->xdp)
		port->lost_pending += drops;
	copy_stats(stats, &port->stats);
	if (port->xdp && eth_xdp_is_zero_copy(port->xdp))
		stats->flags = ETH_STATS_ZERO_COPY;
	stats->lost_device = read_device_losses(port);
	dapl_mutex_unlock(&port->lock);
}
