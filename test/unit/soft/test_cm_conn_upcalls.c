/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm_conn_upcalls.c - the task of a connection (cm/conn.c): which upcalls it makes, what core is told by them, and
 * what becomes of the connection after each. */
#include "common/clock.h"
#include "dapl/soft/cm/conn.h"
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
