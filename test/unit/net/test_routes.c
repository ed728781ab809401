/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_routes.c - the candidate routes to a destination, made of the kernel's answers, the interfaces, the RDMA
 * devices and the entries of dat.conf, all of which are given here (net/routes.c). Their order is test_order.c's. */
#include "net/entries.h"
#include "net/lookup.h"
#include <linux/rtnetlink.h>
#include <net/if.h>
#include "test/unit/net/ips.h"
#include "test/unit/net/namespace.h"
#include "test/unit/unit.h"

enum { LO = 1, ETH0, ETH1 };	/* interfaces */
enum { SOME = 4 };		/* more than a case needs of anything */

/* --- what the rest of the library finds --------------------------------------------------------- */

static struct net_link links[] = {
	{ .index = LO, .name = "lo", .mtu = 65536, .flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK },
	{ .index = ETH0, .name = "eth0", .mtu = 1500, .flags = IFF_UP | IFF_RUNNING },
	{ .index = ETH1, .name = "eth1", .mtu = 9000, .flags = IFF_UP | IFF_RUNNING },
};
static struct net_address addresses[SOME];
static struct net_rdma ports[SOME];
static struct net_entry entries[SOME];
static size_t entry_count;

/* Answers of the kernel by source address (NULL: any) and interface (0: any); the first that fits is given. */
static struct question {
	const struct net_address *from;
	int index;
	struct net_answer answer;
} questions[8];
static size_t question_count;
static unsigned lookups;

REPLACE(net_entries_read, net_entries_free, net_lookup)

int __wrap_net_entries_read(struct net_entries *to, const struct net_table *table, const struct net_rdma_list *rdma)
{
	*to = (struct net_entries){ .entries = entries, .count = entry_count };
	return namespace_result("entries");
}

void __wrap_net_entries_free(struct net_entries *to)
{
}

int __wrap_net_lookup(struct nl_sock *sock, const struct sockaddr *to, const struct sockaddr *from, int index,
		      struct net_answer *answer)
{
	lookups++;
	*answer = (struct net_answer){ .err = ENETUNREACH };
	for (size_t i = 0; i < question_count; i++)
		if (questions[i].index == index && questions[i].from == (const struct net_address *)from) {
			*answer = questions[i].answer;
			break;
		}
	return namespace_result(from ? "lookup" : "choice");
}

/* --- making a case ------------------------------------------------------------------------------ */

static struct net_address *add_address(int index, const char *text)
{
	struct net_address *to = &addresses[given_table.address_count++];

	*to = (struct net_address){ .address = ip(text), .index = index, .usable = true, .prefix = 24 };
	return to;
}

static void add_entry(const char *ia, const struct net_address *address, uint8_t kind)
{
	entries[entry_count++] = (struct net_entry){ .ia = ia, .soft = kind == DAT_NET_SOFT, .kind = kind,
		.address = address };
}

static void add_port(const char *netdev, unsigned port)
{
	ports[given_ports.count] = (struct net_rdma){ .port = port, .kind = DAT_NET_ROCE };
	strcpy(ports[given_ports.count++].netdev, netdev);
}

/* The kernel's answer for this source: by `index`, over `via`, which may be NULL. */
static struct net_answer *add_answer(const struct net_address *from, int asked, int index, const char *via)
{
	struct question *q = &questions[question_count++];

	*q = (struct question){ .from = from, .index = asked,
		.answer = { .count = 1, .hops = { { .index = index } } } };
	if (via)
		q->answer.hops[0].via = ip(via);
	return &q->answer;
}

UNIT_FIXTURE(set_up)
{
	given_table = (struct net_table){ .links = links, .addresses = addresses,
		.link_count = sizeof links / sizeof *links };
	given_ports = (struct net_rdma_list){ ports, 0 };
	entry_count = question_count = 0;
	failing = NULL;
	lookups = 0;
	for (int i = LO; i <= ETH1; i++)
		links[i - 1].flags |= IFF_UP | IFF_RUNNING;
}

