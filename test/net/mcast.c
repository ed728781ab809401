/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - multicast of the software device between processes, on this host and behind a link: members that
 * leave or are killed, addresses with a scope, many groups, and the membership reports on the network. */
#include "ends.h"
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_mcast_extensions.h>

enum { RECEIVES = 16, SLOT = 256, HEADER = 40, GROUPS = 1000 };

/* --- one member ------------------------------------------------------------------------------ */

struct node {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	_Alignas(4096) char memory[(RECEIVES + 1) * SLOT];
};

static void post_slot(struct node *n, uint64_t slot)
{
	DAT_LMR_TRIPLET at = { .lmr_context = n->context, .segment_length = SLOT,
		.virtual_address = (uintptr_t)n->memory + slot * SLOT };

	OK(dat_ep_post_recv(n->ep, 1, &at, (DAT_DTO_COOKIE){ .as_64 = slot },
			    DAT_COMPLETION_DEFAULT_FLAG));
}

static DAT_EVD_HANDLE an_evd(struct node *n, int flags)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(n->ia, 64, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(flags | DAT_IB_EVD_EXTENSION_FLAG),
			  &evd));
	return evd;
}

static struct node *open_node(const char *netdev)
{
	struct node *n = aligned_alloc(4096, (sizeof *n + 4095) / 4096 * 4096);
	DAT_REGION_DESCRIPTION region = { .for_va = n->memory };
	DAT_EP_ATTR attr = {
		.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD, .max_message_size = SLOT - HEADER,
		.max_recv_dtos = RECEIVES, .max_request_dtos = 4, .max_recv_iov = 1,
		.max_request_iov = 1, .request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
	};
	char params[32];

	memset(n, 0, sizeof *n);
	snprintf(params, sizeof params, "%s 0", netdev);
	life_entry("mcast", "libdaplsoft.so.2", params);
	OK(dat_ia_open((DAT_NAME_PTR) "mcast", 8, &n->async, &n->ia));
	OK(dat_pz_create(n->ia, &n->pz));
	n->recv = an_evd(n, DAT_EVD_DTO_FLAG);
	n->request = an_evd(n, DAT_EVD_DTO_FLAG);
	n->conn = an_evd(n, DAT_EVD_CONNECTION_FLAG);
	OK(dat_lmr_create(n->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof n->memory, n->pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &n->lmr, &n->context, &n->remote, NULL,
			  NULL));
	OK(dat_ep_create(n->ia, n->pz, n->recv, n->request, n->conn, &attr, &n->ep));
	for (int i = 0; i < RECEIVES; i++)
		post_slot(n, i);
	return n;
}

static void close_node(struct node *n)
{
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(n);
}

