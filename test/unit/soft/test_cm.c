/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm.c - which function handles the input and the deadline of a connection, what a sweep does and when the next
 * one is due, and how connections are disconnected, released and closed. What handles them is replaced here. */
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include "dapl/soft/cm/cm.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { NOW_S = 1000 };			/* seconds */
#define NOW_NS (NOW_S * 1000000000ull)

static struct dapl_device dev;
static struct soft_cm_conn cm, cm_of_next;
static struct dapl_conn conn;
static struct soft_port port;
static struct soft_qp qp;
static char calls[1024];			/* what was called, in order */
static struct epoll_event events[CM_EVENTS];
static int event_count, watch_err;
static bool peer_lost;
static unsigned patience_ms;
static uint64_t sweep_us;		/* the earliest sweep that was asked for; 0: none */
static int io_error;			/* of cm_end_stream() */
static uint32_t up;			/* upcalls queued */
static unsigned polls, shut_after;	/* the socket takes the last frame at this poll */
static struct pollfd polled;
static uint64_t elapsed_ns;

static void called(const char *what)
{
	strcat(calls, what);
	strcat(calls, " ");
}

/* A function of another file that takes a connection. */
#define RECORD(name)					\
	void __wrap_##name(struct dapl_conn *c);	\
	void __wrap_##name(struct dapl_conn *c)		\
	{						\
		assert_ptr_equal(c, &conn);		\
		called(#name);				\
	}

RECORD(initiator_attach_ready)
RECORD(initiator_attach_expired)
RECORD(initiator_connecting)
RECORD(initiator_reply_readable)
RECORD(acceptor_take_request)
RECORD(acceptor_first_readable)
RECORD(acceptor_speak_first)
RECORD(acceptor_refuse)
RECORD(soft_progress_end)
RECORD(soft_progress_add)
RECORD(cm_watch_liveness)

REPLACE(cm_conn_retire, listen_ready, listen_watch, cm_fail, cm_end_stream, cm_peer_is_lost, cm_patience_ms)
REPLACE(cm_set_deadline, cm_sweep_within, soft_conn_send, shm_grant_revoke, soft_cm_detach, soft_conn_queue_upcall)
REPLACE(dapl_watch_start, dapl_watch_stop, dapl_timer_drain, dapl_service_flush, epoll_wait, poll, clock_gettime)

void __wrap_cm_conn_retire(struct dapl_conn *c)
{
	called("retire");
	LIST_REMOVE(c, link);
}

void __wrap_listen_ready(struct soft_port *p)
{
	assert_ptr_equal(p, &port);
	called("listen_ready");
}

int __wrap_listen_watch(struct soft_port *p)
{
	assert_ptr_equal(p, &port);
	called("listen_watch");
	return watch_err;
}

void __wrap_cm_fail(struct dapl_conn *c, enum dapl_conn_failure why, int err, const char *text)
{
	assert_ptr_equal(c, &conn);
	assert_int_equal(why, DAPL_CONN_TIMED_OUT);
	assert_int_equal(err, ETIMEDOUT);
	called("fail");
}

void __wrap_cm_end_stream(struct dapl_conn *c, int err, const char *why)
{
	assert_ptr_equal(c, &conn);
	io_error = err;
	called("end_stream");
}

bool __wrap_cm_peer_is_lost(struct dapl_conn *c, uint64_t now)
{
	assert_int_equal(now, NOW_NS);
	return peer_lost;
}

unsigned __wrap_cm_patience_ms(const struct dapl_conn_tuning *tuning)
{
	assert_ptr_equal(tuning, &conn.cm->tuning);
	return patience_ms;
}

void __wrap_cm_set_deadline(struct dapl_conn *c, unsigned seconds)
{
	assert_int_equal(seconds, SOFT_LINGER_S);
	called("linger");
}

void __wrap_cm_sweep_within(struct dapl_device *d, uint64_t us)
{
	assert_ptr_equal(d, &dev);
	sweep_us = !sweep_us || us < sweep_us ? us : sweep_us;
}

void __wrap_soft_conn_send(struct dapl_conn *c)
{
	called(c->stream.tx.close_notice ? "send_close" : "send");
	if (shut_after && polls == shut_after)
		c->stream.tx.shut = true;
}

bool __wrap_shm_grant_revoke(struct dapl_conn *c)
{
	called("revoke");
	return true;
}

void __wrap_soft_cm_detach(struct soft_qp *q)
{
	assert_ptr_equal(q, &qp);
	called("detach");
}

void __wrap_soft_conn_queue_upcall(struct dapl_conn *c, uint32_t what)
{
	up |= what;
}

int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	watch->fd = fd;
	watch->ready = ready;
	return 0;
}

void __wrap_dapl_watch_stop(struct dapl_watch *watch)
{
	assert_ptr_equal(watch, &dev.cm.watch);
	called("watch_stop");
}

void __wrap_dapl_timer_drain(struct dapl_timer *timer)
{
	assert_ptr_equal(timer, &dev.cm.sweep_timer);
	called("timer_drain");
}

void __wrap_dapl_service_flush(void)
{
	called("flush");
}

