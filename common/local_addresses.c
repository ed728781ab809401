/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_addresses.c - see local_addresses.h. */
#include "common/local_addresses.h"
#include "common/address.h"
#include "common/rtnl.h"
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DUMP_TRIES = 8 };	/* of a dump that changes interrupt */

struct reading {
	struct local_addresses *list;
	const char *name;
	int err;
};

/* Makes room for one more element at the end of an array, which grows by doubling. */
static void *grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))	/* room up to the next power of two */
		return array;
	return realloc(array, (count ? 2 * count : 1) * size);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

static bool has_alternative_name(const struct rtattr *list, const char *name)
{
	const struct rtattr *at = RTA_DATA(list);
	int length = (int)RTA_PAYLOAD(list);

	for (; RTA_OK(at, length); at = RTA_NEXT(at, length))
		if (rtnl_is_text(at, IFLA_ALT_IFNAME, name))
			return true;
	return false;
}

static void take_link(const struct nlmsghdr *head, void *arg)
{
	const struct ifinfomsg *info = NLMSG_DATA(head);
	const struct rtattr *at = IFLA_RTA(info);
	int length = (int)IFLA_PAYLOAD(head);
	struct reading *r = arg;
	struct local_link *to;

	if (head->nlmsg_type != RTM_NEWLINK || head->nlmsg_len < NLMSG_LENGTH(sizeof *info))
		return;
	to = grow(r->list->links, r->list->link_count, sizeof *to);
	if (!to) {
		r->err = ENOMEM;
		return;
	}
	r->list->links = to;
	to += r->list->link_count++;
	*to = (struct local_link){ .index = info->ifi_index, .flags = info->ifi_flags };
	for (; RTA_OK(at, length); at = RTA_NEXT(at, length)) {
		if (at->rta_type == IFLA_IFNAME)
			strncpy(to->name, RTA_DATA(at), sizeof to->name - 1);
		to->is_named |= rtnl_is_text(at, IFLA_IFNAME, r->name) ||
				((at->rta_type & NLA_TYPE_MASK) == IFLA_PROP_LIST && has_alternative_name(at, r->name));
	}
}

static const void *address_bytes(const struct nlmsghdr *head, size_t size)
{
	const struct ifaddrmsg *info = NLMSG_DATA(head);
	const void *bytes = rtnl_attribute(IFA_RTA(info), (int)IFA_PAYLOAD(head), IFA_LOCAL, size);

	return bytes ? bytes : rtnl_attribute(IFA_RTA(info), (int)IFA_PAYLOAD(head), IFA_ADDRESS, size);
}

