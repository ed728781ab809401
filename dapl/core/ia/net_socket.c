/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_socket.c - see net_socket.h. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/container_of.h"
#include "dapl/core/base/service.h"
#include "dapl/core/ia/net_events.h"
#include "dapl/core/ia/net_messages.h"
#include "dapl/core/ia/net_socket.h"

enum {
	BATCH = 32,			/* datagrams that are read before the service thread does other
					 * work */
	SOCKET_BYTES = 16384,		/* a datagram of rtnetlink has at most 8192 */
};

struct dapl_net_socket {
	struct dapl_watch watch;
	int fd;
	bool overflowed;	/* messages were lost, and the socket was not empty since then. Used by the
				 * service thread only */
};

static struct dapl_net_socket *socket_now;	/* NULL: no IA is watched */

/* Runs on the service thread. After an overflow the kernel drops all messages until the socket was empty
 * once, so the present values are read then. */
static void socket_ready(struct dapl_watch *watch)
{
	struct dapl_net_socket *s = container_of(watch, struct dapl_net_socket, watch);
	char bytes[SOCKET_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t n;

	for (int i = 0; i < BATCH; i++) {
		n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n >= 0) {
			dapl_net_read_messages(bytes, (size_t)n);
		} else if (errno == ENOBUFS) {
			s->overflowed = true;
		} else {
			if (errno == EAGAIN && s->overflowed) {
				s->overflowed = false;
				dapl_net_messages_lost();
			}
			return;
		}
	}
}

int dapl_net_socket_open(struct dapl_net_socket **out)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct dapl_net_socket *s = calloc(1, sizeof *s);
	int err = 0;

	if (!s)
		return ENOMEM;
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&local, sizeof local))
		err = errno;
	if (!err)
		err = dapl_watch_start(&s->watch, s->fd, socket_ready);
	if (err) {
		if (s->fd >= 0)
			close(s->fd);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void dapl_net_socket_close(struct dapl_net_socket *s)
{
	if (!s)
		return;
	dapl_watch_stop(&s->watch);
	close(s->fd);
	free(s);
}

void dapl_net_socket_give(struct dapl_net_socket **s)
{
	assert_held(&dapl_net_lock);
	if (socket_now)
		return;
	socket_now = *s;
	*s = NULL;
}

struct dapl_net_socket *dapl_net_socket_take(void)
{
	struct dapl_net_socket *s = socket_now;

	assert_held(&dapl_net_lock);
	socket_now = NULL;
	return s;
}

void dapl_net_socket_drop(void)
{
	struct dapl_net_socket *s = dapl_net_socket_take();

	if (!s)
		return;
	close(s->fd);
	free(s);
}
