/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.h - frames that come to a raw Ethernet QP: posted receives, those of an SRQ, and wake-ups of a program that
 * polls a ring. */
#ifndef SOFT_ETH_RECEIVE_H
#define SOFT_ETH_RECEIVE_H
#include <stdint.h>

struct ibv_qp;
struct ibv_sge;
struct iovec;
struct soft_eth;
struct soft_qp;

/* The memory of a segment list. Returns the number of pieces, or -1 if it is not registered for this. qp->lock held. */
int soft_eth_pieces(const struct soft_qp *qp, const struct ibv_sge *sge, int n, int access, struct iovec *iov);
/* Sets the operations of a new QP that receive. */
void soft_eth_receive_init(struct soft_eth *eth);
/* The port is open, or was emptied by a reset: frames may come. Returns 0 or an errno value. */
int soft_eth_receive_begin(struct soft_eth *eth);
/* Afterwards no thread receives for the QP. No lock is held. */
void soft_eth_receive_end(struct soft_eth *eth);
/* Operation `arm` of struct dapl_eth_ops. */
int soft_eth_arm(struct ibv_qp *qp, uint64_t wr_id);

#endif
