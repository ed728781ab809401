/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm.c - which function handles the input and the deadline of a connection, what a sweep does and when the next
 * one is due, and how connections are disconnected, released and closed. The handshake, sends,
 * the revocation of memory and the service thread are replaced here. */
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include "dapl/soft/cm/cm.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/progress/progress.h"
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
static uint64_t sweep_us;		/* the next sweep that was asked for; 0: none */
static int peer;			/* the other end of the socket */
static uint8_t scratch[SOFT_SCRATCH];
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

REPLACE(listen_ready, listen_watch, soft_conn_send, shm_grant_revoke, dapl_watch_start, dapl_watch_stop)
REPLACE(dapl_timer_start, dapl_timer_drain, dapl_task_queue, dapl_service_flush)
REPLACE(epoll_wait, poll, clock_gettime, getsockopt)

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

/* Asks TCP about a peer from which an answer is due. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct tcp_info *info = value;

	assert_int_equal(fd, conn.fd);
	assert_int_equal(name, TCP_INFO);
	*info = (struct tcp_info){ .tcpi_probes = 1, .tcpi_last_ack_recv = UINT32_MAX };
	return 0;
}

void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t us, void (*fire)(struct dapl_timer *))
{
	assert_ptr_equal(timer, &dev.cm.sweep_timer);
	sweep_us = us;
}

void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	assert_ptr_equal(task, &conn.task);
	assert_ptr_equal(run, cm_conn_events.work);
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

void __wrap_dapl_service_flush(void) { called("flush"); }

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

UNIT_FIXTURE(set_up)
{
	int fds[2];

	memset(&dev, 0, sizeof dev);
	cm = cm_of_next = (struct soft_cm_conn){ .in_cm = false };
	conn = (struct dapl_conn){ .cm = &cm };
	memset(&port, 0, sizeof port);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	memset(&qp, 0, sizeof qp);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	assert_int_equal(soft_cm_open(&dev), 0);
	conn.dev = &dev;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	conn.fd = fds[0];
	peer = fds[1];
	conn.events = &cm_conn_events;
	conn.cm->tuning.ack_timeout = 1;	/* unlimited patience */
	TAILQ_INIT(&conn.stream.unexpected);
	TAILQ_INIT(&dev.progress.acks);
	dev.progress.scratch = scratch;
	dev.data_epoll = epoll_create1(EPOLL_CLOEXEC);
	qp.dev = &dev;
	conn.cm->attach_fd = -1;
	LIST_INSERT_HEAD(&dev.cm.conns, &conn, link);
	LIST_INSERT_HEAD(&dev.cm.ports, &port, link);
	event_count = watch_err = 0;
	polls = shut_after = 0;
	sweep_us = elapsed_ns = 0;
	*calls = '\0';
}

UNIT_FIXTURE(tear_down)
{
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);	/* a case that failed may hold it */
	LIST_INIT(&dev.cm.conns);
	soft_cm_close(&dev);
	if (conn.fd >= 0)
		close(conn.fd);
	close(peer);
	close(dev.data_epoll);
}

static void renew(void)
{
	tear_down(NULL);
	set_up(NULL);
}

/* The socket of the connection is closed, for this upcall. */
static void ended_with(uint32_t up, int err)
{
	assert_int_equal(conn.state, SOFT_CLOSED);
	assert_int_equal(conn.fd, -1);
	assert_int_equal(conn.up, up);
	assert_int_equal(conn.cause.err, err);
	assert_int_equal(LIST_EMPTY(&dev.cm.conns), up == SOFT_UP_DEAD);
}

static void join_data_path(void)
{
	soft_progress_lock(&dev);
	assert_true(soft_progress_add(&conn));
	soft_progress_unlock(&dev);
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
	assert_int_not_equal(dev.cm.sweep_ns, 1);
}

/* --- input ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(state_selects_the_reader)
{
	static const struct { enum soft_conn_state state; const char *reader; } rows[] = {
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

/* --- deadlines -------------------------------------------------------------------------------------------------- */

