/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_netlink_answers.c - what the tools make of the kernel's answers about RDMA objects
 * (tools/control/rdma_objects.c) and listening sockets (tools/info/listeners.c): answers as the kernel
 * gives them, answers that are cut at each byte, and answers with attributes of wrong lengths. */
#include "tools/control/rdma_objects.h"
#include "tools/info/listeners.h"
#include "tools/info/output.h"
#include "test/unit/unit.h"
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

enum { TCP_PS = 0x106, UDP_PS = 0x111, LISTEN = 8, RC = 2, RTS = 3 };

/* --- answers ---------------------------------------------------------------------------- */

static struct nl_msg *begin(struct nlattr **table, int kind)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET), 0);

	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
	*table = nla_nest_start(msg, kind);
	return msg;
}

static void put_qp(struct nl_msg *msg, uint32_t number, uint32_t pid, uint8_t type, uint8_t state)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	nla_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_LQPN, number);
	nla_put_u8(msg, RDMA_NLDEV_ATTR_RES_TYPE, type);
	nla_put_u8(msg, RDMA_NLDEV_ATTR_RES_STATE, state);
	if (pid)
		nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, pid);
	else
		nla_put_string(msg, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
	nla_nest_end(msg, entry);
}

static void put_cm_id(struct nl_msg *msg, uint32_t space, const void *address, int length)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);

	nla_put_u8(msg, RDMA_NLDEV_ATTR_RES_STATE, LISTEN);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PS, space);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)getpid());
	nla_put(msg, RDMA_NLDEV_ATTR_RES_SRC_ADDR, length, address);
	nla_nest_end(msg, entry);
}

static json_t *parsed(enum rdma_kind kind, struct nl_msg *msg)
{
	json_t *list = json_array();

	rdma_objects_parse(kind, nlmsg_hdr(msg), list);
	nlmsg_free(msg);
	return list;
}

static void assert_number(const json_t *list, size_t index, const char *key, json_int_t number)
{
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, index), key)), number);
}

static void assert_text(const json_t *list, size_t index, const char *key, const char *text)
{
	assert_string_equal(output_get(json_array_get(list, index), key), text);
}

/* --- objects ------------------------------------------------------------------------------ */

UNIT_TEST(qps_of_processes_are_told)
{
	struct nlattr *table;
	struct nl_msg *msg = begin(&table, RDMA_NLDEV_ATTR_RES_QP);
	json_t *list;

	put_qp(msg, 17, (uint32_t)getpid(), RC, RTS);
	put_qp(msg, 1, 0, 1, RTS);
	put_qp(msg, 18, 0x7ffffff0, 200, 7);
	nla_nest_end(msg, table);
	list = parsed(RDMA_QP, msg);
	assert_int_equal(json_array_size(list), 2);
	assert_number(list, 0, "qp", 17);
	assert_number(list, 0, "pid", getpid());
	assert_text(list, 0, "program", "test_netlink_an");
	assert_text(list, 0, "type", "RC");
	assert_text(list, 0, "state", "RTS");
	assert_number(list, 1, "qp", 18);
	assert_text(list, 1, "program", "?");
	assert_text(list, 1, "type", "");
	assert_text(list, 1, "state", "");
	json_decref(list);
}

static void *thread_qp(void *arg)
{
	struct nlattr *table;
	struct nl_msg *msg = begin(&table, RDMA_NLDEV_ATTR_RES_QP);

	put_qp(msg, 17, (uint32_t)gettid(), RC, RTS);
	nla_nest_end(msg, table);
	return parsed(RDMA_QP, msg);
}

UNIT_TEST(object_of_a_thread_belongs_to_its_process)
{
	pthread_t thread;
	void *list;

	assert_int_equal(pthread_create(&thread, NULL, thread_qp, NULL), 0);
	assert_int_equal(pthread_join(thread, &list), 0);
	assert_int_equal(json_array_size(list), 1);
	assert_number(list, 0, "pid", getpid());
	json_decref(list);
}

UNIT_TEST(listening_ids_have_address_and_service)
{
	struct sockaddr_storage four = { 0 }, six = { 0 };
	struct nlattr *table;
	struct nl_msg *msg = begin(&table, RDMA_NLDEV_ATTR_RES_CM_ID);
	json_t *list;

	*(struct sockaddr_in *)&four = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons(7174), .sin_addr.s_addr = htonl(0x0a000001) };
	*(struct sockaddr_in6 *)&six = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		.sin6_port = htons(7175), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	put_cm_id(msg, TCP_PS, &four, sizeof four);
	put_cm_id(msg, UDP_PS, &six, sizeof six);
	put_cm_id(msg, UDP_PS, &six, sizeof(struct sockaddr_in6) - 1);
	put_cm_id(msg, UDP_PS, &four, 1);
	nla_nest_end(msg, table);
	list = parsed(RDMA_CM_ID, msg);
	assert_int_equal(json_array_size(list), 4);
	assert_text(list, 0, "address", "10.0.0.1");
	assert_number(list, 0, "port", 7174);
	assert_text(list, 0, "service", "RC");
	assert_text(list, 0, "state", "LISTEN");
	assert_text(list, 1, "address", "::1");
	assert_number(list, 1, "port", 7175);
	assert_text(list, 1, "service", "UD");
	for (size_t i = 2; i < 4; i++) {	/* too short for its family */
		assert_text(list, i, "address", "");
		assert_number(list, i, "port", 0);
	}
	json_decref(list);
}

