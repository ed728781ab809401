/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_netlink.c - messages that libnl would not survive do not reach it (net/netlink.c). */
#include "net/netlink.h"
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { ENDLESS_S = 5 };	/* ends a test in which libnl allocates without end, before it has all memory */

static void count(struct nl_object *object, void *arg)
{
	*(int *)arg += rtnl_route_get_nnexthops((struct rtnl_route *)object);
}

/* How many hops are read from a message with two that tell these lengths. */
static int hops_of(uint16_t first, uint16_t second, int *nle)
{
	struct rtnexthop hops[2] = { { .rtnh_len = first, .rtnh_ifindex = 1 },
				     { .rtnh_len = second, .rtnh_ifindex = 1 } };
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWROUTE, 0);
	int found = 0;

	nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO);
	nla_put(msg, RTA_MULTIPATH, sizeof hops, hops);
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	alarm(ENDLESS_S);
	*nle = net_parse(msg, count, &found);
	alarm(0);
	nlmsg_free(msg);
	return found;
}

static void whole_hops_are_read(void **state)
{
	int nle;

	(void)state;
	assert_int_equal(hops_of(8, 8, &nle), 2);
	assert_int_equal(nle, 0);
}

static void hops_without_length_are_refused(void **state)
{
	static const uint16_t bad[][2] = { { 0, 8 }, { 8, 0 }, { 0, 0 }, { 7, 8 }, { 8, 1 } };
	int nle;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(hops_of(bad[i][0], bad[i][1], &nle), 0);
		assert_int_equal(net_errno(nle), EINVAL);
	}
}

/* The padding of a hop reaches beyond the attribute. */
static void hop_without_padding_is_refused(void **state)
{
	struct rtnexthop hop = { .rtnh_len = sizeof hop + 1, .rtnh_ifindex = 1 };
	struct rtmsg head = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWROUTE, 0);
	char bytes[sizeof hop + 1] = { 0 };
	int found = 0;

	(void)state;
	memcpy(bytes, &hop, sizeof hop);
	nlmsg_append(msg, &head, sizeof head, NLMSG_ALIGNTO);
	nla_put(msg, RTA_MULTIPATH, sizeof bytes, bytes);
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	assert_int_equal(net_errno(net_parse(msg, count, &found)), EINVAL);
	assert_int_equal(found, 0);
	nlmsg_free(msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_hops_are_read),
		cmocka_unit_test(hops_without_length_are_refused),
		cmocka_unit_test(hop_without_padding_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
