/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_socket.c - which addresses are the same, which peers are on this host, and the traffic class of a socket. */
#include <netinet/ip.h>
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/conn.h"
#include "test/unit/unit.h"

static struct sockaddr_storage address(const char *text, uint16_t port)
{
	struct sockaddr_storage storage = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&storage;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return storage;
}

UNIT_TEST(addresses_are_compared_without_ports)
{
	static const struct { const char *a, *b; bool same; } rows[] = {
		{ "192.0.2.1", "192.0.2.1", true }, { "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8::1", "2001:db8::1", true }, { "2001:db8::1", "2001:db8::2", false },
		{ "192.0.2.1", "::ffff:192.0.2.1", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_storage a = address(rows[i].a, 1), b = address(rows[i].b, 2);

		assert_int_equal(cm_same_address(&a, &b), rows[i].same);
		assert_int_equal(cm_same_address(&b, &a), rows[i].same);
	}
}

static bool is_local(const char *remote, const char *local)
{
	struct dapl_conn conn = { .remote = address(remote, 7), .local = address(local, 9) };

	return cm_peer_is_local(&conn);
}

UNIT_TEST(peer_with_an_address_of_this_host_is_local)
{
	assert_true(is_local("192.0.2.1", "192.0.2.1"));
	assert_true(is_local("127.0.0.1", "127.0.0.2"));
	assert_true(is_local("127.0.0.3", "192.0.2.1"));
	assert_false(is_local("192.0.2.7", "127.0.0.1"));	/* for documents: no host has it */
	assert_false(is_local("2001:db8::7", "::1"));
}

/* Returns the traffic class of a new socket, or -1 if it could not be set. */
static int class_of(int tuned, int setting, enum dapl_qos qos)
{
	struct soft_cm_conn cm = { .qos = qos, .tuning.traffic_class = (uint16_t)(tuned + 1) };
	struct dapl_conn conn = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .cm = &cm,
		.remote = address("127.0.0.1", 7) };
	socklen_t length = sizeof(int);
	int class = -1;

	assert_true(conn.fd >= 0);
	dapl_settings.tos = setting;
	cm_set_traffic_class(&conn);
	getsockopt(conn.fd, IPPROTO_IP, IP_TOS, &class, &length);
	close(conn.fd);
	dapl_settings.tos = -1;
	return class;
}

UNIT_TEST(class_comes_from_connection_then_environment_then_quality_of_service)
{
	assert_int_equal(class_of(0x28, 0x48, DAPL_QOS_THROUGHPUT), 0x28);
	assert_int_equal(class_of(-1, 0x48, DAPL_QOS_THROUGHPUT), 0x48);
	/* AF11, EF, CS1, AF41: as on RDMA devices */
	assert_int_equal(class_of(-1, -1, DAPL_QOS_THROUGHPUT), 0x28);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_LATENCY), 0xb8);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_ECONOMY), 0x20);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_PREMIUM), 0x88);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_DEFAULT), 0);
	assert_int_equal(class_of(0, 0x48, DAPL_QOS_THROUGHPUT), 0);
}

UNIT_TEST(each_quality_of_service_has_the_code_point_of_its_setting)
{
	dapl_settings.dscp_high_throughput = 1;
	dapl_settings.dscp_low_latency = 40;
	dapl_settings.dscp_economy = 0;
	dapl_settings.dscp_premium = 63;
	assert_int_equal(class_of(-1, -1, DAPL_QOS_THROUGHPUT), 1 << 2);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_LATENCY), 40 << 2);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_ECONOMY), 0);
	assert_int_equal(class_of(-1, -1, DAPL_QOS_PREMIUM), 63 << 2);
	dapl_settings_read();
}

UNIT_FIXTURE(read_settings) { dapl_settings_read(); }
UNIT_MAIN(read_settings, NULL)
