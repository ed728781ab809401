/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_attr.h - what a device can do for raw Ethernet endpoints, and its part of the open device (eth_attr.c). */
#ifndef VERBS_ETH_ATTR_H
#define VERBS_ETH_ATTR_H
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"

/* Sets dev->eth, which stays NULL if the device has no raw QPs. No other thread uses the device yet. */
void hw_eth_open(struct dapl_device *dev);
/* Frees dev->eth. All raw QPs of the device are destroyed. */
void hw_eth_close(struct dapl_device *dev);
/* Operation of struct dapl_eth_ops; takes dev->eth->lock. EOPNOTSUPP: the device has no raw QPs; another errno: the
 * network device cannot be asked. */
int hw_eth_query(struct dapl_device *dev, struct dapl_eth_attr *attr);
/* Frames that the port has dropped for lack of a receive, since it exists; ~0: unknown. No lock is needed. */
uint64_t hw_eth_drops(const struct dapl_device *dev);

#endif
