/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.c - see interfaces.h. Each message of a dump is a datagram of its own. */
#include "test/unit/interfaces.h"
#include "test/unit/unit.h"
#include <linux/rtnetlink.h>

enum { INTERFACES = 48, RTNETLINK_FD = 1 << 20 };

static struct interface {
	const char *netdev, *label, *alternative;
	char address[INET6_ADDRSTRLEN];		/* "": none */
	unsigned flags, address_flags;
} interfaces[INTERFACES];
unsigned n_interfaces, sockets_open;
int list_error;
static int dumped;		/* RTM_GETLINK or RTM_GETADDR */
static unsigned next;

REPLACE(gethostname)
EXTEND(socket, send, recv, close)

int __wrap_socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK)
		return __real_socket(domain, type, protocol);
	assert_int_equal(protocol, NETLINK_ROUTE);
	errno = list_error;
	sockets_open += !list_error;
	return list_error ? -1 : RTNETLINK_FD;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	const struct nlmsghdr *head = bytes;

	if (fd != RTNETLINK_FD)
		return __real_send(fd, bytes, size, flags);
	assert_int_equal(head->nlmsg_len, size);
	assert_int_equal(head->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
	dumped = head->nlmsg_type;
	next = 0;
	return (ssize_t)size;
}

/* The number of the first one with that network device: its index. */
static unsigned index_of(const char *netdev)
{
	unsigned i = 0;

	while (strcmp(interfaces[i].netdev, netdev) != 0)
		i++;
	return i + 1;
}

static void put(struct nlmsghdr *head, int kind, const void *data, size_t size)
{
	struct rtattr *at = (struct rtattr *)((char *)head + NLMSG_ALIGN(head->nlmsg_len));

	at->rta_type = (uint16_t)kind;
	at->rta_len = (uint16_t)RTA_LENGTH(size);
	memcpy(RTA_DATA(at), data, size);
	head->nlmsg_len = NLMSG_ALIGN(head->nlmsg_len) + (uint32_t)RTA_ALIGN(RTA_LENGTH(size));
}

static void put_text(struct nlmsghdr *head, int kind, const char *text) { put(head, kind, text, strlen(text) + 1); }

static void put_link(struct nlmsghdr *head, const struct interface *i)
{
	struct ifinfomsg *info = NLMSG_DATA(head);
	struct {
		struct rtattr at;
		char name[128];
	} list = { .at = { .rta_type = IFLA_ALT_IFNAME } };

	head->nlmsg_type = RTM_NEWLINK;
	head->nlmsg_len = NLMSG_LENGTH(sizeof *info);
	*info = (struct ifinfomsg){ .ifi_index = (int)index_of(i->netdev), .ifi_flags = i->flags };
	put_text(head, IFLA_IFNAME, i->netdev);
	if (i->alternative) {
		snprintf(list.name, sizeof list.name, "%s", i->alternative);
		list.at.rta_len = (uint16_t)RTA_LENGTH(strlen(i->alternative) + 1);
		put(head, IFLA_PROP_LIST | NLA_F_NESTED, &list, RTA_ALIGN(list.at.rta_len));
	}
}

static void put_address(struct nlmsghdr *head, const struct interface *i)
{
	struct ifaddrmsg *info = NLMSG_DATA(head);
	bool six = strchr(i->address, ':');
	uint8_t bytes[16];

	head->nlmsg_type = RTM_NEWADDR;
	head->nlmsg_len = NLMSG_LENGTH(sizeof *info);
	*info = (struct ifaddrmsg){ .ifa_family = six ? AF_INET6 : AF_INET, .ifa_index = index_of(i->netdev) };
	assert_int_equal(inet_pton(info->ifa_family, i->address, bytes), 1);
	put(head, IFA_ADDRESS, bytes, six ? 16 : 4);
	if (!six)
		put_text(head, IFA_LABEL, i->label ? i->label : i->netdev);
	put(head, IFA_FLAGS, &i->address_flags, sizeof i->address_flags);
}

/* Whether the dump in progress has a message about it. */
static bool is_dumped(unsigned i)
{
	return dumped == RTM_GETADDR ? interfaces[i].address[0] != 0 : index_of(interfaces[i].netdev) == i + 1;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	struct nlmsghdr *head = bytes;

	if (fd != RTNETLINK_FD)
		return __real_recv(fd, bytes, size, flags);
	while (next < n_interfaces && !is_dumped(next))
		next++;
	*head = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = NLMSG_DONE,
				   .nlmsg_flags = NLM_F_MULTI };
	if (next < n_interfaces && dumped == RTM_GETADDR)
		put_address(head, &interfaces[next++]);
	else if (next < n_interfaces)
		put_link(head, &interfaces[next++]);
	return head->nlmsg_len;
}

int __wrap_close(int fd)
{
	if (fd != RTNETLINK_FD)
		return __real_close(fd);
	sockets_open--;
	return 0;
}

int __wrap_gethostname(char *name, size_t size)
{
	snprintf(name, size, "thishost");
	return 0;
}

void clear_interfaces(void)
{
	n_interfaces = sockets_open = 0;
	list_error = 0;
}

void keep_interfaces(unsigned n) { n_interfaces = n; }

void add_interface(const char *netdev, unsigned flags, const char *address)
{
	assert_in_range(n_interfaces, 0, INTERFACES - 1);
	interfaces[n_interfaces] = (struct interface){ .netdev = netdev, .flags = flags };
	if (address)
		snprintf(interfaces[n_interfaces].address, INET6_ADDRSTRLEN, "%s", address);
	n_interfaces++;
}

void add_alternative_name(const char *name) { interfaces[n_interfaces - 1].alternative = name; }
void set_label(const char *label) { interfaces[n_interfaces - 1].label = label; }
void set_address_flags(unsigned flags) { interfaces[n_interfaces - 1].address_flags = flags; }
