/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_faults.c - libdatnet while each of its allocations, calls of libnl and system calls fails in turn: the call
 * gives a documented error that names the cause, or the whole answer; no memory, message, socket or
 * descriptor is left. The network is a namespace of the test.
 * Where the network cannot be made it is skipped. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat/dat_net.h>
#include "fault.h"
#include "runs.h"
#include "test/own_network.h"

enum { SKIPPED = 77, ASK_MS = 20, QUIET = 2 /* so many runs without a fault end a kind */, FAULTS_MAX = 2000,
       CHANGES_MAX = 200 };

/* --- libnl ---------------------------------------------------------------------------------- */

static int sockets, callbacks, messages;	/* that are not freed */
static bool failure_is_no_shortage;		/* of calls that may fail in both ways */

/* The linker also resolves these names for calls of libnl-route, which are not replaced. */
#pragma GCC visibility push(default)
#define HERE __builtin_return_address(0)
#define FAILS(name, error) fault_here(FAULT_SYSTEM, #name, error, HERE)
#define WRAP(type, name, ...) \
	extern __typeof__(name) __wrap_##name, __real_##name; \
	type __wrap_##name(__VA_ARGS__)

#define WRAP_MAKE(type, name, counter, parameters, arguments) \
	extern __typeof__(name) __wrap_##name, __real_##name; \
	type *__wrap_##name parameters \
	{ \
		type *made = FAILS(name, ENOMEM) ? NULL : __real_##name arguments; \
		counter += made != NULL; \
		return made; \
	}
WRAP_MAKE(struct nl_sock, nl_socket_alloc, sockets, (void), ())
WRAP_MAKE(struct nl_cb, nl_cb_alloc, callbacks, (enum nl_cb_kind kind), (kind))
WRAP_MAKE(struct nl_msg, nlmsg_alloc_simple, messages, (int type, int flags), (type, flags))
WRAP_MAKE(struct nl_msg, nlmsg_convert, messages, (struct nlmsghdr *head), (head))

WRAP(void, nl_socket_free, struct nl_sock *sock)
{
	sockets -= sock != NULL;
	__real_nl_socket_free(sock);
}
WRAP(void, nl_cb_put, struct nl_cb *cb)
{
	callbacks -= cb != NULL;
	__real_nl_cb_put(cb);
}
WRAP(void, nlmsg_free, struct nl_msg *msg)
{
	messages -= msg != NULL;
	__real_nlmsg_free(msg);
}

/* Calls that return libnl's error numbers. libnl leaves the errno of a system call that failed. */
#define WRAP_CALL(name, parameters, arguments) \
	extern __typeof__(name) __wrap_##name, __real_##name; \
	int __wrap_##name parameters \
	{ \
		if (!FAILS(name, failure_is_no_shortage ? EIO : ENOMEM)) \
			return __real_##name arguments; \
		return failure_is_no_shortage ? -NLE_FAILURE : -NLE_NOMEM; \
	}
WRAP_CALL(nl_connect, (struct nl_sock *sock, int protocol), (sock, protocol))
WRAP_CALL(nl_send_auto, (struct nl_sock *sock, struct nl_msg *msg), (sock, msg))
WRAP_CALL(nl_recvmsgs, (struct nl_sock *sock, struct nl_cb *cb), (sock, cb))
WRAP_CALL(nl_recv, (struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **bytes, struct ucred **creds),
	  (sock, from, bytes, creds))
WRAP_CALL(nl_socket_set_nonblocking, (const struct nl_sock *sock), (sock))

/* Calls that fail only for lack of memory. A message that libnl cannot parse is left out. */
#define WRAP_SHORT(name, parameters, arguments) \
	extern __typeof__(name) __wrap_##name, __real_##name; \
	int __wrap_##name parameters \
	{ return FAILS(name, ENOMEM) ? -NLE_NOMEM : __real_##name arguments; }
WRAP_SHORT(nlmsg_append, (struct nl_msg *msg, void *bytes, size_t length, int pad), (msg, bytes, length, pad))
WRAP_SHORT(nla_put, (struct nl_msg *msg, int type, int length, const void *bytes), (msg, type, length, bytes))
WRAP_SHORT(nl_msg_parse, (struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg),
	   (msg, each, arg))

extern __typeof__(nl_socket_add_membership) __wrap_nl_socket_add_membership;
int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group)
{
	return FAILS(nl_socket_add_membership, ENOMEM) ? -NLE_NOMEM : nl_socket_add_memberships(sock, group, 0);
}

#pragma GCC visibility pop

/* --- the calls -------------------------------------------------------------------------------- */

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &to.sin_addr);
	return to;
}

/* Each returns an error, and puts a number that depends on the answer into `answer`. */
static int routes(unsigned *answer)
{
	struct sockaddr_in to = address("10.9.1.1");
	struct dat_net_route *list = NULL;
	size_t count = 0;
	int err = dat_net_routes((struct sockaddr *)&to, DAT_NET_ALL, &list, &count);

	*answer = 0;
	for (size_t i = 0; i < count; i++)
		*answer = *answer * 31 + list[i].mtu + list[i].metric + list[i].why + (unsigned char)list[i].ia[0];
	dat_net_free(list);
	return err;
}

static int reachable(unsigned *answer)
{
	struct sockaddr_in to = address("10.1.0.9");
	struct dat_net_route best = { 0 };
	int err = dat_net_reachable((struct sockaddr *)&to, &best);

	*answer = best.mtu + best.rdma;
	return err;
}

