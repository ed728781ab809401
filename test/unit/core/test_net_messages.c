/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_net_messages.c - which events of an interface follow from rtnetlink messages (net_socket.c, net_events.c and
 * net_socket.c of dapl/core/ia): which messages are counted, how many changes an event reports as lost, and what
 * follows an overflow of the socket. The socket is replaced by one that the test writes to. Which watches get an event
 * is test_net_watch.c's. */
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <dat/dat_net_extensions.h>
#include "dapl/core/event/calls.h"
#include "dapl/core/ia/net_watch.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

enum { UP = IFF_UP | IFF_RUNNING, DOWN = 0, OTHER = 77 /* index of an interface */ };

static struct dapl_ia *ia;
static struct dapl_evd *async_evd;
static int kernel = -1, watched = -1;	/* the two ends; what the kernel sends, what the watch reads */
static bool overflow;			/* atomic: the next receive tells of one */
static _Atomic bool address_present;	/* the host has the IA's address */
static int own_index;

/* Messages of one datagram. */
static union {
	struct nlmsghdr first;
	char bytes[1024];
} datagram;
static size_t filled;

REPLACE(getifaddrs, freeifaddrs)
EXTEND(socket, bind, recv)

int __wrap_socket(int family, int type, int protocol)
{
	int ends[2];

	if (family != AF_NETLINK)
		return __real_socket(family, type, protocol);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -1;
	kernel = ends[0];
	watched = ends[1];
	return watched;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	return fd == watched ? 0 : __real_bind(fd, address, size);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	if (fd != watched || !__atomic_exchange_n(&overflow, false, __ATOMIC_SEQ_CST))
		return __real_recv(fd, bytes, size, flags);
	errno = ENOBUFS;
	return -1;
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static struct ifaddrs own;

	own.ifa_addr = (struct sockaddr *)&ia->attr.address;
	*list = address_present ? &own : NULL;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
}

/* --- fixture --------------------------------------------------------------------------------------------------- */

static void set_address(const char *text)
{
	struct sockaddr_storage *own = &ia->attr.address;

	memset(own, 0, sizeof *own);
	own->ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (own->ss_family == AF_INET)
		assert_int_equal(inet_pton(AF_INET, text, &((struct sockaddr_in *)own)->sin_addr), 1);
	else
		assert_int_equal(inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)own)->sin6_addr), 1);
}

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .attr = { .mtu = 1500, .port_active = true } };
	assert_int_equal(dapl_service_get(), 0);
	overflow = false;
	address_present = true;
	filled = 0;
	ia = core_ia_new();
	ia->attr = core_device.attr;
	own_index = (int)if_nametoindex("lo");
	ia->attr.netdev_index = own_index;
	set_address("192.0.2.1");
	async_evd = core_async_evd_new(ia);
}

UNIT_FIXTURE(tear_down)
{
	dapl_net_forget(ia);
	close(kernel);
	kernel = watched = -1;
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_ia_free(ia);
	dapl_service_put();
}

static void watch(DAT_UINT32 what) { assert_int_equal(dapl_net_watch(ia, what), DAT_SUCCESS); }

/* The next event, which is of this kind. */
static DAT_NET_CHANGE_DATA next_change(DAT_UINT32 what)
{
	DAT_NET_CHANGE_DATA data;
	DAT_EVENT event;

	while (dapl_evd_dequeue((DAT_EVD_HANDLE)async_evd, &event) != DAT_SUCCESS)	/* the alarm ends it */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(event.event_number, DAT_NET_CHANGE_EVENT);
	memcpy(&data, &event.event_extension_data, sizeof data);
	assert_int_equal(data.what, what);
	return data;
}

static void assert_change(DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now, DAT_UINT32 lost)
{
	DAT_NET_CHANGE_DATA data = next_change(what);

	assert_int_equal(data.before, before);
	assert_int_equal(data.now, now);
	assert_int_equal(data.lost, lost);
}

/* --- messages -------------------------------------------------------------------------------------------------- */

static struct nlmsghdr *add_message(int type, const void *body, size_t size)
{
	struct nlmsghdr *h = (void *)(datagram.bytes + filled);

	*h = (struct nlmsghdr){ .nlmsg_len = (uint32_t)NLMSG_LENGTH(size), .nlmsg_type = (uint16_t)type };
	memcpy(NLMSG_DATA(h), body, size);
	filled += NLMSG_SPACE(size);
	return h;
}

static void add_attribute(struct nlmsghdr *h, int type, const void *bytes, size_t size)
{
	struct rtattr *at = (void *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	at->rta_type = (unsigned short)type;
	at->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(at), bytes, size);
	h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + RTA_LENGTH(size));
	filled += RTA_SPACE(size);
}

static struct nlmsghdr *add_link(int type, int index, unsigned flags, unsigned mtu)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = index, .ifi_flags = flags };
	struct nlmsghdr *h = add_message(type, &info, sizeof info);

	if (mtu)
		add_attribute(h, IFLA_MTU, &mtu, sizeof mtu);
	return h;
}

