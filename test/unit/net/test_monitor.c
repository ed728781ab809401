/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_monitor.c - what dat_net_monitor_*() watches, how it goes through datagrams of the kernel, and what it does when
 * some were lost (net/monitor.c). The sockets are replaced; what a message means is test_changes.c's. */
#include "net/changes.h"
#include <linux/netlink.h>
#include <net/if.h>
#include <netlink/errno.h>
#include <sys/epoll.h>
#include "test/unit/net/ips.h"
#include "test/unit/net/messages.h"
#include "test/unit/net/namespace.h"
#include "test/unit/unit.h"

#define UP (IFF_UP | IFF_RUNNING)

enum { ETH0 = 2, EPOLL_FD = 701, ROUTE_FD, UEVENT_FD, FDS, DATAGRAMS = 8, DRAIN_MAX = 1 << 16 };

static struct net_link links[1];
static struct dat_net_monitor *monitor;
static struct dat_net_change change;

/* --- the sockets ---------------------------------------------------------------------------------------- */

static unsigned long groups;		/* of rtnetlink, as bits */
static bool read_before_joining, uevents_bound;
static bool is_open[FDS - EPOLL_FD], polled[FDS - EPOLL_FD];

/* What a socket has: bytes, or an error of recvmsg(). */
struct datagram {
	uint8_t bytes[512];
	size_t length;
	int err;
	uint32_t sender;		/* of a uevent: 0 is the kernel */
};
static struct datagram routes[DATAGRAMS], uevents[DATAGRAMS];
static size_t route_at, route_count, uevent_at, uevent_count;
static bool endless_loss;		/* rtnetlink loses a message before each that it has */
static int receives;
static bool parser_lacks_memory;

#pragma GCC visibility push(default)	/* the sanitizers' libraries call some of them, too */
REPLACE(nl_socket_add_membership, nl_socket_set_nonblocking, nl_socket_get_fd, nl_recv, socket, epoll_create1)
REPLACE(epoll_ctl, close)
EXTEND(net_parse)
int __wrap_bind(int fd, const struct sockaddr_nl *local, socklen_t size);
ssize_t __wrap_recvfrom(int fd, void *bytes, size_t room, int flags, struct sockaddr_nl *from, socklen_t *size);
#pragma GCC visibility pop

int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group)
{
	if (namespace_result("join"))
		return -NLE_PERM;
	groups |= 1ul << group;
	read_before_joining |= held > 1;	/* more than the socket */
	return 0;
}

int __wrap_nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	return namespace_result("nonblocking") ? -NLE_NOMEM : 0;
}

int __wrap_nl_socket_get_fd(const struct nl_sock *sock) { return ROUTE_FD; }

int __wrap_nl_recv(struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **buffer, struct ucred **credentials)
{
	struct datagram *d = &routes[route_at];

	assert_null(credentials);
	receives++;
	errno = endless_loss ? ENOBUFS : route_at == route_count ? EAGAIN : d->err;
	if (endless_loss)
		return -NLE_NOMEM;	/* as libnl translates ENOBUFS */
	if (route_at == route_count)
		return -NLE_AGAIN;
	route_at++;
	if (d->err)
		return d->err == ENOBUFS ? -NLE_NOMEM : d->err == EINTR ? -NLE_INTR : -NLE_FAILURE;
	if (d->length)
		*buffer = memcpy(malloc(d->length), d->bytes, d->length);
	return (int)d->length;
}

int __wrap_socket(int family, int type, int protocol)
{
	assert_int_equal(family, AF_NETLINK);
	assert_int_equal(protocol, NETLINK_KOBJECT_UEVENT);
	assert_int_equal(type, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK);
	errno = EMFILE;
	if (namespace_result("socket"))
		return -1;
	is_open[UEVENT_FD - EPOLL_FD] = true;
	return UEVENT_FD;
}

int __wrap_bind(int fd, const struct sockaddr_nl *local, socklen_t size)
{
	assert_int_equal(fd, UEVENT_FD);
	assert_int_equal(size, sizeof *local);
	uevents_bound = local->nl_groups == 1;
	errno = EPERM;
	return namespace_result("bind") ? -1 : 0;
}

