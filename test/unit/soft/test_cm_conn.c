/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm_conn.c - what cm/conn.c does with a connection: what it tells of it, its place in the epoll set, its life,
 * its queue pair, and its end. test_cm_conn_upcalls.c tests what its task tells core. */
#include <sys/epoll.h>
#include "common/clock.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/wire/wire.h"
#include "test/unit/soft/conn_steps.h"
#include "test/unit/unit.h"

static void attach(void)
{
	conn->qp = &qp;
	qp.conn = conn;
	soft_qp_set_state(&qp, IBV_QPS_RTS);
}

/* --- what is told of a connection ---------------------------------------------------------------------------- */

static struct dapl_conn_cause explain(void)
{
	struct dapl_conn_cause cause;

	memset(&cause, 0xff, sizeof cause);
	progress_locks = 0;
	cm_explain(conn, &cause);
	assert_int_equal(progress_locks, 1);
	no_lock_is_held();
	return cause;
}

#define CASE(name) UNIT_TEST_WITH(name, conn_begin, conn_end)

CASE(connection_that_has_not_failed_tells_its_step)
{
	struct dapl_conn_cause cause;

	for (int attached = 0; attached < 2; attached++) {
		conn->qp = attached ? &qp : NULL;
		conn->state = SOFT_WAIT_REPLY;
		conn->cause.err = EIO;		/* not set yet */
		conn->cause.text = "stale";
		cause = explain();
		assert_int_equal(cause.step, DAPL_STEP_REPLY);
		assert_int_equal(cause.err, 0);
		assert_int_equal(cause.code_kind, DAPL_CODE_NONE);
		assert_null(cause.text);
	}
}

CASE(first_failure_is_told_for_good)
{
	struct dapl_conn_cause cause;

	conn->state = SOFT_WAIT_REPLY;
	lock();
	soft_conn_caused(conn, EPIPE, DAPL_CODE_TERMINATE_SENT, 77, "why");
	conn->state = SOFT_CLOSED;
	unlock();
	cause = explain();
	assert_int_equal(cause.step, DAPL_STEP_REPLY);
	assert_int_equal(cause.err, EPIPE);
	assert_int_equal(cause.code_kind, DAPL_CODE_TERMINATE_SENT);
	assert_int_equal(cause.code, 77);
	assert_string_equal(cause.text, "why");
}

CASE(explanation_has_both_addresses)
{
	struct dapl_conn_cause cause;

	set_address(&conn->remote, REMOTE_PORT);
	cause = explain();
	assert_int_equal(port_of(&cause.local), DEVICE_PORT);
	set_address(&conn->local, LOCAL_PORT);
	for (int caused = 0; caused < 2; caused++) {
		conn->caused = caused;
		cause = explain();
		assert_int_equal(port_of(&cause.local), LOCAL_PORT);
		assert_int_equal(port_of(&cause.remote), REMOTE_PORT);
	}
}

CASE(carrier_is_a_word)
{
	static const struct { bool ud, shm, crc; const char *word; } cases[] = {
		{ false, false, false, "tcp" }, { false, false, true, "tcp+crc" }, { false, true, false, "memory" },
		{ false, true, true, "memory" }, { true, false, false, NULL }, { true, false, true, NULL },
	};
	const char *word;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		conn->cm->ud = cases[i].ud;
		conn->shm = cases[i].shm ? &rings : NULL;
		conn->stream.crc = cases[i].crc;
		word = cm_carrier(conn);
		if (cases[i].word)
			assert_string_equal(word, cases[i].word);
		else
			assert_null(word);
		assert_int_equal(progress_locks, i + 1);
		no_lock_is_held();
	}
}

/* --- the socket ----------------------------------------------------------------------------------------------- */

CASE(socket_is_added_once_and_changed_then)
{
	lock();
	cm_watch(conn, EPOLLOUT);
	assert_int_equal(watched, EPOLLOUT);
	cm_watch(conn, EPOLLIN);
	assert_int_equal(watched, EPOLLIN);
	left_is("cm");
	cm_unwatch(conn);
	cm_unwatch(conn);
	left_is("");
	cm_watch(conn, EPOLLIN);
	unlock();
	left_is("cm");
	assert_false(conn->progress.unwatched);
	assert_int_equal(conn->stream.io_error, 0);
}

