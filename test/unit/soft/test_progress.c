/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_progress.c - how often a poll looks at all sockets, the end of a paused stream, and when a thread whose polls
 * stay empty yields. Rings, and what is received and sent over sockets, are replaced here. */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/progress/rings.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/unit.h"

enum { EPOLL = 33, CONNS = 3 };

static void serve_other(struct soft_input *input, uint32_t events, bool polling);

static struct dapl_device dev;
static struct soft_cq cq = { .dev = &dev };	/* the one that is polled */
static struct dapl_conn conns[CONNS];
static struct shm_conn ring;
static struct soft_input other = { serve_other };

static struct {
	unsigned looks;			/* calls of epoll_wait(2) */
	struct epoll_event events[4];	/* of the next one */
	int count;
	int ctl, ctl_fd;		/* the last epoll_ctl(2) */
	unsigned rings, ring_dels, yields, receives, sends, acks, ends;
	bool ring_busy;
} did;

static void task_runs(struct dapl_task *task)
{
}

/* Of the peer's stream. */
static void ended(struct dapl_conn *conn) { did.ends++; }

static const struct soft_conn_events conn_events = { .work = task_runs, .ended = ended };

/* The eventfd of the process, which peers signal. */
static bool is_signaled(void)
{
	struct pollfd on = { .fd = dev.shm.process ? dev.shm.process->wake_fd : -1, .events = POLLIN };

	return poll(&on, 1, 0) > 0;
}

REPLACE(epoll_wait, epoll_ctl, soft_rings_poll, soft_rings_add, soft_rings_del, soft_acks_schedule, soft_tcp_receive)
REPLACE(soft_conn_send, soft_unexpected_deliver, dapl_task_queue, setsockopt, sched_yield)

/* Of SO_RCVLOWAT, which suppresses wake-ups. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	assert_int_equal(name, SO_RCVLOWAT);
	assert_in_range(fd, 100, 100 + CONNS - 1);
	return 0;
}

void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	assert_ptr_equal(run, task_runs);
}

int __wrap_epoll_wait(int fd, struct epoll_event *event, int max, int ms)
{
	int n = did.count;

	assert_int_equal(fd, EPOLL);
	assert_int_equal(ms, 0);
	assert_true(n <= max);
	memcpy(event, did.events, (size_t)n * sizeof *event);
	did.count = 0;
	did.looks++;
	return n;
}

int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *event)
{
	assert_int_equal(fd, EPOLL);
	did.ctl = op;
	did.ctl_fd = of;
	return 0;
}

bool __wrap_soft_rings_poll(struct dapl_device *d, bool polling)
{
	assert_false(is_signaled());		/* or a message that comes meanwhile wakes no thread */
	did.rings++;
	return did.ring_busy;
}

void __wrap_soft_rings_add(struct shm_conn *shm) { }
void __wrap_soft_rings_del(struct shm_conn *shm) { did.ring_dels += shm == &ring; }

void __wrap_soft_acks_schedule(struct dapl_conn *conn, bool polling) { did.acks++; }

bool __wrap_soft_tcp_receive(struct dapl_conn *conn, bool *came)
{
	did.receives++;
	*came = true;
	return true;
}

void __wrap_soft_conn_send(struct dapl_conn *conn)
{
	assert_int_equal(did.acks, did.sends + 1);	/* which may take the acknowledgement along */
	did.sends++;
}

static struct soft_qp *served[4];	/* NULL: raw Ethernet */
static unsigned serves;
static struct soft_srq srq;

void __wrap_soft_unexpected_deliver(struct soft_qp *qp)
{
	assert_false(qp->srq_waiting);
	served[serves++] = qp;
	srq.rq.head++;
}

static void raw_posted(struct soft_qp *qp)
{
	assert_ptr_equal(qp, served[0] + 1);
	__wrap_soft_unexpected_deliver(qp);
	served[serves - 1] = NULL;
}

int __wrap_sched_yield(void)
{
	did.yields++;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	memset(&did, 0, sizeof did);
	memset(&dev, 0, sizeof dev);
	memset(conns, 0, sizeof conns);
	cq.armed = false;
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_init(&dev.progress.owner_lock, RANK_SOFT_OWNER);
	TAILQ_INIT(&dev.progress.acks);
	dev.data_epoll = EPOLL;
	for (int i = 0; i < CONNS; i++) {
		conns[i].dev = &dev;
		conns[i].fd = 100 + i;
		conns[i].events = &conn_events;
	}
}

/* Serves as with the progress lock held. */
static bool serve(bool polling)
{
	bool busy;

	dapl_mutex_lock(&dev.progress_lock);
	busy = soft_progress_serve(&dev, polling);
	soft_progress_unlock(&dev);
	return busy;
}

