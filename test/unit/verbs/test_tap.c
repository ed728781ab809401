/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap.c - captures of an RDMA device: its functions before, during and after one, and which connections are
 * recorded with which ends. What is recorded of a message is test_tap_messages.c's. */
#include "dapl/verbs/tap.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/tapped.h"

/* --- begin and end ---------------------------------------------------------------------------------------------- */

static int (*tapped_poll)(struct ibv_cq *of, int n, struct ibv_wc *wc);

static int poll_above(struct ibv_cq *of, int n, struct ibv_wc *wc) { return tapped_poll(of, n, wc); }

#define TEST(name) UNIT_TEST_WITH(name, tapped_begin, tapped_end)

TEST(device_has_its_own_functions_without_a_capture)
{
	const struct ibv_context_ops own = context.ops;

	begin_capture(SNAP);
	assert_true(context.ops.post_send != own.post_send && context.ops.post_recv != own.post_recv &&
		    context.ops.post_srq_recv != own.post_srq_recv && context.ops.poll_cq != own.poll_cq);
	assert_true(hw_tap_poll_below(&context) == device_poll_cq);
	hw_tap(&dev, true);			/* the client asks again */
	sends(7);
	assert_int_equal(posts, 1);
	end_capture();
	assert_true(is_untouched());
	hw_tap(&dev, false);
	assert_true(is_untouched());
	context.ops.poll_cq = poll_above;	/* by the next layer, without a capture */
	assert_true(hw_tap_poll_below(&context) == poll_above);
}

TEST(capture_without_memory_leaves_the_device)
{
	begin_capture(SNAP);
	end_capture();
	hw_tap_close(&dev);
	no_memory = true;
	hw_tap(&dev, true);
	assert_true(is_untouched());
	no_memory = false;
	hw_tap(&dev, true);
	assert_false(is_untouched());
}

TEST(next_capture_knows_the_connections_of_its_time)
{
	begin_capture(SNAP);
	end_capture();
	sends(7);
	assert_false(next_record());
	begin_capture(SNAP);
	sends(7);
	is_recorded(TAP_POSTED, TAP_SEND, 7, "payload");
	assert_true(seen.first);
	end_capture();
	dev.conns = NULL;
	begin_capture(SNAP);
	sends(7);
	assert_false(next_record());
}

