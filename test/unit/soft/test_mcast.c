/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mcast.c - which sockets join which multicast groups, and which members get a datagram. The sockets are replaced
 * here. */
#include <sys/epoll.h>
#include "common/address.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/mcast.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum {
	DATA_EPOLL = 33, GROUP_EPOLL = 44, UDP = 55, FIRST = 200,	/* descriptors; FIRST: of groups */
	SOCKETS = 4, INTERFACE = 7, UDP_PORT = 4444, HEADER = 24, MAGIC = 0x44504c01,
};

static struct dapl_device dev;
static struct soft_qp qps[2];
static struct soft_member members[MCAST_SOCKET_GROUPS + 2];
static uint8_t scratch[SOFT_SCRATCH];

static struct {
	unsigned opened, closed;	/* sockets of groups */
	uint16_t port;			/* that the last one is bound to */
	bool all, reuse, info;		/* its options */
	int joins, drops;
	int in_use[SOCKETS];		/* groups of each socket */
	int full[SOCKETS];		/* errno with which it refuses to join */
	struct sockaddr_storage group;	/* that was joined or left last */
	int interface;			/* where */
	int sends_by;			/* interface of the device's own socket */
	void *data;			/* of the last socket in the epoll set */
	bool epoll_closed;
	int bind_err;
} did;

REPLACE(socket, bind, close, setsockopt, epoll_create1, epoll_ctl, epoll_wait, recvmsg)
REPLACE(soft_ud_deliver)

int __wrap_socket(int family, int type, int protocol)
{
	assert_int_equal(family, dev.address.ss_family);
	assert_int_equal(type, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	return FIRST + (int)did.opened++;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	did.port = address_port(address);
	errno = did.bind_err;
	return did.bind_err ? -1 : 0;
}

int __wrap_close(int fd)
{
	if (fd == GROUP_EPOLL)
		did.epoll_closed = true;
	else
		did.closed++;
	return 0;
}

static int change(int fd, bool join)
{
	int i = fd - FIRST;

	assert_in_range(i, 0, SOCKETS - 1);
	errno = did.full[i];
	if (join && errno)
		return -1;
	did.in_use[i] += join ? 1 : -1;
	did.joins += join;
	did.drops += !join;
	return 0;
}

static int change_ipv4(int fd, bool join, const struct ip_mreqn *is)
{
	did.group.ss_family = AF_INET;
	((struct sockaddr_in *)&did.group)->sin_addr = is->imr_multiaddr;
	did.interface = is->imr_ifindex;
	return change(fd, join);
}

static int change_ipv6(int fd, bool join, const struct ipv6_mreq *is)
{
	did.group.ss_family = AF_INET6;
	((struct sockaddr_in6 *)&did.group)->sin6_addr = is->ipv6mr_multiaddr;
	did.interface = (int)is->ipv6mr_interface;
	return change(fd, join);
}

static int set_ipv4(int fd, int name, const void *value)
{
	switch (name) {
	case IP_ADD_MEMBERSHIP:
	case IP_DROP_MEMBERSHIP:
		return change_ipv4(fd, name == IP_ADD_MEMBERSHIP, value);
	case IP_MULTICAST_IF:
		assert_int_equal(fd, UDP);
		did.sends_by = ((const struct ip_mreqn *)value)->imr_ifindex;
		return 0;
	case IP_MULTICAST_ALL:
		did.all = *(const int *)value;
		return 0;
	default:
		did.info = name == IP_PKTINFO && *(const int *)value;
		return 0;
	}
}

static int set_ipv6(int fd, int name, const void *value)
{
	switch (name) {
	case IPV6_ADD_MEMBERSHIP:
	case IPV6_DROP_MEMBERSHIP:
		return change_ipv6(fd, name == IPV6_ADD_MEMBERSHIP, value);
	case IPV6_MULTICAST_IF:
		assert_int_equal(fd, UDP);
		did.sends_by = *(const int *)value;
		return 0;
	case 29:			/* IPV6_MULTICAST_ALL */
		did.all = *(const int *)value;
		return 0;
	default:
		did.info |= name == IPV6_RECVPKTINFO && *(const int *)value;
		return 0;
	}
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	assert_true(length >= sizeof(int));
	if (level == IPPROTO_IP)
		return set_ipv4(fd, name, value);
	if (level == IPPROTO_IPV6)
		return set_ipv6(fd, name, value);
	did.reuse = name == SO_REUSEADDR && *(const int *)value;
	return 0;
}

int __wrap_epoll_create1(int flags)
{
	assert_int_equal(flags, EPOLL_CLOEXEC);
	return GROUP_EPOLL;
}

int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *event)
{
	assert_int_equal(op, EPOLL_CTL_ADD);
	assert_int_equal(event->events, EPOLLIN);
	if (of == GROUP_EPOLL) {
		assert_int_equal(fd, DATA_EPOLL);
		assert_ptr_equal(event->data.ptr, &dev.datagrams.input);
	} else {
		assert_int_equal(fd, GROUP_EPOLL);
		did.data = event->data.ptr;
	}
	return 0;
}

