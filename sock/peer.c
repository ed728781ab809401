/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.c - asks the kernel by sock_diag for one TCP socket, by its addresses. */
#include "sock/peer.h"
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include "sock/real.h"

static void set(uint32_t to[4], uint16_t *port, const struct sockaddr_storage *sa, int family)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	*port = in->sin_port;
	if (family == AF_INET)
		memcpy(to, sa->ss_family == AF_INET ? (const char *)&in->sin_addr : (const char *)&in6->sin6_addr + 12,
		       4);
	else
		memcpy(to, &in6->sin6_addr, 16);
}

static int ask(int diag, int family, const struct sockaddr_storage *local, const struct sockaddr_storage *peer,
	       struct peer *found)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} m = {
		.head = { .nlmsg_len = sizeof m, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.req = { .sdiag_family = family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = -1,
			 .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_Alignas(struct nlmsghdr) char answer[4096];
	struct nlmsghdr *head = (void *)answer;
	struct inet_diag_msg *msg = NLMSG_DATA(head);
	ssize_t n;

	/* The kernel looks for a socket that the source address describes. */
	int mapped = family == AF_INET ? AF_INET : AF_INET6;

	set(m.req.id.idiag_src, &m.req.id.idiag_sport, peer, mapped);
	set(m.req.id.idiag_dst, &m.req.id.idiag_dport, local, mapped);
	if (REAL(sendto)(diag, &m, sizeof m, 0, (void *)&kernel, sizeof kernel) != sizeof m)
		return errno;
	n = REAL(recv)(diag, answer, sizeof answer, 0);
	if (n < (ssize_t)sizeof *head || !NLMSG_OK(head, (size_t)n))
		return EPROTO;
	if (head->nlmsg_type == NLMSG_ERROR)
		return -((struct nlmsgerr *)NLMSG_DATA(head))->error;
	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof *msg))
		return EPROTO;
	if (msg->id.idiag_sport != m.req.id.idiag_sport || msg->id.idiag_dport != m.req.id.idiag_dport)
		return ENOENT;
	if (!msg->idiag_inode)
		return EAGAIN;
	*found = (struct peer){ msg->idiag_inode, msg->idiag_uid };
	return 0;
}

int peer_find(int diag, const struct sockaddr_storage *local, const struct sockaddr_storage *peer, struct peer *found)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;
	bool v4 = peer->ss_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

	/* The kernel finds IPv4 connections of IPv6 sockets by their IPv4 addresses. */
	return ask(diag, v4 ? AF_INET : AF_INET6, local, peer, found);
}
