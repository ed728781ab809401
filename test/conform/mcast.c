/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - multicast groups of datagram endpoints. Other processes, and links: test/net/mcast.c. */
#include "pair.h"
#include <dat/dat_mcast_extensions.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
enum { HEADER = 40 };

struct group {
	struct sockaddr_storage address;
};

/* Returns the address of a group that only this process uses: its number is in it. */
static struct group a_group(uint8_t number)
{
	struct group group = { .address.ss_family = ia_attr()->ia_address_ptr->sa_family };
	struct sockaddr_in *in = (struct sockaddr_in *)&group.address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&group.address;
	uint32_t own = (uint32_t)getpid() % 65536 << 8 | number;

	if (group.address.ss_family == AF_INET) {
		in->sin_addr.s_addr = htonl(239u << 24 | own);
	} else {
		in6->sin6_addr.s6_addr[0] = 0xff;
		in6->sin6_addr.s6_addr[1] = 0x05;
		in6->sin6_addr.s6_addr32[3] = htonl(own);
	}
	return group;
}

static const struct sockaddr *at(const struct group *group)
{
	return (const struct sockaddr *)&group->address;
}

static void join(const struct end *end, const struct group *group, DAT_UINT32 flags, uint64_t name)
{
	OK(dat_mcast_join(end->ep, at(group), flags, (DAT_CONTEXT){ .as_64 = name }));
}

static DAT_IB_ADDR_HANDLE joined(const struct end *end, const struct group *group, uint64_t name)
{
	DAT_EVENT event = EVENT(end->conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	const struct sockaddr *where;

	EQUAL(event.event_data.connect_event_data.ep_handle, end->ep);
	EQUAL(extension(&event)->type, DAT_IB_UD_REMOTE_AH);
	EQUAL(extension(&event)->status, DAT_OP_SUCCESS);
	EQUAL(extension(&event)->context.as_64, name);
	HOLDS(extension(&event)->remote_ah.ah != NULL);
	where = (const struct sockaddr *)&extension(&event)->remote_ah.ia_addr;
	EQUAL(where->sa_family, group->address.ss_family);
	return extension(&event)->remote_ah;
}

static DAT_IB_ADDR_HANDLE member_of(const struct end *end, const struct group *group)
{
	join(end, group, 0, 1);
	return joined(end, group, 1);
}

static void send_to(const struct end *end, DAT_IB_ADDR_HANDLE *to, size_t length, uint64_t cookie)
{
	fill(end->mem.at + 32768, length, cookie);
	OK(dat_ib_post_send_ud(end->ep, 1, SEGMENT(&end->mem, 32768, length), to, COOKIE(cookie),
			       DEFAULT));
	DAT_EVENT event = EVENT(end->request, DAT_IB_DTO_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* The next datagram must be the one that was sent with this cookie. A receive was posted at offset 0. */
static void receives(const struct end *end, size_t length, uint64_t cookie)
{
	DAT_EVENT event = EVENT(end->recv, DAT_IB_DTO_EVENT);

	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.transfered_length, HEADER + length);
	EQUAL(extension(&event)->type, DAT_IB_UD_RECV);
	HOLDS(is_filled(end->mem.at + HEADER, length, cookie));
}

/* Some devices give the sender its own datagrams. */
static void post_receives(const struct end *ends, int n)
{
	for (int i = 0; i < n; i++)
		post_recv(&ends[i], 0, 4096, 1);
}

TEST("EXT-35", a_datagram_reaches_all_other_members)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end ends[] = { a_ud_end(), a_ud_end(), a_ud_end() };
	struct group group = a_group(1);
	DAT_IB_ADDR_HANDLE to[3];

	for (int i = 0; i < 3; i++)
		join(&ends[i], &group, 0, 10 + i);
	for (int i = 0; i < 3; i++) {
		to[i] = joined(&ends[i], &group, 10 + i);
		STATE(ends[i].ep, DAT_EP_STATE_CONNECTED);
	}
	post_receives(ends + 1, 2);
	send_to(&ends[0], &to[0], 100, 1);
	receives(&ends[1], 100, 1);
	receives(&ends[2], 100, 1);
	post_receives(ends + 1, 1);
	send_to(&ends[2], &to[2], 1000, 2);
	receives(&ends[1], 1000, 2);
}

TEST("EXT-35", a_sender_does_not_receive_its_own_datagram)
{
	needs_attr(DAT_MCAST_ATTR);
	if (device_is("rxe"))
		skip("this device gives a sender its own datagrams");
	struct end ends[] = { a_ud_end(), a_ud_end() };
	struct group group = a_group(1);
	DAT_IB_ADDR_HANDLE to = member_of(&ends[0], &group);

	member_of(&ends[1], &group);
	post_receives(ends, 2);
	send_to(&ends[0], &to, 100, 1);
	receives(&ends[1], 100, 1);
	NO_EVENT(ends[0].recv);
}

TEST("EXT-36", a_member_that_leaves_receives_nothing_more)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end ends[] = { a_ud_end(), a_ud_end(), a_ud_end() };
	struct group group = a_group(1);
	DAT_IB_ADDR_HANDLE to = member_of(&ends[0], &group), left = member_of(&ends[1], &group);

	member_of(&ends[2], &group);
	OK(dat_mcast_leave(ends[1].ep, at(&group)));
	FAILS(dat_ib_post_send_ud(ends[1].ep, 1, SEGMENT(&ends[1].mem, 0, 8), &left, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER);
	post_receives(ends + 1, 2);
	send_to(&ends[0], &to, 64, 3);
	receives(&ends[2], 64, 3);
	NO_EVENT(ends[1].recv);
	member_of(&ends[1], &group);	/* and once more */
	send_to(&ends[0], &to, 65, 4);
	receives(&ends[1], 65, 4);
}

TEST("EXT-36", leaving_while_joining_gives_no_event)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end end = a_ud_end();
	struct group group = a_group(1), other = a_group(2);
	bool came = false;

	for (int i = 0; i < 20; i++) {
		DAT_EVENT event;
		DAT_COUNT more;

		join(&end, &group, 0, 7);
		OK(dat_mcast_leave(end.ep, at(&group)));
		join(&end, &other, 0, 8);
		came |= dat_evd_wait(end.conn, 60000000, 1, &event, &more) == DAT_SUCCESS;
		if (extension(&event)->context.as_64 == 7)	/* it came before the call */
			joined(&end, &other, 8);
		else
			EQUAL(extension(&event)->context.as_64, 8);
		OK(dat_mcast_leave(end.ep, at(&other)));
	}
	HOLDS(came);
	NO_EVENT(end.conn);
}

