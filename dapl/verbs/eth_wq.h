/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_wq.h - work queues for receives, and QPs over tables of them (eth_wq.c). The functions need no lock, and return 0
 * or an errno. */
#ifndef VERBS_ETH_WQ_H
#define VERBS_ETH_WQ_H
#include "eth_types.h"

/* Makes the QP's work queue, and the QP that leads to it alone. After a failure hw_eth_wq_close() destroys
 * what was made. */
int hw_eth_wq_open(struct hw_eth *q, uint32_t max_wr, uint32_t max_sge);
void hw_eth_wq_close(struct hw_eth *q);
/* Makes a work queue in the state RDY. */
int hw_eth_wq_create(struct hw_eth_device *eth, struct ibv_wq_init_attr *attr, struct ibv_wq **wq);
int hw_eth_wq_to_state(struct ibv_wq *wq, enum ibv_wq_state state);
/* Makes a QP over a table of `size` queues, a power of 2; without fields the size is 1. */
int hw_eth_wq_hash_open(struct hw_eth_device *eth, struct ibv_pd *pd, struct ibv_wq **queues, uint32_t size,
			uint64_t fields, const uint8_t key[HW_ETH_HASH_KEY], struct hw_hash *hash);
/* Destroys both; the QP has no flows any more. Does nothing if they are not made. */
void hw_eth_wq_hash_close(struct hw_hash *hash);

#endif
