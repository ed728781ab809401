/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lookup.c - the two requests to the kernel by which a route is found, and what is made of their answers
 * (net/lookup.c). */
#include "net/lookup.h"
#include "test/unit/net/answers.h"
#include "test/unit/net/ips.h"
#include "test/unit/unit.h"

enum { ETH0 = 2, ETH1 = 3, HEAD = sizeof(struct rtmsg) };

static struct net_answer answer;

UNIT_FIXTURE(set_up)
{
	memset(&answer, 0xee, sizeof answer);	/* nothing of it is read before it is filled */
}

UNIT_FIXTURE(tear_down) { answers_forget(); }

static int look_up(const char *to, const char *from, int index)
{
	struct sockaddr_storage there = ip(to), here = { 0 };

	if (from)
		here = ip(from);
	return net_lookup(NULL, (struct sockaddr *)&there, from ? (struct sockaddr *)&here : NULL, index, &answer);
}

/* The way to 192.0.2.9 from any address. */
static int find(void) { return look_up("192.0.2.9", NULL, 0); }

/* An answer by this interface and router, which may be NULL, to answer_with(). */
static struct nl_msg *hop(int index, const char *router)
{
	struct nl_msg *msg = message_route(RTM_NEWROUTE, AF_INET, "192.0.2.0", 24);

	message_put_u32(msg, RTA_OIF, (uint32_t)index);
	if (router)
		message_put_ip(msg, RTA_GATEWAY, router);
	return msg;
}

/* An answer with several hops. */
static struct nl_msg *hops(const struct rtnexthop *list, size_t count)
{
	struct nl_msg *msg = message_route(RTM_NEWROUTE, AF_INET, "192.0.2.0", 24);

	message_put(msg, RTA_MULTIPATH, list, count * sizeof *list);
	return msg;
}

static struct nl_msg *of_type(struct nl_msg *msg, unsigned char type)
{
	((struct rtmsg *)nlmsg_data(nlmsg_hdr(msg)))->rtm_type = type;
	return msg;
}

static void put_mtu(struct nl_msg *msg, uint32_t mtu)
{
	struct nlattr *metrics = nla_nest_start(msg, RTA_METRICS);

	message_put_u32(msg, RTAX_MTU, mtu);
	nla_nest_end(msg, metrics);
}

/* --- the requests ------------------------------------------------------------------------------------ */

static void assert_address(size_t i, int kind, const char *text)
{
	const struct nlattr *found = request_attribute(i, HEAD, kind);
	struct sockaddr_storage expected;
	const uint8_t *bytes;
	size_t length;

	if (!text) {
		assert_null(found);
		return;
	}
	expected = ip(text);
	bytes = net_bytes((struct sockaddr *)&expected, &length);
	assert_int_equal(nla_len(found), length);
	assert_memory_equal(nla_data(found), bytes, length);
}

UNIT_CASE(requests_name_destination_source_and_interface)
{
	static const struct { const char *to, *from; int index, family, bits; } rows[] = {
		{ "192.0.2.9", NULL, 0, AF_INET, 32 }, { "192.0.2.9", "192.0.2.1", ETH1, AF_INET, 32 },
		{ "2001:db8::9", "2001:db8::1", 0, AF_INET6, 128 }, { "2001:db8::9", NULL, ETH0, AF_INET6, 128 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		answers_forget();
		answer_with(hop(ETH0, NULL), 0);
		answer_with(hop(ETH0, NULL), 0);
		assert_int_equal(look_up(rows[i].to, rows[i].from, rows[i].index), 0);
		assert_int_equal(request_count, 2);
		for (size_t j = 0; j < 2; j++) {
			const struct rtmsg *head = request_head(j);
			const struct nlattr *index = request_attribute(j, HEAD, RTA_OIF);

			assert_int_equal(nlmsg_hdr(requests[j])->nlmsg_type, RTM_GETROUTE);
			assert_int_equal(head->rtm_family, rows[i].family);
			assert_int_equal(head->rtm_dst_len, rows[i].bits);
			assert_int_equal(head->rtm_src_len, rows[i].from ? rows[i].bits : 0);
			assert_int_equal(head->rtm_flags, RTM_F_LOOKUP_TABLE | (j ? RTM_F_FIB_MATCH : 0));
			assert_address(j, RTA_DST, rows[i].to);
			assert_address(j, RTA_SRC, rows[i].from);
			assert_int_equal(index ? nla_get_u32(index) : 0, rows[i].index);
		}
	}
}

/* --- the answers ------------------------------------------------------------------------------------- */

UNIT_CASE(first_answer_has_source_and_mtu_second_has_the_metric)
{
	struct nl_msg *first = hop(ETH0, "192.0.2.254"), *second = hop(ETH0, "192.0.2.254");

	message_put_ip(first, RTA_PREFSRC, "192.0.2.1");
	message_put_u32(first, RTA_PRIORITY, 7);
	put_mtu(first, 1400);
	message_put_ip(second, RTA_PREFSRC, "192.0.2.2");
	message_put_u32(second, RTA_PRIORITY, 100);
	put_mtu(second, 1300);
	answer_with(first, 0);
	answer_with(second, 0);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.err, 0);
	assert_false(answer.local);
	assert_ip(&answer.source, "192.0.2.1");
	assert_int_equal(answer.mtu, 1400);
	assert_int_equal(answer.metric, 100);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.hops[0].index, ETH0);
	assert_ip(&answer.hops[0].via, "192.0.2.254");
}

