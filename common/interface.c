/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interface.c - queries the kernel about a network interface by ioctl(). */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/interface.h"

/* Makes the request that *ifr holds. */
static int request_filled(unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return errno;
	err = ioctl(fd, request, ifr) ? errno : 0;
	close(fd);
	return err;
}

int interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	memset(ifr, 0, sizeof *ifr);
	if (!if_indextoname((unsigned)index, ifr->ifr_name))
		return errno;
	return request_filled(request, ifr);
}

int interface_ethtool(int index, void *command)
{
	struct ifreq ifr = { .ifr_ifindex = 0 };

	if (!if_indextoname((unsigned)index, ifr.ifr_name))
		return errno;
	ifr.ifr_data = command;
	return request_filled(SIOCETHTOOL, &ifr);
}

void interface_queues(int index, uint32_t *rx, uint32_t *tx)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (interface_ethtool(index, &channels))
		channels = (struct ethtool_channels){ .cmd = 0 };
	*rx = channels.rx_count + channels.combined_count;
	*tx = channels.tx_count + channels.combined_count;
	*rx += !*rx;
	*tx += !*tx;
}

bool interface_type_is_ethernet(int type)
{
	return type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK;
}
