/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlink.h - asks the kernel over netlink for all objects of a kind, for questions that libdatnet has no
 * call for. */
#ifndef TOOLS_CONTROL_NETLINK_H
#define TOOLS_CONTROL_NETLINK_H
#include <netlink/msg.h>

/* Sends `msg`, which asks for a dump, over a new socket of `protocol` (NETLINK_RDMA ...), frees it, and
 * calls each(header, arg) with each answer. Returns 0 or an errno: that of the kernel if it refuses, ENOMEM
 * if `msg` is NULL. */
int netlink_dump(int protocol, struct nl_msg *msg, void (*each)(struct nlmsghdr *head, void *arg), void *arg);

#endif
