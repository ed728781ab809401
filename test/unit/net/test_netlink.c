/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_netlink.c - messages that libnl would not survive do not reach it (net/netlink.c). */
#include "net/netlink.h"
#include "test/unit/unit.h"
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

enum { ENDLESS_S = 5 };	/* ends a test in which libnl allocates without end, before it has all memory */

static void count(struct nl_object *object, void *arg)
{
	*(int *)arg += rtnl_route_get_nnexthops((struct rtnl_route *)object);
}

/* How many hops are read from a route with this attribute. */
static int hops_in(int type, const void *bytes, int length, int *nle)
{
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWROUTE, 0);
	int found = 0;

	nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO);
	nla_put(msg, type, length, bytes);
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	alarm(ENDLESS_S);
	*nle = net_parse(msg, count, &found);
	alarm(0);
	nlmsg_free(msg);
	return found;
}

/* A route of two hops with these lengths. */
static int hops_of(uint16_t first, uint16_t second, int *nle)
{
	struct rtnexthop hops[2] = { { .rtnh_len = first, .rtnh_ifindex = 1 },
				     { .rtnh_len = second, .rtnh_ifindex = 1 } };

	return hops_in(RTA_MULTIPATH, hops, sizeof hops, nle);
}

UNIT_TEST(whole_hops_are_read)
{
	int nle;

	assert_int_equal(hops_of(8, 8, &nle), 2);
	assert_int_equal(nle, 0);
}

UNIT_TEST(hops_without_length_are_refused)
{
	static const uint16_t bad[][2] = { { 0, 8 }, { 8, 0 }, { 0, 0 }, { 7, 8 }, { 8, 1 } };
	int nle;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(hops_of(bad[i][0], bad[i][1], &nle), 0);
		assert_int_equal(net_errno(nle), EINVAL);
	}
}

/* The padding of a hop reaches beyond the attribute. */
UNIT_TEST(hop_without_padding_is_refused)
{
	struct rtnexthop hop = { .rtnh_len = sizeof hop + 1, .rtnh_ifindex = 1 };
	char bytes[sizeof hop + 1] = { 0 };
	int nle;

	memcpy(bytes, &hop, sizeof hop);
	assert_int_equal(hops_in(RTA_MULTIPATH, bytes, sizeof bytes, &nle), 0);
	assert_int_equal(net_errno(nle), EINVAL);
}

/* RTA_VIA: a family, and an address of it. */
static const uint8_t via[6] = { AF_INET, 0, 192, 0, 2, 9 };

UNIT_TEST(router_of_another_family_is_whole)
{
	int nle;

	assert_int_equal(hops_in(RTA_VIA, via, sizeof via, &nle), 1);
	assert_int_equal(nle, 0);
	for (int length = 0; length < 2; length++) {
		assert_int_equal(hops_in(RTA_VIA, via, length, &nle), 0);
		assert_int_equal(net_errno(nle), EINVAL);
	}
}

UNIT_TEST(router_of_a_hop_is_whole)
{
	struct {
		struct rtnexthop hop;
		struct nlattr attribute;
		uint8_t via[8];
	} hop = { { .rtnh_len = sizeof hop, .rtnh_ifindex = 1 }, { .nla_type = RTA_VIA }, { 0 } };
	int nle;

	memcpy(hop.via, via, sizeof via);
	hop.attribute.nla_len = sizeof hop.attribute + sizeof via;
	assert_int_equal(hops_in(RTA_MULTIPATH, &hop, sizeof hop, &nle), 1);
	assert_int_equal(nle, 0);
	hop.attribute.nla_len = sizeof hop.attribute + 1;
	assert_int_equal(hops_in(RTA_MULTIPATH, &hop, sizeof hop, &nle), 0);
	assert_int_equal(net_errno(nle), EINVAL);
}

UNIT_MAIN(NULL, NULL)