/* --- the table of groups ------------------------------------------------------------------------------------------ */

static uint8_t *table;		/* of the device; kept when it is freed, to see whether it is still used */
static size_t table_size;
static bool table_freed;

EXTEND(calloc, free)

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = __real_calloc(n, size);

	if (n * size >= MCAST_BUCKETS * sizeof p) {
		table = p;
		table_size = n * size;
		table_freed = false;
	}
	return p;
}

void __wrap_free(void *p)
{
	if (!p || p != table) {
		__real_free(p);
		return;
	}
	memset(p, 0xdd, table_size);
	table_freed = true;
}

static void check_freed_table(void)
{
	if (!table_freed)
		return;
	for (size_t i = 0; i < table_size; i++)
		assert_int_equal(table[i], 0xdd);
	__real_free(table);
	table = NULL;
	table_freed = false;
}

/* Each case runs with the progress lock held. */
UNIT_FIXTURE(set_up)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203) };

	memset(&did, 0, sizeof did);
	memset(&dev, 0, sizeof dev);
	memset(members, 0, sizeof members);
	did.all = true;
	memcpy(&dev.address, &own, sizeof own);
	strcpy(dev.netdev, "old0");		/* renamed: no interface has the name now */
	dev.netdev_index = INTERFACE;
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_lock(&dev.progress_lock);
	dev.data_epoll = DATA_EPOLL;
	dev.datagrams.fd = UDP;
	dev.datagrams.port = UDP_PORT;
	dev.progress.scratch = scratch;
	for (unsigned i = 0; i < 2; i++) {
		qps[i].dev = &dev;
		qps[i].qp.qp_num = 1000 + i;
	}
}

UNIT_FIXTURE(tear_down)
{
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		soft_mcast_leave(&dev, &members[i]);
	soft_mcast_close(&dev);
	dapl_mutex_unlock(&dev.progress_lock);
	check_freed_table();
}

static struct sockaddr_in group_of(uint32_t n)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe8000000 + n) };
}

static int join(unsigned member, uint32_t group)
{
	struct sockaddr_in address = group_of(group);

	members[member].qp = &qps[member % 2];
	return soft_mcast_join(&dev, (struct sockaddr *)&address, &members[member]);
}

#define WITH_MEMBERS(name) UNIT_TEST_WITH(name, set_up_members, tear_down)

/* --- joining and leaving ----------------------------------------------------------------------------------------- */

UNIT_CASE(first_member_joins_the_group)
{
	struct sockaddr_in group = group_of(5);

	assert_int_equal(join(0, 5), 0);
	assert_int_equal(did.opened, 1);
	assert_int_equal(did.port, SOFT_MCAST_PORT);
	assert_true(did.reuse && did.info);
	assert_false(did.all);
	assert_true(address_same_host((struct sockaddr *)&did.group, (struct sockaddr *)&group));
	assert_int_equal(did.interface, INTERFACE);
	assert_int_equal(join(1, 5), 0);
	assert_int_equal(did.joins, 1);
	assert_ptr_equal(members[0].group, members[1].group);
}

UNIT_CASE(ipv6_group_is_joined)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = { { { 0xff, 5, [15] = 9 } } } };

	dev.address.ss_family = AF_INET6;
	members[0].qp = qps;
	assert_int_equal(soft_mcast_join(&dev, (struct sockaddr *)&six, members), 0);
	assert_true(did.reuse && did.info);
	assert_false(did.all);
	assert_memory_equal(&((struct sockaddr_in6 *)&did.group)->sin6_addr, &six.sin6_addr, 16);
	assert_int_equal(did.interface, INTERFACE);
	soft_mcast_leave(&dev, members);
	assert_int_equal(did.drops, 1);
}

