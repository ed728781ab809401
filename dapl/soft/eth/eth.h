/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - raw Ethernet QPs of the software device: a QP of obj/ whose frames go through a port of
 * libdaplsoft-eth.so. */
#ifndef SOFT_ETH_H
#define SOFT_ETH_H
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"

struct eth_port_ops;

extern const struct dapl_eth_ops soft_eth_ops;

/* Operations of the device's table, for raw Ethernet QPs (IBV_QPT_RAW_PACKET). */
int soft_eth_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		       struct ibv_qp **qp);
int soft_eth_reset_qp(struct dapl_device *dev, struct ibv_qp *qp);
int soft_eth_error_qp(struct ibv_qp *qp);
int soft_eth_destroy_qp(struct ibv_qp *qp);

extern const struct eth_port_ops *soft_eth_ports;	/* libdaplsoft-eth.so, once a QP has begun */

#endif
