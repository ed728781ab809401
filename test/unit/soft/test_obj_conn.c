/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_obj_conn.c - what obj/conn.c records of a connection: the step it is at, the cause of its end, the upcalls
 * it owes, and the events that epoll reports of its socket. */
#include <sys/epoll.h>
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/unit.h"

enum { SOCKET = 44, EPOLL = 33 };

static struct dapl_device dev;
static struct dapl_conn conn;
static int socket_error;
static unsigned queued, changes;	/* calls of dapl_task_queue() and epoll_ctl(2) */
static uint32_t reported;		/* events of the last */

REPLACE(dapl_task_queue, epoll_ctl, getsockopt)

static void work(struct dapl_task *task)
{
}

void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *task))
{
	assert_ptr_equal(task, &conn.task);
	assert_ptr_equal(run, work);
	queued++;
}

int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *event)
{
	assert_int_equal(fd, EPOLL);
	assert_int_equal(op, EPOLL_CTL_MOD);
	assert_int_equal(of, SOCKET);
	assert_ptr_equal(event->data.ptr, &conn.progress.input);
	reported = event->events;
	changes++;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	assert_int_equal(fd, SOCKET);
	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(name, SO_ERROR);
	assert_int_equal(*length, sizeof socket_error);
	memcpy(value, &socket_error, sizeof socket_error);
	return 0;
}

UNIT_FIXTURE(set_up)
{
	static const struct soft_conn_events events = { .work = work };

	memset(&conn, 0, sizeof conn);
	dev.data_epoll = EPOLL;
	conn.dev = &dev;
	conn.events = &events;
	conn.fd = SOCKET;
	conn.progress.in_data = true;
	conn.progress.interest = EPOLLIN;
	queued = changes = 0;
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

CASE(each_state_is_a_step)
{
	static const struct { enum soft_conn_state state; enum dapl_conn_step step; } cases[] = {
		{ SOFT_NEW, DAPL_STEP_CONNECT }, { SOFT_CONNECTING, DAPL_STEP_CONNECT },
		{ SOFT_WAIT_REPLY, DAPL_STEP_REPLY }, { SOFT_ATTACHING, DAPL_STEP_REPLY },
		{ SOFT_WAIT_REQUEST, DAPL_STEP_REQUEST }, { SOFT_REQUESTED, DAPL_STEP_REQUEST },
		{ SOFT_WAIT_FIRST, DAPL_STEP_READY }, { SOFT_OPEN, DAPL_STEP_TRANSFER },
		{ SOFT_CLOSING, DAPL_STEP_TRANSFER }, { SOFT_CLOSED, DAPL_STEP_TRANSFER },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		conn.state = cases[i].state;
		assert_int_equal(soft_conn_step(&conn), cases[i].step);
	}
	conn.state = SOFT_REQUESTED;
	conn.owner = &dev;		/* core has accepted */
	assert_int_equal(soft_conn_step(&conn), DAPL_STEP_ACCEPT);
}

CASE(first_cause_stays)
{
	conn.state = SOFT_WAIT_REPLY;
	soft_conn_caused(&conn, EPIPE, DAPL_CODE_TERMINATE_SENT, 0x123, "first");
	conn.state = SOFT_OPEN;
	soft_conn_caused(&conn, EIO, DAPL_CODE_COMPLETION, 0x456, "second");
	assert_true(conn.caused);
	assert_int_equal(conn.cause.step, DAPL_STEP_REPLY);
	assert_int_equal(conn.cause.err, EPIPE);
	assert_int_equal(conn.cause.code_kind, DAPL_CODE_TERMINATE_SENT);
	assert_int_equal(conn.cause.code, 0x123);
	assert_string_equal(conn.cause.text, "first");
}

CASE(error_of_the_socket_is_the_cause)
{
	socket_error = ECONNRESET;
	soft_conn_socket_error(&conn);
	assert_int_equal(conn.cause.err, ECONNRESET);
	assert_int_equal(conn.cause.code_kind, DAPL_CODE_NONE);
	assert_null(conn.cause.text);		/* strerror(3) says it */
	set_up(state);
	socket_error = 0;
	soft_conn_socket_error(&conn);
	assert_int_equal(conn.cause.err, 0);
	assert_non_null(conn.cause.text);
}

CASE(interest_follows_the_stream)
{
	static const struct { bool paused, blocked; uint32_t events; } cases[] = {
		{ false, true, EPOLLIN | EPOLLOUT }, { true, true, EPOLLRDHUP | EPOLLOUT }, { true, false, EPOLLRDHUP },
		{ false, false, EPOLLIN },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		conn.stream.rx.paused = cases[i].paused;
		conn.stream.tx.blocked = cases[i].blocked;
		for (int again = 0; again < 2; again++)	/* the second time nothing has changed */
			soft_conn_interest(&conn);
		assert_int_equal(changes, i + 1);
		assert_int_equal(reported, cases[i].events);
		assert_int_equal(conn.progress.interest, cases[i].events);
	}
}

CASE(socket_outside_the_data_set_is_left_alone)
{
	struct shm_conn rings = { .seen = 0 };

	conn.stream.tx.blocked = true;
	conn.progress.in_data = false;
	soft_conn_interest(&conn);
	conn.progress.in_data = true;
	conn.shm = &rings;
	soft_conn_interest(&conn);
	assert_int_equal(changes, 0);
	assert_int_equal(conn.progress.interest, EPOLLIN);
}

UNIT_MAIN(NULL, NULL)