UNIT_CASE(last_member_leaves_the_group)
{
	assert_int_equal(join(0, 5) | join(1, 5) | join(2, 6), 0);
	soft_mcast_leave(&dev, &members[0]);
	soft_mcast_leave(&dev, &members[0]);
	assert_int_equal(did.drops, 0);
	soft_mcast_leave(&dev, &members[1]);
	assert_int_equal(did.drops, 1);
	assert_int_equal(did.closed, 0);
	soft_mcast_leave(&dev, &members[2]);	/* of the last group of the socket */
	assert_int_equal(did.closed, 1);
	assert_int_equal(join(0, 5), 0);
	assert_int_equal(did.opened, 2);
}

UNIT_CASE(socket_has_a_limited_number_of_groups)
{
	for (unsigned i = 0; i < MCAST_SOCKET_GROUPS; i++)
		assert_int_equal(join(i, i), 0);
	assert_int_equal(did.opened, 1);
	assert_int_equal(join(MCAST_SOCKET_GROUPS, 5000), 0);
	assert_int_equal(did.opened, 2);
	soft_mcast_leave(&dev, &members[3]);
	assert_int_equal(join(MCAST_SOCKET_GROUPS + 1, 5001), 0);
	assert_int_equal(did.opened, 2);
}

UNIT_CASE(group_goes_to_a_socket_with_room)
{
	static const int errors[] = { ENOBUFS, ENOMEM };

	assert_int_equal(join(0, 0), 0);
	for (unsigned i = 0; i < 2; i++) {	/* the limit of the kernel may be less */
		did.full[i] = errors[i];
		assert_int_equal(join(1 + i, 1 + i), 0);
		assert_int_equal(did.opened, 2 + i);
	}
	did.full[0] = 0;
	did.full[2] = ENOBUFS;
	assert_int_equal(join(3, 3), 0);	/* the first has room again */
	assert_int_equal(did.opened, 3);
	assert_int_equal(did.in_use[0], 2);
}

UNIT_CASE(failed_join_leaves_nothing)
{
	did.full[0] = EINVAL;
	assert_int_equal(join(0, 5), EINVAL);
	assert_null(members[0].group);
	assert_int_equal(did.closed, 1);
	did.bind_err = EACCES;
	assert_int_equal(join(0, 5), EACCES);
	assert_int_equal(did.closed, 2);
	did.bind_err = 0;
	dev.netdev_index = 0;
	assert_int_equal(join(0, 5), ENODEV);
	dev.netdev_index = INTERFACE;
	assert_int_equal(join(0, 5), 0);
	did.full[2] = EINVAL;			/* not for want of room: no other socket is tried */
	assert_int_equal(join(1, 6), EINVAL);
	assert_int_equal(did.opened, 3);
}

/* As a forked child does. The group of the first and of the third member are in one bucket of the table. */
UNIT_CASE(members_may_leave_after_the_close)
{
	assert_int_equal(join(0, 5) | join(1, 6) | join(2, 5 + MCAST_BUCKETS), 0);
	soft_mcast_close(&dev);
	assert_int_equal(did.closed, 1);
	assert_true(did.epoll_closed);
	assert_null(dev.datagrams.mcast);
	for (int i = 0; i < 3; i++) {
		soft_mcast_leave(&dev, &members[i]);
		assert_null(members[i].group);
	}
	assert_int_equal(did.drops, 0);
	soft_mcast_close(&dev);
	check_freed_table();
}

UNIT_CASE(datagrams_leave_by_the_devices_interface)
{
	for (int i = 0; i < 2; i++) {
		did.sends_by = 0;
		dev.address.ss_family = i ? AF_INET6 : AF_INET;
		assert_int_equal(soft_mcast_may_send(&dev), 0);
		assert_int_equal(did.sends_by, INTERFACE);
	}
	dev.netdev_index = 0;
	assert_int_equal(soft_mcast_may_send(&dev), ENODEV);
}

/* --- receiving -------------------------------------------------------------------------------------------------- */

static struct {
	uint32_t to_qp, from_qp, key, group, interface;
	struct sockaddr_in from;
	bool nowhere;			/* the kernel does not tell where it went */
	unsigned times;
	unsigned got[2];		/* deliveries to each QP */
} come;

