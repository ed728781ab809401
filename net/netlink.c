/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlink.c - sends requests over rtnetlink and reads the answers (netlink.h). */
#include "net/netlink.h"
#include <errno.h>
#include <netinet/in.h>
#include <netlink/addr.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/route/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>

struct answer {
	void (*each)(struct nl_object *, void *);
	void *arg;
	bool done;
	int err;
};

int net_errno(int nle)
{
	switch (nle < 0 ? -nle : nle) {
	case NLE_SUCCESS: return 0;
	case NLE_NOMEM: return ENOMEM;
	case NLE_INTR: case NLE_DUMP_INTR: return EINTR;
	case NLE_AGAIN: return EAGAIN;
	case NLE_PERM: return EPERM;
	case NLE_NOACCESS: return EACCES;
	case NLE_NODEV: return ENODEV;
	case NLE_OBJ_NOTFOUND: return ENOENT;
	case NLE_AF_NOSUPPORT: case NLE_PROTO_MISMATCH: return EAFNOSUPPORT;
	case NLE_INVAL: case NLE_MISSING_ATTR: return EINVAL;
	default: return EIO;
	}
}

int net_open(struct nl_sock **out)
{
	struct nl_sock *sock = nl_socket_alloc();
	int nle, err;

	if (!sock)
		return ENOMEM;
	errno = 0;
	nle = nl_connect(sock, NETLINK_ROUTE);
	if (nle) {	/* a failed socket() or bind() left its errno */
		err = errno ? errno : net_errno(nle);
		nl_socket_free(sock);
		return err;
	}
	*out = sock;
	return 0;
}

void net_close(struct nl_sock *sock)
{
	nl_socket_free(sock);
}

/* libnl 3.7 trusts the kernel: it takes the length of an address to be what the attribute has beyond the
 * family, even if the attribute is shorter than that. */
static bool is_whole_via(const struct nlattr *attribute)
{
	return nla_type(attribute) != RTA_VIA || nla_len(attribute) >= (int)sizeof(struct rtvia);
}

/* libnl 3.7 reads a hop of length 0 again and again, and allocates memory each time. It also reads beyond a
 * hop whose padding is missing. */
static bool are_whole_hops(const struct nlattr *attribute)
{
	const struct rtnexthop *hop = nla_data(attribute);
	const struct nlattr *part;
	int room = nla_len(attribute), left;

	if (nla_type(attribute) != RTA_MULTIPATH)
		return true;
	while (room >= (int)sizeof *hop && room >= hop->rtnh_len) {
		if (hop->rtnh_len < sizeof *hop || (int)RTNH_ALIGN(hop->rtnh_len) > room)
			return false;
		nla_for_each_attr(part, (struct nlattr *)RTNH_DATA(hop), hop->rtnh_len - (int)sizeof *hop, left)
			if (!is_whole_via(part))
				return false;
		room -= RTNH_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
	return true;
}

static bool is_whole_route(struct nlmsghdr *head)
{
	struct nlattr *attribute;
	int left;

	if (head->nlmsg_type < RTM_NEWROUTE || head->nlmsg_type > RTM_GETROUTE ||
	    head->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return true;
	nlmsg_for_each_attr(attribute, head, sizeof(struct rtmsg), left)
		if (!is_whole_via(attribute) || !are_whole_hops(attribute))
			return false;
	return true;
}

int net_parse(struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg)
{
	if (!is_whole_route(nlmsg_hdr(msg)))
		return -NLE_INVAL;
	return nl_msg_parse(msg, each, arg);
}

static void parsed(struct nl_object *object, void *arg)
{
	struct answer *a = arg;

	a->each(object, a->arg);
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct answer *a = arg;
	int nle = net_parse(msg, parsed, a);

	if (nle == -NLE_NOMEM)
		a->err = ENOMEM;
	return NL_OK;	/* what libnl does not understand is left out */
}

static int on_end(struct nl_msg *msg, void *arg)
{
	(void)msg;
	((struct answer *)arg)->done = true;
	return NL_STOP;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	struct answer *a = arg;

	(void)from;
	a->done = true;
	a->err = error->error ? -error->error : EIO;
	return NL_STOP;
}

static int receive(struct nl_sock *sock, struct nl_cb *cb, struct answer *a)
{
	int nle;

	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, a);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_end, a);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_end, a);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, a);
	while (!a->done) {
		nle = nl_recvmsgs(sock, cb);
		if (nle == -NLE_DUMP_INTR)
			return EINTR;
		if (nle < 0 && !a->err)
			return net_errno(nle);
		if (nle < 0)
			break;
	}
	return a->err;
}

int net_ask(struct nl_sock *sock, struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg)
{
	struct answer a = { .each = each, .arg = arg };
	struct nl_cb *cb;
	int nle, err;

	nle = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	if (nle < 0)
		return net_errno(nle);
	cb = nl_cb_alloc(NL_CB_DEFAULT);
	if (!cb)
		return ENOMEM;
	err = receive(sock, cb, &a);
	nl_cb_put(cb);
	return err;
}

int net_dump(struct nl_sock *sock, int kind, int family, void (*each)(struct nl_object *, void *),
	     void *arg)
{
	struct rtgenmsg head = { .rtgen_family = (unsigned char)family };
	struct nl_msg *msg = nlmsg_alloc_simple(kind, NLM_F_DUMP);

	if (!msg || nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO)) {
		nlmsg_free(msg);
		return ENOMEM;
	}
	return net_ask(sock, msg, each, arg);
}

struct nl_addr *net_gateway(struct rtnl_nexthop *hop)
{
	struct nl_addr *gateway = rtnl_route_nh_get_gateway(hop);

	return gateway ? gateway : rtnl_route_nh_get_via(hop);	/* IPv6 router of an IPv4 route */
}

void net_sockaddr(struct sockaddr_storage *to, struct nl_addr *from)
{
	socklen_t length = sizeof *to;

	memset(to, 0, sizeof *to);
	if (!from || nl_addr_fill_sockaddr(from, (struct sockaddr *)to, &length))
		memset(to, 0, sizeof *to);
}

const uint8_t *net_bytes(const struct sockaddr *address, size_t *length)
{
	switch (address->sa_family) {
	case AF_INET:
		*length = 4;
		return (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
	case AF_INET6:
		*length = 16;
		return (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr;
	default:
		*length = 0;
		return NULL;
	}
}
