/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tuning.c - limits of one connection of the software device: its patience with a silent peer,
 * and the options of its socket. */
#include "test/unit/soft/ends.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/liveness.h"
#include "test/unit/unit.h"
#include <netinet/ip.h>
#include <netinet/tcp.h>

static int option(const struct end *e, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof value;

	OK(getsockopt(e->conn->fd, level, name, &value, &length));
	return value;
}

static void connect_with(struct dapl_conn_tuning initiator, struct dapl_conn_tuning acceptor)
{
	ends[0].tuning = initiator;
	ends[1].tuning = acceptor;
	open_two(3);
}

static void close_both(void)
{
	close_two();
	ends[0].tuning = ends[1].tuning = (struct dapl_conn_tuning){ 0 };
}

UNIT_TEST(class_0_overrides_the_environment)
{
	connect_with((struct dapl_conn_tuning){ .traffic_class = 0 + 1 },
		     (struct dapl_conn_tuning){ 0 });
	assert_int_equal(option(&ends[0], IPPROTO_IP, IP_TOS), 0);
	assert_int_equal(option(&ends[1], IPPROTO_IP, IP_TOS), 0);
	close_both();
}

UNIT_TEST(each_end_has_the_code_point_of_its_quality_of_service)
{
	static const struct { enum dapl_qos qos; int class; } cases[] = {
		{ DAPL_QOS_THROUGHPUT, 0x28 }, { DAPL_QOS_LATENCY, 0xb8 }, { DAPL_QOS_ECONOMY, 0x20 },
		{ DAPL_QOS_PREMIUM, 0x88 }, { DAPL_QOS_DEFAULT, 0 },
	};

	for (int i = 0; i < 4; i++) {
		ends[0].qos = cases[i].qos;
		ends[1].qos = cases[i + 1].qos;
		connect_with((struct dapl_conn_tuning){ 0 }, (struct dapl_conn_tuning){ 0 });
		assert_int_equal(option(&ends[0], IPPROTO_IP, IP_TOS), cases[i].class);
		assert_int_equal(option(&ends[1], IPPROTO_IP, IP_TOS), cases[i + 1].class);
		close_both();
	}
	ends[0].qos = ends[1].qos = DAPL_QOS_DEFAULT;
}

UNIT_TEST(tcp_delays_no_message)
{
	open_two(3);
	for (int i = 0; i < 2; i++) {
		assert_null(ends[i].conn->shm);
		assert_int_equal(option(&ends[i], IPPROTO_TCP, TCP_NODELAY), 1);
	}
	close_both();
}

/* 4.096 us * 2^20 * (1 + 1) = 8.6 s. */
UNIT_TEST(each_end_has_its_patience)
{
	connect_with((struct dapl_conn_tuning){ .ack_timeout = 20 + 1, .ack_retry = 1 + 1 },
		     (struct dapl_conn_tuning){ .ack_timeout = 22 + 1, .ack_retry = 0 + 1 });
	assert_int_equal(cm_patience_ms(&ends[0].conn->cm->tuning), 8589);
	assert_int_equal(cm_patience_ms(&ends[1].conn->cm->tuning), 17179);
	assert_int_equal(option(&ends[1], IPPROTO_TCP, TCP_KEEPIDLE), 8);
	assert_int_equal(option(&ends[1], SOL_SOCKET, SO_KEEPALIVE), 1);
	close_both();
}

UNIT_TEST(timeout_0_is_for_ever)
{
	connect_with((struct dapl_conn_tuning){ 0 }, (struct dapl_conn_tuning){ .ack_timeout = 0 + 1 });
	assert_int_equal(cm_patience_ms(&ends[1].conn->cm->tuning), 0);
	assert_int_equal(option(&ends[1], SOL_SOCKET, SO_KEEPALIVE), 0);
	close_both();
}

UNIT_FIXTURE(read_settings) { dapl_settings_read(); }
UNIT_MAIN(read_settings, NULL)