static struct dat_net_route *list;
static size_t count;

/* All candidates, and how many. */
static size_t routes(const char *text, unsigned flags)
{
	struct sockaddr_storage to = ip(text);

	dat_net_free(list);
	list = NULL;
	((struct sockaddr_in *)&to)->sin_port = htons(4711);
	assert_int_equal(dat_net_routes((struct sockaddr *)&to, flags, &list, &count), 0);
	return count;
}

UNIT_FIXTURE(tear_down)
{
	dat_net_free(list);
	list = NULL;
}

/* --- arguments and errors -------------------------------------------------------------------------- */

UNIT_CASE(bad_arguments_are_refused)
{
	struct sockaddr_storage to = ip("192.0.2.9");
	const struct sockaddr *at = (struct sockaddr *)&to;
	struct dat_net_route best;

	assert_int_equal(dat_net_routes(NULL, 0, &list, &count), EINVAL);
	assert_int_equal(dat_net_routes(at, 0, NULL, &count), EINVAL);
	assert_int_equal(dat_net_routes(at, 0, &list, NULL), EINVAL);
	assert_int_equal(dat_net_routes(at, 2, &list, &count), EINVAL);
	assert_int_equal(dat_net_reachable(at, NULL), EINVAL);
	assert_int_equal(dat_net_reachable(NULL, &best), EINVAL);
	assert_int_equal(lookups, 0);
}

UNIT_CASE(destination_must_be_one_host)
{
	static const struct { const char *text; uint32_t scope; int err; } rows[] = {
		{ "192.0.2.9", 0, 0 }, { "223.255.255.255", 0, 0 }, { "224.0.0.1", 0, EINVAL },
		{ "239.255.255.255", 0, EINVAL },
		{ "2001:db8::9", 0, 0 }, { "ff02::1", 2, EINVAL }, { "fe80::9", 0, EINVAL }, { "fe80::9", ETH0, 0 },
	};
	struct sockaddr_storage other = { .ss_family = AF_UNIX };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_storage to = ip(rows[i].text);

		if (to.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&to)->sin6_scope_id = rows[i].scope;
		assert_int_equal(dat_net_routes((struct sockaddr *)&to, 0, &list, &count), rows[i].err);
	}
	assert_int_equal(dat_net_routes((struct sockaddr *)&other, 0, &list, &count), EAFNOSUPPORT);
}

UNIT_CASE(each_failure_is_returned)
{
	static const char *const functions[] = { "open", "table", "rdma", "entries", "choice", "lookup" };
	struct sockaddr_storage to = ip("192.0.2.9");
	struct dat_net_route best;

	add_answer(add_address(ETH0, "192.0.2.1"), 0, ETH0, NULL);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		failing = functions[i];
		assert_int_equal(dat_net_routes((struct sockaddr *)&to, DAT_NET_ALL, &list, &count), ENFILE);
		assert_int_equal(dat_net_reachable((struct sockaddr *)&to, &best), ENFILE);
	}
}

/* --- one candidate --------------------------------------------------------------------------------------- */

UNIT_CASE(way_over_a_router_is_told_in_full)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");
	struct net_answer *answer = add_answer(from, 0, ETH0, "192.0.2.254");

	add_entry("roce", from, DAT_NET_ROCE);
	answer->metric = 7;
	answer->mtu = 1400;
	assert_int_equal(routes("203.0.113.9", 0), 1);
	assert_string_equal(list->ia, "roce");
	assert_string_equal(list->netdev, "eth0");
	assert_ip(&list->local, "192.0.2.1");
	assert_ip(&list->via, "192.0.2.254");
	assert_int_equal(list->mtu, 1400);
	assert_int_equal(list->metric, 7);
	assert_int_equal(list->rank, 0);
	assert_int_equal(list->rdma, DAT_NET_ROCE);
	assert_int_equal(list->why, DAT_NET_OK);
}

