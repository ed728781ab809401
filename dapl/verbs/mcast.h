/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.h - memberships in multicast groups (mcast.c). */
#ifndef HW_MCAST_H
#define HW_MCAST_H
#include "conn_types.h"

int hw_mcast_join(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group, bool send_only,
		  void *owner, struct dapl_membership **membership);
void hw_mcast_leave(struct dapl_membership *membership);
/* Called on the service thread, after the event was acknowledged. */
void hw_mcast_event(struct cm_target *target, const struct rdma_cm_event *event);

#endif
