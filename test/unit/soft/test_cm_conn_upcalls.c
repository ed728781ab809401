/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm_conn_upcalls.c - the task of a connection (cm/conn.c): which upcalls it makes, what core is told by them, and
 * what becomes of the connection after each. */
#include "common/clock.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/rdmap/ud.h"
#include "test/unit/soft/conn_steps.h"
#include "test/unit/unit.h"

static void set_pdata(void)
{
	conn->cm->pdata = malloc(1);
	conn->cm->up_pdata = conn->cm->frame + 20;
	conn->cm->up_pdata_length = 4;
}

#define CASE(name) UNIT_TEST_WITH(name, conn_begin, conn_end)

CASE(established_connection_is_told_and_goes_live)
{
	conn->state = SOFT_OPEN;
	conn->qp = &qp;
	set_address(&conn->local, LOCAL_PORT);
	set_address(&conn->remote, REMOTE_PORT);
	set_pdata();
	told.pdata = conn->cm->up_pdata;
	work(SOFT_UP_ESTABLISHED);
	left_is("data established");
	assert_ptr_equal(told.established.pdata, told.pdata);
	assert_int_equal(told.established.pdata_len, 4);
	assert_int_equal(port_of(&told.established.local), LOCAL_PORT);
	assert_int_equal(port_of(&told.established.remote), REMOTE_PORT);
	assert_null(told.established.ud);
	assert_null(conn->cm->frame);
	assert_null(conn->cm->pdata);
	assert_int_equal(conn->up, 0);
}

CASE(failure_after_the_establishment_has_no_private_data)
{
	set_pdata();
	work(SOFT_UP_ESTABLISHED);
	told.pdata = &told;
	told.length = 9;
	work(SOFT_UP_FAILED);
	assert_null(told.pdata);
	assert_int_equal(told.length, 0);
}

CASE(association_is_told_with_its_peer)
{
	conn->cm->ud = true;
	conn->state = SOFT_CLOSED;
	conn->cm->peer = (struct dapl_ud_peer){ .ah = new_ah(), .qpn = 5, .qkey = 6 };
	work(SOFT_UP_ESTABLISHED);
	left_is("established");	/* its address handle belongs to core now */
	assert_ptr_equal(told.peer.ah, conn->cm->peer.ah);
	soft_ud_ah_destroy(told.peer.ah);
	assert_int_equal(told.peer.qpn, 5);
	assert_int_equal(told.peer.qkey, 6);
}

CASE(released_association_destroys_its_address_handle)
{
	conn->cm->released = true;
	conn->state = SOFT_CLOSED;
	work(SOFT_UP_ESTABLISHED);
	left_is("");			/* it has none */
	conn->cm->peer.ah = new_ah();
	work(SOFT_UP_ESTABLISHED);
	left_is("");			/* and memory that is left fails the case */
	conn->cm->peer.ah = NULL;
	work(SOFT_UP_FAILED | SOFT_UP_BROKEN);
	left_is("");
}

/* Data of a connection that closes already may still come. */
CASE(only_a_stream_that_lasts_goes_live)
{
	for (int i = SOFT_NEW; i <= SOFT_CLOSED; i++)
		for (int in_data = 0; in_data < 2; in_data++) {
			conn->state = i;
			lock();
			if (in_data)
				soft_progress_add(conn);
			unlock();
			work(SOFT_UP_ESTABLISHED);
			left_is(i == SOFT_OPEN || i == SOFT_CLOSING || in_data ? "data established" : "established");
			lock();
			soft_progress_del(conn);
			unlock();
		}
}

CASE(stream_that_no_set_takes_ends_soon)
{
	conn->state = SOFT_OPEN;
	failing = "data";
	work(SOFT_UP_ESTABLISHED);
	left_is("established");
	assert_in_range(conn->cm->deadline_ns, 1, clock_now_ns());
	assert_true(conn->progress.unwatched);
	assert_int_equal(conn->stream.io_error, ENOBUFS);
}

CASE(failure_is_told_with_the_data_of_the_reply)
{
	conn->cm->failure = DAPL_CONN_REJECTED;
	set_pdata();
	work(SOFT_UP_FAILED);
	left_is("failed");
	assert_int_equal(told.failure, DAPL_CONN_REJECTED);
	assert_ptr_equal(told.pdata, conn->cm->frame + 20);
	assert_int_equal(told.length, 4);
}

/* Once each, in the order of a connection's life. */
CASE(upcalls_are_made_in_order)
{
	work(SOFT_UP_RELEASED | SOFT_UP_CLOSED | SOFT_UP_FAILED | SOFT_UP_ESTABLISHED);
	steps_are("established failed disconnected:orderly released");
	cm_conn_events.work(&conn->task);
	left_is("");
	work(SOFT_UP_BROKEN);
	left_is("disconnected:broken");
}

CASE(released_connection_is_told_of_its_release_only)
{
	conn->cm->released = true;
	work(SOFT_UP_RELEASED | SOFT_UP_BROKEN | SOFT_UP_CLOSED | SOFT_UP_FAILED | SOFT_UP_ESTABLISHED);
	left_is("released");
}

CASE(close_notification_of_a_ring_ends_an_open_stream)
{
	for (int i = SOFT_NEW; i <= SOFT_CLOSED; i++)
		for (int attached = 0; attached < 2; attached++) {
			conn->state = i;
			conn->qp = attached ? &qp : NULL;
			conn->fd = SOCKET;
			conn->stream.end_reported = false;
			work(SOFT_UP_CLOSE_SENT);
			left_is(i == SOFT_OPEN || i == SOFT_CLOSING ? "socket:close task upcall" : "");
			assert_int_equal(conn->up, i == SOFT_OPEN || i == SOFT_CLOSING ? SOFT_UP_CLOSED : 0);
			conn->up = 0;
		}
}

UNIT_MAIN(NULL, NULL)
