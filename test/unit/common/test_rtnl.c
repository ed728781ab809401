/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rtnl.c - answers of rtnetlink, malformed ones too. A socket pair is in place of the netlink socket. */
#include "common/rtnl.h"
#include "test/unit/unit.h"

static int kernel;		/* its end of the pair */
static int library;
static unsigned taken;		/* messages */
static uint16_t last_kind;

REPLACE(socket)

int __wrap_socket(int domain, int type, int protocol)
{
	assert_int_equal(domain, AF_NETLINK);
	assert_int_equal(type & SOCK_RAW, SOCK_RAW);
	assert_int_equal(protocol, NETLINK_ROUTE);
	return library;
}

UNIT_FIXTURE(set_up)
{
	int pair[2];

	taken = 0;
	last_kind = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	kernel = pair[0];
	library = pair[1];
}

static int tear_down(void **state)
{
	return close(kernel);		/* the library closes the other end */
}

static void take(const struct nlmsghdr *head, void *arg)
{
	assert_ptr_equal(arg, &taken);
	last_kind = head->nlmsg_type;
	taken++;
}

/* --- datagrams --------------------------------------------------------------------------------- */

struct datagram {
	size_t length;
	char bytes[20000] __attribute__((aligned(NLMSG_ALIGNTO)));
};
static struct datagram next;

/* Adds a message with room for an error number. */
static struct nlmsghdr *add(uint16_t kind, uint16_t flags, int error)
{
	struct nlmsghdr *head = (struct nlmsghdr *)(next.bytes + next.length);

	*head = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(sizeof error), .nlmsg_type = kind, .nlmsg_flags = flags };
	memcpy(NLMSG_DATA(head), &error, sizeof error);
	next.length += NLMSG_SPACE(sizeof error);
	return head;
}

static void queue(size_t length)
{
	assert_int_equal(write(kernel, next.bytes, length), length);
	next.length = 0;
}

/* Nothing comes after what is queued: the library gets a datagram of 0 bytes instead. */
static int request(void)
{
	struct nlmsghdr head = { .nlmsg_len = sizeof head, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST };

	shutdown(kernel, SHUT_WR);
	return rtnl_request(&head, take, &taken);
}

static void answer_gives(int result, unsigned answers)
{
	queue(next.length);
	assert_int_equal(request(), result);
	assert_int_equal(taken, answers);
}

UNIT_CASE(one_answer_ends_a_request)
{
	struct nlmsghdr sent;

	add(RTM_NEWLINK, 0, 0);
	add(RTM_NEWADDR, 0, 0);
	answer_gives(0, 1);
	assert_int_equal(last_kind, RTM_NEWLINK);
	assert_int_equal(read(kernel, &sent, sizeof sent), sizeof sent);
	assert_int_equal(sent.nlmsg_type, RTM_GETLINK);
}

UNIT_CASE(dump_goes_on_until_done)
{
	add(RTM_NEWLINK, NLM_F_MULTI, 0);
	add(RTM_NEWLINK, NLM_F_MULTI, 0);
	queue(next.length);
	add(RTM_NEWADDR, NLM_F_MULTI, 0);
	add(NLMSG_DONE, NLM_F_MULTI, 0);
	answer_gives(0, 3);
	assert_int_equal(last_kind, RTM_NEWADDR);
}

UNIT_CASE(error_number_is_returned)
{
	add(NLMSG_ERROR, 0, -EPERM);
	answer_gives(EPERM, 0);
}

UNIT_CASE(acknowledgement_is_no_error)
{
	add(NLMSG_ERROR, 0, 0);
	answer_gives(0, 0);
}

UNIT_CASE(interrupted_dump_is_told)
{
	add(RTM_NEWLINK, NLM_F_MULTI | NLM_F_DUMP_INTR, 0);
	add(RTM_NEWLINK, NLM_F_MULTI, 0);
	add(NLMSG_DONE, NLM_F_MULTI, 0);
	answer_gives(EINTR, 2);
}

/* --- malformed datagrams ----------------------------------------------------------------------- */

UNIT_CASE(error_without_number_is_malformed)
{
	add(NLMSG_ERROR, 0, -EPERM)->nlmsg_len = NLMSG_HDRLEN;
	queue(NLMSG_HDRLEN);
	assert_int_equal(request(), EBADMSG);
}

