/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.h - datagrams to multicast groups. The functions are called with the progress lock held. */
#ifndef SOFT_RDMAP_MCAST_H
#define SOFT_RDMAP_MCAST_H
#include <netinet/in.h>
#include <stdint.h>
#include <sys/queue.h>

/* What members of all hosts must agree on. */
enum {
	SOFT_MCAST_PORT = 61957,	/* UDP; private, and above the ephemeral ports of Linux */
	SOFT_MCAST_QPN = 0xffffff,	/* as on InfiniBand: all members */
	SOFT_MCAST_QKEY = 0x01234567,	/* as the RDMA CM's */
};

struct dapl_device;
struct soft_mcast_group;
struct soft_qp;

/* A queue pair in a group. */
struct soft_member {
	struct soft_qp *qp;
	struct soft_mcast_group *group;	/* NULL: it only sends */
	LIST_ENTRY(soft_member) link;
};

/* Has datagrams to multicast groups leave by the interface of the device. Returns 0 or an errno value. */
int soft_mcast_may_send(struct dapl_device *dev);
/* Returns 0 if the kernel has a route to the group by the interface of the device, else an errno value. A datagram
 * without a route is lost without an error. */
int soft_mcast_check_route(const struct dapl_device *dev, const struct sockaddr *group);
/* From now on member->qp receives the datagrams to the group, whose port is not used. Returns 0 or an errno
 * value. */
int soft_mcast_join(struct dapl_device *dev, const struct sockaddr *group, struct soft_member *member);
/* Does nothing if the member did not join. */
void soft_mcast_leave(struct dapl_device *dev, struct soft_member *member);
void soft_mcast_receive(struct dapl_device *dev);
/* Closes the sockets. Also called in a forked child, where members may leave afterwards. */
void soft_mcast_close(struct dapl_device *dev);

#endif