/* As for a raw Ethernet endpoint that is made during a capture. */
TEST(poll_function_that_was_put_above_stays)
{
	int (*const own_post)(struct ibv_qp *of, struct ibv_send_wr *wr,
			      struct ibv_send_wr **bad) = context.ops.post_send;

	begin_capture(SNAP);
	tapped_poll = context.ops.poll_cq;
	context.ops.poll_cq = poll_above;
	end_capture();
	assert_true(context.ops.poll_cq == poll_above);
	assert_true(context.ops.post_send == own_post);
	assert_true(hw_tap_poll_below(&context) == device_poll_cq);
	completes(64, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	assert_false(next_record());
	begin_capture(SNAP);
	assert_true(context.ops.poll_cq == poll_above);
	completes(64, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	assert_true(next_record());
}

TEST(child_posts_to_the_device_and_records_nothing)
{
	pid_t pid;

	begin_capture(SNAP);
	pid = fork_child();
	if (!pid) {
		struct ibv_sge sge = bytes(7);

		_exit(post(IBV_WR_SEND, &sge, 1) || posts != 1);
	}
	expect_success(pid);
	assert_false(next_record());
	sends(7);
	assert_true(next_record());
}

/* --- connections ------------------------------------------------------------------------------------------------ */

TEST(first_message_tells_both_ends)
{
	conn.active = true;
	begin_capture(SNAP);
	sends(7);
	is_recorded(TAP_POSTED, TAP_SEND, 7, "payload");
	assert_int_equal(seen.entry.qpn, QPN);
	assert_int_equal(seen.entry.flags, TAP_ACTIVE | TAP_ROCE);
	assert_int_equal(seen.ends.local.port, 1000);
	assert_memory_equal(seen.ends.local.ip, "\x0a\0\0\1", 4);
	assert_int_equal(seen.ends.remote.port, 2000);
	assert_memory_equal(seen.ends.remote.ip, "\x0a\0\0\2", 4);
	assert_int_equal(seen.ends.remote_qpn, 99);
	assert_int_equal(seen.ends.mtu, 1024);
	sends(0);
	is_recorded(TAP_POSTED, TAP_SEND, 0, "");
	assert_false(seen.first);
}

TEST(peers_queue_pair_is_told_if_it_is_known)
{
	query_error = EINVAL;
	begin_capture(SNAP);
	sends(7);
	assert_true(next_record());
	assert_int_equal(seen.entry.flags, TAP_ROCE);
	assert_int_equal(seen.ends.remote_qpn, 0);
	assert_int_equal(seen.ends.mtu, 0);
	end_capture();
	query_error = queries = 0;
	dev.attr.iwarp = true;			/* it has no such thing */
	begin_capture(SNAP);
	sends(7);
	assert_true(next_record());
	assert_int_equal(seen.entry.flags, 0);
	assert_int_equal(seen.ends.remote_qpn, 0);
	assert_int_equal(seen.ends.remote.port, 2000);
	assert_int_equal(queries, 0);
}

TEST(capture_begins_with_connections_that_can_have_messages)
{
	for (int i = 0; i < CONN_STATES; i++) {
		conn.state = (enum conn_state)i;
		begin_capture(SNAP);
		sends(7);
		assert_int_equal(next_record(), i == CONN_ESTABLISHED || i == CONN_ACCEPTING);
		end_capture();
	}
}

static void connection_is_made(uint32_t qpn, uint16_t port)
{
	qp.qp_num = qpn;
	set_address(&conn.remote, "10.0.0.3", port);
	dapl_mutex_lock(&conn.lock);
	hw_tap_connection(&conn);
	dapl_mutex_unlock(&conn.lock);
}

TEST(connection_made_during_a_capture_is_recorded)
{
	dev.conns = NULL;
	connection_is_made(QPN, 3000);		/* no capture was ever there */
	begin_capture(SNAP);
	sends(7);
	assert_false(next_record());
	connection_is_made(QPN, 3000);
	connection_is_made(OTHER_QPN, 3001);
	sends(7);
	assert_true(next_record());
	assert_int_equal(seen.ends.remote.port, 3001);
	qp.qp_num = QPN;
	sends(7);
	assert_true(next_record());
	assert_int_equal(seen.ends.remote.port, 3000);
	connection_is_made(QPN, 3002);		/* the queue pair serves another connection */
	sends(7);
	assert_true(next_record());
	assert_int_equal(seen.ends.remote.port, 3002);
	qp.qp_num = OTHER_QPN;
	sends(7);
	assert_true(next_record());
}

TEST(connection_made_while_a_capture_ends_is_forgotten)
{
	begin_capture(SNAP);
	query_ends_capture = true;
	dapl_mutex_lock(&conn.lock);
	hw_tap_connection(&conn);
	dapl_mutex_unlock(&conn.lock);
	end_capture();
	dev.conns = NULL;
	begin_capture(SNAP);
	sends(7);
	assert_false(next_record());
}

TEST(other_connections_are_left_out)
{
	dev.conns = NULL;
	begin_capture(SNAP);
	no_memory = true;
	connection_is_made(QPN, 3000);
	no_memory = false;
	sends(7);
	conn.ud = true;
	connection_is_made(QPN, 3000);
	sends(7);
	conn.ud = false;
	conn.qp = NULL;
	connection_is_made(QPN, 3000);
	sends(7);
	conn.qp = &qp;
	connection_is_made(QPN, 3000);
	qp.qp_type = IBV_QPT_UD;
	sends(7);
	qp.qp_type = IBV_QPT_RC;
	qp.qp_num = QPN + 1;
	sends(7);
	assert_false(next_record());
}

TEST(each_device_has_its_own_connections)
{
	static struct ibv_context other_context;
	static struct dapl_device other;

	other_context = context;
	other = (struct dapl_device){ .verbs = &other_context };
	dapl_mutex_init(&other.lock, RANK_VERBS_DEVICE);
	begin_capture(SNAP);
	hw_tap(&other, true);
	assert_ptr_equal(other_context.ops.post_send, context.ops.post_send);	/* the capture's */
	qp.context = &other_context;
	sends(7);
	assert_false(next_record());
	hw_tap_close(&other);
	qp.context = &context;
	sends(7);
	assert_true(next_record());
}

UNIT_FIXTURE(init) { tapped_init(); }

UNIT_MAIN(init, NULL)