static DAT_IB_ADDR_HANDLE join(struct node *n, const struct sockaddr *group, DAT_UINT32 flags)
{
	DAT_EVENT event;

	OK(dat_mcast_join(n->ep, group, flags, (DAT_CONTEXT){ .as_64 = 1 }));
	OK(await(n->conn, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, MOMENT, &event));
	return ((DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data)->remote_ah;
}

static void send_number(struct node *n, DAT_IB_ADDR_HANDLE *to, uint32_t number)
{
	char *at = n->memory + RECEIVES * SLOT;
	DAT_LMR_TRIPLET from = { .lmr_context = n->context, .segment_length = sizeof number,
		.virtual_address = (uintptr_t)at };

	memcpy(at, &number, sizeof number);
	OK(dat_ib_post_send_ud(n->ep, 1, &from, to, (DAT_DTO_COOKIE){ .as_64 = 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
	OK(await(n->request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT, MOMENT, NULL));
}

static uint32_t next_number(struct node *n)
{
	DAT_EVENT event;
	uint32_t number;
	uint64_t slot;

	OK(await(n->recv, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT, MOMENT, &event));
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	EXPECT(event.event_data.dto_completion_event_data.transfered_length == HEADER + sizeof number);
	slot = event.event_data.dto_completion_event_data.user_cookie.as_64;
	memcpy(&number, n->memory + slot * SLOT + HEADER, sizeof number);
	post_slot(n, slot);
	return number;
}

/* --- members in processes of their own --------------------------------------------------------- */

/* Returns the address of the group `number` of this family, with this scope. */
static struct sockaddr_storage group_of(int family, uint16_t number, unsigned scope)
{
	struct sockaddr_storage group = { .ss_family = family };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&group;

	if (family == AF_INET) {
		((struct sockaddr_in *)&group)->sin_addr.s_addr = htonl(0xef600000 | number);
		return group;
	}
	in6->sin6_addr.s6_addr[0] = 0xff;
	in6->sin6_addr.s6_addr[1] = 0x12;	/* of the link */
	in6->sin6_addr.s6_addr16[7] = htons(number);
	in6->sin6_scope_id = scope;
	return group;
}

struct order {
	enum { JOIN, LEAVE, SEND, NEXT } what;
	uint16_t group;
	uint32_t number;
};

struct member {
	pid_t pid;
	int socket;
};

static void obey(int socket, const char *netdev, int family)
{
	struct node *n = open_node(netdev);
	DAT_IB_ADDR_HANDLE to[4];
	struct order order;

	while (read(socket, &order, sizeof order) == sizeof order) {
		struct sockaddr_storage group = group_of(family, order.group, 0);
		uint32_t answer = 0;

		switch (order.what) {
		case JOIN: to[order.group] = join(n, (struct sockaddr *)&group, 0); break;
		case LEAVE: OK(dat_mcast_leave(n->ep, (struct sockaddr *)&group)); break;
		case SEND: send_number(n, &to[order.group], order.number); break;
		case NEXT: answer = next_number(n); break;
		}
		EXPECT(write(socket, &answer, sizeof answer) == sizeof answer);
	}
	close_node(n);
}

static uint32_t command(const struct member *m, int what, uint16_t group, uint32_t number)
{
	struct order order = { .what = what, .group = group, .number = number };
	uint32_t answer;

	EXPECT(send(m->socket, &order, sizeof order, MSG_NOSIGNAL) == sizeof order);
	if (read(m->socket, &answer, sizeof answer) != sizeof answer)
		fail("a member ended");
	return answer;
}

#define HEARS(m, group_number) do { uint32_t number_ = command(m, NEXT, 0, 0); \
		if (number_ != (group_number)) fail("line %d: number %u, expected %u", __LINE__, number_, \
						    (unsigned)(group_number)); \
	} while (0)

/* Waits for the link: before that, an IPv6 address cannot be bound to. */
static void await_link(const char *netdev)
{
	char line[100];

	snprintf(line, sizeof line, "ip link show dev %s | grep -q LOWER_UP", netdev);
	for (int i = 0; !try_quietly(line); i++) {
		EXPECT(i < 3000);
		usleep(10000);
	}
}

/* Starts a member in this network namespace, or in one of its own at the other end of the link. */
static struct member start(bool apart, int family, const char *address)
{
	const char *netdev = apart ? "net1" : "net0";
	struct member m;
	char line[200], c;
	int ends[2];

	EXPECT(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	m.pid = fork();
	if (!m.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		if (apart) {
			EXPECT(!unshare(CLONE_NEWNET));
			EXPECT(write(ends[1], "", 1) == 1 && read(ends[1], &c, 1) == 1);
			snprintf(line, sizeof line, "sysctl -qw net.ipv6.conf.net1.addr_gen_mode=1 && "
				 "ip link set lo up && ip addr add %s dev net1%s && "
				 "ip link set net1 up", address, family == AF_INET6 ? " nodad" : "");
			must(line);
			await_link("net1");
		}
		obey(ends[1], netdev, family);
		exit(0);
	}
	close(ends[1]);
	m.socket = ends[0];
	if (apart) {
		EXPECT(read(m.socket, &c, 1) == 1);
		snprintf(line, sizeof line, "ip link set net1 netns %d", (int)m.pid);
		must(line);
		EXPECT(write(m.socket, "", 1) == 1);
	}
	return m;
}

static void finish(const struct member *m)
{
	close(m->socket);
	expect_good_end(m->pid);
}

/* Makes a link with this address at its end net0. */
static void make_link(int family, const char *address)
{
	char line[200];

	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had: needs root");
	if (!try_quietly("ip link add net0 type veth peer name net1"))
		skip("no veth in this kernel");
	must("sysctl -qw net.ipv6.conf.net0.addr_gen_mode=1 net.ipv6.conf.net1.addr_gen_mode=1");	/* no
								 * addresses but those of the test */
	snprintf(line, sizeof line, "ip link set lo up && ip addr add %s dev net0%s && ip link set net0 up",
		 address, family == AF_INET6 ? " nodad" : "");
	must(line);
}

/* --- cases ----------------------------------------------------------------------------------- */

/* A member that has left a group receives a later number of another group next, which shows that it did not
 * get those between. */
static void processes_join_and_leave(int family, const char *here, const char *there)
{
	struct member one, two, far;

	make_link(family, here);
	far = start(true, family, there);
	await_link("net0");
	one = start(false, family, NULL);
	two = start(false, family, NULL);
	command(&one, JOIN, 1, 0);
	command(&two, JOIN, 1, 0);
	command(&two, JOIN, 2, 0);
	command(&far, JOIN, 1, 0);
	command(&far, JOIN, 2, 0);
	command(&one, JOIN, 2, 0);

	command(&one, SEND, 1, 100);
	HEARS(&two, 100);
	HEARS(&far, 100);
	command(&far, SEND, 1, 101);
	HEARS(&one, 101);
	HEARS(&two, 101);

	command(&two, LEAVE, 1, 0);
	command(&far, SEND, 1, 102);
	command(&far, SEND, 2, 103);
	HEARS(&one, 102);
	HEARS(&one, 103);
	HEARS(&two, 103);

	kill(one.pid, SIGKILL);
	waitpid(one.pid, NULL, 0);
	command(&far, SEND, 2, 104);
	HEARS(&two, 104);
	command(&two, SEND, 2, 105);
	HEARS(&far, 105);
	close(one.socket);
	finish(&two);
	finish(&far);
}

static void members_leave_and_die(void)
{
	processes_join_and_leave(AF_INET, "10.95.0.1/24", "10.95.0.2/24");
}

static void members_of_a_link_local_group_leave_and_die(void)
{
	processes_join_and_leave(AF_INET6, "fe80::1/64", "fe80::2/64");
}

static void the_kernel_forgets_a_dead_member(void)
{
	struct member one;

	make_link(AF_INET, "10.95.0.1/24");
	must("ip link set net1 up");
	await_link("net0");
	one = start(false, AF_INET, NULL);
	command(&one, JOIN, 1, 0);
	must("ip maddr show dev net0 | grep -qw 239.96.0.1");
	kill(one.pid, SIGKILL);
	waitpid(one.pid, NULL, 0);
	if (try_quietly("ip maddr show dev net0 | grep -qw 239.96.0.1"))
		fail("the group of a dead process is still there");
}

static void a_scope_is_the_interface(void)
{
	struct sockaddr_storage group;
	DAT_CONTEXT none = { 0 };
	struct node *n;
	unsigned net0;

	make_link(AF_INET6, "fe80::1/64");
	must("ip link set net1 up");
	await_link("net0");
	net0 = if_nametoindex("net0");
	n = open_node("net0");
	group = group_of(AF_INET6, 1, if_nametoindex("net1"));
	EXPECT(dat_mcast_join(n->ep, (struct sockaddr *)&group, 0, none) ==
	       (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	group = group_of(AF_INET6, 1, net0);
	join(n, (struct sockaddr *)&group, 0);
	group = group_of(AF_INET6, 1, 0);	/* the same group */
	EXPECT(DAT_GET_TYPE(dat_mcast_join(n->ep, (struct sockaddr *)&group, 0, none)) ==
	       DAT_INVALID_STATE);
	OK(dat_mcast_leave(n->ep, (struct sockaddr *)&group));
	close_node(n);
}

/* The kernel gives no error for a datagram that it has no route for to the sending endpoint. */
static void a_group_without_a_route_is_unreachable(void)
{
	struct sockaddr_storage group;
	DAT_CONTEXT none = { 0 };
	struct node *n;

	make_link(AF_INET6, "fe80::1/64");
	must("ip link set net1 up");
	await_link("net0");
	n = open_node("net0");
	group = group_of(AF_INET6, 1, 0);
	must("ip -6 route del multicast ff00::/8 dev net0 table local");
	for (DAT_UINT32 flags = 0; flags <= DAT_MCAST_SEND_ONLY; flags += DAT_MCAST_SEND_ONLY)
		EXPECT(dat_mcast_join(n->ep, (struct sockaddr *)&group, flags, none) ==
		       (DAT_CLASS_ERROR | DAT_INVALID_ADDRESS | DAT_INVALID_ADDRESS_UNREACHABLE));
	must("ip -6 route add multicast ff00::/8 dev net0 table local");
	join(n, (struct sockaddr *)&group, 0);
	close_node(n);
}

/* The provider uses many sockets: the kernel lets a socket join 20 groups. */
static void many_groups(int family)
{
	struct sockaddr_storage group;
	struct node *member, *sender;
	DAT_IB_ADDR_HANDLE to;
	int before, during;

	make_link(family, family == AF_INET ? "10.95.0.1/24" : "fe80::1/64");
	must("ip link set net1 up");
	await_link("net0");
	member = open_node("net0");
	sender = open_node("net0");
	before = open_descriptors();
	for (int i = 0; i < GROUPS; i++) {
		group = group_of(family, i, 0);
		join(member, (struct sockaddr *)&group, 0);
	}
	during = open_descriptors();
	if (during - before > GROUPS / 10)
		fail("%d descriptors for %d groups", during - before, GROUPS);
	for (int i = 0; i < GROUPS; i += 7) {
		group = group_of(family, i, 0);
		to = join(sender, (struct sockaddr *)&group, DAT_MCAST_SEND_ONLY);
		send_number(sender, &to, i);
		EXPECT(next_number(member) == (uint32_t)i);
		OK(dat_mcast_leave(sender->ep, (struct sockaddr *)&group));
	}
	for (int i = 0; i < GROUPS; i++) {
		group = group_of(family, i, 0);
		OK(dat_mcast_leave(member->ep, (struct sockaddr *)&group));
	}
	EXPECT(open_descriptors() <= before + 1);	/* the epoll set stays */
	group = group_of(family, 3, 0);
	join(member, (struct sockaddr *)&group, 0);
	close_node(sender);
	close_node(member);
}

static void a_thousand_groups(void) { many_groups(AF_INET); }
static void a_thousand_groups_of_ipv6(void) { many_groups(AF_INET6); }

/* Waits for a report of this membership to the routers, IGMPv3 or MLDv2. */
static void expect_report(int family, const struct sockaddr_storage *group, int packets)
{
	static const uint8_t routers_4[ETH_ALEN] = { 1, 0, 0x5e, 0, 0, 0x16 };
	static const uint8_t routers_6[ETH_ALEN] = { 0x33, 0x33, 0, 0, 0, 0x16 };
	struct pollfd p = { .fd = packets, .events = POLLIN };
	const void *address = family == AF_INET ?
		(const void *)&((const struct sockaddr_in *)group)->sin_addr :
		(const void *)&((const struct sockaddr_in6 *)group)->sin6_addr;
	uint8_t frame[2048];
	ssize_t n;

	while (poll(&p, 1, 20000) == 1) {
		n = recv(packets, frame, sizeof frame, 0);
		if (n > ETH_HLEN && !memcmp(frame, family == AF_INET ? routers_4 : routers_6, ETH_ALEN) &&
		    memmem(frame + ETH_HLEN + 24, n - ETH_HLEN - 24, address, family == AF_INET ? 4 : 16))
			return;
	}
	fail("no membership report on the link");
}

static void a_report_is_sent(int family, const char *here)
{
	struct sockaddr_storage group = group_of(family, 77, 0);
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct node *n;
	int packets;

	make_link(family, here);
	must("ip link set net1 up");
	await_link("net0");
	n = open_node("net0");
	packets = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	at.sll_ifindex = (int)if_nametoindex("net1");
	EXPECT(packets >= 0 && !bind(packets, (struct sockaddr *)&at, sizeof at));
	join(n, (struct sockaddr *)&group, 0);
	expect_report(family, &group, packets);
	OK(dat_mcast_leave(n->ep, (struct sockaddr *)&group));
	expect_report(family, &group, packets);	/* that it left */
	close(packets);
	close_node(n);
}

static void a_membership_is_reported(void) { a_report_is_sent(AF_INET, "10.95.0.1/24"); }
static void a_membership_is_reported_in_ipv6(void) { a_report_is_sent(AF_INET6, "fe80::1/64"); }

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(members_leave_and_die),
		CASE(members_of_a_link_local_group_leave_and_die),
		CASE(the_kernel_forgets_a_dead_member),
		CASE(a_scope_is_the_interface),
		CASE(a_group_without_a_route_is_unreachable),
		CASE(a_thousand_groups),
		CASE(a_thousand_groups_of_ipv6),
		CASE(a_membership_is_reported),
		CASE(a_membership_is_reported_in_ipv6),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
