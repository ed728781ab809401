/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_recv.h - receives of raw QPs, posted or a ring (eth_recv.c). The functions take q->lock where they need it. An
 * int is 0 or an errno, unless a comment says otherwise. */
#ifndef VERBS_ETH_RECV_H
#define VERBS_ETH_RECV_H
#include "eth_types.h"

/* Opens CQ and memory of the receives, before the device's QP is made; closes them after it is destroyed. */
int hw_eth_recv_open(struct hw_eth *q);
void hw_eth_recv_close(struct hw_eth *q);
/* Drops the completions in the CQ, after the QP was reset. */
void hw_eth_recv_empty(struct hw_eth *q);
/* Posts all free slots of the ring. */
int hw_eth_recv_fill(struct hw_eth *q);
/* The data path of the QP that core has. */
int hw_eth_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Takes at most n completions for the EVD's CQ. Returns how many. */
int hw_eth_poll_frames(struct hw_eth *q, int n, struct ibv_wc *wc);

/* Operations of struct dapl_eth_ops. hw_eth_ring_poll() returns how many frames it has given.
 * EINVAL of a release: more than were polled. EALREADY of an arm: there are frames. */
int hw_eth_ring_poll(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max);
int hw_eth_ring_release(struct ibv_qp *qp, uint32_t oldest);
int hw_eth_ring_arm(struct ibv_qp *qp, uint64_t wr_id);

#endif