static void add_address(int type, int attribute, const char *text)
{
	const struct ifaddrmsg info = { .ifa_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	unsigned char bytes[16];

	assert_int_equal(inet_pton(info.ifa_family, text, bytes), 1);
	add_attribute(add_message(type, &info, sizeof info), attribute, bytes, info.ifa_family == AF_INET ? 4 : 16);
}

static void send_messages(void)
{
	assert_int_equal(send(kernel, datagram.bytes, filled, 0), filled);
	filled = 0;
}

/* --- cases ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(link_message_of_the_interface_is_an_event)
{
	watch(DAT_NET_LINK);
	core_device.attr.port_active = false;
	add_link(RTM_NEWLINK, own_index, IFF_UP, 0);	/* without a carrier */
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
	core_device.attr.port_active = true;
	add_link(RTM_NEWLINK, own_index, UP, 0);
	send_messages();
	assert_change(DAT_NET_LINK, 0, 1, 0);
	core_device.attr.port_active = false;
	add_link(RTM_DELLINK, own_index, UP, 9000);	/* its flags are those of before */
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
}

/* A change of another interface would count as one of two that an event reports. */
UNIT_CASE(link_message_of_another_interface_is_ignored)
{
	watch(DAT_NET_LINK);
	core_device.attr.port_active = false;
	add_link(RTM_NEWLINK, OTHER, DOWN, 0);
	add_link(RTM_NEWLINK, OTHER, UP, 0);
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
}

UNIT_CASE(mtu_of_the_device_is_reported)
{
	watch(DAT_NET_MTU);
	core_device.attr.mtu = 4096;
	add_link(RTM_NEWLINK, own_index, UP, 9000);
	send_messages();
	assert_change(DAT_NET_MTU, 1500, 4096, 0);
}

UNIT_CASE(own_address_that_goes_is_an_event)
{
	watch(DAT_NET_ADDRESS);
	address_present = false;
	add_address(RTM_DELADDR, IFA_LOCAL, "192.0.2.2");	/* another: changes of it are not counted */
	add_address(RTM_NEWADDR, IFA_LOCAL, "192.0.2.2");
	add_address(RTM_DELADDR, IFA_LOCAL, "::");		/* of another family */
	add_address(RTM_NEWADDR, IFA_LOCAL, "::");
	add_address(RTM_DELADDR, IFA_LOCAL, "192.0.2.1");
	send_messages();
	assert_change(DAT_NET_ADDRESS, 1, 0, 0);
	address_present = true;
	add_address(RTM_NEWADDR, IFA_LOCAL, "192.0.2.1");
	send_messages();
	assert_change(DAT_NET_ADDRESS, 0, 1, 0);
}

UNIT_CASE(ipv6_message_has_its_address_elsewhere)
{
	set_address("2001:db8::1");
	watch(DAT_NET_ADDRESS);
	address_present = false;
	add_address(RTM_DELADDR, IFA_ADDRESS, "2001:db8::2");
	add_address(RTM_NEWADDR, IFA_ADDRESS, "2001:db8::2");
	add_address(RTM_DELADDR, IFA_ADDRESS, "2001:db8::1");
	send_messages();
	assert_change(DAT_NET_ADDRESS, 1, 0, 0);
}

/* A bridge reports its ports with a family of its own. */
UNIT_CASE(message_of_a_bridge_is_ignored)
{
	struct nlmsghdr *h;

	watch(DAT_NET_LINK);
	core_device.attr.port_active = false;
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	h = add_link(RTM_NEWLINK, own_index, UP, 0);
	((struct ifinfomsg *)NLMSG_DATA(h))->ifi_family = AF_BRIDGE;
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
}

/* Each would bring the link up between, if it was read. */
UNIT_CASE(malformed_messages_are_ignored)
{
	watch(DAT_NET_LINK);
	core_device.attr.port_active = false;
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	add_link(RTM_NEWLINK, own_index, UP, 0)->nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)) - 1;
	add_link(RTM_NEWLINK, own_index, UP, 0)->nlmsg_len = 4096;	/* beyond the datagram */
	send_messages();
	add_link(RTM_NEWLINK, own_index, UP, 0)->nlmsg_len = 0;		/* nothing would follow it */
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
}

/* No message reports the change. */
UNIT_CASE(overflow_is_followed_by_the_present_state)
{
	watch(DAT_NET_LINK | DAT_NET_ADDRESS);
	core_device.attr.port_active = false;
	address_present = false;
	__atomic_store_n(&overflow, true, __ATOMIC_SEQ_CST);
	add_link(RTM_NEWLINK, OTHER, UP, 0);
	send_messages();
	assert_change(DAT_NET_LINK, 1, 0, 0);
	assert_change(DAT_NET_ADDRESS, 1, 0, 0);
}

/* The link was down in a message, and is up: a message that it is down again is news. */
UNIT_CASE(overflow_forgets_what_was_seen)
{
	watch(DAT_NET_LINK | DAT_NET_ADDRESS);
	address_present = false;
	__atomic_store_n(&overflow, true, __ATOMIC_SEQ_CST);
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	send_messages();
	assert_change(DAT_NET_ADDRESS, 1, 0, 0);	/* the link was looked at before */
	core_device.attr.port_active = false;
	add_link(RTM_NEWLINK, own_index, DOWN, 0);
	send_messages();
	assert_int_equal(next_change(DAT_NET_LINK).now, 0);
}

UNIT_MAIN(NULL, NULL)
