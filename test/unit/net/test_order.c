/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_order.c - the order of the candidate routes to a destination (net/order.c). */
#include "net/order.h"
#include <linux/rtnetlink.h>
#include "test/unit/net/ips.h"
#include "test/unit/unit.h"

/* A candidate that loses in nothing but its place. */
static struct net_candidate candidate(size_t sequence)
{
	struct net_candidate w = { .sequence = sequence, .scope = RT_SCOPE_UNIVERSE };

	w.route.via.ss_family = AF_INET;
	w.route.mtu = 1500;
	w.route.rdma = DAT_NET_ROCE;
	return w;
}

static void first_is(const struct net_candidate *first, const struct net_candidate *second)
{
	assert_true(net_order_compare(first, second) < 0);
	assert_true(net_order_compare(second, first) > 0);
	assert_int_equal(net_order_compare(first, first), 0);
}

/* Each rule decides although all later ones speak for the other candidate. */
UNIT_TEST(rules_decide_in_their_order)
{
	struct net_candidate a = candidate(9), b = candidate(1);

	first_is(&b, &a);
	a.entry = 1, b.entry = 2;
	first_is(&a, &b);
	b.route.mtu = 9000;
	first_is(&b, &a);
	b.route.metric = 5;
	first_is(&a, &b);
	a.route.rdma = DAT_NET_SOFT;
	first_is(&b, &a);
	a.common = 8;
	first_is(&a, &b);
	a.deprecated = true;
	first_is(&b, &a);
	b.scope = RT_SCOPE_LINK;	/* too narrow for the destination */
	first_is(&a, &b);
	b.same = true;
	first_is(&b, &a);
	a.chosen_source = true;
	first_is(&a, &b);
	a.route.via.ss_family = 0;
	first_is(&b, &a);
}

UNIT_TEST(software_comes_before_nothing)
{
	struct net_candidate a = candidate(2), b = candidate(1);

	a.route.rdma = DAT_NET_SOFT;
	b.route.rdma = DAT_NET_NONE;
	first_is(&a, &b);
}

UNIT_TEST(narrowest_scope_that_holds_the_destination_wins)
{
	struct net_candidate a = candidate(2), b = candidate(1);

	a.to_scope = b.to_scope = RT_SCOPE_LINK;
	a.scope = RT_SCOPE_LINK;
	first_is(&a, &b);
	b.scope = RT_SCOPE_HOST;
	first_is(&a, &b);
}

UNIT_TEST(hop_of_the_kernel_is_first_among_those_of_its_source)
{
	struct net_candidate a = candidate(2), b = candidate(1);

	a.chosen_source = b.chosen_source = a.chosen_hop = true;
	first_is(&a, &b);
}

UNIT_TEST(scopes_are_those_of_the_address)
{
	static const struct { const char *text; int scope; } rows[] = {
		{ "192.0.2.1", RT_SCOPE_UNIVERSE }, { "127.0.0.1", RT_SCOPE_HOST },
		{ "169.254.1.1", RT_SCOPE_LINK }, { "2001:db8::1", RT_SCOPE_UNIVERSE },
		{ "fe80::1", RT_SCOPE_LINK }, { "::1", RT_SCOPE_HOST }, { "fec0::1", RT_SCOPE_SITE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_storage a = ip(rows[i].text);

		assert_int_equal(net_order_scope((struct sockaddr *)&a), rows[i].scope);
	}
}

UNIT_TEST(common_bits_are_counted_up_to_the_limit)
{
	struct sockaddr_storage a = ip("10.1.2.3"), b = ip("10.1.3.3"), c = ip("2001:db8::1");

	assert_int_equal(net_order_common((struct sockaddr *)&a, (struct sockaddr *)&b, 32), 23);
	assert_int_equal(net_order_common((struct sockaddr *)&a, (struct sockaddr *)&b, 16), 16);
	assert_int_equal(net_order_common((struct sockaddr *)&a, (struct sockaddr *)&a, 32), 32);
	assert_int_equal(net_order_common((struct sockaddr *)&a, (struct sockaddr *)&c, 128), 0);
	assert_int_equal(net_order_common((struct sockaddr *)&c, (struct sockaddr *)&c, 128), 128);
}

UNIT_MAIN(NULL, NULL)