UNIT_CASE(route_without_mtu_source_and_router_has_none)
{
	answer_with(hop(ETH0, NULL), 0);
	answer_with(hop(ETH0, NULL), 0);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.mtu, 0);
	assert_int_equal(answer.metric, 0);
	assert_ip(&answer.source, NULL);
	assert_ip(&answer.hops[0].via, NULL);
}

/* The hop that the kernel takes is that of the first answer, and the first of the list. */
UNIT_CASE(each_hop_is_told_once)
{
	static const struct { int index; const char *router; size_t count; } rows[] = {
		{ ETH0, "192.0.2.254", 1 }, { ETH1, "192.0.2.254", 2 }, { ETH0, "192.0.2.253", 2 }, { ETH0, NULL, 2 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		answers_forget();
		answer_with(hop(ETH0, "192.0.2.254"), 0);
		answer_with(hop(rows[i].index, rows[i].router), 0);
		assert_int_equal(find(), 0);
		assert_int_equal(answer.count, rows[i].count);
		assert_int_equal(answer.hops[0].index, ETH0);
		assert_ip(&answer.hops[0].via, "192.0.2.254");
		assert_int_equal(answer.hops[answer.count - 1].index, rows[i].index);
		assert_ip(&answer.hops[answer.count - 1].via, rows[i].router);
	}
}

UNIT_CASE(dead_hops_are_left_out)
{
	static const struct rtnexthop list[] = {
		{ .rtnh_len = sizeof *list, .rtnh_ifindex = 7, .rtnh_flags = RTNH_F_DEAD },
		{ .rtnh_len = sizeof *list, .rtnh_ifindex = ETH1, .rtnh_flags = RTNH_F_ONLINK },
	};

	answer_with(hop(ETH0, NULL), 0);
	answer_with(hops(list, 2), 0);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.count, 2);
	assert_int_equal(answer.hops[1].index, ETH1);
}

UNIT_CASE(hops_beyond_the_room_are_left_out)
{
	struct rtnexthop list[NET_HOPS + 1];

	for (int i = 0; i < NET_HOPS + 1; i++)
		list[i] = (struct rtnexthop){ .rtnh_len = sizeof *list, .rtnh_ifindex = 100 + i };
	answer_with(hop(100, NULL), 0);
	answer_with(hops(list, NET_HOPS + 1), 0);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.count, NET_HOPS);
	for (int i = 0; i < NET_HOPS; i++)
		assert_int_equal(answer.hops[i].index, 100 + i);
}

UNIT_CASE(router_may_have_the_other_family)
{
	struct sockaddr_storage router = ip("fe80::1");
	struct nl_msg *msg = hop(ETH0, NULL);
	uint8_t via[2 + 16] = { AF_INET6 };
	size_t length;

	memcpy(via + 2, net_bytes((struct sockaddr *)&router, &length), 16);
	message_put(msg, RTA_VIA, via, sizeof via);
	answer_with(msg, 0);
	answer_with(NULL, ENETUNREACH);
	assert_int_equal(find(), 0);
	assert_ip(&answer.hops[0].via, "fe80::1");
}

UNIT_CASE(local_destination_needs_no_second_request)
{
	answer_with(of_type(hop(ETH0, NULL), RTN_LOCAL), 0);
	assert_int_equal(find(), 0);
	assert_true(answer.local);
	assert_int_equal(answer.err, 0);
	assert_int_equal(answer.hops[0].index, ETH0);
}

/* --- no route ---------------------------------------------------------------------------------------- */

UNIT_CASE(errors_of_the_kernel_tell_why_there_is_no_route)
{
	static const int errors[] = { ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENETDOWN, ENODEV, ENOENT };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		answers_forget();
		answer_with(NULL, errors[i]);
		assert_int_equal(find(), 0);
		assert_int_equal(answer.err, errors[i]);
		assert_int_equal(answer.count, 0);
	}
}

/* IPv6 answers so, where IPv4 answers with an error. */
UNIT_CASE(types_of_routes_tell_why_there_is_no_route)
{
	static const struct { unsigned char type; int err; } rows[] = {
		{ RTN_UNREACHABLE, EHOSTUNREACH }, { RTN_PROHIBIT, EACCES }, { RTN_BLACKHOLE, EINVAL },
		{ RTN_THROW, ENETUNREACH },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		answers_forget();
		answer_with(of_type(hop(ETH0, NULL), rows[i].type), 0);
		assert_int_equal(find(), 0);
		assert_int_equal(answer.err, rows[i].err);
		assert_int_equal(answer.count, 0);
	}
}

UNIT_CASE(answer_without_a_hop_is_no_route)
{
	answer_with(NULL, 0);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.err, ENETUNREACH);
}

UNIT_CASE(failures_that_say_nothing_of_routes_are_returned)
{
	static const int errors[] = { ENOMEM, EPERM, EIO, EINTR };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		answers_forget();
		answer_with(NULL, errors[i]);
		assert_int_equal(find(), errors[i]);
		answers_forget();
		answer_with(hop(ETH0, NULL), 0);
		answer_with(NULL, errors[i]);
		assert_int_equal(find(), errors[i]);
	}
}

/* The route may go between the two requests; kernels before 4.13 have no second one. */
UNIT_CASE(first_answer_is_enough)
{
	answer_with(hop(ETH0, "192.0.2.254"), 0);
	answer_with(NULL, EHOSTUNREACH);
	assert_int_equal(find(), 0);
	assert_int_equal(answer.err, 0);
	assert_int_equal(answer.count, 1);
}

UNIT_MAIN(NULL, NULL)