/* Without a router the destination is the next hop; its port is none of the hop's. */
UNIT_CASE(destination_on_the_link_is_the_next_hop)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH0, NULL);
	assert_int_equal(routes("192.0.2.9", 0), 1);
	assert_ip(&list->via, "192.0.2.9");
	assert_int_equal(((struct sockaddr_in *)&list->via)->sin_port, 0);
	assert_int_equal(list->mtu, 1500);		/* the interface's, since the route has none */
	question_count = entry_count = given_table.address_count = 0;
	from = add_address(ETH1, "2001:db8::1");
	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH1, NULL);
	assert_int_equal(routes("2001:db8::9", 0), 1);
	assert_ip(&list->via, "2001:db8::9");
	assert_int_equal(((struct sockaddr_in6 *)&list->via)->sin6_port, 0);
	assert_int_equal(((struct sockaddr_in6 *)&list->via)->sin6_scope_id, 0);
}

UNIT_CASE(link_local_hop_has_the_scope_of_its_interface)
{
	const struct net_address *from = add_address(ETH1, "2001:db8::1");

	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH1, "fe80::254");
	assert_int_equal(routes("2001:db8:9::9", 0), 1);
	assert_int_equal(((struct sockaddr_in6 *)&list->via)->sin6_scope_id, ETH1);
}

UNIT_CASE(each_next_hop_is_a_way)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");
	struct net_answer *answer = add_answer(from, 0, ETH0, "192.0.2.253"), *choice;

	add_entry("soft", from, DAT_NET_SOFT);
	answer->hops[1] = (struct net_hop){ .via = ip("192.0.2.254"), .index = ETH0 };
	answer->hops[2] = (struct net_hop){ .index = ETH1 };
	answer->count = 3;
	answer->mtu = 1400;			/* all hops of a route have its MTU */
	choice = add_answer(NULL, 0, ETH0, "192.0.2.254");
	choice->source = from->address;
	assert_int_equal(routes("203.0.113.9", 0), 3);
	assert_ip(&list[0].via, "192.0.2.254");		/* the kernel's choice */
	assert_ip(&list[1].via, "192.0.2.253");
	assert_string_equal(list[2].netdev, "eth1");
	for (uint8_t i = 0; i < 3; i++)
		assert_int_equal(list[i].rank, i);
}

/* --- devices ------------------------------------------------------------------------------------------ */

/* The kernel would send by eth1; a device of eth0 cannot. */
UNIT_CASE(rdma_device_sends_by_its_own_interface)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH1, "198.51.100.254");
	add_answer(from, ETH0, ETH0, "192.0.2.254");
	assert_int_equal(routes("203.0.113.9", DAT_NET_ALL), 1);
	assert_string_equal(list->netdev, "eth0");
	assert_ip(&list->via, "192.0.2.254");
	assert_int_equal(list->why, DAT_NET_OK);
	assert_int_equal(lookups, 3);
}

UNIT_CASE(rdma_device_without_a_route_of_its_own_is_a_miss)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH1, "198.51.100.254");
	add_answer(from, ETH0, 0, NULL)->err = EACCES;
	assert_int_equal(routes("203.0.113.9", 0), 0);
	assert_null(list);
	assert_int_equal(routes("203.0.113.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_PROHIBITED);
	assert_int_equal(list->via.ss_family, 0);
	assert_int_equal(list->rank, 255);
	assert_string_equal(list->ia, "roce");
	assert_ip(&list->local, "192.0.2.1");
}

UNIT_CASE(software_device_sends_as_the_kernel_does)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("soft", from, DAT_NET_SOFT);
	add_answer(from, 0, ETH1, "198.51.100.254");
	assert_int_equal(routes("203.0.113.9", 0), 1);
	assert_string_equal(list->netdev, "eth1");
	assert_int_equal(list->rdma, DAT_NET_SOFT);
}

