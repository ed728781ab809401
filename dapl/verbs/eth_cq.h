/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_cq.h - CQs that return the frames of raw QPs together with their own completions (eth_cq.c). The
 * functions take the lock of the list of raw QPs, so q->lock is not held. */
#ifndef VERBS_ETH_CQ_H
#define VERBS_ETH_CQ_H
#include "eth_types.h"

/* Begins or ends that polls of the EVD's CQ return the frames of the QP. */
void hw_eth_cq_add(struct hw_eth *q);
void hw_eth_cq_remove(struct hw_eth *q);
/* Operation of struct dapl_eth_ops. EOPNOTSUPP: the device cannot, or no raw QP has begun. EINVAL: above its
 * limits. */
int hw_eth_moderate(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds);
/* The device is about to be closed. */
void hw_eth_cq_forget(struct hw_eth_device *eth);

#endif