static unsigned looks_in(unsigned polls)
{
	unsigned before = did.looks;

	while (polls--)
		serve(true);
	return did.looks - before;
}

static bool add(struct dapl_conn *conn)
{
	bool added;

	dapl_mutex_lock(&dev.progress_lock);
	added = soft_progress_add(conn);
	soft_progress_unlock(&dev);
	return added;
}

static void report_input(struct soft_input *input, uint32_t events)
{
	did.events[did.count++] = soft_input_event(input, events);
}

static void report(struct dapl_conn *conn, uint32_t events)
{
	if (!conn->progress.in_data)
		add(conn);
	report_input(&conn->progress.input, events);
}

/* An input that is no connection. */
static void serve_other(struct soft_input *input, uint32_t events, bool polling)
{
	assert_ptr_equal(input, &other);
	assert_held(&dev.progress_lock);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- which sockets a poll looks at ----------------------------------------------------------------------------- */

CASE(busy_socket_is_read_at_each_poll_and_others_seldom)
{
	dev.progress.busy_conn = conns;
	dev.progress.streams = 1;
	assert_int_equal(looks_in(1), 1);
	assert_int_equal(looks_in(SOCKET_ALONE_TURNS - 1), 0);
	assert_int_equal(looks_in(1), 1);
	assert_int_equal(did.receives, SOCKET_ALONE_TURNS + 1);
	dev.progress.streams = 2;
	dev.progress.turns = 0;
	assert_int_equal(looks_in(1), 1);
	assert_int_equal(looks_in(SOCKET_BUSY_TURNS - 1), 0);
	assert_int_equal(looks_in(1), 1);
}

CASE(sockets_beside_rings_are_looked_at_seldom)
{
	dev.progress.busy_conn = conns;
	dev.rings.count = 1;
	dev.progress.streams = 2;
	assert_int_equal(looks_in(1), 1);
	assert_int_equal(looks_in(SOCKET_MIXED_TURNS - 1), 0);
	assert_int_equal(looks_in(1), 1);
	assert_int_equal(did.rings, SOCKET_MIXED_TURNS + 1);
	assert_int_equal(did.receives, 0);
	dev.progress.streams = 1;		/* rings only */
	dev.progress.turns = 0;
	assert_int_equal(looks_in(1000), 1);
}

CASE(service_thread_looks_at_everything)
{
	struct shm_process process = { .sleep_count = &(uint32_t){ 3 },
		.wake_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC) };

	dev.rings.count = dev.progress.streams = 1;
	dev.shm.process = &process;
	dev.progress.turns = 100;
	assert_false(serve(false));
	assert_false(is_signaled());
	assert_int_equal(*process.sleep_count, 5);	/* peers wake it anew, and it sleeps still */
	assert_int_equal(did.rings, 1);
	assert_int_equal(did.looks, 1);
	did.rings = 0;
	did.ring_busy = true;
	assert_true(serve(false));
	close(process.wake_fd);
}

static void let_ack_wait(struct dapl_conn *conn)
{
	conn->progress.ack_listed = true;
	TAILQ_INSERT_TAIL(&dev.progress.acks, conn, progress.ack_link);
}

CASE(waiting_acknowledgements_are_sent_first)
{
	let_ack_wait(conns);
	serve(true);
	assert_true(TAILQ_EMPTY(&dev.progress.acks));
	assert_false(conns[0].progress.ack_listed);
}

/* --- events of a socket ------------------------------------------------------------------------------------------ */

/* Its socket is not read, so that the end is not seen by reading. */
CASE(end_of_a_paused_stream_is_noticed)
{
	static const uint32_t ends[] = { EPOLLRDHUP, EPOLLHUP, EPOLLERR };

	for (unsigned i = 0; i < 3; i++) {
		conns[0].stream.rx.paused = true;
		report(conns, ends[i]);
		serve(false);
		assert_int_equal(did.ends, i + 1);
		assert_true(conns[0].caused);
		assert_int_equal(conns[0].up, SOFT_UP_BROKEN);
		conns[0].stream.end_reported = conns[0].caused = false;
		conns[0].up = 0;
	}
	assert_int_equal(did.sends, 0);
	conns[0].stream.rx.paused = false;
	did.ends = did.receives = 0;
	report(conns, EPOLLHUP);
	serve(false);
	assert_int_equal(did.ends, 0);
	assert_int_equal(did.receives, 1);
}

CASE(wakeups_of_a_socket_that_stays_busy_are_suppressed)
{
	dev.progress.busy_conn = conns;
	dev.progress.turns = 1000;
	dev.progress.owner = OWNER_POLLING_THREADS;
	looks_in(SUPPRESS_AFTER - 1);
	assert_null(dev.progress.suppressed);
	looks_in(1);
	assert_ptr_equal(dev.progress.suppressed, conns);
}

