/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_neighbour.c - when dat_net_neighbour() asks the network, how, and how long it waits (net/neighbour.c). The
 * kernel's table, its routes, the socket that asks, and the clock are the test's. */
#include "net/lookup.h"
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include "test/unit/net/answers.h"
#include "test/unit/net/ips.h"
#include "test/unit/net/namespace.h"
#include "test/unit/unit.h"

enum { LO = 1, ETH0, ETH1, TUN0, DOWN, DISCARD = 9, DATAGRAM_FD = 777 };

static struct net_link links[] = {
	{ .index = LO, .name = "lo", .flags = IFF_UP | IFF_LOOPBACK },
	{ .index = ETH0, .name = "eth0", .flags = IFF_UP },
	{ .index = ETH1, .name = "eth1", .flags = IFF_UP }, { .index = TUN0, .name = "tun0",
		.flags = IFF_UP | IFF_NOARP },
	{ .index = DOWN, .name = "down" },
};
static struct dat_net_neighbour found;

/* --- the route ------------------------------------------------------------------------------------- */

static struct net_answer route;			/* to the neighbour */
static int route_error, asked_index;
static struct sockaddr_storage asked;

REPLACE(net_lookup, socket, setsockopt, sendto, close, poll, clock_gettime)
int __wrap_net_lookup(struct nl_sock *sock, const struct sockaddr *to, const struct sockaddr *from, int index,
		      struct net_answer *answer)
{
	assert_null(from);
	asked_index = index;
	memcpy(&asked, to, to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	*answer = route;
	return route_error;
}

/* --- the datagram that makes the kernel ask, and the time ---------------------------------------------- */

static int datagrams, bound_to, sockets;
static struct sockaddr_storage sent_to;
static int64_t now;			/* ns */
static int polls, longest_ms;

#pragma GCC visibility push(default)	/* the sanitizers' libraries call some of them, too */
int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr);
#pragma GCC visibility pop

int __wrap_socket(int family, int type, int protocol)
{
	if (namespace_result("socket"))
		return -1;
	assert_int_equal(family, asked.ss_family);
	assert_int_equal(type, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
	bound_to = 0;
	sockets++;
	return DATAGRAM_FD;
}

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(fd, DATAGRAM_FD);
	assert_int_equal(request, SIOCGIFNAME);
	strcpy(ifr->ifr_name, net_link_by_index(&given_table, ifr->ifr_ifindex)->name);
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	assert_int_equal(fd, DATAGRAM_FD);
	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(name, SO_BINDTODEVICE);
	assert_int_equal(size, IFNAMSIZ);
	bound_to = net_link_by_name(&given_table, value)->index;
	return 0;
}

ssize_t __wrap_sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t size)
{
	assert_int_equal(fd, DATAGRAM_FD);
	assert_int_equal(n, 0);
	memcpy(&sent_to, to, size);
	datagrams++;
	return 0;
}

int __wrap_close(int fd)
{
	assert_int_equal(fd, DATAGRAM_FD);
	sockets--;
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	assert_int_equal(n, 0);
	assert_true(timeout_ms > 0);
	polls++;
	longest_ms = timeout_ms > longest_ms ? timeout_ms : longest_ms;
	now += (int64_t)timeout_ms * 1000000;
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*t = (struct timespec){ .tv_sec = now / 1000000000, .tv_nsec = now % 1000000000 };
	return 0;
}

/* --- cases ------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	given_table = (struct net_table){ .links = links, .link_count = sizeof links / sizeof *links };
	route = (struct net_answer){ .count = 1, .hops = { { .index = ETH0 } } };
	failing = NULL;
	route_error = datagrams = polls = longest_ms = 0;
	now = 1000000000;
}

UNIT_FIXTURE(tear_down)
{
	answers_forget();
	assert_int_equal(sockets, 0);
	assert_int_equal(held, 0);
}

/* The kernel's next answer: its entry, with `lladdr` bytes of link-layer address; state 0: it has none. */
static void entry(int state, size_t lladdr)
{
	struct nl_msg *msg;

	if (!state) {
		answer_with(NULL, ENOENT);
		return;
	}
	msg = message_neighbour(RTM_NEWNEIGH, ETH0, "192.0.2.7", state);
	if (lladdr)
		message_put_lladdr(msg, NDA_LLADDR, 1, lladdr);
	answer_with(msg, 0);
}

