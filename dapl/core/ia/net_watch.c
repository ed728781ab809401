/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_watch.c - see net_watch.h. The service thread watches one rtnetlink socket of the process, whose
 * messages say that something changed, and counts the changes. The values in events come from the device,
 * as for dat_ia_query(). The messages are few and simple, so the provider reads them without libnl. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <dat/dat_net_extensions.h>
#include "common/interface.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/container_of.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/base/service.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/net_watch.h"

enum {
	EVENT_INTERVAL_US = 100000,	/* minimum between two events of an IA: ten a second */
	BATCH = 32,			/* datagrams that are read before the service thread does other
					 * work */
	UNKNOWN = -1,			/* in `seen`: messages were lost */
	SOCKET_BYTES = 16384,		/* a datagram of rtnetlink has at most 8192 */
};

enum kind { MTU, LINK, ADDRESS, KINDS };
static const DAT_UINT32 bits[KINDS] = { DAT_NET_MTU, DAT_NET_LINK, DAT_NET_ADDRESS };

/* The socket. The thread that removes it from `socket_now` frees it. */
struct net_socket {
	struct dapl_watch watch;
	int fd;
	bool overflowed;	/* messages were lost, and the socket was not empty since then. Used by the
				 * service thread only */
};

struct dapl_net_watch {
	struct dapl_ia *ia;
	DAT_UINT32 what;
	int index;			/* index of the interface */
	DAT_UINT32 told[KINDS];		/* values in the last events, or when the watch began */
	DAT_UINT32 seen[KINDS];		/* values in the kernel's last messages; not for the MTU */
	int changes[KINDS];		/* changes that were seen and not reported; negative: reported
					 * before their messages were read */
	/* The MTU of the interface in the kernel's messages, now and at the last event. The device's MTU
	 * differs: it is an InfiniBand size below it, or a limit of the device. */
	DAT_UINT32 interface_mtu, interface_mtu_told;
	bool mtu_again;			/* the device's MTU is being queried once more */
	bool scheduled;			/* the timer is started */
	uint64_t next_ns;		/* time before which no event is posted */
	struct dapl_timer timer;
	struct dapl_net_watch *next;
};

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_NET_WATCH);	/* guards what follows, and the
									 * fields of watches */
static struct dapl_net_watch *watches;
static struct net_socket *socket_now;		/* NULL: no IA is watched */

/* --- events ------------------------------------------------------------------------------- */

static void fire(struct dapl_timer *timer);

/* `lock` held. */
static void schedule(struct dapl_net_watch *w)
{
	uint64_t now = clock_now_ns();

	assert_held(&lock);
	if (w->scheduled)
		return;
	w->scheduled = true;
	dapl_timer_start(&w->timer, w->next_ns > now ? (w->next_ns - now) / 1000 + 1 : 0, fire);
}

/* `lock` held. */
static void note(struct dapl_net_watch *w, enum kind kind, DAT_UINT32 value)
{
	assert_held(&lock);
	if (w->seen[kind] == value)
		return;
	w->seen[kind] = value;
	w->changes[kind]++;
	schedule(w);
}

/* `lock` held. */
static void note_mtu(struct dapl_net_watch *w, DAT_UINT32 mtu)
{
	assert_held(&lock);
	if (w->interface_mtu == mtu)
		return;
	w->interface_mtu = mtu;
	w->changes[MTU]++;
	schedule(w);
}

static bool has_address(const struct dapl_ia *ia)
{
	const struct sockaddr *own = (const struct sockaddr *)&ia->attr.address;
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all))
		return true;	/* unknown, so no change is reported */
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = i->ifa_addr && address_same_host(i->ifa_addr, own);
	freeifaddrs(all);
	return found;
}

/* Reads the present values. Called without a lock, because it asks the kernel. */
static void read_values(struct dapl_net_watch *w, DAT_UINT32 values[KINDS])
{
	struct dapl_device_attr attr;

	if (dapl_device_ops.query(w->ia->dev, &attr)) {
		memcpy(values, w->told, sizeof w->told);
	} else {
		values[MTU] = attr.mtu;
		/* the limit of datagrams follows the MTU */
		__atomic_store_n(&w->ia->attr.mtu, attr.mtu, __ATOMIC_RELAXED);
		values[LINK] = attr.port_active;
	}
	values[ADDRESS] = has_address(w->ia);
}