/* --- the set of connections ------------------------------------------------------------------------------------- */

static void del(struct dapl_conn *conn)
{
	dapl_mutex_lock(&dev.progress_lock);
	soft_progress_del(conn);
	soft_progress_unlock(&dev);
}

CASE(forked_child_leaves_the_epoll_set_of_its_parent_alone)
{
	dev.dead = true;
	dapl_mutex_lock(&dev.progress_lock);
	assert_int_equal(soft_input_watch(&dev, &other, 7), 0);
	soft_input_unwatch(&dev, 7);
	soft_progress_unlock(&dev);
	assert_int_equal(did.ctl_fd, 0);
}

CASE(removed_connection_is_forgotten)
{
	add(&conns[0]);
	dev.progress.busy_conn = dev.progress.suppressed = &conns[0];
	let_ack_wait(&conns[0]);
	dev.progress.turns = 50;
	for (int i = 0; i < 2; i++) {		/* the second time it is not there any more */
		del(&conns[0]);
		assert_null(dev.progress.busy_conn);
		assert_null(dev.progress.suppressed);
		assert_int_equal(did.ctl, EPOLL_CTL_DEL);
		assert_true(TAILQ_EMPTY(&dev.progress.acks));
		assert_int_equal(dev.progress.streams, 0);
		assert_int_equal(dev.progress.turns, 0);
	}
	conns[1].shm = &ring;
	add(&conns[1]);
	del(&conns[1]);
	assert_int_equal(did.ring_dels, 1);
	assert_int_equal(did.ctl_fd, 100);		/* its socket is in no set */
}

/* --- polls ------------------------------------------------------------------------------------------------------ */

CASE(poll_of_a_thread_that_goes_to_sleep_does_not_count)
{
	dev.progress.streams = 1;
	cq.armed = true;
	soft_progress_poll(&cq);
	assert_int_equal(dev.progress.polls, 0);
	assert_int_equal(did.looks, 1);
	cq.armed = false;
	soft_progress_poll(&cq);
	assert_int_equal(dev.progress.polls, 1);
}

CASE(thread_that_finds_the_lock_held_yields_at_times)
{
	dev.progress.streams = 1;
	dev.progress_waiters = 1;
	for (unsigned i = 1; i <= 3 * REFUSED_POLLS; i++) {
		assert_true(soft_progress_poll(&cq));
		soft_progress_idle();
		assert_int_equal(did.yields, i / REFUSED_POLLS);
	}
	assert_int_equal(did.looks, 0);
}

CASE(thread_whose_polls_stay_empty_yields)
{
	unsigned first = (IDLE_POLLS / IDLE_YIELD_INTERVAL + 1) * IDLE_YIELD_INTERVAL;

	dev.progress.streams = 1;
	for (unsigned i = 1; i < first + 2 * IDLE_YIELD_INTERVAL; i++) {
		soft_progress_poll(&cq);
		soft_progress_idle();
		soft_progress_idle();
		assert_int_equal(did.yields, i < first ? 0 : (i - first) / IDLE_YIELD_INTERVAL + 1);
	}
	report_input(&other, EPOLLIN);
	assert_true(soft_progress_poll(&cq));
	assert_int_equal(dev.progress.idle_polls, 0);
}

/* --- shared receive queues -------------------------------------------------------------------------------------- */

CASE(posted_receives_go_to_those_that_wait)
{
	static struct soft_qp qps[3];

	memset(&srq, 0, sizeof srq);
	serves = 0;
	dapl_spin_init(&srq.lock, RANK_SOFT_SRQ);
	TAILQ_INIT(&srq.waiting);
	srq.dev = &dev;
	for (int i = 0; i < 3; i++) {
		dapl_mutex_init(&qps[i].lock, RANK_SOFT_QP);
		qps[i].srq_waiting = true;
		TAILQ_INSERT_TAIL(&srq.waiting, &qps[i], srq_link);
	}
	qps[1].srq_posted = raw_posted;	/* instead of a delivery */
	soft_progress_srq_posted(&srq);
	assert_int_equal(serves, 0);
	srq.rq.tail = 2;
	soft_progress_srq_posted(&srq);
	assert_int_equal(serves, 2);
	assert_ptr_equal(served[0], &qps[0]);
	assert_null(served[1]);
	assert_true(qps[2].srq_waiting);
	srq.rq.tail = 9;
	soft_progress_srq_posted(&srq);
	assert_int_equal(serves, 3);
	assert_true(TAILQ_EMPTY(&srq.waiting));
}

UNIT_MAIN(NULL, NULL)