TEST("EXT-36", a_freed_endpoint_leaves_its_groups)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end ends[] = { a_ud_end(), a_ud_end(), a_ud_end() };
	struct group group = a_group(1), other = a_group(2), joining = a_group(3);
	DAT_IB_ADDR_HANDLE to = member_of(&ends[0], &group);

	member_of(&ends[1], &group);
	member_of(&ends[2], &group);
	member_of(&ends[1], &other);
	join(&ends[1], &joining, 0, 1);
	post_receives(ends + 1, 2);
	OK(dat_ep_free(ends[1].ep));
	send_to(&ends[0], &to, 500, 5);
	receives(&ends[2], 500, 5);
	OK(dat_lmr_free(ends[1].mem.lmr));
	OK(dat_pz_free(ends[1].pz));
}

TEST("EXT-37", the_arguments_of_join_and_leave_are_checked)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end end = a_ud_end(), rc = AN_END();
	struct group group = a_group(1), other = a_group(2);
	struct sockaddr_in one = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct group foreign = group;
	DAT_CONTEXT none = { 0 };

	FAILS(dat_mcast_join(rc.ep, at(&group), 0, none), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	FAILS(dat_mcast_join(end.ep, NULL, 0, none), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_mcast_join(end.ep, (struct sockaddr *)&one, 0, none),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_mcast_join(end.ep, (struct sockaddr *)&six, 0, none),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	one.sin_addr.s_addr = htonl(0xef010203);
	six.sin6_addr.s6_addr[0] = 0xff;
	if (group.address.ss_family == AF_INET)
		memcpy(&foreign.address, &six, sizeof(six));
	else
		memcpy(&foreign.address, &one, sizeof(one));
	FAILS(dat_mcast_join(end.ep, at(&foreign), 0, none), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_mcast_join(end.ep, at(&group), 2, none), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_mcast_leave(end.ep, at(&group)), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_mcast_leave(rc.ep, at(&group)), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	FAILS(dat_mcast_leave(end.ep, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	STATE(end.ep, DAT_EP_STATE_UNCONNECTED);
	join(&end, &group, 0, 1);
	FAILS(dat_mcast_join(end.ep, at(&group), 0, none), DAT_INVALID_STATE);
	joined(&end, &group, 1);
	FAILS(dat_mcast_join(end.ep, at(&group), 0, none), DAT_INVALID_STATE);
	FAILS(dat_mcast_leave(end.ep, at(&other)), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	OK(dat_mcast_leave(end.ep, at(&group)));
	FAILS(dat_mcast_leave(end.ep, at(&group)), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	OK(dat_ep_free(end.ep));
	FAILS(dat_mcast_join(end.ep, at(&group), 0, none), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	FAILS(dat_mcast_leave(end.ep, at(&group)), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

TEST("EXT-38", an_endpoint_that_only_sends_receives_nothing)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end ends[] = { a_ud_end(), a_ud_end(), a_ud_end() };
	struct group group = a_group(1);
	DAT_IB_ADDR_HANDLE from_0, from_1;

	join(&ends[0], &group, DAT_MCAST_SEND_ONLY, 1);
	from_0 = joined(&ends[0], &group, 1);
	from_1 = member_of(&ends[1], &group);
	member_of(&ends[2], &group);
	post_receives(ends, 3);
	send_to(&ends[0], &from_0, 30, 6);
	receives(&ends[1], 30, 6);
	receives(&ends[2], 30, 6);
	post_receives(ends + 2, 1);
	send_to(&ends[1], &from_1, 31, 7);
	receives(&ends[2], 31, 7);
	NO_EVENT(ends[0].recv);
}

TEST("EXT-39", an_ia_without_multicast_says_so)
{
	if (named_attr(DAT_MCAST_ATTR))
		skip("there is multicast");
	struct group group = a_group(1);
	DAT_CONTEXT none = { 0 };
	struct end end = AN_END();

	FAILS(dat_mcast_join(end.ep, at(&group), 0, none), DAT_NOT_IMPLEMENTED);
	FAILS(dat_mcast_leave(end.ep, at(&group)), DAT_NOT_IMPLEMENTED);
}

TEST("EXT-40", groups_are_kept_apart)
{
	needs_attr(DAT_MCAST_ATTR);
	struct end ends[] = { a_ud_end(), a_ud_end(), a_ud_end(), a_ud_end() };
	struct group one = a_group(1), two = a_group(2);
	DAT_IB_ADDR_HANDLE to_one, to_two;

	join(&ends[0], &one, DAT_MCAST_SEND_ONLY, 1);
	to_one = joined(&ends[0], &one, 1);
	join(&ends[0], &two, DAT_MCAST_SEND_ONLY, 2);
	to_two = joined(&ends[0], &two, 2);
	member_of(&ends[1], &one);
	member_of(&ends[2], &two);
	member_of(&ends[3], &one);
	member_of(&ends[3], &two);
	post_receives(ends + 1, 3);
	send_to(&ends[0], &to_one, 40, 8);
	receives(&ends[1], 40, 8);
	receives(&ends[3], 40, 8);
	NO_EVENT(ends[2].recv);
	post_receives(ends + 1, 1);
	post_receives(ends + 3, 1);
	send_to(&ends[0], &to_two, 41, 9);
	receives(&ends[2], 41, 9);
	receives(&ends[3], 41, 9);
	NO_EVENT(ends[1].recv);
}
