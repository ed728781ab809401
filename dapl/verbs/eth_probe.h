/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_probe.h - what a device can do for raw QPs, by trying it (eth_probe.c). */
#ifndef VERBS_ETH_PROBE_H
#define VERBS_ETH_PROBE_H
#include "eth_types.h"

/* Fills eth->caps and the clock at the first call. Takes eth->lock. */
void hw_eth_probe(struct hw_eth_device *eth);
/* Makes a QP to probe the device with. Returns 0 or an errno; EPERM: the process lacks CAP_NET_RAW. No lock
 * is needed. */
int hw_eth_raw_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp **qp);

#endif