static bool post(struct dapl_ia *ia, DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now, DAT_UINT32 lost)
{
	DAT_NET_CHANGE_DATA data = { .what = what, .before = before, .now = now, .lost = lost,
				     .ia = dapl_ia_handle(ia) };
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	event.event_number = DAT_NET_CHANGE_EVENT;
	_Static_assert(sizeof data <= sizeof event.event_extension_data, "the data fits into an event");
	memcpy(event.event_extension_data, &data, sizeof data);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ia", ia, NULL, "network change 0x%x: %u to %u, %u lost", what,
	      before, now, lost);
	return dapl_async_offer(ia, &event);
}

/* True if the device's MTU may be reported. If the interface's MTU has changed and the device's has not,
 * the device is queried once more, because an RDMA device follows later and without an event. Called with
 * `lock` held. */
static bool mtu_is_settled(struct dapl_net_watch *w, DAT_UINT32 value)
{
	bool same = value == w->told[MTU] && w->interface_mtu != w->interface_mtu_told;

	if (same && !w->mtu_again) {
		w->mtu_again = true;
		schedule(w);
		return false;
	}
	w->mtu_again = false;
	if (same) {
		w->changes[MTU] = 0;
		w->interface_mtu_told = w->interface_mtu;
	}
	return true;
}

/* True if the state of the link or the address may be reported. The kernel's messages and the device may
 * differ for a moment: either the RDMA device has not followed its interface yet, and its event will come,
 * or a change was undone, and its message will come. Called with `lock` held. */
static bool state_is_settled(struct dapl_net_watch *w, enum kind kind, DAT_UINT32 value)
{
	if (w->seen[kind] == (DAT_UINT32)UNKNOWN)
		w->seen[kind] = value;
	if (w->seen[kind] == value)
		return true;
	if (value == w->told[kind] && w->changes[kind] > 0)
		return false;
	w->seen[kind] = value;	/* its message was not read yet; counted here */
	w->changes[kind]++;
	return true;
}

/* Posts the event of one kind if its value has changed. Called without the lock. */
static void post_change(struct dapl_net_watch *w, enum kind kind, DAT_UINT32 value)
{
	DAT_UINT32 before, lost;
	bool settled;
	int changes;

	dapl_mutex_lock(&lock);
	before = w->told[kind];
	settled = kind == MTU ? mtu_is_settled(w, value) : state_is_settled(w, kind, value);
	changes = w->changes[kind];
	if (!(w->what & bits[kind])) {	/* the consumer has not asked for this kind */
		w->told[kind] = before = value;
		w->changes[kind] = changes = 0;
	}
	dapl_mutex_unlock(&lock);
	if (!settled || (value == before && changes < 2))
		return;
	lost = changes > 1 ? (DAT_UINT32)changes - 1 : 0;
	if (!post(w->ia, bits[kind], before, value, lost)) {
		dapl_mutex_lock(&lock);
		schedule(w);	/* the EVD is full: try again later */
		dapl_mutex_unlock(&lock);
		return;
	}
	dapl_mutex_lock(&lock);
	w->told[kind] = value;
	w->changes[kind] -= 1 + (int)lost;
	if (kind == MTU)
		w->interface_mtu_told = w->interface_mtu;
	dapl_mutex_unlock(&lock);
}

/* Runs on the service thread. */
static void fire(struct dapl_timer *timer)
{
	struct dapl_net_watch *w = container_of(timer, struct dapl_net_watch, timer);
	DAT_UINT32 values[KINDS];

	dapl_mutex_lock(&lock);
	w->scheduled = false;
	w->next_ns = clock_now_ns() + EVENT_INTERVAL_US * UINT64_C(1000);
	dapl_mutex_unlock(&lock);
	read_values(w, values);
	for (int kind = 0; kind < KINDS; kind++)
		post_change(w, (enum kind)kind, values[kind]);
}

/* --- the kernel's messages ------------------------------------------------------------------ */