ssize_t __wrap_recvfrom(int fd, void *bytes, size_t room, int flags, struct sockaddr_nl *from, socklen_t *size)
{
	const struct datagram *d = &uevents[uevent_at];

	assert_int_equal(fd, UEVENT_FD);
	assert_int_equal(flags, MSG_DONTWAIT);
	assert_int_equal(*size, sizeof *from);
	errno = uevent_at == uevent_count ? EAGAIN : d->err;
	if (errno == EAGAIN)
		return -1;
	uevent_at++;
	*from = (struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = d->sender };
	assert_true(d->length <= room);
	memcpy(bytes, d->bytes, d->length);
	return d->err ? -1 : (ssize_t)d->length;
}

int __wrap_epoll_create1(int flags)
{
	assert_int_equal(flags, EPOLL_CLOEXEC);
	errno = EMFILE;
	if (namespace_result("epoll"))
		return -1;
	is_open[0] = true;
	return EPOLL_FD;
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	assert_int_equal(epoll, EPOLL_FD);
	assert_int_equal(operation, EPOLL_CTL_ADD);
	assert_int_equal(event->events, EPOLLIN);
	errno = ENOSPC;
	polled[fd - EPOLL_FD] = true;
	return namespace_result("add") ? -1 : 0;
}

int __wrap_close(int fd)
{
	assert_true(is_open[fd - EPOLL_FD]);
	is_open[fd - EPOLL_FD] = false;
	return 0;
}

int __wrap_net_parse(struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg)
{
	return parser_lacks_memory ? -NLE_NOMEM : __real_net_parse(msg, each, arg);
}

/* --- making a case ---------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	links[0] = (struct net_link){ .index = ETH0, .name = "eth0", .mtu = 1500, .flags = UP };
	given_table = (struct net_table){ .links = links, .link_count = 1 };
	failing = NULL;
	groups = 0;
	read_before_joining = uevents_bound = endless_loss = parser_lacks_memory = false;
	memset(polled, 0, sizeof polled);
	memset(routes, 0, sizeof routes);
	memset(uevents, 0, sizeof uevents);
	route_at = route_count = uevent_at = uevent_count = 0;
	monitor = NULL;
	receives = 0;
}

static void assert_nothing_is_held(void)
{
	for (int i = 0; i < FDS - EPOLL_FD; i++)
		assert_false(is_open[i]);
	assert_int_equal(held, 0);
}

UNIT_FIXTURE(tear_down)
{
	dat_net_monitor_close(monitor);
	assert_nothing_is_held();
}

static void watch(unsigned what) { assert_int_equal(dat_net_monitor_open(what, &monitor), 0); }

static int next(void)
{
	memset(&change, 0, sizeof change);
	return dat_net_monitor_next(monitor, &change);
}

/* Adds a message to a datagram, as the kernel puts several into one. */
static void put(struct datagram *d, struct nl_msg *msg)
{
	size_t length = nlmsg_hdr(msg)->nlmsg_len;

	assert_true(d->length + length <= sizeof d->bytes);
	memcpy(d->bytes + d->length, nlmsg_hdr(msg), length);
	d->length += NLMSG_ALIGN(length);
	nlmsg_free(msg);
}

static struct nl_msg *address(const char *text) { return message_address(RTM_NEWADDR, ETH0, text, 24); }
static void lose(struct datagram *d) { d->err = ENOBUFS; }

static void assert_next_address(const char *text, const char *netdev)
{
	assert_int_equal(next(), 0);
	assert_int_equal(change.what, DAT_NET_ADDRESS);
	assert_ip(&change.address, text);
	assert_string_equal(change.netdev, netdev);
}

/* --- opening ---------------------------------------------------------------------------------------------- */

UNIT_CASE(wrong_arguments_are_refused)
{
	assert_int_equal(dat_net_monitor_open(DAT_NET_LINK, NULL), EINVAL);
	assert_int_equal(dat_net_monitor_open(0, &monitor), EINVAL);
	assert_int_equal(dat_net_monitor_open(DAT_NET_CHANGES + 1, &monitor), EINVAL);
	watch(DAT_NET_LINK);
	assert_int_equal(dat_net_monitor_next(NULL, &change), EINVAL);
	assert_int_equal(dat_net_monitor_next(monitor, NULL), EINVAL);
	dat_net_monitor_close(NULL);
}

