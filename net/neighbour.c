/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* neighbour.c - dat_net_neighbour(): the link-layer address of a next hop, from the kernel's table, or by
 * asking the network. A program without rights asks by an empty UDP datagram to the discard port:
 * the kernel resolves the address before it sends. A table entry that is stale is probed at once
 * where the program may change the table, else by that datagram, which takes the kernel 5 s. */
#include "net/lookup.h"
#include "net/table.h"
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/neighbour.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
	DISCARD_PORT = 9,
	LOOK_MS = 20,		/* between two reads of the table while the network is asked */
};

#define KNOWN (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct neighbour {
	struct sockaddr_storage address;
	int index;
	int state;			/* NUD_; 0: not in the table */
	uint8_t lladdr[DAT_NET_LLADDR_MAX], length;
};

static void visit(struct nl_object *object, void *arg)
{
	struct rtnl_neigh *from = (struct rtnl_neigh *)object;
	struct nl_addr *lladdr = rtnl_neigh_get_lladdr(from);
	struct neighbour *to = arg;

	to->state = rtnl_neigh_get_state(from);
	to->length = 0;
	if (lladdr && nl_addr_get_len(lladdr) <= sizeof to->lladdr) {
		to->length = (uint8_t)nl_addr_get_len(lladdr);
		memcpy(to->lladdr, nl_addr_get_binary_addr(lladdr), to->length);
	}
}

static struct nl_msg *make_message(int kind, int flags, int state, const struct neighbour *of)
{
	struct ndmsg head = { .ndm_family = (unsigned char)of->address.ss_family, .ndm_ifindex = of->index,
			      .ndm_state = (uint16_t)state };
	struct nl_msg *msg = nlmsg_alloc_simple(kind, flags);
	const uint8_t *bytes;
	size_t length;

	bytes = net_bytes((const struct sockaddr *)&of->address, &length);
	if (msg && (nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO) ||
		    nla_put(msg, NDA_DST, (int)length, bytes))) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* Reads the kernel's entry: state 0 if there is none. */
static int look(struct nl_sock *sock, struct neighbour *n)
{
	struct nl_msg *msg = make_message(RTM_GETNEIGH, 0, 0, n);
	int err;

	n->state = 0;
	if (!msg)
		return ENOMEM;
	err = net_ask(sock, msg, visit, n);
	return err == ENOENT ? 0 : err;
}

/* Makes the kernel probe an entry now. Needs CAP_NET_ADMIN. */
static bool probe(struct nl_sock *sock, struct neighbour *n)
{
	struct nl_msg *msg = make_message(RTM_NEWNEIGH, NLM_F_REPLACE, NUD_PROBE, n);

	if (!msg || (n->length && nla_put(msg, NDA_LLADDR, n->length, n->lladdr))) {
		nlmsg_free(msg);
		return false;
	}
	return !net_ask(sock, msg, visit, n);
}

