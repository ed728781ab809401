/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - which queue pairs are members of which multicast group, the sockets that receive for them,
 * and the delivery. ud.c sends the datagrams, and knows their format.
 *
 * A socket can be in few groups (net.ipv4.igmp_max_memberships), so there are as many sockets as needed.
 * They lie in an epoll set of their own, which lies in that of the device. All listen on one port, together
 * with those of other devices and processes: the kernel gives each of them the datagrams to its own groups,
 * and the address and the interface tell which group of this device is meant. */
#include "dapl/soft/rdmap/mcast.h"
#include "common/address.h"
#include "common/lock.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPV6_MULTICAST_ALL		/* of <linux/in6.h>, which <netinet/in.h> excludes */
#define IPV6_MULTICAST_ALL 29
#endif

struct group_socket {
	int fd;
	unsigned groups;
	SLIST_ENTRY(group_socket) link;
};

struct soft_mcast_group {
	struct sockaddr_storage address;
	unsigned interface;
	struct group_socket *socket;	/* NULL: the device is closed, and lists the group no more */
	LIST_HEAD(, soft_member) members;
	LIST_ENTRY(soft_mcast_group) link;
};

struct soft_mcast {
	int epoll;
	SLIST_HEAD(, group_socket) sockets;
	LIST_HEAD(, soft_mcast_group) groups[MCAST_BUCKETS];
};

/* --- the groups ------------------------------------------------------------------------------ */

static unsigned bucket(const struct sockaddr *address)
{
	const struct in6_addr *a6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	const struct in_addr *a4 = &((const struct sockaddr_in *)address)->sin_addr;

	return (address->sa_family == AF_INET ? ntohl(a4->s_addr) : ntohl(a6->s6_addr32[3])) %
	       MCAST_BUCKETS;
}

static struct soft_mcast_group *find_group(const struct soft_mcast *mcast, const struct sockaddr *address)
{
	struct soft_mcast_group *group;

	LIST_FOREACH(group, &mcast->groups[bucket(address)], link)
		if (address_same_host((struct sockaddr *)&group->address, address))
			return group;
	return NULL;
}

/* --- the sockets ----------------------------------------------------------------------------- */

static int set_on(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof value);
}

/* From now on the socket receives only datagrams to groups that it joins itself, and reports their
 * destination. */
static int prepare(int fd, const struct dapl_device *dev)
{
	struct sockaddr_storage any = { .ss_family = dev->address.ss_family };
	int err;

	address_set_port((struct sockaddr *)&any, SOFT_MCAST_PORT);
	if (any.ss_family == AF_INET6) {
		set_on(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);	/* since Linux 4.20; the address
									 * is looked at in any case */
		err = set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) ||
		      set_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	} else {
		err = set_on(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) ||
		      set_on(fd, IPPROTO_IP, IP_PKTINFO, 1);
	}
	return err || set_on(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
	       bind(fd, (struct sockaddr *)&any, address_length((struct sockaddr *)&any)) ? errno : 0;
}

static int add_socket(struct dapl_device *dev)
{
	struct group_socket *new = calloc(1, sizeof *new);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = new };
	int err;

	if (!new)
		return ENOMEM;
	new->fd = socket(dev->address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	err = new->fd < 0 ? errno : prepare(new->fd, dev);
	if (!err && epoll_ctl(dev->datagrams.mcast->epoll, EPOLL_CTL_ADD, new->fd, &event))
		err = errno;
	if (err) {
		if (new->fd >= 0)
			close(new->fd);
		free(new);
		return err;
	}
	SLIST_INSERT_HEAD(&dev->datagrams.mcast->sockets, new, link);
	return 0;
}

static void remove_socket(struct soft_mcast *mcast, struct group_socket *socket)
{
	SLIST_REMOVE(&mcast->sockets, socket, group_socket, link);
	close(socket->fd);
	free(socket);
}

static int change_membership(const struct soft_mcast_group *group, int fd, bool join)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&group->address;
	struct ipv6_mreq six = { .ipv6mr_interface = group->interface };
	struct ip_mreqn four = { .imr_ifindex = (int)group->interface };
	int err;

	if (group->address.ss_family == AF_INET6) {
		six.ipv6mr_multiaddr = in6->sin6_addr;
		err = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP,
				 &six, sizeof six);
	} else {
		four.imr_multiaddr = ((const struct sockaddr_in *)&group->address)->sin_addr;
		err = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &four,
				 sizeof four);
	}
	return err ? errno : 0;
}

