/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_socket.c - see net_socket.h. The messages about links and addresses are few and simple, so the provider reads
 * them without libnl. They say that something changed; the values in events come from the device. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/container_of.h"
#include "dapl/core/base/service.h"
#include "dapl/core/ia/net_events.h"
#include "dapl/core/ia/net_socket.h"

/* --- messages ---------------------------------------------------------------------------------- */

static const void *attribute(const struct rtattr *at, int length, int kind, size_t size)
{
	for (; RTA_OK(at, length); at = RTA_NEXT(at, length))
		if (at->rta_type == kind && RTA_PAYLOAD(at) >= size)
			return RTA_DATA(at);
	return NULL;
}

/* Called with dapl_net_lock held. */
static void link_message(const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const unsigned *mtu;
	bool gone = h->nlmsg_type == RTM_DELLINK, up;

	assert_held(&dapl_net_lock);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *info) || info->ifi_family != AF_UNSPEC)
		return;
	mtu = attribute(IFLA_RTA(info), (int)IFLA_PAYLOAD(h), IFLA_MTU, sizeof *mtu);
	up = info->ifi_flags & IFF_UP && info->ifi_flags & IFF_RUNNING && !gone;
	for (struct dapl_net_watch *w = dapl_net_first(); w; w = w->next) {
		if (w->index != info->ifi_index)
			continue;
		if (mtu && !gone)
			dapl_net_note_mtu(w, *mtu);
		dapl_net_note(w, KIND_LINK, up);
	}
}

static bool is_own(const struct dapl_ia *ia, int family, const void *bytes)
{
	const struct sockaddr_storage *own = &ia->attr.address;

	if (own->ss_family != family)
		return false;
	if (family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)own)->sin_addr, bytes, 4);
	return !memcmp(&((const struct sockaddr_in6 *)own)->sin6_addr, bytes, 16);
}

/* Called with dapl_net_lock held. */
static void address_message(const struct nlmsghdr *h)
{
	const struct ifaddrmsg *info = NLMSG_DATA(h);
	const void *bytes;
	size_t size;

	assert_held(&dapl_net_lock);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *info) ||
	    (info->ifa_family != AF_INET && info->ifa_family != AF_INET6))
		return;
	size = info->ifa_family == AF_INET ? 4 : 16;
	bytes = attribute(IFA_RTA(info), (int)IFA_PAYLOAD(h), IFA_LOCAL, size);
	if (!bytes)
		bytes = attribute(IFA_RTA(info), (int)IFA_PAYLOAD(h), IFA_ADDRESS, size);
	for (struct dapl_net_watch *w = dapl_net_first(); w && bytes; w = w->next)
		if (is_own(w->ia, info->ifa_family, bytes))
			dapl_net_note(w, KIND_ADDRESS, h->nlmsg_type == RTM_NEWADDR);
}

/* Returns the message that begins at that offset, or NULL if the rest is no whole message. */
static const struct nlmsghdr *message_at(const char *bytes, size_t length, size_t offset)
{
	const struct nlmsghdr *h = (const void *)(bytes + offset);

	if (offset + sizeof *h > length || h->nlmsg_len < sizeof *h || h->nlmsg_len > length - offset)
		return NULL;
	return h;
}

/* Reads the messages of one datagram. `bytes` is aligned for a struct nlmsghdr. A message that is not whole, and all
 * behind it, are ignored. */
static void read_messages(const char *bytes, size_t length)
{
	const struct nlmsghdr *h;

	dapl_mutex_lock(&dapl_net_lock);
	for (size_t at = 0; (h = message_at(bytes, length, at)); at += NLMSG_ALIGN(h->nlmsg_len)) {
		if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
			link_message(h);
		if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
			address_message(h);
	}
	dapl_mutex_unlock(&dapl_net_lock);
}

/* Called when the kernel has dropped messages, and the socket was empty since then. Lets each watch report
 * the present state. */
static void note_lost_messages(void)
{
	dapl_mutex_lock(&dapl_net_lock);
	for (struct dapl_net_watch *w = dapl_net_first(); w; w = w->next)
		dapl_net_look_anew(w);
	dapl_mutex_unlock(&dapl_net_lock);
}

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
			read_messages(bytes, (size_t)n);
		} else if (errno == ENOBUFS) {
			s->overflowed = true;
		} else {
			if (errno == EAGAIN && s->overflowed) {
				s->overflowed = false;
				note_lost_messages();
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
