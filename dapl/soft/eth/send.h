/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sends of raw Ethernet QPs (send.c). Unless a comment says otherwise, qp->lock is held. */
#ifndef SOFT_ETH_SEND_H
#define SOFT_ETH_SEND_H
#include <infiniband/verbs.h>
#include "dapl/core/eth_device.h"

struct soft_eth;

/* The data path of a raw QP, and an operation of struct dapl_eth_ops (bits per second). They take qp->lock, and return
 * an errno. */
int soft_eth_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int soft_eth_pace(struct ibv_qp *qp, const struct dapl_eth_pace *pace);
/* Takes times of departure from the socket. */
void soft_eth_collect_stamp(struct soft_eth *eth);
/* Completes the sends that wait: as flushed, or with success if the frame has left. */
void soft_eth_flush_sends(struct soft_eth *eth);
/* Forgets the sends that wait. qp->lock is not held. */
void soft_eth_drop_sends(struct soft_eth *eth);
/* Forgets the sends that wait, and frees their ring and their timer, for which it waits. qp->lock is
 * not held. */
void soft_eth_end_sends(struct soft_eth *eth);

#endif