UNIT_TEST(other_kinds_need_a_process_only)
{
	static const struct { enum rdma_kind kind; int table, entry; } kinds[] = {
		{ RDMA_CONTEXT, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY },
		{ RDMA_PD, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY },
		{ RDMA_MR, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY },
		{ RDMA_CQ, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct nlattr *table, *entry;
		struct nl_msg *msg = begin(&table, kinds[i].table);
		json_t *list;

		entry = nla_nest_start(msg, kinds[i].entry);
		nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, 4711);
		nla_nest_end(msg, entry);
		entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);	/* no entry of this table */
		nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, 4712);
		nla_nest_end(msg, entry);
		nla_nest_end(msg, table);
		list = parsed(kinds[i].kind, msg);
		assert_int_equal(json_array_size(list), 1);
		assert_number(list, 0, "pid", 4711);
		json_decref(list);
	}
}

/* --- malformed answers ---------------------------------------------------------------------- */

UNIT_TEST(attributes_of_wrong_lengths_are_no_objects)
{
	struct nlattr *table, *entry;
	struct nl_msg *msg = begin(&table, RDMA_NLDEV_ATTR_RES_QP);
	json_t *list;

	entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	nla_put_u8(msg, RDMA_NLDEV_ATTR_RES_LQPN, 17);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, 4711);
	nla_nest_end(msg, entry);
	entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_PID, 4711);	/* without a number */
	nla_nest_end(msg, entry);
	put_qp(msg, 18, 4711, RC, RTS);
	nla_nest_end(msg, table);
	list = parsed(RDMA_QP, msg);
	assert_int_equal(json_array_size(list), 1);
	assert_number(list, 0, "qp", 18);
	json_decref(list);
}

/* The bytes of an answer in a block of exactly their number, so that a checker of memory sees reads
 * behind them. */
static size_t objects_of(const struct nl_msg *msg, size_t length, size_t zeroed)
{
	struct nlmsghdr *head = malloc(length);
	json_t *list = json_array();
	size_t count;

	assert_non_null(head);
	memcpy(head, nlmsg_hdr((struct nl_msg *)(uintptr_t)msg), length);
	head->nlmsg_len = (uint32_t)length;
	if (zeroed >= sizeof *head)
		memset((char *)head + zeroed, 0, 2);	/* the length of an attribute, sometimes */
	rdma_objects_parse(RDMA_QP, head, list);
	count = json_array_size(list);
	json_decref(list);
	free(head);
	return count;
}

UNIT_TEST(cut_answers_and_lengths_of_zero_are_survived)
{
	struct nlattr *table;
	struct nl_msg *msg = begin(&table, RDMA_NLDEV_ATTR_RES_QP);
	size_t whole;

	put_qp(msg, 17, 4711, RC, RTS);
	put_qp(msg, 18, 4711, RC, RTS);
	nla_nest_end(msg, table);
	whole = nlmsg_hdr(msg)->nlmsg_len;
	assert_int_equal(objects_of(msg, whole, 0), 2);
	for (size_t length = NLMSG_HDRLEN; length < whole; length++)
		assert_int_equal(objects_of(msg, length, 0), 0);	/* the table is cut */
	for (size_t at = NLMSG_HDRLEN; at + 2 <= whole; at += 4)
		assert_true(objects_of(msg, whole, at) <= 2);
	nlmsg_free(msg);
}

/* --- listening sockets ------------------------------------------------------------------------ */

static size_t listeners_of(int type, struct inet_diag_msg socket, size_t length, const char *address)
{
	struct nlmsghdr *head = calloc(1, NLMSG_LENGTH(length));
	json_t *list = json_array();
	size_t count;

	assert_non_null(head);
	head->nlmsg_type = (uint16_t)type;
	head->nlmsg_len = (uint32_t)NLMSG_LENGTH(length);
	memcpy(NLMSG_DATA(head), &socket, length);
	listeners_parse(head, list);
	count = json_array_size(list);
	if (count && address) {
		assert_text(list, 0, "address", address);
		assert_number(list, 0, "port", 7174);
		assert_number(list, 0, "uid", 1000);
		assert_number(list, 0, "inode", 99);
	}
	json_decref(list);
	free(head);
	return count;
}

UNIT_TEST(only_whole_listeners_are_told)
{
	struct inet_diag_msg socket = { .idiag_family = AF_INET, .idiag_state = 10, .idiag_uid = 1000,
		.idiag_inode = 99, .id = { .idiag_sport = htons(7174), .idiag_src = { htonl(0x0a000001) } } };

	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, sizeof socket, "10.0.0.1"), 1);
	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, sizeof socket - 1, NULL), 0);
	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, 0, NULL), 0);
	assert_int_equal(listeners_of(NLMSG_MIN_TYPE, socket, sizeof socket, NULL), 0);
	socket.idiag_family = AF_INET6;
	socket.id.idiag_src[0] = 0;
	socket.id.idiag_src[3] = htonl(1);
	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, sizeof socket, "::1"), 1);
	socket.idiag_family = AF_UNIX;
	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, sizeof socket, NULL), 0);
	socket.idiag_family = AF_INET;
	socket.idiag_state = 1;
	assert_int_equal(listeners_of(SOCK_DIAG_BY_FAMILY, socket, sizeof socket, NULL), 0);
}

UNIT_MAIN(NULL, NULL)
