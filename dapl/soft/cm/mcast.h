/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.h - joining and leaving multicast groups (core/device.h). */
#ifndef SOFT_CM_MCAST_H
#define SOFT_CM_MCAST_H
#include <stdbool.h>

struct dapl_device;
struct dapl_membership;
struct ibv_qp;
struct sockaddr;

int soft_mcast_join_group(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group,
			  bool send_only, void *owner, struct dapl_membership **membership);
void soft_mcast_leave_group(struct dapl_membership *membership);

#endif