CASE(socket_that_cannot_be_watched_ends_the_connection_soon)
{
	failing = "watch";
	lock();
	cm_watch(conn, EPOLLIN);
	unlock();
	left_is("");
	assert_in_range(conn->cm->deadline_ns, 1, clock_now_ns());
	assert_true(conn->progress.unwatched);
	assert_int_equal(conn->stream.io_error, ENOBUFS);
}

CASE(only_a_connection_without_request_is_half_open)
{
	lock();
	for (int i = SOFT_NEW; i <= SOFT_CLOSED; i++) {
		conn->state = i;
		conn->cm->deadline_ns = 1;
		if (i == SOFT_WAIT_REQUEST)
			soft_half_open_add(conn);
		cm_leave_handshake(conn);
		assert_int_equal(conn->cm->deadline_ns, 0);
		left_is("");
	}
	unlock();
}

CASE(attaching_ends_once)
{
	begin_attach();
	lock();
	cm_end_attach(conn);
	left_is("attach:close");
	assert_int_equal(conn->cm->attach_fd, -1);
	cm_end_attach(conn);
	unlock();
	left_is("");
}

static void close_socket(void)
{
	lock();
	cm_close_socket(conn);
	unlock();
}

CASE(closing_leaves_every_set)
{
	conn->state = SOFT_WAIT_REQUEST;
	lock();
	soft_half_open_add(conn);
	cm_watch(conn, EPOLLIN);
	unlock();
	begin_attach();
	conn->cm->offer = (struct attach_offer *)&offer;
	conn->cm->deadline_ns = 1;
	close_socket();
	left_is("attach:close closed:ended offer_end segment_put socket:close");
	assert_null(conn->cm->offer);
	assert_int_equal(conn->fd, -1);
	assert_int_equal(conn->cm->deadline_ns, 0);
	assert_false(conn->cm->in_cm);
	assert_true(conn->stream.tx.shut);
	close_socket();			/* nothing is left to do */
	left_is("");
}

CASE(closing_tells_a_failure_from_an_end)
{
	conn->state = SOFT_OPEN;
	conn->caused = true;
	lock();
	soft_progress_add(conn);
	unlock();
	left_is("data");
	close_socket();
	left_is("closed:failed socket:close");
}

/* The socket carries no data, and the peer has sent its close notification: no TIME_WAIT is needed. */
CASE(socket_beside_rings_is_reset_after_the_close_notification)
{
	static const char *const steps_of[2][2] = {
		{ "socket:close", "socket:close" }, { "socket:close", "socket:reset" },
	};

	for (int shm = 0; shm < 2; shm++)
		for (int notified = 0; notified < 2; notified++) {
			conn->fd = SOCKET;
			conn->state = SOFT_CLOSED;
			conn->shm = shm ? &rings : NULL;
			conn->stream.rx.close_notice = notified;
			close_socket();
			left_is(steps_of[shm][notified]);
		}
}

CASE(local_address_is_learned_once)
{
	lock();
	cm_learn_address(conn);
	left_is("getsockname");
	assert_int_equal(port_of(&conn->local), LOCAL_PORT);
	set_address(&conn->local, DEVICE_PORT);
	cm_learn_address(conn);
	unlock();
	left_is("");
	assert_int_equal(port_of(&conn->local), DEVICE_PORT);
}

/* --- life ------------------------------------------------------------------------------------------------------ */

