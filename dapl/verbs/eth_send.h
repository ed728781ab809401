/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_send.h - sends of raw QPs, with offloads, and their rate (eth_send.c). */
#ifndef VERBS_ETH_SEND_H
#define VERBS_ETH_SEND_H
#include "dapl/core/eth_device.h"

/* The data path of the QP that core has; takes no lock. Returns the errno of the first request that was not posted,
 * *bad. */
int hw_eth_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Operation of struct dapl_eth_ops: bits per second, which the device rounds down to kbit/s. Returns an errno. */
int hw_eth_pace(struct ibv_qp *qp, const struct dapl_eth_pace *pace);

#endif