int __wrap_epoll_wait(int fd, struct epoll_event *event, int most, int ms)
{
	assert_int_equal(fd, dev.cm.epoll);
	assert_int_equal(most, CM_EVENTS);
	assert_int_equal(ms, 0);
	memcpy(event, events, sizeof events);
	return event_count;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	assert_int_equal(n, 1);
	assert_int_equal(ms, CLOSE_POLL_MS);
	polled = *p;
	polls++;
	elapsed_ns += CLOSE_POLL_MS * 1000000ull;
	return 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	uint64_t ns = NOW_NS + elapsed_ns;

	*now = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	return 0;
}

/* --- what the cases use ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	memset(&dev, 0, sizeof dev);
	cm = cm_of_next = (struct soft_cm_conn){ .in_cm = false };
	conn = (struct dapl_conn){ .cm = &cm };
	memset(&port, 0, sizeof port);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	memset(&qp, 0, sizeof qp);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	assert_int_equal(soft_cm_open(&dev), 0);
	conn.dev = &dev;
	conn.fd = 77;
	conn.cm->attach_fd = -1;
	LIST_INSERT_HEAD(&dev.cm.conns, &conn, link);
	LIST_INSERT_HEAD(&dev.cm.ports, &port, link);
	event_count = watch_err = io_error = 0;
	peer_lost = false;
	patience_ms = up = polls = shut_after = 0;
	sweep_us = elapsed_ns = 0;
	*calls = '\0';
	return 0;
}

static int tear_down(void **state)
{
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);	/* a case that failed may hold it */
	LIST_INIT(&dev.cm.conns);
	soft_cm_close(&dev);
	return 0;
}

static void expect_log(const char *expected)
{
	assert_string_equal(calls, expected);
	*calls = '\0';
}

static void input(void)
{
	events[0].data.ptr = &conn;
	event_count = 1;
	dev.cm.watch.ready(&dev.cm.watch);
}

static void sweep(void)
{
	dev.cm.sweep_ns = 1;
	dev.cm.sweep_timer.fire(&dev.cm.sweep_timer);
	assert_int_equal(dev.cm.sweep_ns, 0);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* --- input ------------------------------------------------------------------------------------------------------ */

CASE(state_selects_the_reader)
{
	static const struct {
		enum soft_conn_state state;
		const char *reader;
	} rows[] = {
		{ SOFT_ATTACHING, "initiator_attach_ready " }, { SOFT_CONNECTING, "initiator_connecting " },
		{ SOFT_WAIT_REPLY, "initiator_reply_readable " }, { SOFT_WAIT_REQUEST, "acceptor_take_request " },
		{ SOFT_WAIT_FIRST, "acceptor_first_readable " }, { SOFT_REQUESTED, "" }, { SOFT_OPEN, "" },
	};

	conn.cm->in_cm = true;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		conn.state = rows[i].state;
		input();
		expect_log(rows[i].reader);
	}
}

CASE(input_of_an_open_connection_ends_it)
{
	conn.cm->in_cm = conn.progress.in_data = true;
	conn.state = SOFT_OPEN;
	input();
	expect_log("soft_progress_end ");
}

CASE(stale_event_is_ignored)
{
	conn.state = SOFT_WAIT_REPLY;
	input();
	expect_log("");
	conn.cm->attach_fd = 5;
	conn.state = SOFT_ATTACHING;
	input();
	expect_log("initiator_attach_ready ");
}

CASE(listener_is_told_from_a_connection)
{
	conn.cm->in_cm = true;
	conn.state = SOFT_CONNECTING;
	events[0].data.u64 = (uintptr_t)&port | 1;
	events[1].data.ptr = &conn;
	event_count = 2;
	dev.cm.watch.ready(&dev.cm.watch);
	expect_log("listen_ready initiator_connecting ");
}

/* --- deadlines -------------------------------------------------------------------------------------------------- */

CASE(state_selects_what_a_deadline_does)
{
	static const struct {
		enum soft_conn_state state;
		bool unwatched, released;
		const char *what;
	} rows[] = {
		{ SOFT_ATTACHING, false, false, "initiator_attach_expired " },
		{ SOFT_CONNECTING, false, false, "fail " },
		{ SOFT_WAIT_REPLY, false, false, "fail " }, { SOFT_WAIT_FIRST, false, false, "fail " },
		{ SOFT_OPEN, false, false, "acceptor_speak_first " }, { SOFT_OPEN, true, false, "end_stream " },
		{ SOFT_CLOSING, false, false, "" }, { SOFT_CLOSING, false, true, "retire " },
	};

	conn.stream.io_error = ENOSPC;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		conn.state = rows[i].state;
		conn.progress.unwatched = rows[i].unwatched;
		conn.cm->released = rows[i].released;
		conn.cm->deadline_ns = NOW_NS;
		sweep();
		expect_log(rows[i].what);
		assert_int_equal(conn.cm->deadline_ns, 0);
		assert_int_equal(sweep_us, 0);
		assert_int_equal(io_error, i >= 5 ? ENOSPC : 0);
	}
}