UNIT_CASE(way_of_this_host_needs_no_interface_of_the_device)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, LO, NULL)->local = true;
	assert_int_equal(routes("192.0.2.1", 0), 1);
	assert_string_equal(list->netdev, "lo");
	assert_int_equal(lookups, 2);
}

UNIT_CASE(address_may_have_both_kinds_of_device)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("soft", from, DAT_NET_SOFT);
	add_entry("roce", from, DAT_NET_ROCE);
	add_answer(from, 0, ETH0, NULL);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 2);
	assert_string_equal(list[0].ia, "roce");
	assert_string_equal(list[1].ia, "soft");
}

UNIT_CASE(missing_entry_is_told_from_missing_device)
{
	add_answer(add_address(ETH0, "192.0.2.1"), 0, ETH0, NULL);
	assert_int_equal(routes("192.0.2.9", 0), 0);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_NO_DEVICE);
	add_port("eth0", 1);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_NO_PROVIDER);
	assert_string_equal(list->ia, "");
}

UNIT_CASE(interface_of_a_device_without_address_is_a_miss)
{
	add_answer(add_address(ETH0, "192.0.2.1"), 0, ETH0, NULL);
	add_address(ETH1, "2001:db8::1");	/* of the other family */
	add_port("eth1", 1);
	add_port("eth1", 2);			/* one interface, told once */
	add_port("gone", 1);
	add_port("eth1", 1);			/* of another device */
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 2);
	assert_string_equal(list[1].netdev, "eth1");
	assert_int_equal(list[1].why, DAT_NET_NO_ADDRESS);
	assert_int_equal(list[1].local.ss_family, 0);
	assert_int_equal(list[1].mtu, 9000);
	links[ETH1 - 1].flags &= ~(unsigned)IFF_RUNNING;
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 2);
	assert_int_equal(list[1].why, DAT_NET_LINK_DOWN);
}

/* --- misses -------------------------------------------------------------------------------------------- */

UNIT_CASE(errors_of_the_kernel_are_reasons)
{
	static const struct {
		int err;
		uint8_t why;
	} rows[] = { { ENETUNREACH, DAT_NET_NO_ROUTE }, { EHOSTUNREACH, DAT_NET_NO_ROUTE },
		{ EACCES, DAT_NET_PROHIBITED }, { EINVAL, DAT_NET_PROHIBITED } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		add_answer(add_address(ETH0, "192.0.2.1"), 0, 0, NULL)->err = rows[i].err;
		assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
		assert_int_equal(list->why, rows[i].why);
	}
}

UNIT_CASE(interface_that_is_down_or_address_in_doubt_is_a_miss)
{
	struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("soft", from, DAT_NET_SOFT);
	add_answer(from, 0, ETH0, NULL);
	from->usable = false;
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_NO_ADDRESS);
	assert_string_equal(list->ia, "soft");
	links[ETH0 - 1].flags &= ~(unsigned)IFF_UP;
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_LINK_DOWN);
	from->usable = true;
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_LINK_DOWN);
	assert_int_equal(lookups, 3);	/* the kernel's choice only: no packet could leave */
}

UNIT_CASE(hop_by_an_interface_that_is_down_is_a_miss)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");

	add_entry("soft", from, DAT_NET_SOFT);
	add_answer(from, 0, ETH1, NULL);
	links[ETH1 - 1].flags &= ~(unsigned)IFF_RUNNING;
	assert_int_equal(routes("192.0.2.9", 0), 0);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 1);
	assert_int_equal(list->why, DAT_NET_LINK_DOWN);
	assert_ip(&list->via, "192.0.2.9");
}

/* --- which sources are of use ----------------------------------------------------------------------------- */

UNIT_CASE(sources_of_the_other_family_are_left_out)
{
	add_answer(add_address(ETH0, "2001:db8::1"), 0, ETH0, NULL);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 0);
	assert_null(list);
}

