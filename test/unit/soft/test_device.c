/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_device.c - drives the software RNIC through dapl_device_ops, without core. Two
 * devices of one process are the two ends: while one is polled, the service thread drives the
 * other. Opening, connecting and disconnecting are tested here; device_tests.h names the other
 * files. */
#include "config.h"
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/obj/rnic.h"
#include "test/unit/unit.h"

static void device_opens_by_interface_address_and_name(void **state)
{
	static const char *const good[] = { "lo 0", "127.0.0.1 0", "localhost 0", "::1 0", " lo" };
	struct dapl_device *dev;
	struct dapl_device_attr attr;
	int ia;

	for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
		int err = ops->open(good[i], &ia, &dev);

		if (err == ENODEV && i == 3)
			continue;	/* no IPv6 on this machine */
		OK(err);
		OK(ops->query(dev, &attr));
		assert_string_equal(attr.netdev, "lo");
		assert_true(attr.ud && attr.atomics && attr.windows_1 && attr.delayed_ack);
		assert_true(attr.port_active);
		assert_string_equal(attr.limits.fw_ver, PACKAGE_VERSION);	/* a new release reports itself */
		ops->close(dev);
	}
	assert_int_equal(ops->open("nosuchdev0 0", &ia, &dev), ENODEV);
	assert_int_equal(ops->open("203.0.113.7 0", &ia, &dev), ENODEV);
	OK(ops->open("", &ia, &dev));		/* any interface that is up */
	ops->close(dev);
}

static void private_data_arrives_whole_and_exact(void **state)
{
	static const int lengths[] = { 0, 1, 52, 251, 252 };
	struct end a, b;
	char data[252];

	fill(data, sizeof data, 3);
	open_end(&a, &plain);
	open_end(&b, &plain);
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		struct dapl_listener *listener;
		struct sockaddr_storage to;
		struct dapl_conn_params params;
		uint16_t port = 0;
		struct upcall up;

		OK(ops->listen(b.dev, NULL, &port, false, 8, &b, &listener));
		to = address_of(&b, port);
		params = params_of(&a, &plain, &to);
		params.pdata = data;
		params.pdata_len = lengths[i];
		OK(ops->connect(a.dev, &params, &a.conn));
		up = expect_up(REQUEST, &b);
		assert_int_equal(up.length, lengths[i]);
		assert_memory_equal(up.pdata, data, lengths[i]);
		assert_false(up.ud);
		assert_int_equal(((struct sockaddr_in *)&up.local)->sin_port, htons(port));
		b.conn = up.conn;
		params = params_of(&b, &plain, NULL);
		params.pdata = data;
		params.pdata_len = lengths[4 - i];
		OK(ops->accept(b.conn, &params));
		up = expect_up(ESTABLISHED, &a);
		assert_int_equal(up.length, lengths[4 - i]);
		assert_memory_equal(up.pdata, data, lengths[4 - i]);
		assert_int_equal(((struct sockaddr_in *)&up.remote)->sin_port, htons(port));
		up = expect_up(ESTABLISHED, &b);
		assert_int_equal(up.length, 0);
		release_conn(&a);
		expect_up(CLOSED, &b);
		release_conn(&b);
		OK(ops->reset_qp(a.dev, a.qp));
		OK(ops->reset_qp(b.dev, b.qp));
		ops->unlisten(listener);
	}
	close_pair(&a, &b);
}