static const void *attribute(const struct rtattr *at, int length, int kind, size_t size)
{
	for (; RTA_OK(at, length); at = RTA_NEXT(at, length))
		if (at->rta_type == kind && RTA_PAYLOAD(at) >= size)
			return RTA_DATA(at);
	return NULL;
}

/* `lock` held. */
static void link_message(const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const unsigned *mtu;
	bool gone = h->nlmsg_type == RTM_DELLINK, up;

	assert_held(&lock);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *info) || info->ifi_family != AF_UNSPEC)
		return;
	mtu = attribute(IFLA_RTA(info), (int)IFLA_PAYLOAD(h), IFLA_MTU, sizeof *mtu);
	up = info->ifi_flags & IFF_UP && info->ifi_flags & IFF_RUNNING && !gone;
	for (struct dapl_net_watch *w = watches; w; w = w->next) {
		if (w->index != info->ifi_index)
			continue;
		if (mtu && !gone)
			note_mtu(w, *mtu);
		note(w, LINK, up);
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

/* `lock` held. */
static void address_message(const struct nlmsghdr *h)
{
	const struct ifaddrmsg *info = NLMSG_DATA(h);
	const void *bytes;
	size_t size;

	assert_held(&lock);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *info) ||
	    (info->ifa_family != AF_INET && info->ifa_family != AF_INET6))
		return;
	size = info->ifa_family == AF_INET ? 4 : 16;
	bytes = attribute(IFA_RTA(info), (int)IFA_PAYLOAD(h), IFA_LOCAL, size);
	if (!bytes)
		bytes = attribute(IFA_RTA(info), (int)IFA_PAYLOAD(h), IFA_ADDRESS, size);
	for (struct dapl_net_watch *w = watches; w && bytes; w = w->next)
		if (is_own(w->ia, info->ifa_family, bytes))
			note(w, ADDRESS, h->nlmsg_type == RTM_NEWADDR);
}

/* Returns the message that begins at that offset, or NULL if the rest is no whole message. */
static const struct nlmsghdr *message_at(const char *bytes, size_t length, size_t offset)
{
	const struct nlmsghdr *h = (const void *)(bytes + offset);

	if (offset + sizeof *h > length || h->nlmsg_len < sizeof *h || h->nlmsg_len > length - offset)
		return NULL;
	return h;
}

static void read_messages(const char *bytes, size_t length)
{
	const struct nlmsghdr *h;

	dapl_mutex_lock(&lock);
	for (size_t at = 0; (h = message_at(bytes, length, at)); at += NLMSG_ALIGN(h->nlmsg_len)) {
		if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
			link_message(h);
		if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
			address_message(h);
	}
	dapl_mutex_unlock(&lock);
}

/* Called when the kernel has dropped messages: reports the present state. The number of changes is
 * unknown. */
static void look_anew(void)
{
	dapl_mutex_lock(&lock);
	for (struct dapl_net_watch *w = watches; w; w = w->next) {
		for (int kind = 0; kind < KINDS; kind++)
			w->seen[kind] = (DAT_UINT32)UNKNOWN;
		schedule(w);
	}
	dapl_mutex_unlock(&lock);
}

/* Runs on the service thread. After an overflow the kernel drops all messages until the socket was empty
 * once, so the present values are read then. */
static void socket_ready(struct dapl_watch *watch)
{
	struct net_socket *s = container_of(watch, struct net_socket, watch);
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
				look_anew();
			}
			return;
		}
	}
}

void dapl_net_port_changed(struct dapl_ia *ia, int value)
{
	dapl_mutex_lock(&lock);
	for (struct dapl_net_watch *w = watches; w; w = w->next) {
		if (w->ia != ia)
			continue;
		if (value >= 0)
			note(w, LINK, (DAT_UINT32)value);
		schedule(w);
	}
	dapl_mutex_unlock(&lock);
}

void dapl_net_device_lost(struct dapl_ia *ia)
{
	bool watched = false;

	dapl_mutex_lock(&lock);
	for (struct dapl_net_watch *w = watches; w; w = w->next)
		watched |= w->ia == ia && w->what & DAT_NET_RDMA;
	dapl_mutex_unlock(&lock);
	if (watched)
		post(ia, DAT_NET_RDMA, 1, 0, 0);
}

