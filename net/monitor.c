/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* monitor.c - dat_net_monitor_*(): the sockets on which the kernel reports changes. One epoll set has the
 * socket of rtnetlink and that of uevents, which report RDMA devices. changes.c reads the messages. */
#include "net/changes.h"
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	DRAIN_MAX = 1 << 16,		/* datagrams; bounds a call while changes keep coming */
	UEVENT_MAX = 8192,		/* bytes; the kernel's UEVENT_BUFFER_SIZE is 2048 */
	UEVENT_GROUP = 1,		/* the kernel's own; 2 is udev's */
};

struct dat_net_monitor {
	struct net_changes changes;
	struct nl_sock *sock;		/* of rtnetlink; NULL: only RDMA devices are watched */
	int uevents;			/* -1: RDMA devices are not watched */
	int epoll;
	size_t next;			/* of changes.ready */
	unsigned char *buffer;		/* the datagram of rtnetlink that is being read, or NULL */
	struct nlmsghdr *at;		/* its next message */
	int left;			/* bytes */
};

/* --- opening -------------------------------------------------------------------------------- */

static int join(struct dat_net_monitor *m, int group)
{
	return net_errno(nl_socket_add_membership(m->sock, group));
}

static int join_groups(struct dat_net_monitor *m, unsigned what)
{
	int err = join(m, RTNLGRP_LINK);	/* for the names of interfaces in any case */

	if (!err && what & DAT_NET_ADDRESS)
		err = join(m, RTNLGRP_IPV4_IFADDR);
	if (!err && what & DAT_NET_ADDRESS)
		err = join(m, RTNLGRP_IPV6_IFADDR);
	if (!err && what & DAT_NET_ROUTE)
		err = join(m, RTNLGRP_IPV4_ROUTE);
	if (!err && what & DAT_NET_ROUTE)
		err = join(m, RTNLGRP_IPV6_ROUTE);
	if (!err && what & DAT_NET_NEIGHBOUR)
		err = join(m, RTNLGRP_NEIGH);
	return err;
}

static int add_to_epoll(struct dat_net_monitor *m, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* Reads the interfaces as they are now, over a socket of its own: answers and changes do not mix. */
static int read_links(struct dat_net_monitor *m)
{
	struct net_table table;
	struct nl_sock *sock;
	int err = net_open(&sock);

	if (err)
		return err;
	err = net_table_read(&table, sock);
	net_close(sock);
	if (err) {
		net_table_free(&table);
		return err;
	}
	net_table_free(&m->changes.table);
	m->changes.table = table;
	return 0;
}

/* Joins the groups before it reads the interfaces: a change in between is reported, or was read. */
static int open_rtnetlink(struct dat_net_monitor *m, unsigned what)
{
	int err = net_open(&m->sock);

	if (!err)
		err = net_errno(nl_socket_set_nonblocking(m->sock));
	if (!err)
		err = join_groups(m, what);
	if (!err)
		err = read_links(m);
	return err ? err : add_to_epoll(m, nl_socket_get_fd(m->sock));
}

static int open_uevents(struct dat_net_monitor *m)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP };

	m->uevents = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (m->uevents < 0 || bind(m->uevents, (struct sockaddr *)&local, sizeof local))
		return errno;
	return add_to_epoll(m, m->uevents);
}

NET_PUBLIC int dat_net_monitor_open(unsigned what, struct dat_net_monitor **monitor)
{
	struct dat_net_monitor *m;
	int err = 0;

	if (!monitor || !what || what & ~(unsigned)DAT_NET_CHANGES)
		return EINVAL;
	m = calloc(1, sizeof *m);
	if (!m)
		return ENOMEM;
	m->changes.what = what;
	m->uevents = -1;
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll < 0)
		err = errno;
	if (!err && what & ~(unsigned)DAT_NET_RDMA)
		err = open_rtnetlink(m, what);
	if (!err && what & DAT_NET_RDMA)
		err = open_uevents(m);
	if (err) {
		dat_net_monitor_close(m);
		return err;
	}
	*monitor = m;
	return 0;
}

