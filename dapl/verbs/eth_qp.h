/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_qp.h - the life of raw QPs (eth_qp.c). The functions return 0 or an errno; no lock is held. */
#ifndef VERBS_ETH_QP_H
#define VERBS_ETH_QP_H
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"

/* Operations of dapl/core/device.h on raw QPs. hw_eth_begin() makes the device's QP. */
int hw_eth_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
int hw_eth_reset_qp(struct ibv_qp *qp);
int hw_eth_error_qp(struct ibv_qp *qp);
int hw_eth_destroy_qp(struct ibv_qp *qp);

/* Operations of struct dapl_eth_ops. */
int hw_eth_begin(struct ibv_qp *qp, const struct dapl_eth_config *config);
void hw_eth_stats(struct ibv_qp *qp, struct dapl_eth_stats *stats);

/* Moves a QP of the device from RESET to RTS. */
int hw_eth_to_rts(struct ibv_qp *hw, uint8_t port);

#endif