UNIT_CASE(only_what_is_asked_for_is_watched)
{
#define BIT(name) (1ul << RTNLGRP_##name)
	static const struct { unsigned what; unsigned long groups; bool uevents; } rows[] = {
		{ DAT_NET_MTU, BIT(LINK), false }, { DAT_NET_LINK, BIT(LINK), false },
		{ DAT_NET_ADDRESS, BIT(LINK) | BIT(IPV4_IFADDR) | BIT(IPV6_IFADDR), false },
		{ DAT_NET_ROUTE, BIT(LINK) | BIT(IPV4_ROUTE) | BIT(IPV6_ROUTE), false },
		{ DAT_NET_NEIGHBOUR, BIT(LINK) | BIT(NEIGH), false }, { DAT_NET_RDMA, 0, true },
		{ DAT_NET_RDMA | DAT_NET_LINK, BIT(LINK), true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		watch(rows[i].what);
		assert_int_equal(groups, rows[i].groups);
		assert_int_equal(uevents_bound, rows[i].uevents);
		assert_int_equal(is_open[UEVENT_FD - EPOLL_FD], rows[i].uevents);
		assert_int_equal(polled[ROUTE_FD - EPOLL_FD], rows[i].groups != 0);
		assert_int_equal(polled[UEVENT_FD - EPOLL_FD], rows[i].uevents);
		assert_int_equal(dat_net_monitor_fd(monitor), EPOLL_FD);
		assert_int_equal(next(), EAGAIN);
		tear_down(NULL);
	}
	monitor = NULL;
}

/* Else a change between the two would be lost. */
UNIT_CASE(groups_are_joined_before_the_interfaces_are_read)
{
	watch(DAT_NET_CHANGES);
	assert_false(read_before_joining);
	assert_int_equal(held, 2);		/* the socket, and the table; the socket of the question is closed */
}

UNIT_CASE(failed_opening_leaves_nothing_open)
{
	static const struct { const char *function; int err; } rows[] = {
		{ "epoll", EMFILE }, { "open", ENFILE }, { "nonblocking", ENOMEM }, { "join", EPERM },
		{ "table", ENFILE },
		{ "add", ENOSPC }, { "socket", EMFILE }, { "bind", EPERM },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		failing = rows[i].function;
		assert_int_equal(dat_net_monitor_open(DAT_NET_CHANGES, &monitor), rows[i].err);
		assert_null(monitor);
		assert_nothing_is_held();
	}
}

/* --- reading ----------------------------------------------------------------------------------------------- */

UNIT_CASE(messages_of_a_datagram_are_told_one_by_one)
{
	watch(DAT_NET_CHANGES);
	put(&routes[0], address("192.0.2.1"));
	put(&routes[0], message_link(RTM_NEWLINK, ETH0, "eth0", 1500, UP | IFF_PROMISC));	/* no change */
	put(&routes[0], address("192.0.2.2"));
	put(&routes[1], address("192.0.2.3"));
	route_count = 2;
	assert_next_address("192.0.2.1", "eth0");
	assert_next_address("192.0.2.2", "eth0");
	assert_int_equal(receives, 1);
	assert_next_address("192.0.2.3", "eth0");
	assert_int_equal(next(), EAGAIN);
}

UNIT_CASE(both_changes_of_a_message_are_told)
{
	watch(DAT_NET_CHANGES);
	put(&routes[0], message_link(RTM_NEWLINK, ETH0, "eth0", 9000, 0));
	put(&routes[0], address("192.0.2.1"));
	route_count = 1;
	assert_int_equal(next(), 0);
	assert_int_equal(change.what, DAT_NET_MTU);
	assert_int_equal(next(), 0);
	assert_int_equal(change.what, DAT_NET_LINK);
	assert_next_address("192.0.2.1", "eth0");
}

/* A header that is cut off, and a message whose length exceeds what is left. */
UNIT_CASE(cut_message_ends_its_datagram_only)
{
	watch(DAT_NET_CHANGES);
	put(&routes[0], address("192.0.2.1"));
	routes[0].length = sizeof(struct nlmsghdr) - 1;
	put(&routes[1], address("192.0.2.2"));
	put(&routes[1], address("192.0.2.3"));
	routes[1].length -= 4;
	put(&routes[2], address("192.0.2.4"));
	route_count = 3;
	assert_next_address("192.0.2.2", "eth0");
	assert_next_address("192.0.2.4", "eth0");
	assert_int_equal(next(), EAGAIN);
}

UNIT_CASE(interrupted_and_empty_reads_have_no_change)
{
	watch(DAT_NET_LINK);
	routes[0].err = EINTR;
	route_count = 2;		/* the second is empty */
	assert_int_equal(next(), EAGAIN);
	assert_int_equal(next(), EAGAIN);
	assert_int_equal(receives, 2);
	route_at = route_count = 0;
	routes[0].err = EBADF;
	route_count = 1;
	assert_int_equal(next(), EIO);
}

UNIT_CASE(shortage_of_memory_is_told_once)
{
	watch(DAT_NET_ADDRESS);
	put(&routes[0], address("192.0.2.1"));
	put(&routes[0], address("192.0.2.2"));
	route_count = 1;
	parser_lacks_memory = true;
	assert_int_equal(next(), ENOMEM);
	parser_lacks_memory = false;
	assert_next_address("192.0.2.2", "eth0");
}

/* --- uevents ------------------------------------------------------------------------------------------------ */

static void put_uevent(size_t i, const char *action, uint32_t sender)
{
	char *end = stpcpy((char *)uevents[i].bytes, "SUBSYSTEM=infiniband") + 1;

	end = stpcpy(stpcpy(end, "ACTION="), action) + 1;
	end = stpcpy(end, "DEVPATH=/devices/infiniband/rxe0") + 1;
	uevents[i].length = (size_t)(end - (char *)uevents[i].bytes);
	uevents[i].sender = sender;
	uevent_count = i + 1;
}

UNIT_CASE(uevents_of_the_kernel_are_told_after_messages)
{
	watch(DAT_NET_RDMA | DAT_NET_ADDRESS);
	put_uevent(0, "add", 4711);		/* of a program */
	put_uevent(1, "remove", 0);
	put(&routes[0], address("192.0.2.1"));
	route_count = 1;
	assert_next_address("192.0.2.1", "eth0");
	assert_int_equal(next(), 0);
	assert_int_equal(change.what, DAT_NET_RDMA);
	assert_int_equal(change.now, 0);
	assert_string_equal(change.device, "rxe0");
	assert_int_equal(next(), EAGAIN);
}

UNIT_CASE(errors_of_uevents_are_returned)
{
	static const int errors[][2] = { { EINTR, EAGAIN }, { EBADF, EBADF }, { ENOBUFS, ENOBUFS } };

	watch(DAT_NET_RDMA);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		uevents[i].err = errors[i][0];
		uevent_count = i + 1;
		assert_int_equal(next(), errors[i][1]);
	}
	assert_int_equal(receives, 0);
	put_uevent(3, "add", 0);
	assert_int_equal(next(), 0);
}