static int nics(unsigned *answer)
{
	struct dat_net_nic *list = NULL;
	size_t count = 0;
	int err = dat_net_nics(&list, &count);

	*answer = (unsigned)count;
	dat_net_free(list);
	return err;
}

static int known_neighbour(unsigned *answer)
{
	struct sockaddr_in hop = address("10.1.0.9");
	struct dat_net_neighbour n = { 0 };
	int err = dat_net_neighbour((struct sockaddr *)&hop, "p0", 0, 0, &n);

	*answer = n.lladdr[5];
	return err;
}

static int asked_neighbour(unsigned *answer)
{
	struct sockaddr_in hop = address("10.1.0.9");
	struct dat_net_neighbour n = { 0 };
	int err = dat_net_neighbour((struct sockaddr *)&hop, "p0", DAT_NET_ASK, ASK_MS, &n);

	*answer = n.lladdr[5];
	return err;
}

/* Changes the MTU, and reads all changes. An error loses one message at most. */
static int monitor(unsigned *answer)
{
	struct dat_net_monitor *m = NULL;
	struct dat_net_change change;
	int err = dat_net_monitor_open(DAT_NET_CHANGES, &m), first = 0, i;

	*answer = 0;
	if (err)
		return err;
	if (system("ip link set p0 mtu 1400; ip link set p0 mtu 1500"))
		exit(2);
	for (i = 0; i < CHANGES_MAX && (err = dat_net_monitor_next(m, &change)) != EAGAIN; i++) {
		if (err && !first)
			first = err;
		if (!err && change.what == DAT_NET_MTU)
			*answer = change.now;	/* the last one is right */
	}
	if (i == CHANGES_MAX) {
		printf("FAIL monitor: no end of changes\n");
		exit(1);
	}
	dat_net_monitor_close(m);
	return first;
}

static const struct call {
	const char *name;
	int (*run)(unsigned *answer);
} calls[] = {
	{ "dat_net_routes", routes }, { "dat_net_reachable", reachable }, { "dat_net_nics", nics },
	{ "dat_net_neighbour", known_neighbour }, { "dat_net_neighbour, asking", asked_neighbour },
	{ "dat_net_monitor", monitor },
};

/* --- faults ----------------------------------------------------------------------------------- */

static int passed, failed, told;

static bool is_cause(const struct fault *fault, int err)
{
	for (int i = 0; i < (int)(sizeof fault->errors / sizeof *fault->errors); i++)
		if (fault->errors[i] == err)
			return true;
	return false;
}

static const char *wrong(const struct fault *fault, int err, bool same, int descriptors)
{
	static char text[200];
	void *owner;
	size_t blocks = fault_blocks(&owner);

	if (err && !is_cause(fault, err))
		snprintf(text, sizeof text, "error %d (%s) instead of %d (%s)", err, strerror(err),
			 fault->errors[0], strerror(fault->errors[0]));
	else if (!err && !same)
		snprintf(text, sizeof text, "no error, and another answer");
	else if (blocks || sockets || callbacks || messages || descriptors)
		snprintf(text, sizeof text, "left behind: %zu blocks, %d sockets, %d callbacks, %d messages, "
			 "%d descriptors", blocks, sockets, callbacks, messages, descriptors);
	else
		return NULL;
	return text;
}

/* Returns false if the call makes fewer calls of this kind. */
static bool try_one(const struct call *call, enum fault_kind kind, unsigned n, unsigned expected)
{
	int before = entries("/proc/self/fd"), err;
	struct fault fault;
	unsigned answer;
	const char *why;
	bool happened;

	fault_arm(kind, n, false);
	err = call->run(&answer);
	fault_disarm();
	happened = fault_happened(&fault);
	why = wrong(&fault, happened ? err : 0, answer == expected, entries("/proc/self/fd") - before);
	if (why) {
		printf("FAIL %s, %s:%u %s: %s\n", call->name, kind == FAULT_ALLOC ? "alloc" : "system", n,
		       fault.what, why);
		failed++;
		sockets = callbacks = messages = 0;
	} else if (happened) {
		passed++;
		told += err != 0;
	}
	return happened;
}

static void try_all(const struct call *call, enum fault_kind kind)
{
	unsigned expected;
	int quiet = 0;

	if (call->run(&expected)) {
		printf("FAIL %s: it fails without a fault\n", call->name);
		failed++;
		return;
	}
	for (unsigned n = 1; n < FAULTS_MAX && quiet < QUIET; n++)
		quiet = try_one(call, kind, n, expected) ? 0 : quiet + 1;
}

/* Makes p0, which the entry of dat.conf names, with a known neighbour and a route of two hops. */
static void make_network(void)
{
	static const char script[] = "ip link add p0 type veth peer name p1 && ip link set p0 up && "
		"ip link set p1 up && ip addr add 10.1.0.1/24 dev p0 && "
		"ip neigh add 10.1.0.9 lladdr 52:54:00:00:00:09 dev p0 nud permanent && "
		"ip route add 10.9.0.0/16 metric 7 nexthop via 10.1.0.9 dev p0 nexthop via 10.1.0.10 dev p0";

	own_network();
	if (system(script)) {
		printf("skip: no network namespace, ip or veth here\n");
		exit(SKIPPED);
	}
}

int main(void)
{
	make_conf("soft", BUILD "/.libs/libdaplsoft.so.2", "p0 0");
	make_network();
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		try_all(&calls[i], FAULT_ALLOC);
		try_all(&calls[i], FAULT_SYSTEM);
		failure_is_no_shortage = true;
		try_all(&calls[i], FAULT_SYSTEM);
		failure_is_no_shortage = false;
	}
	printf("%d told, %d made good\n", told, passed - told);
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