static int look_for(const char *hop, const char *netdev, unsigned flags, int timeout_ms)
{
	struct sockaddr_storage to = ip(hop);

	((struct sockaddr_in *)&to)->sin_port = htons(4711);	/* the same place in both families */
	return dat_net_neighbour((struct sockaddr *)&to, netdev, flags, timeout_ms, &found);
}

/* 192.0.2.7 is on the link of eth0. */
static int find(unsigned flags, int timeout_ms) { return look_for("192.0.2.7", NULL, flags, timeout_ms); }

static void assert_request(size_t i, int type, int flags, int state)
{
	const struct ndmsg *head = request_head(i);

	assert_int_equal(nlmsg_hdr(requests[i])->nlmsg_type, type);
	assert_int_equal(nlmsg_hdr(requests[i])->nlmsg_flags & NLM_F_REPLACE, flags);
	assert_int_equal(head->ndm_family, AF_INET);
	assert_int_equal(head->ndm_ifindex, ETH0);
	assert_int_equal(head->ndm_state, state);
	assert_memory_equal(nla_data(request_attribute(i, sizeof *head, NDA_DST)), "\xc0\x00\x02\x07", 4);
}

static void assert_probe(size_t i, size_t lladdr)
{
	const struct nlattr *address = request_attribute(i, sizeof(struct ndmsg), NDA_LLADDR);

	assert_request(i, RTM_NEWNEIGH, NLM_F_REPLACE, NUD_PROBE);
	assert_int_equal(address ? nla_len(address) : 0, lladdr);
}

UNIT_CASE(wrong_arguments_are_refused)
{
	struct sockaddr_storage to = ip("192.0.2.7"), local = ip("fe80::7");
	const struct sockaddr other = { .sa_family = AF_UNIX };

	failing = "open";		/* comes before any socket */
	assert_int_equal(dat_net_neighbour(NULL, NULL, 0, 0, &found), EINVAL);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&to, NULL, 0, 0, NULL), EINVAL);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&to, NULL, 2, 0, &found), EINVAL);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&to, NULL, 0, -1, &found), EINVAL);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&local, NULL, 0, 0, &found), EINVAL);
	assert_int_equal(dat_net_neighbour(&other, NULL, 0, 0, &found), EAFNOSUPPORT);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&local, "eth0", 0, 0, &found), ENFILE);
}

UNIT_CASE(known_neighbour_is_told_without_asking)
{
	static const struct { int nud; uint8_t state; } rows[] = {
		{ NUD_REACHABLE, DAT_NET_NEIGHBOUR_REACHABLE }, { NUD_STALE, DAT_NET_NEIGHBOUR_STALE },
		{ NUD_DELAY, DAT_NET_NEIGHBOUR_STALE }, { NUD_PROBE, DAT_NET_NEIGHBOUR_STALE },
		{ NUD_PERMANENT, DAT_NET_NEIGHBOUR_PERMANENT },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		answers_forget();
		entry(rows[i].nud, 6);
		assert_int_equal(find(0, 1000), 0);
		assert_int_equal(request_count, 1);
		assert_request(0, RTM_GETNEIGH, 0, 0);
		assert_int_equal(found.state, rows[i].state);
		assert_int_equal(found.length, 6);
		assert_memory_equal(found.lladdr, "\1\2\3\4\5\6", 6);
		assert_string_equal(found.netdev, "eth0");
		assert_ip(&found.address, "192.0.2.7");
		assert_int_equal(((struct sockaddr_in *)&found.address)->sin_port, 0);
	}
	assert_int_equal(datagrams + polls, 0);
}

/* As those of multicast groups: the kernel uses the address, and never confirms it. */
UNIT_CASE(entry_that_needs_no_answers_is_permanent)
{
	entry(NUD_NOARP, 6);
	assert_int_equal(find(0, 0), 0);
	assert_int_equal(found.state, DAT_NET_NEIGHBOUR_PERMANENT);
	assert_int_equal(found.length, 6);
}