/* The limit of a socket: ENOBUFS in IPv4, ENOMEM in IPv6. */
static bool is_full(int err)
{
	return err == ENOBUFS || err == ENOMEM;
}

/* Tries all sockets: the newest may have room, and so may those that groups have left. */
static int join_socket(struct dapl_device *dev, struct soft_mcast_group *group)
{
	struct group_socket *socket;
	int err = ENOBUFS;

	SLIST_FOREACH(socket, &dev->datagrams.mcast->sockets, link) {
		if (socket->groups >= MCAST_SOCKET_GROUPS)
			continue;
		err = change_membership(group, socket->fd, true);
		if (!is_full(err))
			break;
	}
	if (!socket) {
		err = add_socket(dev);
		if (err)
			return err;
		socket = SLIST_FIRST(&dev->datagrams.mcast->sockets);
		err = change_membership(group, socket->fd, true);
		if (err)
			remove_socket(dev->datagrams.mcast, socket);
	}
	if (err)
		return err;
	socket->groups++;
	group->socket = socket;
	return 0;
}

/* --- joining, leaving ------------------------------------------------------------------------ */

int soft_mcast_may_send(struct dapl_device *dev)
{
	int interface = dev->netdev_index, err;
	struct ip_mreqn four = { .imr_ifindex = interface };

	assert_held(&dev->progress_lock);
	if (!interface)
		return ENODEV;
	if (dev->address.ss_family == AF_INET6)
		err = set_on(dev->datagrams.fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface);
	else
		err = setsockopt(dev->datagrams.fd, IPPROTO_IP, IP_MULTICAST_IF, &four, sizeof four);
	return err ? errno : 0;
}

/* To connect a datagram socket looks up the route, and sends nothing. */
int soft_mcast_check_route(const struct dapl_device *dev, const struct sockaddr *group)
{
	struct ip_mreqn four = { .imr_ifindex = dev->netdev_index };
	struct sockaddr_storage to = { 0 };
	int fd = socket(group->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return errno;
	memcpy(&to, group, address_length(group));
	address_set_port((struct sockaddr *)&to, SOFT_MCAST_PORT);
	if (group->sa_family == AF_INET6)
		err = set_on(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, four.imr_ifindex);
	else
		err = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &four, sizeof four);
	err = err || connect(fd, (struct sockaddr *)&to, address_length(group)) ? errno : 0;
	close(fd);
	return err;
}

static int open_mcast(struct dapl_device *dev)
{
	struct epoll_event event = soft_input_event(&dev->datagrams.input, EPOLLIN);
	struct soft_mcast *mcast;

	if (dev->datagrams.mcast)
		return 0;
	mcast = calloc(1, sizeof *mcast);
	if (!mcast)
		return ENOMEM;
	mcast->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (mcast->epoll < 0 || epoll_ctl(dev->data_epoll, EPOLL_CTL_ADD, mcast->epoll, &event)) {
		int err = errno;

		if (mcast->epoll >= 0)
			close(mcast->epoll);
		free(mcast);
		return err;
	}
	dev->datagrams.mcast = mcast;
	return 0;
}

static int new_group(struct dapl_device *dev, const struct sockaddr *address, struct soft_mcast_group **made)
{
	struct soft_mcast_group *group = calloc(1, sizeof *group);
	int err;

	if (!group)
		return ENOMEM;
	address_copy(&group->address, address);
	group->interface = (unsigned)dev->netdev_index;
	err = group->interface ? join_socket(dev, group) : ENODEV;
	if (err) {
		free(group);
		return err;
	}
	LIST_INSERT_HEAD(&dev->datagrams.mcast->groups[bucket(address)], group, link);
	*made = group;
	return 0;
}

int soft_mcast_join(struct dapl_device *dev, const struct sockaddr *address, struct soft_member *member)
{
	struct soft_mcast_group *group;
	int err = open_mcast(dev);

	assert_held(&dev->progress_lock);
	if (err)
		return err;
	group = find_group(dev->datagrams.mcast, address);
	if (!group)
		err = new_group(dev, address, &group);
	if (err)
		return err;
	LIST_INSERT_HEAD(&group->members, member, link);
	member->group = group;
	return 0;
}