/* --- begin and end ---------------------------------------------------------------------------- */

static void before_fork(void)
{
	dapl_mutex_lock(&lock);
}

static void after_fork(void)
{
	dapl_mutex_unlock(&lock);
}

/* The child has no watches. */
static void in_child(void)
{
	if (socket_now) {
		close(socket_now->fd);
		free(socket_now);
	}
	socket_now = NULL;
	watches = NULL;
	dapl_mutex_unlock(&lock);
}

void dapl_net_watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_NET_WATCH, .before = before_fork,
		.parent = after_fork, .child = in_child };

	dapl_fork_register(&part);
}

static int open_socket(struct net_socket **out)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct net_socket *s = calloc(1, sizeof *s);
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

static void close_socket(struct net_socket *s)
{
	if (!s)
		return;
	dapl_watch_stop(&s->watch);
	close(s->fd);
	free(s);
}

/* `lock` held. Returns the link to the watch of this IA; it points to NULL if there is no watch. */
static struct dapl_net_watch **find(const struct dapl_ia *ia)
{
	struct dapl_net_watch **p = &watches;

	while (*p && (*p)->ia != ia)
		p = &(*p)->next;
	return p;
}

/* Returns 0 if the MTU is unknown: then the first message counts as a change. */
static DAT_UINT32 mtu_of_interface(const char *netdev)
{
	struct ifreq ifr;

	return interface_request(netdev, SIOCGIFMTU, &ifr) ? 0 : (DAT_UINT32)ifr.ifr_mtu;
}

static struct dapl_net_watch *new_watch(struct dapl_ia *ia, DAT_UINT32 what)
{
	struct dapl_net_watch *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->ia = ia;
	w->what = what;
	w->index = (int)if_nametoindex(ia->attr.netdev);
	w->told[MTU] = ia->attr.mtu;
	read_values(w, w->told);
	memcpy(w->seen, w->told, sizeof w->seen);
	w->interface_mtu = w->interface_mtu_told = mtu_of_interface(ia->attr.netdev);
	return w;
}

/* Lists the new watch, or changes the watch that the IA has. *made and *s become NULL if they are in use
 * now; the caller frees them otherwise. */
static void enter(struct dapl_ia *ia, DAT_UINT32 what, struct dapl_net_watch **made, struct net_socket **s)
{
	struct dapl_net_watch **there;

	dapl_mutex_lock(&lock);
	there = find(ia);
	if (*there) {
		(*there)->what = what;
	} else {
		(*made)->next = watches;
		watches = *made;
		*made = NULL;
	}
	if (!socket_now) {
		socket_now = *s;
		*s = NULL;
	}
	dapl_mutex_unlock(&lock);
}

DAT_RETURN dapl_net_watch(struct dapl_ia *ia, DAT_UINT32 what)
{
	struct dapl_net_watch *w;
	struct net_socket *s;
	int err;

	if (what & ~(DAT_UINT32)(DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS | DAT_NET_RDMA))
		return BAD_PARAM(2);
	if (!what) {
		dapl_net_forget(ia);
		return DAT_SUCCESS;
	}
	if (dapl_async_handle(ia) == DAT_EVD_OUT_OF_SCOPE)
		return NOT_SUPPORTED;
	err = open_socket(&s);	/* before the values are read, so that no change between is missed */
	if (err)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	w = new_watch(ia, what);
	if (w)
		enter(ia, what, &w, &s);
	else
		err = ENOMEM;
	close_socket(s);
	free(w);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

void dapl_net_forget(struct dapl_ia *ia)
{
	struct dapl_net_watch **p, *w;
	struct net_socket *s = NULL;

	dapl_mutex_lock(&lock);
	p = find(ia);
	w = *p;
	if (w)
		*p = w->next;
	if (w && !watches) {
		s = socket_now;
		socket_now = NULL;
	}
	dapl_mutex_unlock(&lock);
	close_socket(s);
	if (!w)
		return;
	dapl_timer_drain(&w->timer);	/* its handler may post once more */
	free(w);
}