UNIT_CASE(state_selects_what_a_deadline_does)
{
	static const struct {
		enum soft_conn_state state;
		bool unwatched, released;
		const char *what;
		uint32_t up;		/* 0: it goes on */
		int err;
	} rows[] = {
		{ SOFT_ATTACHING, false, false, "initiator_attach_expired ", 0, 0 },
		{ SOFT_CONNECTING, false, false, "", SOFT_UP_FAILED, ETIMEDOUT },
		{ SOFT_WAIT_REPLY, false, false, "", SOFT_UP_FAILED, ETIMEDOUT },
		{ SOFT_WAIT_FIRST, false, false, "", SOFT_UP_FAILED, ETIMEDOUT },
		{ SOFT_OPEN, false, false, "acceptor_speak_first ", 0, 0 },
		{ SOFT_OPEN, true, false, "", SOFT_UP_BROKEN, ENOSPC },
		{ SOFT_CLOSING, false, false, "", 0, 0 }, { SOFT_CLOSING, false, true, "", SOFT_UP_DEAD, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		renew();
		conn.stream.io_error = ENOSPC;
		conn.state = rows[i].state;
		conn.progress.unwatched = rows[i].unwatched;
		conn.cm->released = rows[i].released;
		conn.cm->deadline_ns = NOW_NS;
		sweep();
		expect_log(rows[i].what);
		if (rows[i].up)
			ended_with(rows[i].up, rows[i].err);
		else
			assert_int_equal(conn.state, rows[i].state);
		if (rows[i].up == SOFT_UP_FAILED)
			assert_int_equal(conn.cm->failure, DAPL_CONN_TIMED_OUT);
		assert_int_equal(conn.cm->deadline_ns, 0);
		assert_int_equal(sweep_us, 0);
	}
}

UNIT_CASE(client_that_sends_no_request_is_dropped)
{
	conn.state = SOFT_WAIT_REQUEST;
	conn.cm->deadline_ns = NOW_NS - 1;
	soft_progress_lock(&dev);
	soft_half_open_add(&conn);
	soft_progress_unlock(&dev);
	sweep();
	ended_with(SOFT_UP_DEAD, 0);
	assert_int_equal(dev.half_open.count, 0);
}

UNIT_CASE(next_sweep_is_at_the_next_deadline)
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

/* A peer of which TCP has had no answer for as long as the patience lasts. */
static void lose_peer(void) { conn.cm->silent_ns = NOW_NS - cm_patience_ms(&conn.cm->tuning) * 1000000ull; }

UNIT_CASE(sweep_looks_for_lost_peers)
{
	conn.state = SOFT_OPEN;
	conn.cm->tuning.ack_timeout = 1 + 20;
	sweep();
	assert_int_equal(sweep_us, 0);	/* not in the data path */
	join_data_path();
	sweep();
	assert_int_equal(sweep_us, cm_patience_ms(&conn.cm->tuning) / PATIENCE_SWEEPS * 1000);
	lose_peer();
	sweep();
	ended_with(SOFT_UP_BROKEN, ETIMEDOUT);
	renew();
	conn.state = SOFT_OPEN;
	join_data_path();
	lose_peer();
	sweep();			/* unlimited */
	assert_int_equal(conn.state, SOFT_OPEN);
	assert_int_equal(sweep_us, 0);
}

UNIT_CASE(paused_listener_is_tried_again)
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

UNIT_CASE(disconnect_sends_the_close_notification)
{
	conn.state = SOFT_OPEN;
	assert_int_equal(soft_cm_disconnect(&conn), 0);
	expect_log("revoke send_close ");
	assert_int_equal(conn.state, SOFT_CLOSING);
	assert_int_equal(soft_cm_disconnect(&conn), 0);
	expect_log("");
}

UNIT_CASE(released_connection_stays_for_its_last_frames)
{
	conn.state = SOFT_OPEN;
	conn.qp = &qp;
	qp.conn = &conn;
	conn.owner = &dev;
	soft_cm_release(&conn);
	expect_log("revoke send_close ");
	assert_true(conn.cm->released);
	assert_true(conn.progress.in_data);
	assert_int_equal(conn.cm->deadline_ns, NOW_NS + SOFT_LINGER_S * 1000000000ull);
	assert_null(conn.qp);
	assert_null(qp.conn);
	assert_int_equal(conn.up, SOFT_UP_RELEASED);
	conn.owner = NULL;
	conn.up = 0;
	conn.cm->deadline_ns = 0;
	soft_cm_release(&conn);
	expect_log("");
	assert_int_not_equal(conn.cm->deadline_ns, 0);
	assert_int_equal(conn.up, 0);
}

UNIT_CASE(released_request_is_refused)
{
	conn.state = SOFT_REQUESTED;
	soft_cm_release(&conn);
	expect_log("acceptor_refuse ");
	ended_with(SOFT_UP_DEAD, 0);
}

/* --- close ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(closing_device_waits_for_its_last_frames)
{
	int fd;

	conn.state = SOFT_CLOSING;
	conn.stream.tx.blocked = true;
	shut_after = 2;
	fd = conn.fd;
	soft_cm_close(&dev);
	assert_int_equal(polls, 2);
	assert_int_equal(polled.fd, fd);
	assert_int_equal(polled.events, POLLOUT);
	assert_false(conn.stream.tx.blocked);
	expect_log("watch_stop send send send timer_drain flush flush ");
	ended_with(SOFT_UP_DEAD, 0);
	soft_cm_open(&dev);
}

UNIT_CASE(closing_device_waits_a_limited_time)
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

UNIT_MAIN(NULL, NULL)