void soft_mcast_leave(struct dapl_device *dev, struct soft_member *member)
{
	struct soft_mcast_group *group = member->group;

	assert_held(&dev->progress_lock);
	if (!group)
		return;
	LIST_REMOVE(member, link);
	member->group = NULL;
	if (!LIST_EMPTY(&group->members))
		return;
	if (group->socket) {
		LIST_REMOVE(group, link);
		change_membership(group, group->socket->fd, false);
		if (!--group->socket->groups)
			remove_socket(dev->datagrams.mcast, group->socket);
	}
	free(group);
}

void soft_mcast_close(struct dapl_device *dev)
{
	struct group_socket *socket;
	struct soft_mcast_group *group;

	if (!dev->datagrams.mcast)
		return;
	for (int i = 0; i < MCAST_BUCKETS; i++)
		while ((group = LIST_FIRST(&dev->datagrams.mcast->groups[i]))) {
			LIST_REMOVE(group, link);
			group->socket = NULL;
		}
	while ((socket = SLIST_FIRST(&dev->datagrams.mcast->sockets)))
		remove_socket(dev->datagrams.mcast, socket);
	close(dev->datagrams.mcast->epoll);
	free(dev->datagrams.mcast);
	dev->datagrams.mcast = NULL;
}

/* --- receiving ------------------------------------------------------------------------------- */

/* Where the datagram went: an address without port, and the interface that it came by. */
static bool destination(struct msghdr *msg, struct sockaddr_storage *to, unsigned *interface)
{
	struct in6_pktinfo six;
	struct in_pktinfo four;

	memset(to, 0, sizeof *to);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&four, CMSG_DATA(c), sizeof four);
			to->ss_family = AF_INET;
			((struct sockaddr_in *)to)->sin_addr = four.ipi_addr;
			*interface = (unsigned)four.ipi_ifindex;
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&six, CMSG_DATA(c), sizeof six);
			to->ss_family = AF_INET6;
			((struct sockaddr_in6 *)to)->sin6_addr = six.ipi6_addr;
			*interface = six.ipi6_ifindex;
			return true;
		}
	}
	return false;
}

/* A sender that is a member does not receive its own datagrams. */
static bool is_own(const struct soft_qp *qp, const struct sockaddr_storage *from,
		   const struct soft_datagram *datagram)
{
	const struct dapl_device *dev = qp->dev;

	return datagram->from_qp == qp->qp.qp_num &&
	       address_port((const struct sockaddr *)from) == dev->datagrams.port &&
	       address_same_host((const struct sockaddr *)from, (const struct sockaddr *)&dev->address);
}

static void deliver(struct soft_mcast_group *group, const struct sockaddr_storage *from,
		    const uint8_t *p, size_t length)
{
	struct soft_datagram datagram;
	struct soft_member *member;

	if (!soft_ud_parse(&datagram, p, length) || datagram.to_qp != SOFT_MCAST_QPN ||
	    datagram.qkey != SOFT_MCAST_QKEY)
		return;
	LIST_FOREACH(member, &group->members, link)
		if (!is_own(member->qp, from, &datagram))
			soft_ud_deliver(member->qp, &datagram, from, &group->address);
}

/* Returns false if there is no datagram. */
static bool receive_one(struct dapl_device *dev, int fd)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec iov = { dev->progress.scratch, SOFT_SCRATCH };
	struct sockaddr_storage from, to;
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof control,
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct soft_mcast_group *group;
	unsigned interface;

	if (n < 0)
		return errno != EAGAIN;
	if (!destination(&msg, &to, &interface))
		return true;
	group = find_group(dev->datagrams.mcast, (struct sockaddr *)&to);	/* EXT-40 */
	if (group && group->interface == interface)
		deliver(group, &from, dev->progress.scratch, n);
	return true;
}

void soft_mcast_receive(struct dapl_device *dev)
{
	struct epoll_event event[PROGRESS_EVENTS];
	int n;

	assert_held(&dev->progress_lock);
	if (!dev->datagrams.mcast)
		return;
	n = epoll_wait(dev->datagrams.mcast->epoll, event, PROGRESS_EVENTS, 0);
	for (int i = 0; i < n; i++) {
		const struct group_socket *socket = event[i].data.ptr;

		for (int j = 0; j < UD_BATCH && receive_one(dev, socket->fd); j++)
			;
	}
}