NET_PUBLIC void dat_net_monitor_close(struct dat_net_monitor *m)
{
	if (!m)
		return;
	if (m->sock)
		net_close(m->sock);
	if (m->uevents >= 0)
		close(m->uevents);
	if (m->epoll >= 0)
		close(m->epoll);
	free(m->buffer);
	net_table_free(&m->changes.table);
	free(m);
}

NET_PUBLIC int dat_net_monitor_fd(const struct dat_net_monitor *m)
{
	return m->epoll;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Reads the next datagram of rtnetlink into m->buffer. */
static int receive(struct dat_net_monitor *m)
{
	struct sockaddr_nl from;
	int n;

	free(m->buffer);
	m->buffer = NULL;
	errno = 0;
	n = nl_recv(m->sock, &from, &m->buffer, NULL);
	if (n == 0 || n == -NLE_AGAIN || n == -NLE_INTR)
		return EAGAIN;
	if (n < 0)
		return errno == ENOBUFS ? ENOBUFS : net_errno(n);
	m->at = (struct nlmsghdr *)m->buffer;
	m->left = n;
	return 0;
}

/* The changes of the next message. Returns EAGAIN at the end of what has arrived. */
static int next_message(struct dat_net_monitor *m)
{
	struct nl_msg *msg;
	int err;

	if (!m->buffer || !nlmsg_ok(m->at, m->left)) {
		err = receive(m);
		if (err)
			return err;
		if (!nlmsg_ok(m->at, m->left))
			return 0;
	}
	msg = nlmsg_convert(m->at);
	m->at = nlmsg_next(m->at, &m->left);
	if (!msg)
		return ENOMEM;
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	net_changes_of(&m->changes, msg);
	nlmsg_free(msg);
	return 0;
}

static int next_uevent(struct dat_net_monitor *m)
{
	struct sockaddr_nl from;
	socklen_t size = sizeof from;
	char text[UEVENT_MAX];
	ssize_t n = recvfrom(m->uevents, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&from, &size);

	if (n < 0)
		return errno == EINTR ? EAGAIN : errno;
	if (!from.nl_pid)	/* the kernel's own */
		net_changes_of_uevent(&m->changes, text, (size_t)n);
	return 0;
}

/* Discards what the socket holds. The kernel drops all changes, without another ENOBUFS, until the queue
 * of a socket that overflowed was empty once. */
static int drain(struct dat_net_monitor *m)
{
	int err = 0;

	for (int i = 0; i < DRAIN_MAX && (!err || err == ENOBUFS); i++)
		err = receive(m);
	m->left = 0;
	return err == EAGAIN || err == ENOBUFS ? 0 : err;
}

/* Reads the interfaces again after changes were lost, which ENOBUFS tells the program. Changes after the
 * socket was drained are reported, or are in what was read. */
static int read_again_after_loss(struct dat_net_monitor *m)
{
	int err = m->sock ? drain(m) : 0;

	if (!err && m->sock)
		err = read_links(m);
	m->changes.count = m->next = 0;
	return err ? err : ENOBUFS;
}

static int fetch(struct dat_net_monitor *m)
{
	int err = m->sock ? next_message(m) : EAGAIN;

	if (err == EAGAIN && m->uevents >= 0)
		err = next_uevent(m);
	if (err == ENOBUFS)
		return read_again_after_loss(m);
	if (!err && m->changes.err) {
		err = m->changes.err;
		m->changes.err = 0;
	}
	return err;
}

NET_PUBLIC int dat_net_monitor_next(struct dat_net_monitor *m, struct dat_net_change *change)
{
	int err;

	if (!m || !change)
		return EINVAL;
	while (m->next == m->changes.count) {
		m->next = m->changes.count = 0;
		err = fetch(m);
		if (err)
			return err;
	}
	*change = m->changes.ready[m->next++];
	return 0;
}
