/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_foreign_peer.c - the software RNIC and a peer of another implementation (foreign_peer.h), in both
 * roles, with CRC and without, with FPDUs in parts of any size. foreign_tests.h names the other files. */
#include <poll.h>
#include "dapl/core/base/settings.h"
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "test/unit/unit.h"

static void device_works_as_acceptor(void **state)
{
	static const int cuts[] = { 0, 1, 7, 1000 };

	for (int crc = 0; crc < 2; crc++)
		for (int i = 0; i < 4; i++) {
			foreign_peer_up(crc);
			cut = cuts[i];
			talk();
			/* the end: FIN at a boundary is a disconnect */
			post_recv(5, 0, 8);
			shutdown(peer_socket, SHUT_WR);
			await(CLOSED);
			completion(5, IBV_WC_WR_FLUSH_ERR);
			foreign_peer_down();
		}
}

static void device_works_as_initiator(void **state)
{
	struct sockaddr_in at;
	struct dapl_conn_params p;
	struct wire_mpa mpa;
	uint8_t pdata[600], ulpdu[65536];
	uint16_t n16;
	size_t n;
	int l;

	for (int crc = 0; crc < 2; crc++) {
		reset_foreign_peer(crc);
		open_device_end();
		l = listen_for_device(&at);
		p = params(&at);
		p.pdata = "hello";
		p.pdata_len = 5;
		OK(ops->connect(we.dev, &p, &we.conn));
		peer_socket = accept(l, NULL, NULL);
		assert_true(get_mpa(false, &mpa, pdata, &n));
		assert_int_equal(mpa.flags, WIRE_MPA_S | WIRE_DAPL_REQUEST);
		assert_int_equal(mpa.revision, 2);
		assert_false(mpa.p2p);
		assert_int_equal(mpa.ird, 4);
		assert_int_equal(n, 5);
		put_mpa(true, WIRE_MPA_S | (crc ? WIRE_MPA_CRC : 0), 2,
			&(struct wire_mpa){ .ird = 1, .ord = 1 }, "you", 4);
		assert_string_equal(await(ESTABLISHED).pdata, "you");
		post(1, IBV_WR_SEND, 0, 10, 0, 0);
		completion(1, 0);
		assert_true(get_fpdu(ulpdu, &n16));
		assert_int_equal(n16, 28);
		/* one read outstanding at a time, as the Reply said */
		post(2, IBV_WR_RDMA_READ, 0, 8, 1, 1);
		post(3, IBV_WR_RDMA_READ, 8, 8, 2, 2);
		for (int i = 0; i < 2; i++) {
			struct pollfd in = { .fd = peer_socket, .events = POLLIN };

			assert_true(get_fpdu(ulpdu, &n16));
			assert_int_equal(n16, 46);
			assert_int_equal(poll(&in, 1, 20), 0);
			put_segment((struct wire_segment){ .tagged = true, .last = true,
				.op = WIRE_READ_RESPONSE, .stag = wire_get32(ulpdu + 18),
				.to = wire_get64(ulpdu + 22) }, "abcdefgh", 8);
			completion(2 + i, 0);
		}
		post_recv(9, 0, 100);
		put_segment(send_seg(1, 0, true), "x", 1);
		completion(9, 0);
		/* the device disconnects: a FIN, without a private frame before it */
		OK(ops->error_qp(we.qp));
		OK(ops->disconnect(we.conn));
		assert_false(get(pdata, 1));
		close(l);
		foreign_peer_down();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_works_as_acceptor),
		cmocka_unit_test(device_works_as_initiator),
		cmocka_unit_test(bad_replies_fail_the_connection),
		cmocka_unit_test(peer_to_peer_and_revision_1_connect),
		cmocka_unit_test(acceptor_may_send_first),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(half_open_connections_time_out),
		cmocka_unit_test(beyond_the_limit_the_oldest_is_closed),
		cmocka_unit_test(one_source_gets_half_of_the_share),
		cmocka_unit_test(all_sources_get_a_share),
		cmocka_unit_test(each_bad_frame_gets_its_terminate),
		cmocka_unit_test(more_reads_than_agreed_are_refused),
		cmocka_unit_test(terminate_of_the_peer_ends_the_connection),
		cmocka_unit_test(disorderly_ends_break_the_connection),
		cmocka_unit_test(sends_without_receives_stop_reading),
		cmocka_unit_test(end_of_a_stalled_peer_is_noticed),
		cmocka_unit_test(closed_half_open_connections_are_one_line),
		cmocka_unit_test(errors_have_the_error_class),
	};

	alarm(300);
	dapl_settings_read();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("soft_wire", tests, NULL, NULL);
}