UNIT_CASE(without_time_the_table_alone_answers)
{
	static const struct { int nud; size_t lladdr; } rows[] = {
		{ 0, 0 }, { NUD_INCOMPLETE, 0 }, { NUD_FAILED, 6 }, { NUD_STALE, 0 },
		{ NUD_STALE, DAT_NET_LLADDR_MAX + 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		answers_forget();
		entry(rows[i].nud, rows[i].lladdr);
		assert_int_equal(find(DAT_NET_ASK, 0), EHOSTUNREACH);
		assert_int_equal(request_count, 1);
	}
	assert_int_equal(datagrams + polls, 0);
}

UNIT_CASE(unknown_neighbour_is_asked_by_a_datagram)
{
	entry(0, 0);
	entry(NUD_INCOMPLETE, 0);
	entry(NUD_REACHABLE, 6);
	assert_int_equal(find(0, 1000), 0);
	assert_int_equal(found.state, DAT_NET_NEIGHBOUR_REACHABLE);
	assert_int_equal(datagrams, 1);
	assert_int_equal(bound_to, ETH0);
	assert_ip(&sent_to, "192.0.2.7");
	assert_int_equal(((struct sockaddr_in *)&sent_to)->sin_port, htons(DISCARD));
	assert_int_equal(polls, 2);
}

UNIT_CASE(ipv6_neighbour_is_asked_at_the_same_port)
{
	entry(0, 0);
	entry(NUD_REACHABLE, 6);
	assert_int_equal(look_for("2001:db8::7", NULL, 0, 1000), 0);
	assert_ip(&sent_to, "2001:db8::7");
	assert_int_equal(((struct sockaddr_in6 *)&sent_to)->sin6_port, htons(DISCARD));
	assert_int_equal(((struct sockaddr_in6 *)&found.address)->sin6_port, 0);
}

/* 50 ms are two looks of 20 ms, one of the rest, and a last one. */
UNIT_CASE(wait_ends_with_its_time)
{
	const int64_t start = 1000000000;

	entry(0, 0);
	for (int i = 0; i < 4; i++)
		entry(NUD_INCOMPLETE, 0);
	assert_int_equal(find(0, 50), EHOSTUNREACH);
	assert_int_equal(now - start, 50000000);
	assert_int_equal(longest_ms, 20);
	assert_int_equal(request_count, 5);
}

UNIT_CASE(failed_question_ends_the_wait)
{
	entry(0, 0);
	entry(NUD_FAILED, 0);
	assert_int_equal(find(0, 1000), EHOSTUNREACH);
	assert_int_equal(polls, 1);
}

UNIT_CASE(entry_that_the_kernel_has_dropped_is_no_answer)
{
	entry(NUD_STALE, 6);
	answer_with(NULL, EPERM);
	entry(0, 0);
	entry(0, 0);
	assert_int_equal(find(DAT_NET_ASK, 20), EHOSTUNREACH);
}

UNIT_CASE(without_a_socket_the_table_is_watched_all_the_same)
{
	failing = "socket";
	entry(0, 0);
	entry(NUD_REACHABLE, 6);
	assert_int_equal(find(0, 1000), 0);
	assert_int_equal(datagrams, 0);
}

UNIT_CASE(known_neighbour_is_probed_when_asked_for)
{
	static const int states[] = { NUD_STALE, NUD_REACHABLE };

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		answers_forget();
		entry(states[i], 6);
		answer_with(NULL, 0);
		entry(NUD_PROBE, 6);
		entry(NUD_REACHABLE, 6);
		assert_int_equal(find(DAT_NET_ASK, 1000), 0);
		assert_probe(1, 6);
		assert_request(2, RTM_GETNEIGH, 0, 0);
		assert_int_equal(found.state, DAT_NET_NEIGHBOUR_REACHABLE);
	}
	assert_int_equal(datagrams, 0);
}

UNIT_CASE(program_without_rights_sends_a_datagram_instead)
{
	entry(NUD_STALE, 6);
	answer_with(NULL, EPERM);
	entry(NUD_REACHABLE, 6);
	assert_int_equal(find(DAT_NET_ASK, 1000), 0);
	assert_int_equal(datagrams, 1);
}