static void send_datagram(const struct neighbour *n)
{
	struct sockaddr_storage to = n->address;
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ifreq ifr = { .ifr_ifindex = n->index };

	if (fd < 0)
		return;
	/* allowed to all where the socket is not bound yet, since Linux 5.7 */
	if (!ioctl(fd, SIOCGIFNAME, &ifr))
		(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ifr.ifr_name, sizeof ifr.ifr_name);
	if (to.ss_family == AF_INET)
		((struct sockaddr_in *)&to)->sin_port = htons(DISCARD_PORT);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons(DISCARD_PORT);
	(void)sendto(fd, "", 0, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
	close(fd);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_settled(const struct neighbour *n)
{
	return n->state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | NUD_FAILED);
}

/* Asks the network, and reads the table until it has an answer. */
static int ask_network(struct nl_sock *sock, struct neighbour *n, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms, left;
	bool probed = n->state & KNOWN && !is_settled(n) && probe(sock, n);
	int err;

	if (n->state & (NUD_PERMANENT | NUD_NOARP))
		return 0;
	if (n->state & NUD_REACHABLE)
		probed = probe(sock, n);
	if (!probed)
		send_datagram(n);
	do {
		left = end - now_ms();
		if (left > 0)
			poll(NULL, 0, left < LOOK_MS ? (int)left : LOOK_MS);
		err = look(sock, n);
		if (!err && probed && n->state & NUD_FAILED) {	/* asks all hosts, not only the old address */
			send_datagram(n);
			probed = false;
			n->state = NUD_INCOMPLETE;
		}
	} while (!err && !is_settled(n) && left > 0);
	return err;
}

static void fill(struct dat_net_neighbour *out, const struct neighbour *n, const struct net_link *link)
{
	memset(out, 0, sizeof *out);
	out->address = n->address;
	snprintf(out->netdev, sizeof out->netdev, "%s", link->name);
	out->length = n->length;
	memcpy(out->lladdr, n->lladdr, n->length);
	if (!n->length)
		out->state = DAT_NET_NEIGHBOUR_NONE;
	else if (n->state & (NUD_PERMANENT | NUD_NOARP))
		out->state = DAT_NET_NEIGHBOUR_PERMANENT;
	else
		out->state = n->state & NUD_REACHABLE ? DAT_NET_NEIGHBOUR_REACHABLE : DAT_NET_NEIGHBOUR_STALE;
}

/* The interface by which the kernel sends to the hop itself. */
static int find_index(struct nl_sock *sock, const struct sockaddr *hop, int index, struct neighbour *n)
{
	struct net_answer answer;
	int err = net_lookup(sock, hop, NULL, index, &answer);

	if (err)
		return err;
	if (answer.err || answer.hops[0].via.ss_family)
		return ENETUNREACH;
	n->index = answer.hops[0].index;
	return 0;
}

static int find(struct nl_sock *sock, const struct net_table *table, unsigned flags, int timeout_ms,
		struct neighbour *n, const struct net_link **link)
{
	int err;

	*link = net_link_by_index(table, n->index);
	if (!*link)
		return ENODEV;
	if (!((*link)->flags & IFF_UP))
		return ENETDOWN;
	if ((*link)->flags & (IFF_NOARP | IFF_LOOPBACK)) {
		n->state = NUD_NOARP;
		return 0;
	}
	err = look(sock, n);
	if (!err && timeout_ms && (flags & DAT_NET_ASK || !(n->state & KNOWN)))
		err = ask_network(sock, n, timeout_ms);
	if (!err && !(n->state & KNOWN && n->length))
		err = EHOSTUNREACH;
	return err;
}

static int check(const struct sockaddr *hop, const char *netdev, unsigned flags, int timeout_ms,
		 const struct dat_net_neighbour *out)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)hop;

	if (!hop || !out || flags & ~(unsigned)DAT_NET_ASK || timeout_ms < 0)
		return EINVAL;
	if (hop->sa_family != AF_INET && hop->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	if (hop->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && !six->sin6_scope_id &&
	    !netdev)
		return EINVAL;
	return 0;
}

static void copy_hop(struct neighbour *n, const struct sockaddr *hop, int index)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&n->address;

	memcpy(&n->address, hop, hop->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *six);
	if (hop->sa_family == AF_INET)
		((struct sockaddr_in *)&n->address)->sin_port = 0;
	else
		six->sin6_port = 0;
	if (hop->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
		if (index)
			six->sin6_scope_id = (uint32_t)index;
		n->index = (int)six->sin6_scope_id;
	}
}

NET_PUBLIC int dat_net_neighbour(const struct sockaddr *hop, const char *netdev, unsigned flags,
				 int timeout_ms, struct dat_net_neighbour *out)
{
	const struct net_link *link = NULL;
	struct net_table table;
	struct neighbour n = { 0 };
	struct nl_sock *sock;
	int err = check(hop, netdev, flags, timeout_ms, out);

	if (err)
		return err;
	err = net_open(&sock);
	if (err)
		return err;
	err = net_table_read(&table, sock);
	if (!err && netdev && !(link = net_link_by_name(&table, netdev)))
		err = ENODEV;
	if (!err) {
		copy_hop(&n, hop, link ? link->index : 0);
		err = find_index(sock, (struct sockaddr *)&n.address, link ? link->index : n.index, &n);
	}
	if (!err)
		err = find(sock, &table, flags, timeout_ms, &n, &link);
	if (!err)
		fill(out, &n, link);
	net_table_free(&table);
	net_close(sock);
	return err;
}
