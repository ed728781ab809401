/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h - where a datagram endpoint's peer is (ud.c). The functions need no lock. */
#ifndef HW_UD_H
#define HW_UD_H
#include "dapl/core/device.h"

struct hw_ud_self;
struct rdma_ud_param;

/* Active side: where this endpoint is, for the private data of its request (pdata.h). */
void hw_ud_self(struct dapl_device *dev, struct ibv_qp *qp, struct hw_ud_self *self);
/* The peer with an address handle, which is the caller's: by what SIDR has told the active side, and by what the active
 * side has told the passive one. Returns an errno: there is no handle. */
int hw_ud_peer_active(struct dapl_device *dev, struct ibv_pd *pd,
		      const struct rdma_ud_param *told, struct dapl_ud_peer *peer);
int hw_ud_peer_passive(struct dapl_device *dev, struct ibv_pd *pd,
		       const struct sockaddr *remote, const struct hw_ud_self *told,
		       struct dapl_ud_peer *peer);

#endif
