/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup.c - asks the kernel for a route (lookup.h), twice: first which hop it takes, with the route's MTU,
 * then with RTM_F_FIB_MATCH for the route itself, which has the metric and all hops. */
#include "net/lookup.h"
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <string.h>

struct visit {
	struct net_answer *answer;
	bool all;			/* of the answer with RTM_F_FIB_MATCH */
};

static int put_address(struct nl_msg *msg, int kind, const struct sockaddr *address)
{
	size_t length;
	const uint8_t *bytes = net_bytes(address, &length);

	return nla_put(msg, kind, (int)length, bytes);
}

static struct nl_msg *make_question(const struct sockaddr *to, const struct sockaddr *from, int index,
				    unsigned flags)
{
	unsigned char bits = to->sa_family == AF_INET ? 32 : 128;
	struct rtmsg head = {
		.rtm_family = (unsigned char)to->sa_family, .rtm_dst_len = bits,
		.rtm_src_len = from ? bits : 0, .rtm_flags = RTM_F_LOOKUP_TABLE | flags,
	};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, 0);

	if (!msg)
		return NULL;
	if (nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO) || put_address(msg, RTA_DST, to) ||
	    (from && put_address(msg, RTA_SRC, from)) ||
	    (index && nla_put_u32(msg, RTA_OIF, (uint32_t)index))) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

static bool is_same_hop(const struct net_hop *a, const struct net_hop *b)
{
	size_t n, m;
	const uint8_t *left = net_bytes((const struct sockaddr *)&a->via, &n);
	const uint8_t *right = net_bytes((const struct sockaddr *)&b->via, &m);

	return a->index == b->index && n == m && (!n || !memcmp(left, right, n));
}

static void add_hop(struct rtnl_nexthop *from, void *arg)
{
	struct net_answer *answer = arg;
	struct net_hop hop;

	net_sockaddr(&hop.via, net_gateway(from));
	hop.index = rtnl_route_nh_get_ifindex(from);
	if (answer->count == NET_HOPS || rtnl_route_nh_get_flags(from) & RTNH_F_DEAD)
		return;
	for (size_t i = 0; i < answer->count; i++)
		if (is_same_hop(&answer->hops[i], &hop))
			return;
	answer->hops[answer->count++] = hop;
}

/* IPv6 answers with a route that is none, where IPv4 answers with an error. */
static int error_of(unsigned type)
{
	switch (type) {
	case RTN_UNREACHABLE: return EHOSTUNREACH;
	case RTN_PROHIBIT: return EACCES;
	case RTN_BLACKHOLE: return EINVAL;
	case RTN_THROW: return ENETUNREACH;
	default: return 0;
	}
}

static void visit_route(struct nl_object *object, void *arg)
{
	struct visit *visit = arg;
	struct net_answer *answer = visit->answer;
	struct rtnl_route *route = (struct rtnl_route *)object;

	answer->metric = rtnl_route_get_priority(route);
	if (!visit->all) {
		answer->err = error_of(rtnl_route_get_type(route));
		answer->local = rtnl_route_get_type(route) == RTN_LOCAL;
		net_sockaddr(&answer->source, rtnl_route_get_pref_src(route));
		if (rtnl_route_get_metric(route, RTAX_MTU, &answer->mtu))
			answer->mtu = 0;
	}
	if (!answer->err)
		rtnl_route_foreach_nexthop(route, add_hop, answer);
}

static int ask(struct nl_sock *sock, const struct sockaddr *to, const struct sockaddr *from, int index,
	       unsigned flags, struct visit *visit)
{
	struct nl_msg *msg = make_question(to, from, index, flags);

	return msg ? net_ask(sock, msg, visit_route, visit) : ENOMEM;
}

static bool says_no_route(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == EACCES || err == EINVAL ||
	       err == ENETDOWN || err == ENODEV || err == ENOENT;
}

int net_lookup(struct nl_sock *sock, const struct sockaddr *to, const struct sockaddr *from, int index,
	       struct net_answer *answer)
{
	struct visit visit = { .answer = answer };
	int err;

	memset(answer, 0, sizeof *answer);
	err = ask(sock, to, from, index, 0, &visit);
	if (says_no_route(err))
		answer->err = err;
	else if (err)
		return err;
	else if (!answer->err && !answer->count)
		answer->err = ENETUNREACH;	/* an answer without a hop */
	if (answer->err || answer->local)
		return 0;
	visit.all = true;
	err = ask(sock, to, from, index, RTM_F_FIB_MATCH, &visit);
	return says_no_route(err) ? 0 : err;	/* the first answer has all that is needed */
}