static bool fill_address(struct sockaddr_storage *to, const struct nlmsghdr *head)
{
	const struct ifaddrmsg *info = NLMSG_DATA(head);
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	size_t size = info->ifa_family == AF_INET ? sizeof four->sin_addr : sizeof six->sin6_addr;
	const void *bytes = address_bytes(head, size);

	memset(to, 0, sizeof *to);
	if ((info->ifa_family != AF_INET && info->ifa_family != AF_INET6) || !bytes)
		return false;
	to->ss_family = info->ifa_family;
	memcpy(info->ifa_family == AF_INET ? (void *)&four->sin_addr : &six->sin6_addr, bytes, size);
	if (info->ifa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		six->sin6_scope_id = info->ifa_index;
	return true;
}

/* Needs the links. */
static const struct local_link *link_of(const struct local_addresses *list, int index)
{
	for (size_t i = 0; i < list->link_count; i++)
		if (list->links[i].index == index)
			return &list->links[i];
	return NULL;
}

static void take_address(const struct nlmsghdr *head, void *arg)
{
	const struct ifaddrmsg *info = NLMSG_DATA(head);
	const struct rtattr *at = IFA_RTA(info);
	int length = (int)IFA_PAYLOAD(head);
	struct reading *r = arg;
	struct local_address *to, one = { .link = NULL };
	const unsigned *flags;

	if (head->nlmsg_type != RTM_NEWADDR || head->nlmsg_len < NLMSG_LENGTH(sizeof *info) ||
	    !fill_address(&one.at, head))
		return;
	flags = rtnl_attribute(at, length, IFA_FLAGS, sizeof *flags);
	one.flags = flags ? *flags : info->ifa_flags;
	one.link = link_of(r->list, (int)info->ifa_index);
	if (!one.link)		/* the interface is newer than the list of links */
		return;
	for (; !r->list->named && RTA_OK(at, length); at = RTA_NEXT(at, length))
		one.is_named |= rtnl_is_text(at, IFA_LABEL, r->name);
	if (r->list->named)
		one.is_named = one.link == r->list->named;
	to = grow(r->list->addresses, r->list->address_count, sizeof *to);
	if (!to) {
		r->err = ENOMEM;
		return;
	}
	r->list->addresses = to;
	to[r->list->address_count++] = one;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static int dump(int kind, void (*each)(const struct nlmsghdr *, void *), struct reading *r)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;	/* longer than an ifaddrmsg; begins with the family, too */
	} request = {
		.head = { .nlmsg_len = sizeof request, .nlmsg_type = (uint16_t)kind,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.info = { .ifi_family = AF_UNSPEC },
	};
	int err = rtnl_request(&request.head, each, r);

	return err ? err : r->err;
}

static int read_once(struct local_addresses *list, const char *name)
{
	struct reading r = { .list = list, .name = name };
	int err;

	list->link_count = list->address_count = 0;
	list->named = NULL;
	err = dump(RTM_GETLINK, take_link, &r);
	for (size_t i = 0; i < list->link_count; i++)
		if (list->links[i].is_named)
			list->named = &list->links[i];
	return err ? err : dump(RTM_GETADDR, take_address, &r);
}

int local_addresses_read(struct local_addresses *list, const char *name)
{
	int err = EINTR;

	memset(list, 0, sizeof *list);
	for (int i = 0; i < DUMP_TRIES && err == EINTR; i++)
		err = read_once(list, name);
	return err == EINTR ? 0 : err;	/* changes do not end: what the last dump had */
}

void local_addresses_free(struct local_addresses *list)
{
	free(list->links);
	free(list->addresses);
	memset(list, 0, sizeof *list);
}

int local_link_index(const char *name)
{
	struct local_addresses list;
	int index = 0;

	if (!local_addresses_read(&list, name) && list.named)
		index = list.named->index;
	local_addresses_free(&list);
	return index;
}

/* --- what an address is good for ----------------------------------------------------------------------------- */

static bool is_tentative(unsigned flags)
{
	return flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC);
}

unsigned local_address_rank(const struct sockaddr *address, unsigned flags)
{
	bool usable = !is_tentative(flags) && !(flags & IFA_F_DADFAILED);
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	unsigned family = address->sa_family == AF_INET ? 3 : IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 1 : 2;

	return (usable ? 16 : 0) + 4 * family + (flags & IFA_F_DEPRECATED ? 0 : 2) +
	       (flags & IFA_F_TEMPORARY ? 0 : 1);	/* of IPv4 it says secondary */
}

const char *local_address_trouble(const struct local_address *address)
{
	if (address->flags & IFA_F_DADFAILED)
		return "is a duplicate: another host on the network has it";
	if (is_tentative(address->flags))
		return "is tentative: duplicate address detection has not ended yet";
	if (!(address->link->flags & IFF_UP))
		return "is not usable: its interface is down";
	return NULL;
}

const char *local_address_why(const struct sockaddr *address)
{
	const char *why = "is no address of this host any more";
	struct local_addresses list;

	if (local_addresses_read(&list, ""))
		why = NULL;
	for (size_t i = 0; why && i < list.address_count; i++)
		if (address_same_host((struct sockaddr *)&list.addresses[i].at, address)) {
			why = local_address_trouble(&list.addresses[i]);
			break;
		}
	local_addresses_free(&list);
	return why;
}

/* Connecting a datagram socket sends nothing; it selects the source address. */
static bool source_of(const struct sockaddr *to, struct sockaddr_storage *source)
{
	struct sockaddr_storage there;
	socklen_t length = sizeof *source;
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	address_copy(&there, to);
	address_set_port((struct sockaddr *)&there, 9);		/* any but 0 */
	found = !connect(fd, (struct sockaddr *)&there, address_length(to)) &&
		!getsockname(fd, (struct sockaddr *)source, &length);
	close(fd);
	return found;
}

bool local_route_netdev(const struct sockaddr *to, char netdev[IF_NAMESIZE])
{
	struct sockaddr_storage source;
	struct local_addresses list;
	bool found = false;

	if (!source_of(to, &source) || address_is_loopback((struct sockaddr *)&source))
		return false;
	if (!local_addresses_read(&list, ""))
		for (size_t i = 0; i < list.address_count && !found; i++)
			if (address_same_host((struct sockaddr *)&list.addresses[i].at, (struct sockaddr *)&source)) {
				found = true;
				memcpy(netdev, list.addresses[i].link->name, IF_NAMESIZE);
			}
	local_addresses_free(&list);
	return found;
}
