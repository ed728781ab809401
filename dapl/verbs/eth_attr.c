/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_attr.c - what a device can do for raw Ethernet endpoints, and its part of the open device. */
#include "eth_attr.h"
#include "eth_clock.h"
#include "eth_cq.h"
#include "eth_probe.h"
#include "eth_types.h"
#include "hw.h"
#include "common/interface.h"
#include "common/log.h"
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static const struct {
	uint64_t cap;
	size_t found;			/* member of hw_eth_caps */
} caps[] = {
	{ ETH_CAP_COPY, offsetof(struct hw_eth_caps, copy) },
	{ ETH_CAP_EGRESS, offsetof(struct hw_eth_caps, sniffer) },
	{ ETH_CAP_PARTIAL_MASK, offsetof(struct hw_eth_caps, partial) },
	{ ETH_CAP_INNER, offsetof(struct hw_eth_caps, inner) },
	{ ETH_CAP_TUNNEL, offsetof(struct hw_eth_caps, vxlan) },
	{ ETH_CAP_RX_CSUM | ETH_CAP_TX_CSUM, offsetof(struct hw_eth_caps, checksums) },
	{ ETH_CAP_FCS, offsetof(struct hw_eth_caps, fcs) },
};

static uint64_t caps_of(const struct hw_eth_caps *found)
{
	uint64_t all = ETH_CAP_TAKE | ETH_CAP_JOIN;

	for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
		if (*(const bool *)((const char *)found + caps[i].found))
			all |= caps[i].cap;
	return all | (found->max_tso ? ETH_CAP_TSO : 0) | (found->rate_max ? ETH_CAP_PACE : 0) |
	       (found->moderate_frames ? ETH_CAP_MODERATE : 0) | (found->hash_fields ? ETH_CAP_RSS : 0);
}

/* Reads what the kernel knows of the network device. Frames of IPoIB have no Ethernet header. ETH-9, 41. */
static int query_netdev(const struct dapl_device *dev, struct dapl_eth_attr *attr)
{
	struct ifreq ifr;
	int err = interface_request_index(dev->attr.netdev_index, SIOCGIFHWADDR, &ifr);

	if (err)
		return err;
	if (!interface_type_is_ethernet(ifr.ifr_hwaddr.sa_family)) {
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = EOPNOTSUPP), "%s: raw Ethernet endpoints on %s: found "
			   "link type %u, expected Ethernet (%u)", dev->attr.device, dev->attr.netdev,
			   ifr.ifr_hwaddr.sa_family, ARPHRD_ETHER);
		return EOPNOTSUPP;
	}
	memcpy(attr->address, ifr.ifr_hwaddr.sa_data, sizeof attr->address);
	if ((err = interface_request_index(dev->attr.netdev_index, SIOCGIFMTU, &ifr)))
		return err;
	attr->mtu = (uint32_t)ifr.ifr_mtu;
	attr->max_frame = attr->mtu + ETH_HLEN;
	interface_queues(dev->attr.netdev_index, &attr->rx_queues, &attr->tx_queues);
	return 0;
}

int hw_eth_query(struct dapl_device *dev, struct dapl_eth_attr *attr)
{
	if (!dev->eth)
		return EOPNOTSUPP;
	hw_eth_probe(dev->eth);
	*attr = (struct dapl_eth_attr){ .max_rules = HW_ETH_MAX_RULES,
		.caps = caps_of(&dev->eth->caps), .clock = hw_eth_clock_works(dev->eth) ? 2 : 0,
		.max_tso = dev->eth->caps.max_tso, .max_tso_header = dev->eth->caps.max_tso ? HW_ETH_HEADERS : 0,
		.rate_min = dev->eth->caps.rate_min * 1000ull, .rate_max = dev->eth->caps.rate_max * 1000ull };
	if (dev->eth->caps.hash_fields) {
		attr->max_table = dev->eth->caps.max_table;
		attr->max_group = attr->max_table < HW_ETH_MAX_GROUP ? attr->max_table : HW_ETH_MAX_GROUP;
	}
	return query_netdev(dev, attr);
}

uint64_t hw_eth_drops(const struct dapl_device *dev)
{
	unsigned long long drops = ~0ull;
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/hw_counters/out_of_buffer", dev->attr.device,
		 dev->attr.port);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu", &drops) != 1)
		drops = ~0ull;
	if (file)
		fclose(file);
	return drops;
}

/* A process without CAP_NET_RAW cannot try. Then a device that reports offloads for raw QPs counts as
 * having such QPs. */
static bool has_raw_qps(struct dapl_device *dev)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev->verbs);
	struct ibv_cq *cq = ibv_create_cq(dev->verbs, 1, NULL, NULL, 0);
	struct ibv_device_attr_ex ex;
	struct ibv_qp *qp;
	bool has = false;
	int err;

	if (pd && cq) {
		err = hw_eth_raw_qp(dev, pd, cq, &qp);
		has = !err || (err == EPERM && !ibv_query_device_ex(dev->verbs, NULL, &ex) && ex.raw_packet_caps);
		if (!err)
			ibv_destroy_qp(qp);
	}
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return has;
}

void hw_eth_open(struct dapl_device *dev)
{
	if (dev->attr.iwarp || !has_raw_qps(dev))
		return;
	dev->eth = calloc(1, sizeof *dev->eth);
	if (!dev->eth)
		return;
	dev->eth->dev = dev;
	dapl_mutex_init(&dev->eth->lock, RANK_VERBS_ETH_DEVICE);
	dapl_mutex_init(&dev->eth->groups_lock, RANK_VERBS_ETH_GROUPS);
	dev->attr.raw_ethernet = true;
}

void hw_eth_close(struct dapl_device *dev)
{
	if (!dev->eth)
		return;
	hw_eth_cq_forget(dev->eth);
	free(dev->eth);
	dev->eth = NULL;
}
