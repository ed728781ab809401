/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm_conn.c - what cm/conn.c tells of a connection, how it watches its socket, its queue pair, and its end.
 * test_cm_conn_upcalls.c tests what its task tells core. */
#include <sys/epoll.h>
#include "common/clock.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/soft/conn_steps.h"
#include "test/unit/unit.h"

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

/* --- life ------------------------------------------------------------------------------------------------------ */

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

static void detach(void)
{
	lock();
	cm_detach(&qp);
	unlock();
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

UNIT_MAIN(NULL, NULL)