/* --- losses ------------------------------------------------------------------------------------------------- */

/* The kernel drops messages without another error until the socket is empty. */
UNIT_CASE(after_a_loss_the_socket_is_drained_and_interfaces_read_anew)
{
	watch(DAT_NET_CHANGES);
	lose(&routes[0]);
	put(&routes[1], address("192.0.2.1"));
	lose(&routes[2]);
	put(&routes[3], address("192.0.2.2"));
	route_count = 4;
	strcpy(links[0].name, "lan0");
	assert_int_equal(next(), ENOBUFS);
	assert_int_equal(route_at, 4);
	assert_int_equal(held, 2);
	assert_int_equal(next(), EAGAIN);
	put(&routes[4], address("192.0.2.3"));
	route_count = 5;
	assert_next_address("192.0.2.3", "lan0");
}

UNIT_CASE(drain_of_a_busy_socket_ends)
{
	watch(DAT_NET_CHANGES);
	endless_loss = true;
	strcpy(links[0].name, "lan0");
	assert_int_equal(next(), ENOBUFS);
	assert_int_equal(receives, 1 + DRAIN_MAX);
	endless_loss = false;
	put(&routes[0], address("192.0.2.1"));
	route_count = 1;
	assert_next_address("192.0.2.1", "lan0");
}

UNIT_CASE(failures_after_a_loss_are_returned)
{
	watch(DAT_NET_CHANGES);
	lose(&routes[0]);
	routes[1].err = EBADF;
	lose(&routes[2]);
	route_count = 3;
	assert_int_equal(next(), EIO);
	failing = "table";
	assert_int_equal(next(), ENFILE);
	assert_int_equal(held, 2);		/* the table before is kept */
}

UNIT_MAIN(NULL, NULL)
