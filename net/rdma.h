/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma.h - which interfaces belong to RDMA devices, from sysfs. DAT_TEST_ROOT stands in front of /sys,
 * as it does for the registry. */
#ifndef NET_RDMA_H
#define NET_RDMA_H
#include "net/table.h"

struct net_rdma {
	char netdev[DAT_NET_NETDEV_MAX];
	char device[DAT_NET_DEVICE_MAX];
	unsigned port;
	uint8_t kind;			/* DAT_NET_ROCE, _IWARP, _IB */
};

struct net_rdma_list {
	struct net_rdma *ports;
	size_t count;
};

/* Returns 0, or an errno of a shortage; net_rdma_free() may be called in either case. */
int net_rdma_read(struct net_rdma_list *list, const struct net_table *table);
void net_rdma_free(struct net_rdma_list *list);
/* The next port of the interface after `last` (NULL: the first); NULL at the end. */
const struct net_rdma *net_rdma_of(const struct net_rdma_list *list, const char *netdev,
				   const struct net_rdma *last);
/* Mbit/s of an interface; 0: unknown. */
uint32_t net_rdma_speed(const char *netdev);

#endif