static void connect_fails_for_the_right_reason(void **state)
{
	struct end a, b;
	struct dapl_listener *listener, *second;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	uint16_t port = 0, same;
	struct upcall up;

	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, false, 8, &b, &listener));
	same = port;
	assert_int_equal(ops->listen(b.dev, NULL, &same, false, 8, &b, &second), EADDRINUSE);
	assert_int_equal(ops->listen(a.dev, NULL, &same, false, 8, &a, &second), EADDRINUSE);
	to = address_of(&b, port);
	params = params_of(&a, &plain, &to);

	/* the consumer rejects */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	OK(ops->reject(up.conn, true, "sorry", 6));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REJECTED);
	assert_int_equal(up.length, 6);
	assert_string_equal(up.pdata, "sorry");
	release_conn(&a);

	/* the provider rejects */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	OK(ops->reject(up.conn, false, NULL, 0));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* a request is released without an answer */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	ops->release(up.conn);
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* the initiator releases: the accept fails */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	release_conn(&a);
	b.conn = up.conn;
	params = params_of(&b, &plain, NULL);
	OK(ops->accept(b.conn, &params));
	expect_up(FAILED, &b);
	release_conn(&b);

	/* no listener */
	ops->unlisten(listener);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* the port is free again */
	OK(ops->listen(a.dev, NULL, &port, false, 8, &a, &listener));
	ops->unlisten(listener);
	close_pair(&a, &b);
}

static void request_to_the_other_kind_of_listener_is_refused(void **state)
{
	struct end a, b;
	struct dapl_listener *ud, *rc;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	uint16_t port = 0;
	struct upcall up;

	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, true, 8, &ud, &ud));
	to = address_of(&b, port);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);
	/* both kinds share a port */
	OK(ops->listen(b.dev, NULL, &port, false, 8, &rc, &rc));
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &rc);
	OK(ops->reject(up.conn, true, NULL, 0));
	expect_up(FAILED, &a);
	release_conn(&a);
	ops->unlisten(ud);
	ops->unlisten(rc);
	close_pair(&a, &b);
}

static void disconnect_tells_the_peer_after_its_data(void **state)
{
	struct end a, b;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 8; i++)
		OK(post_recv(&b, i, i * 4096, 4096));
	fill(a.buf, 4096, 1);
	for (int i = 0; i < 8; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 4096, NULL, 0));
	for (int i = 0; i < 8; i++)
		done(a.scq, i);
	OK(ops->error_qp(a.qp));
	OK(ops->disconnect(a.conn));
	expect_up(CLOSED, &b);
	for (int i = 0; i < 8; i++)
		assert_int_equal(done(b.rcq, i).byte_len, 4096);
	assert_memory_equal(b.buf + 7 * 4096, a.buf, 4096);
	expect_no_up(BROKEN, &b);
	close_pair(&a, &b);
}

static void both_ends_disconnect_at_once(void **state)
{
	struct end a, b;

	for (int i = 0; i < 20; i++) {
		open_pair(&a, &b, &plain);
		OK(post_recv(&a, 1, 0, 8));
		OK(ops->error_qp(a.qp));
		OK(ops->error_qp(b.qp));
		OK(ops->disconnect(a.conn));
		OK(ops->disconnect(b.conn));
		expect_wc(a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
		close_pair(&a, &b);
	}
}

static void unsent_requests_do_not_delay_an_abrupt_disconnect(void **state)
{
	struct end a, b;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 100; i++)		/* far more than the sockets hold */
		OK(post(&a, i, IBV_WR_SEND, 0, 0, 1 << 20, NULL, 0));
	OK(ops->error_qp(a.qp));
	for (int i = 0; i < 100; i++)
		expect_wc(a.scq, i, IBV_WC_WR_FLUSH_ERR);
	OK(ops->disconnect(a.conn));
	expect_up(CLOSED, &b);
	expect_no_up(BROKEN, &b);
	close_pair(&a, &b);
}