CASE(client_that_sends_no_request_is_dropped)
{
	conn.state = SOFT_WAIT_REQUEST;
	conn.cm->deadline_ns = NOW_NS - 1;
	sweep();
	expect_log("retire ");
	assert_true(LIST_EMPTY(&dev.cm.conns));
}

CASE(next_sweep_is_at_the_next_deadline)
{
	struct dapl_conn later = { .dev = &dev, .state = SOFT_CONNECTING, .cm = &cm_of_next };

	later.cm->deadline_ns = NOW_NS + 900000000;
	LIST_INSERT_AFTER(&conn, &later, link);
	conn.state = SOFT_CONNECTING;
	conn.cm->deadline_ns = NOW_NS + 300000000;
	sweep();
	assert_int_equal(sweep_us, 300000);
	conn.cm->deadline_ns = NOW_NS + 5000000;
	sweep_us = 0;
	sweep();
	assert_int_equal(sweep_us, SWEEP_LEAST_US);
	expect_log("");
	LIST_REMOVE(&later, link);
}

CASE(sweep_looks_for_lost_peers)
{
	conn.state = SOFT_OPEN;
	patience_ms = 1000;
	sweep();
	expect_log("");			/* not in the data path */
	conn.progress.in_data = true;
	sweep();
	expect_log("cm_watch_liveness ");
	peer_lost = true;
	sweep();
	expect_log("end_stream ");
	assert_int_equal(io_error, ETIMEDOUT);
	patience_ms = 0;		/* unlimited */
	sweep();
	expect_log("");
}

CASE(paused_listener_is_tried_again)
{
	sweep();
	expect_log("");
	port.paused = true;
	sweep();
	expect_log("listen_watch ");
	assert_int_equal(sweep_us, 0);
	watch_err = EMFILE;
	sweep();
	expect_log("listen_watch ");
	assert_int_equal(sweep_us, RETRY_US);
}

/* --- disconnect, release ---------------------------------------------------------------------------------------- */

CASE(disconnect_sends_the_close_notification)
{
	conn.state = SOFT_OPEN;
	assert_int_equal(soft_cm_disconnect(&conn), 0);
	expect_log("revoke send_close ");
	assert_int_equal(conn.state, SOFT_CLOSING);
	assert_int_equal(soft_cm_disconnect(&conn), 0);
	expect_log("");
}

CASE(released_connection_stays_for_its_last_frames)
{
	conn.state = SOFT_OPEN;
	conn.qp = &qp;
	qp.conn = &conn;
	conn.owner = &dev;
	soft_cm_release(&conn);
	expect_log("revoke send_close detach soft_progress_add linger ");
	assert_true(conn.cm->released);
	assert_null(conn.qp);
	assert_int_equal(up, SOFT_UP_RELEASED);
	conn.progress.in_data = true;
	conn.owner = NULL;
	up = 0;
	soft_cm_release(&conn);
	expect_log("linger ");
	assert_int_equal(up, 0);
}

CASE(released_ring_needs_no_lingering)
{
	struct shm_conn shm = { .conn = &conn };

	conn.state = SOFT_CLOSING;
	conn.shm = &shm;
	conn.stream.tx.shut = true;
	soft_cm_release(&conn);
	expect_log("retire ");
}

CASE(released_request_is_refused)
{
	conn.state = SOFT_REQUESTED;
	soft_cm_release(&conn);
	expect_log("acceptor_refuse retire ");
}

CASE(released_connection_keeps_the_new_one_of_its_queue_pair)
{
	struct dapl_conn next = { .dev = &dev, .cm = &cm_of_next };

	conn.state = SOFT_CLOSED;
	conn.qp = &qp;
	qp.conn = &next;
	soft_cm_release(&conn);
	expect_log("retire ");
	assert_null(conn.qp);
}

/* --- close ------------------------------------------------------------------------------------------------------ */

CASE(closing_device_waits_for_its_last_frames)
{
	conn.state = SOFT_CLOSING;
	conn.stream.tx.blocked = true;
	shut_after = 2;
	soft_cm_close(&dev);
	assert_int_equal(polls, 2);
	assert_int_equal(polled.fd, 77);
	assert_int_equal(polled.events, POLLOUT);
	assert_false(conn.stream.tx.blocked);
	expect_log("watch_stop send send send retire timer_drain flush flush ");
	soft_cm_open(&dev);
}

CASE(closing_device_waits_a_limited_time)
{
	struct shm_conn shm = { .conn = &conn };

	conn.state = SOFT_CLOSING;
	conn.shm = &shm;
	soft_cm_close(&dev);
	assert_int_equal(polls, CLOSE_FLUSH_MS / CLOSE_POLL_MS);
	assert_int_equal(polled.events, 0);	/* a ring makes no socket writable */
	assert_true(LIST_EMPTY(&dev.cm.conns));
	soft_cm_open(&dev);
}

CASE(closing_device_sends_nothing_for_others)
{
	conn.state = SOFT_OPEN;
	soft_cm_close(&dev);
	assert_int_equal(polls, 0);
	expect_log("watch_stop retire timer_drain flush flush ");
	soft_cm_open(&dev);
}

UNIT_MAIN(NULL, NULL)