UNIT_CASE(header_that_is_cut_is_malformed)
{
	add(RTM_NEWLINK, 0, 0);
	queue(NLMSG_HDRLEN - 1);
	assert_int_equal(request(), EBADMSG);
	assert_int_equal(taken, 0);
}

UNIT_CASE(length_outside_of_the_datagram_is_malformed)
{
	static const uint32_t lengths[] = { 0, NLMSG_HDRLEN - 1, NLMSG_SPACE(sizeof(int)) + 1, UINT32_MAX };

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		add(RTM_NEWLINK, 0, 0)->nlmsg_len = lengths[i];
		answer_gives(EBADMSG, 0);
		tear_down(state);
		set_up(state);
	}
}

/* The first message is good, and is taken. */
UNIT_CASE(dump_that_ends_too_early_is_malformed)
{
	add(RTM_NEWLINK, NLM_F_MULTI, 0);
	add(RTM_NEWLINK, NLM_F_MULTI, 0)->nlmsg_len = UINT32_MAX;
	answer_gives(EBADMSG, 1);
}

UNIT_CASE(datagram_longer_than_the_buffer_is_an_error)
{
	add(RTM_NEWLINK, 0, 0);
	queue(16385);
	assert_int_equal(request(), EMSGSIZE);
	assert_int_equal(taken, 0);
}

/* --- attributes -------------------------------------------------------------------------------- */

enum { KIND = 3 };

struct attribute {
	struct rtattr head;
	char bytes[8];
};

static struct attribute attribute_of(uint16_t kind, size_t payload, const char *text)
{
	struct attribute a = { .head = { .rta_len = (uint16_t)RTA_LENGTH(payload), .rta_type = kind } };

	snprintf(a.bytes, sizeof a.bytes, "%s", text);
	return a;
}

UNIT_TEST(attribute_is_found_by_kind_and_size)
{
	struct attribute list[] = { attribute_of(KIND + 1, 8, "other__"), attribute_of(KIND, 4, "short__"),
				    attribute_of(KIND | NLA_F_NESTED, 8, "long___") };

	/* The second has a payload of 4 bytes: what follows it is the third. */
	memmove((char *)list + 20, &list[2], sizeof list[2]);
	assert_ptr_equal(rtnl_attribute(&list[0].head, sizeof list - 4, KIND, 4), list[1].bytes);
	assert_memory_equal(rtnl_attribute(&list[0].head, sizeof list - 4, KIND, 5), "long___", 8);
	assert_null(rtnl_attribute(&list[0].head, sizeof list - 4, KIND, 9));
	assert_null(rtnl_attribute(&list[0].head, sizeof list - 4, KIND + 2, 0));
	assert_null(rtnl_attribute(&list[0].head, 0, KIND, 0));
}

UNIT_TEST(malformed_attributes_end_the_search)
{
	struct attribute list[] = { attribute_of(KIND + 1, 8, "other__"), attribute_of(KIND, 8, "sought_") };
	static const uint16_t lengths[] = { 0, sizeof(struct rtattr) - 1, sizeof list + 1, UINT16_MAX };

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		list[0].head.rta_len = lengths[i];
		assert_null(rtnl_attribute(&list[0].head, sizeof list, KIND, 0));
	}
	list[0].head.rta_len = sizeof *list;
	assert_ptr_equal(rtnl_attribute(&list[0].head, sizeof list, KIND, 0), list[1].bytes);
	assert_null(rtnl_attribute(&list[0].head, sizeof list - 1, KIND, 0));	/* cut */
}

UNIT_TEST(text_is_compared_to_its_end)
{
	struct attribute a = attribute_of(KIND, 5, "eth0");

	assert_true(rtnl_is_text(&a.head, KIND, "eth0"));
	assert_false(rtnl_is_text(&a.head, KIND + 1, "eth0"));
	assert_false(rtnl_is_text(&a.head, KIND, "eth"));
	assert_false(rtnl_is_text(&a.head, KIND, "eth00"));
	assert_false(rtnl_is_text(&a.head, KIND, "eth0 is longer"));
	a.head.rta_len--;		/* without its end */
	assert_false(rtnl_is_text(&a.head, KIND, "eth0"));
}

UNIT_MAIN(NULL, NULL)
