/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - see messages.h. */
#include <net/if_arp.h>
#include "net/netlink.h"
#include "test/unit/net/ips.h"
#include "test/unit/net/messages.h"
#include "test/unit/unit.h"

struct nl_msg *message_new(int type, int flags, const void *head, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags);

	assert_non_null(msg);
	assert_int_equal(nlmsg_append(msg, (void *)(uintptr_t)head, size, NLMSG_ALIGNTO), 0);
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	return msg;
}

void message_put(struct nl_msg *msg, int kind, const void *data, size_t size)
{
	assert_int_equal(nla_put(msg, kind, (int)size, data), 0);
}

void message_put_u32(struct nl_msg *msg, int kind, uint32_t value) { message_put(msg, kind, &value, sizeof value); }

void message_put_text(struct nl_msg *msg, int kind, const char *text)
{
	message_put(msg, kind, text, strlen(text) + 1);
}

void message_put_ip(struct nl_msg *msg, int kind, const char *text)
{
	struct sockaddr_storage address = ip(text);
	size_t length;
	const uint8_t *bytes = net_bytes((struct sockaddr *)&address, &length);

	message_put(msg, kind, bytes, length);
}

void message_put_lladdr(struct nl_msg *msg, int kind, uint8_t first, size_t size)
{
	uint8_t bytes[64];

	assert_true(size <= sizeof bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(first + i);
	message_put(msg, kind, bytes, size);
}

struct nl_msg *message_cut(struct nl_msg *msg, size_t length)
{
	struct nl_msg *cut;

	assert_true(length <= nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_hdr(msg)->nlmsg_len = (uint32_t)length;
	cut = nlmsg_convert(nlmsg_hdr(msg));
	assert_non_null(cut);
	nlmsg_set_proto(cut, NETLINK_ROUTE);
	nlmsg_free(msg);
	return cut;
}

struct nl_msg *message_link(int type, int index, const char *name, uint32_t mtu, unsigned flags)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_type = ARPHRD_ETHER, .ifi_index = index,
		.ifi_flags = flags };
	struct nl_msg *msg = message_new(type, 0, &head, sizeof head);

	if (name)
		message_put_text(msg, IFLA_IFNAME, name);
	message_put_u32(msg, IFLA_MTU, mtu);
	message_put_lladdr(msg, IFLA_ADDRESS, (uint8_t)index, 6);
	return msg;
}

struct nl_msg *message_address(int type, int index, const char *text, uint8_t prefix)
{
	const struct ifaddrmsg head = { .ifa_family = (uint8_t)ip(text).ss_family, .ifa_prefixlen = prefix,
		.ifa_index = (uint32_t)index };
	struct nl_msg *msg = message_new(type, 0, &head, sizeof head);

	message_put_ip(msg, IFA_LOCAL, text);
	return msg;
}

struct nl_msg *message_neighbour(int type, int index, const char *address, int state)
{
	const struct ndmsg head = { .ndm_family = (unsigned char)ip(address).ss_family, .ndm_ifindex = index,
		.ndm_state = (uint16_t)state, .ndm_type = RTN_UNICAST };
	struct nl_msg *msg = message_new(type, 0, &head, sizeof head);

	message_put_ip(msg, NDA_DST, address);
	return msg;
}

struct nl_msg *message_route(int type, int family, const char *to, uint8_t prefix)
{
	const struct rtmsg head = { .rtm_family = (unsigned char)family, .rtm_dst_len = prefix,
		.rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC, .rtm_type = RTN_UNICAST };
	struct nl_msg *msg = message_new(type, 0, &head, sizeof head);

	if (to)
		message_put_ip(msg, RTA_DST, to);
	return msg;
}
