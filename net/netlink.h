/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlink.h - one request to the kernel over rtnetlink, and the errno of its answer. libnl has error
 * numbers of its own, which lose the difference between "no route" and "prohibited". */
#ifndef NET_NETLINK_H
#define NET_NETLINK_H
#include <netlink/addr.h>
#include <netlink/netlink.h>
#include <netlink/object.h>
#include <sys/socket.h>

#define NET_PUBLIC __attribute__((visibility("default")))

/* A socket for requests of the calling thread's namespace. Returns 0 or an errno. */
int net_open(struct nl_sock **sock);
void net_close(struct nl_sock *sock);

/* Sends `msg` and frees it. Calls each(object, arg) with what libnl-route makes of each answer.
 * Returns 0 or the kernel's errno. EINTR: a dump was interrupted by a change, make it again. */
int net_ask(struct nl_sock *sock, struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg);
/* Asks for all objects of a kind: RTM_GETLINK and so on, with `family`. */
int net_dump(struct nl_sock *sock, int kind, int family, void (*each)(struct nl_object *, void *),
	     void *arg);

/* Calls each(object, arg) with what libnl-route makes of a message. Returns 0 or libnl's error number, also
 * for a message that would make libnl crash. */
int net_parse(struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg);

/* libnl's error number, negative or not, as an errno. */
int net_errno(int nle);

struct rtnl_nexthop;
/* The router of a hop; NULL: the destination is on the link. */
struct nl_addr *net_gateway(struct rtnl_nexthop *hop);
/* An address as socket address with port 0. Family 0 if `from` is NULL or no IP address. */
void net_sockaddr(struct sockaddr_storage *to, struct nl_addr *from);
/* The bytes of an IP address, and their number: 4, 16, or 0. */
const uint8_t *net_bytes(const struct sockaddr *address, size_t *length);

#endif