CASE(new_connection_has_no_socket_and_room_for_a_header)
{
	struct dapl_conn *fresh = cm_conn_new(&dev);

	assert_ptr_equal(fresh->dev, &dev);
	assert_ptr_equal(fresh->events, &cm_conn_events);
	assert_int_equal(fresh->state, SOFT_NEW);
	assert_int_equal(fresh->fd, -1);
	assert_int_equal(fresh->cm->attach_fd, -1);
	assert_int_equal(fresh->cm->frame_need, WIRE_MPA_HEADER);
	assert_ptr_equal(fresh->cm->frame, fresh->cm->short_frame);
	assert_non_null(soft_unexpected_new(fresh, 0, 0));
	cm_conn_free(fresh);
}

CASE(connection_without_memory_leaves_nothing)
{
	allocations_left = 0;
	assert_null(cm_conn_new(&dev));
	allocations_left = -1;
}

CASE(connection_is_freed_with_all_it_has)
{
	struct soft_unexpected *unexpected = soft_unexpected_new(conn, 0, 0);

	unexpected->data = malloc(1);
	conn->cm->pdata = malloc(1);
	conn->stream.rx.whole = malloc(1);
	conn->stream.tx.rest = malloc(1);
	conn->stream.answers = malloc(sizeof *conn->stream.answers);
	conn->shm = &rings;
	cm_conn_free(conn);
	left_is("freed rings_free");
}

CASE(retired_connection_is_in_no_list_and_freed_by_its_task)
{
	conn->state = SOFT_CONNECTING;
	lock();
	cm_conn_retire(conn);
	unlock();
	left_is("closed:ended socket:close task upcall");
	assert_true(LIST_EMPTY(&dev.cm.conns));
	assert_int_equal(conn->up, SOFT_UP_DEAD);
	work(conn->up);
	left_is("task");		/* it may be queued already, so it is freed by the next run */
	conn->up = SOFT_UP_RELEASED;
	cm_conn_events.work(&conn->task);
	left_is("freed");
	conn_is_gone();
}

/* --- the queue pair -------------------------------------------------------------------------------------------- */

static int attach_qp(bool ud)
{
	struct dapl_conn_params params = { .qp = &qp.qp, .owner = &qp, .reads_out = 3, .reads_in = 5, .ud = ud,
		.qos = DAPL_QOS_LATENCY, .tuning.ack_timeout = 7 };
	int err;

	lock();
	err = cm_attach_qp(conn, &params);
	unlock();
	return err;
}

CASE(queue_pair_is_attached_with_what_core_asks_for)
{
	assert_int_equal(attach_qp(false), 0);
	assert_ptr_equal(qp.conn, conn);
	assert_ptr_equal(conn->qp, &qp);
	assert_ptr_equal(conn->owner, &qp);
	assert_int_equal(conn->stream.reads_out, 3);
	assert_int_equal(conn->stream.reads_in, 5);
	assert_int_equal(conn->cm->qos, DAPL_QOS_LATENCY);
	assert_int_equal(conn->cm->tuning.ack_timeout, 7);
}

CASE(refused_queue_pair_changes_nothing)
{
	struct dapl_conn other = { .dev = &dev };

	for (int connected = 0; connected < 2; connected++) {
		qp.conn = connected ? &other : NULL;
		soft_qp_set_state(&qp, connected ? IBV_QPS_INIT : IBV_QPS_ERR);
		assert_int_equal(attach_qp(false), EINVAL);
		assert_ptr_equal(qp.conn, connected ? &other : NULL);
		assert_null(conn->qp);
		assert_ptr_equal(conn->owner, &owner);
		assert_int_equal(conn->stream.reads_out | conn->stream.reads_in | conn->cm->tuning.ack_timeout, 0);
	}
}

/* A queue pair of datagrams has any number of associations under way. */
CASE(associations_share_a_queue_pair)
{
	soft_qp_set_state(&qp, IBV_QPS_RTS);
	assert_int_equal(attach_qp(true), 0);
	assert_ptr_equal(conn->qp, &qp);
	assert_ptr_equal(conn->owner, &qp);
	assert_null(qp.conn);
}

static void detach(void)
{
	lock();
	cm_detach(&qp);
	unlock();
}