int __wrap_epoll_wait(int fd, struct epoll_event *event, int max, int ms)
{
	assert_int_equal(fd, GROUP_EPOLL);
	assert_int_equal(ms, 0);
	assert_true(max > 0);
	event->data.ptr = did.data;
	return 1;
}

static void tell_destination(struct msghdr *msg)
{
	struct in_pktinfo info = { .ipi_ifindex = (int)come.interface, .ipi_addr = group_of(come.group).sin_addr };
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (come.nowhere) {
		msg->msg_controllen = 0;
		return;
	}
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof info);
	memcpy(CMSG_DATA(c), &info, sizeof info);
	msg->msg_controllen = CMSG_SPACE(sizeof info);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	uint8_t p[HEADER + 3] = { [HEADER] = 'a', 'b', 'c' };

	assert_int_equal(fd, FIRST);
	assert_int_equal(flags, MSG_DONTWAIT);
	errno = EAGAIN;
	if (!come.times)
		return -1;
	come.times--;
	wire_put32(p, MAGIC);
	wire_put32(p + 4, come.to_qp);
	wire_put32(p + 8, come.from_qp);
	wire_put32(p + 12, come.key);
	memcpy(msg->msg_iov->iov_base, p, sizeof p);
	memcpy(msg->msg_name, &come.from, sizeof come.from);
	tell_destination(msg);
	return sizeof p;
}

void __wrap_soft_ud_deliver(struct soft_qp *qp, const struct soft_datagram *datagram,
			    const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	struct sockaddr_in group = group_of(5);

	assert_int_equal(datagram->length, 3);
	assert_memory_equal(datagram->data, "abc", 3);
	assert_true(address_same_host((const struct sockaddr *)from, (struct sockaddr *)&come.from));
	assert_true(address_same_host((const struct sockaddr *)to, (struct sockaddr *)&group));
	come.got[qp == &qps[1]]++;
}

static int set_up_members(void **state)
{
	set_up(state);
	memset(&come, 0, sizeof come);
	come.to_qp = SOFT_MCAST_QPN;
	come.key = SOFT_MCAST_QKEY;
	come.from_qp = 9;
	come.group = 5;
	come.interface = INTERFACE;
	come.times = 1;
	come.from = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(UDP_PORT),
					  .sin_addr.s_addr = htonl(0x0a010204) };
	return join(0, 5) | join(1, 5);
}

static void expect_deliveries(unsigned first, unsigned second)
{
	come.got[0] = come.got[1] = 0;
	come.times = 1;
	soft_mcast_receive(&dev);
	assert_int_equal(come.got[0], first);
	assert_int_equal(come.got[1], second);
}

WITH_MEMBERS(each_member_gets_a_datagram)
{
	expect_deliveries(1, 1);
	soft_mcast_leave(&dev, &members[0]);
	expect_deliveries(0, 1);
}

WITH_MEMBERS(sender_does_not_get_its_own)
{
	come.from_qp = 1000;
	expect_deliveries(1, 1);		/* the same number of another host */
	come.from.sin_addr = ((struct sockaddr_in *)&dev.address)->sin_addr;
	expect_deliveries(0, 1);
	come.from.sin_port = htons(UDP_PORT + 1);	/* of another device of this host */
	expect_deliveries(1, 1);
}

WITH_MEMBERS(datagram_for_others_is_dropped)
{
	come.to_qp = 1000;
	expect_deliveries(0, 0);
	come.to_qp = SOFT_MCAST_QPN;
	come.key++;
	expect_deliveries(0, 0);
	come.key--;
	come.group = 6;
	expect_deliveries(0, 0);
	come.group = 5 + MCAST_BUCKETS;		/* of the same bucket */
	expect_deliveries(0, 0);
	come.group = 5;
	come.interface++;
	expect_deliveries(0, 0);
	come.interface--;
	come.nowhere = true;
	expect_deliveries(0, 0);
}

WITH_MEMBERS(one_look_takes_a_batch_of_a_socket)
{
	come.times = UD_BATCH + 3;
	soft_mcast_receive(&dev);
	assert_int_equal(come.got[0], UD_BATCH);
	assert_int_equal(come.times, 3);
}

UNIT_MAIN(NULL, NULL)
