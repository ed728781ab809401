/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_messages.c - see net_messages.h. The messages are few and simple, so the provider reads them without
 * libnl. They say that something changed; the values in events come from the device. */
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include "dapl/core/ia/net_events.h"
#include "dapl/core/ia/net_messages.h"

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

void dapl_net_read_messages(const char *bytes, size_t length)
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

void dapl_net_messages_lost(void)
{
	dapl_mutex_lock(&dapl_net_lock);
	for (struct dapl_net_watch *w = dapl_net_first(); w; w = w->next)
		dapl_net_look_anew(w);
	dapl_mutex_unlock(&dapl_net_lock);
}
