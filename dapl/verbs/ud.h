/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h - addresses of the peers of datagram endpoints (ud.c). The functions need no lock. */
#ifndef HW_UD_H
#define HW_UD_H
#include "dapl/core/device.h"

struct hw_ud_self;
struct rdma_ud_param;

/* Active side: the address of this endpoint, for the private data of its request (pdata.h). */
void hw_ud_self(struct dapl_device *dev, struct ibv_qp *qp, struct hw_ud_self *self);
/* Fill *peer, with an address handle that belongs to the caller: on the active side from the reply of SIDR,
 * on the passive side from the peer's private data. Return 0, or an errno if there is no handle. */
int hw_ud_peer_active(struct dapl_device *dev, struct ibv_pd *pd,
		      const struct rdma_ud_param *param, struct dapl_ud_peer *peer);
int hw_ud_peer_passive(struct dapl_device *dev, struct ibv_pd *pd,
		       const struct sockaddr *remote, const struct hw_ud_self *self,
		       struct dapl_ud_peer *peer);

#endif