UNIT_CASE(narrow_source_is_of_use_on_this_host_only)
{
	struct net_address *from = add_address(LO, "127.0.0.1");

	from->scope = RT_SCOPE_HOST;
	add_answer(from, 0, LO, NULL);
	assert_int_equal(routes("192.0.2.9", DAT_NET_ALL), 0);
	add_answer(NULL, 0, LO, NULL)->local = true;
	assert_int_equal(routes("192.0.2.1", DAT_NET_ALL), 1);
	from->usable = false;		/* not even a miss */
	assert_int_equal(routes("192.0.2.1", DAT_NET_ALL), 0);
}

UNIT_CASE(link_local_source_is_of_use_on_its_link_only)
{
	struct sockaddr_storage to = ip("fe80::9");
	const struct net_address *zero = add_address(ETH0, "fe80::1"), *one = add_address(ETH1, "fe80::2");

	add_answer(zero, 0, ETH0, NULL);
	add_answer(zero, ETH0, ETH0, NULL);
	add_answer(one, ETH0, ETH0, NULL);
	assert_int_equal(routes("2001:db8::9", DAT_NET_ALL), 0);
	((struct sockaddr_in6 *)&to)->sin6_scope_id = ETH0;
	assert_int_equal(dat_net_routes((struct sockaddr *)&to, DAT_NET_ALL, &list, &count), 0);
	assert_int_equal(count, 1);
	assert_ip(&list->local, "fe80::1");
}

/* --- reachable -------------------------------------------------------------------------------------------- */

static int reachable(const char *text, struct dat_net_route *best)
{
	struct sockaddr_storage to = ip(text);

	memset(best, 0xee, sizeof *best);
	return dat_net_reachable((struct sockaddr *)&to, best);
}

UNIT_CASE(first_way_is_the_best)
{
	const struct net_address *from = add_address(ETH0, "192.0.2.1");
	struct dat_net_route best;

	add_answer(add_address(ETH1, "198.51.100.1"), 0, ETH1, NULL);
	add_answer(from, 0, ETH0, NULL);
	add_entry("roce", from, DAT_NET_ROCE);
	assert_int_equal(reachable("192.0.2.9", &best), 0);
	assert_string_equal(best.ia, "roce");
	assert_int_equal(best.why, DAT_NET_OK);
}

UNIT_CASE(without_any_way_there_is_no_route)
{
	struct dat_net_route best;

	assert_int_equal(reachable("192.0.2.9", &best), EHOSTUNREACH);
	assert_int_equal(best.why, DAT_NET_NO_ROUTE);
	assert_int_equal(best.local.ss_family, 0);
}

/* A missing line of dat.conf is easier to add than a missing device. */
UNIT_CASE(nearest_miss_is_told)
{
	struct dat_net_route best;

	add_answer(add_address(ETH0, "192.0.2.1"), 0, ETH0, NULL);
	add_answer(add_address(ETH1, "198.51.100.1"), 0, ETH1, NULL);
	add_port("eth1", 1);
	assert_int_equal(reachable("192.0.2.9", &best), EHOSTUNREACH);
	assert_int_equal(best.why, DAT_NET_NO_PROVIDER);
	assert_string_equal(best.netdev, "eth1");
}

UNIT_CASE(loopback_is_the_farthest_miss)
{
	struct net_address *from = add_address(LO, "127.0.0.1");
	struct dat_net_route best;

	add_answer(from, 0, LO, NULL);
	add_answer(add_address(ETH0, "192.0.2.1"), 0, 0, NULL)->err = ENETUNREACH;
	assert_int_equal(reachable("192.0.2.9", &best), EHOSTUNREACH);
	assert_string_equal(best.netdev, "eth0");
	assert_int_equal(best.why, DAT_NET_NO_ROUTE);
}

UNIT_MAIN(NULL, NULL)