CASE(detached_queue_pair_is_flushed_if_it_was_connected)
{
	for (int connected = 0; connected < 2; connected++) {
		attach();
		soft_qp_set_state(&qp, connected ? IBV_QPS_RTS : IBV_QPS_INIT);
		detach();
		left_is(connected ? "flush" : "");
		assert_null(qp.conn);
		assert_null(conn->qp);
	}
	soft_qp_set_state(&qp, IBV_QPS_RTS);
	detach();
	left_is("");
}

CASE(associations_forget_their_queue_pair)
{
	struct soft_qp rest = { .dev = &dev };
	struct dapl_conn second = { .dev = &dev, .qp = &qp }, third = { .dev = &dev, .qp = &rest };

	LIST_INSERT_HEAD(&dev.cm.conns, &second, link);
	LIST_INSERT_HEAD(&dev.cm.conns, &third, link);
	qp.qp.qp_type = IBV_QPT_UD;
	soft_qp_set_state(&qp, IBV_QPS_RTS);
	conn->qp = &qp;
	detach();
	assert_null(conn->qp);
	assert_null(second.qp);
	assert_ptr_equal(third.qp, &rest);
	left_is("");
}

/* --- the end --------------------------------------------------------------------------------------------------- */

static void fail_with(int err, const char *text)
{
	lock();
	cm_fail(conn, DAPL_CONN_TIMED_OUT, err, text);
	unlock();
}

CASE(failed_handshake_is_closed_and_told)
{
	conn->state = SOFT_WAIT_REPLY;
	conn->qp = &qp;
	conn->cm->offer = (struct attach_offer *)&offer;
	fail_with(ETIMEDOUT, "late");
	left_is("closed:failed offer_end segment_put socket:close task upcall");
	assert_int_equal(conn->up, SOFT_UP_FAILED);
	assert_int_equal(conn->cm->failure, DAPL_CONN_TIMED_OUT);
	assert_int_equal(conn->cause.step, DAPL_STEP_REPLY);
	assert_int_equal(conn->cause.err, ETIMEDOUT);
	assert_int_equal(conn->cause.code_kind, DAPL_CODE_NONE);
	assert_int_equal(conn->cause.code, 0);
	assert_string_equal(conn->cause.text, "late");
}

CASE(handshake_without_a_queue_pair_fails_too)
{
	conn->state = SOFT_CONNECTING;
	fail_with(0, "text");
	left_is("closed:failed socket:close task upcall");
	assert_int_equal(conn->cause.err, 0);
}

CASE(stream_ends_disorderly_with_a_cause)
{
	for (int attached = 0; attached < 2; attached++) {
		conn->qp = attached ? &qp : NULL;
		conn->caused = conn->stream.tx.shut = conn->stream.end_reported = false;
		conn->state = SOFT_OPEN;
		conn->fd = SOCKET;
		conn->up = 0;
		lock();
		cm_end_stream(conn, EPIPE, "gone");
		unlock();
		left_is("socket:close closed:failed task upcall");
		assert_int_equal(conn->up, SOFT_UP_BROKEN);
		assert_true(conn->stream.tx.shut);	/* nothing more is sent */
		assert_int_equal(conn->cause.step, DAPL_STEP_TRANSFER);
		assert_int_equal(conn->cause.err, EPIPE);
		assert_string_equal(conn->cause.text, "gone");
	}
}

CASE(end_of_the_peers_stream_closes_the_socket)
{
	conn->state = SOFT_CLOSING;
	lock();
	cm_conn_events.ended(conn);
	unlock();
	left_is("closed:ended socket:close");
	assert_ptr_equal(LIST_FIRST(&dev.cm.conns), conn);
}

CASE(end_of_the_peers_stream_retires_a_released_connection)
{
	conn->state = SOFT_CLOSING;
	conn->cm->released = true;
	lock();
	cm_conn_events.ended(conn);
	unlock();
	left_is("closed:ended socket:close task upcall");
	assert_true(LIST_EMPTY(&dev.cm.conns));
	assert_int_equal(conn->up, SOFT_UP_DEAD);
}

UNIT_MAIN(NULL, NULL)