static void many_connections_come_and_go(void **state)
{
	enum { N = 64 };
	struct end a, b, *ea = calloc(N, sizeof *ea), *eb = calloc(N, sizeof *eb);
	struct dapl_listener *listener;
	struct sockaddr_storage to;
	uint16_t port = 0;

	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, false, N, &listener, &listener));
	to = address_of(&b, port);
	for (int i = 0; i < N; i++) {
		struct dapl_conn_params params;

		ea[i] = a;
		eb[i] = b;
		ea[i].qp = make_qp(&a, &plain);
		eb[i].qp = make_qp(&b, &plain);
		params = params_of(&ea[i], &plain, &to);
		params.owner = &ea[i];
		OK(ops->connect(a.dev, &params, &ea[i].conn));
	}
	for (int i = 0; i < N; i++) {
		struct upcall up = expect_up(REQUEST, &listener);
		struct dapl_conn_params params = params_of(&eb[i], &plain, NULL);

		params.owner = &eb[i];
		eb[i].conn = up.conn;
		OK(ops->accept(up.conn, &params));
	}
	for (int i = 0; i < N; i++) {
		expect_up(ESTABLISHED, &ea[i]);
		expect_up(ESTABLISHED, &eb[i]);
	}
	for (int i = 0; i < N; i++)
		OK(post_recv(&eb[i], i, i * 64, 64));
	for (int i = 0; i < N; i++)
		OK(post(&ea[i], i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 64, NULL, 0));
	for (int i = 0; i < N; i++) {
		struct ibv_wc wc;

		assert_true(poll_for(a.scq, &wc, 10000));
		assert_int_equal(wc.status, 0);
		assert_true(poll_for(b.rcq, &wc, 10000));
		assert_int_equal(wc.status, 0);
	}
	for (int i = 0; i < N; i++)
		release_conn(&ea[i]);
	for (int i = 0; i < N; i++) {
		expect_up(CLOSED, &eb[i]);
		release_conn(&eb[i]);
		OK(ops->destroy_qp(ea[i].qp));
		OK(ops->destroy_qp(eb[i].qp));
	}
	ops->unlisten(listener);
	close_pair(&a, &b);
	free(ea);
	free(eb);
}

UNIT_FIXTURE(empty_record) { upcalls_drop(NULL); }

#define T(name) cmocka_unit_test_teardown(name, empty_record)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(blocked_process_makes_progress_and_its_exit_is_detected),
		T(device_opens_by_interface_address_and_name),
		T(private_data_arrives_whole_and_exact),
		T(connect_fails_for_the_right_reason),
		T(request_to_the_other_kind_of_listener_is_refused),
		T(disconnect_tells_the_peer_after_its_data),
		T(both_ends_disconnect_at_once),
		T(unsent_requests_do_not_delay_an_abrupt_disconnect),
		T(many_connections_come_and_go),
		T(sends_of_all_sizes_arrive),
		T(acceptor_may_send_first),
		T(segments_scatter_and_gather),
		T(inline_data_is_taken_at_the_post),
		T(writes_and_reads_of_all_sizes_arrive),
		T(immediate_data_arrives),
		T(atomics_return_the_previous_value),
		T(reads_beyond_ord_wait_and_order_holds),
		T(fence_holds_a_write_behind_a_read),
		T(unsignaled_requests_make_no_completion),
		T(post_to_a_full_queue_fails),
		T(sends_wait_for_receives_and_reads_pass_them),
		T(one_message_larger_than_the_window_waits),
		T(error_flushes_all_requests_in_order),
		T(remote_protection_is_enforced),
		T(receive_that_is_too_short_fails),
		T(local_protection_is_enforced),
		T(reads_beyond_the_agreed_number_fail),
		T(deregistered_memory_is_not_accessible),
		T(deregistered_memory_is_not_sent),
		T(device_without_memory_is_reported),
		T(initiator_waits_while_the_acceptor_has_no_memory),
		T(type_1_windows_bind_and_protect),
		T(type_2_windows_bind_and_invalidate),
		T(shared_receive_queue_feeds_all_its_qps),
		T(completion_channel_notifies_once_per_request),
		T(ping_pong_of_blocked_threads),
		T(cq_overrun_is_reported_and_resize_keeps_completions),
		T(destroyed_qp_leaves_no_completion_in_the_cq),
		T(datagrams_arrive_or_are_lost_whole),
		T(idle_process_uses_no_processor),
		T(poller_without_the_lock_yields),
		T(a_fork_leaves_the_parent_unharmed),
		T(threads_on_both_ends_transfer_concurrently),
	};

	alarm(300);
	dapl_settings_read();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("soft_device", tests, NULL, NULL);
}