/* The probe went to the old address; another host may have the IP address now. */
UNIT_CASE(failed_probe_is_followed_by_a_datagram_to_all)
{
	entry(NUD_STALE, 6);
	answer_with(NULL, 0);
	entry(NUD_FAILED, 6);
	entry(NUD_INCOMPLETE, 0);
	entry(NUD_REACHABLE, 6);
	assert_int_equal(find(DAT_NET_ASK, 1000), 0);
	assert_int_equal(datagrams, 1);
	answers_forget();
	entry(NUD_STALE, 6);
	answer_with(NULL, 0);
	entry(NUD_FAILED, 6);
	entry(NUD_FAILED, 6);
	assert_int_equal(find(DAT_NET_ASK, 1000), EHOSTUNREACH);
	assert_int_equal(datagrams, 2);
}

UNIT_CASE(permanent_neighbour_is_never_asked)
{
	entry(NUD_PERMANENT, 6);
	assert_int_equal(find(DAT_NET_ASK, 1000), 0);
	assert_int_equal(found.state, DAT_NET_NEIGHBOUR_PERMANENT);
	answers_forget();
	entry(NUD_NOARP, 6);
	assert_int_equal(find(DAT_NET_ASK, 1000), 0);
	assert_int_equal(datagrams + polls, 0);
}

UNIT_CASE(interface_without_link_layer_addresses_has_none)
{
	static const int indexes[] = { LO, TUN0 };

	for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
		route.hops[0].index = indexes[i];
		assert_int_equal(find(DAT_NET_ASK, 1000), 0);
		assert_int_equal(found.state, DAT_NET_NEIGHBOUR_NONE);
		assert_int_equal(found.length, 0);
		assert_string_equal(found.netdev, links[indexes[i] - 1].name);
	}
	assert_int_equal(request_count + (size_t)datagrams, 0);
}

UNIT_CASE(neighbour_must_be_on_the_link_of_an_interface_that_is_up)
{
	route.err = ENETUNREACH;
	assert_int_equal(find(0, 0), ENETUNREACH);
	route = (struct net_answer){ .count = 1, .hops = { { .index = ETH0, .via = ip("192.0.2.254") } } };
	assert_int_equal(find(0, 0), ENETUNREACH);
	route = (struct net_answer){ .count = 1, .hops = { { .index = DOWN } } };
	assert_int_equal(find(0, 0), ENETDOWN);
	route.hops[0].index = 99;		/* came after the table was read */
	assert_int_equal(find(0, 0), ENODEV);
	assert_int_equal(look_for("192.0.2.7", "eth9", 0, 0), ENODEV);
}

UNIT_CASE(route_of_the_named_interface_is_asked_for)
{
	route.hops[0].index = ETH1;
	entry(NUD_REACHABLE, 6);
	assert_int_equal(look_for("192.0.2.7", "eth1", 0, 0), 0);
	assert_int_equal(asked_index, ETH1);
	assert_string_equal(found.netdev, "eth1");
}

UNIT_CASE(link_local_neighbour_has_the_scope_of_its_interface)
{
	struct sockaddr_storage to = ip("fe80::7");
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;

	six->sin6_scope_id = ETH1;
	entry(NUD_REACHABLE, 6);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&to, NULL, 0, 0, &found), 0);
	assert_int_equal(asked_index, ETH1);
	answers_forget();
	entry(NUD_REACHABLE, 6);
	assert_int_equal(dat_net_neighbour((struct sockaddr *)&to, "eth0", 0, 0, &found), 0);
	assert_int_equal(asked_index, ETH0);
	assert_int_equal(((struct sockaddr_in6 *)&asked)->sin6_scope_id, ETH0);
	assert_int_equal(((struct sockaddr_in6 *)&found.address)->sin6_scope_id, ETH0);
}

UNIT_CASE(failures_are_returned)
{
	static const char *const functions[] = { "open", "table" };

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		failing = functions[i];
		assert_int_equal(find(0, 0), ENFILE);
	}
	failing = NULL;
	answer_with(NULL, ENOBUFS);		/* of the kernel's table */
	assert_int_equal(find(0, 1000), ENOBUFS);
	answers_forget();
	entry(0, 0);
	answer_with(NULL, ENOBUFS);		/* and of a later look */
	assert_int_equal(find(0, 1000), ENOBUFS);
	route_error = ENOMEM;
	assert_int_equal(find(0, 0), ENOMEM);
}

UNIT_MAIN(NULL, NULL)
