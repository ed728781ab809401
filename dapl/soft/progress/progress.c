/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - what the holder of the progress lock does at each turn: looks for messages in rings
 * (rings.c) and on sockets, which rdmap/ executes; acknowledges them (acks.c), and sends on. owner.c
 * decides which thread drives progress. */
#include "dapl/soft/progress/progress.h"
#include "common/compiler.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "common/once.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/rings.h"
#include "dapl/soft/progress/wakeup.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* --- serving one socket ------------------------------------------------------------- */

/* From now on, polls read the socket of this connection first. */
static void set_busy_conn(struct dapl_device *dev, struct dapl_conn *conn)
{
	if (dev->progress.busy_conn == conn)
		return;
	soft_wakeup_end(dev);
	dev->progress.busy_conn = conn;
	dev->progress.busy_run = 0;
}

/* Returns true if the socket takes no more; epoll reports when it does. */
static bool serve_socket(struct dapl_conn *conn, uint32_t events, bool polling)
{
	struct soft_qp *qp;
	bool alive = true, came = true, blocked;

	qp = soft_stream_lock(conn);
	if (events & EPOLLOUT)
		conn->stream.tx.blocked = false;
	if (conn->stream.rx.paused && (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))) {
		soft_conn_socket_error(conn);
		soft_stream_ended(qp, conn, false);
		alive = false;
	}
	if (alive && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		alive = soft_tcp_receive(conn, &came);
	conn->dev->progress.busy_run += alive && came;
	if (alive && (came || (events & ~EPOLLIN))) {
		soft_acks_schedule(conn, polling);
		soft_conn_send(conn);
		if (events & EPOLLOUT)
			soft_conn_interest(conn);
	}
	blocked = conn->stream.tx.blocked;
	soft_stream_unlock(qp);
	return blocked;
}

static void serve_conn(struct soft_input *input, uint32_t events, bool polling)
{
	struct dapl_conn *conn = container_of(input, struct dapl_conn, progress.input);

	set_busy_conn(conn->dev, conn);
	serve_socket(conn, events, polling);
}

/* --- the set of connections ------------------------------------------------------------------- */

bool soft_progress_add(struct dapl_conn *conn)
{
	struct epoll_event event = soft_input_event(&conn->progress.input,
							    conn->stream.tx.blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);

	assert_held(&conn->dev->progress_lock);
	conn->progress.input.serve = serve_conn;
	conn->progress.interest = event.events;
	conn->progress.in_data = true;
	if (conn->shm) {
		soft_wakeup_end(conn->dev);	/* beside rings, polls do not always read the busy socket */
		soft_rings_add(conn->shm);
	}
	soft_input_count(conn->dev, 1);
	if (conn->shm)			/* cm/conn.c watches its socket */
		return !conn->progress.unwatched;
	if (!epoll_ctl(conn->dev->data_epoll, EPOLL_CTL_ADD, conn->fd, &event))
		return true;
	return false;
}

/* The service thread drives progress, and looks at the rings after this. A peer that stores a
 * message later than that look signals the eventfd again: so the eventfd is cleared first. */
static void rearm_wakeup(struct dapl_device *dev)
{
	if (!dev->shm.process)
		return;
	shm_notify_clear(dev);
	__atomic_add_fetch(dev->shm.process->sleep_count, 2, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void soft_progress_del(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	assert_held(&conn->dev->progress_lock);
	soft_acks_forget(conn);
	if (dev->progress.busy_conn == conn)
		set_busy_conn(dev, NULL);
	if (!conn->progress.in_data)
		return;
	conn->progress.in_data = false;
	if (conn->shm)
		soft_rings_del(conn->shm);
	else
		epoll_ctl(dev->data_epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	soft_input_count(dev, -1);
}

void soft_progress_end(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	serve_socket(conn, EPOLLIN, false);
}

/* --- polling ---------------------------------------------------------------------------------- */

/* The number of polls that look only at rings, or only at the busy socket, until one looks at all
 * sockets. If all connections use rings, the only other descriptor is the wake-up eventfd, which is
 * for the service thread. */
static unsigned turns_until_sockets(const struct dapl_device *dev)
{
	unsigned streams = __atomic_load_n(&dev->progress.streams, __ATOMIC_RELAXED);

	if (!dev->rings.count)
		return (streams == 1 ? SOCKET_ALONE_TURNS : SOCKET_BUSY_TURNS) - 1;
	if (dev->rings.count == streams)
		return UINT_MAX;
	return SOCKET_MIXED_TURNS - 1;
}

/* Looks at all sockets. Out of line, so that a poll that looks only at rings does not save the
 * registers that this needs. Returns true if there was something. */
static NOINLINE bool serve_all_sockets(struct dapl_device *dev, bool polling)
{
	struct epoll_event event[PROGRESS_EVENTS];
	int n;

	dev->progress.turns = turns_until_sockets(dev);
	n = epoll_wait(dev->data_epoll, event, PROGRESS_EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct soft_input *input = event[i].data.ptr;

		input->serve(input, event[i].events, polling);
	}
	return n > 0;
}

/* Reads the socket that had input last. Out of line as serve_all_sockets() is. */
static NOINLINE void serve_busy_socket(struct dapl_device *dev)
{
	if (serve_socket(dev->progress.busy_conn, EPOLLIN, true) && dev->progress.turns >= SOCKET_BUSY_TURNS)
		dev->progress.turns = SOCKET_BUSY_TURNS - 1;
	if (unlikely(dev->progress.busy_run >= SUPPRESS_AFTER))
		soft_wakeup_begin(dev);
}

bool soft_progress_serve(struct dapl_device *dev, bool polling)
{
	bool busy = false;

	assert_held(&dev->progress_lock);
	if (unlikely(!TAILQ_EMPTY(&dev->progress.acks)))
		soft_acks_flush_sockets(dev);
	if (!polling)
		rearm_wakeup(dev);
	if (likely(dev->rings.count)) {
		busy = soft_rings_poll(dev, polling);
		if (polling && dev->progress.turns) {
			dev->progress.turns--;
			return busy;
		}
	} else if (polling && dev->progress.busy_conn) {
		serve_busy_socket(dev);
		if (dev->progress.turns) {
			dev->progress.turns--;
			return true;
		}
	}
	return serve_all_sockets(dev, polling) | busy;
}

/* Polls of this process that found the progress lock held, and whether the next thread with an empty poll
 * yields, be it another one than that which is told to. Not thread-local: a library that is loaded late may find
 * no room for that. */
static uint32_t refused_polls;		/* atomic; a lost count does no harm */
static bool should_yield;		/* atomic */

/* A thread whose polls stay empty for long yields: the peer may be waiting for this very processor. */
static void count_idle(struct dapl_device *dev, bool busy)
{
	uint32_t idle = busy ? 0 : READ_ONCE(dev->progress.idle_polls) + 1;

	WRITE_ONCE(dev->progress.idle_polls, idle);
	if (unlikely(idle > IDLE_POLLS && !(idle % IDLE_YIELD_INTERVAL)))
		WRITE_ONCE(should_yield, true);
}

/* Another thread drives progress, or is about to. It may need this processor for that. */
static void count_refused(void)
{
	uint32_t polls = READ_ONCE(refused_polls) + 1;

	WRITE_ONCE(refused_polls, polls);
	if (polls % REFUSED_POLLS == 0)
		WRITE_ONCE(should_yield, true);
}

/* True for the last poll of a thread that has armed the CQ and will block. It does not count as a
 * poll: the service thread must not hand over to this thread. */
static bool is_about_to_sleep(const struct soft_cq *cq)
{
	return __atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
}

/* Progress lock held. Peers on this host read the count, too. */
static void count_poll(struct dapl_device *dev)
{
	uint32_t polls = dev->progress.polls + 1;

	assert_held(&dev->progress_lock);
	WRITE_ONCE(dev->progress.polls, polls);
	if (likely(dev->shm.process))
		WRITE_ONCE(dev->shm.process->mr_dir->polls, polls);
}

bool soft_progress_poll(const struct soft_cq *cq)
{
	struct dapl_device *dev = cq->dev;
	bool busy;

	if (unlikely(dev->dead) || !__atomic_load_n(&dev->progress.streams, __ATOMIC_RELAXED))
		return false;
	if (!soft_progress_try(dev)) {
		count_refused();
		return true;		/* the holder of the lock may find something */
	}
	if (likely(!is_about_to_sleep(cq)))
		count_poll(dev);
	busy = soft_progress_serve(dev, true);
	count_idle(dev, busy);
	soft_progress_unlock(dev);
	return busy;
}

void soft_progress_idle(void)
{
	if (likely(!READ_ONCE(should_yield)))
		return;
	WRITE_ONCE(should_yield, false);
	sched_yield();
}

/* --- open, close, SRQ ------------------------------------------------------------------------- */

void soft_progress_srq_posted(struct soft_srq *srq)
{
	struct dapl_device *dev = srq->dev;
	struct soft_qp *qp;

	soft_progress_lock(dev);	/* keeps the QPs from being destroyed */
	do {
		dapl_spin_lock(&srq->lock);
		qp = srq->rq.head != srq->rq.tail ? TAILQ_FIRST(&srq->waiting) : NULL;
		if (qp) {
			TAILQ_REMOVE(&srq->waiting, qp, srq_link);
			qp->srq_waiting = false;
		}
		dapl_spin_unlock(&srq->lock);
		if (qp) {
			dapl_mutex_lock(&qp->lock);
			if (qp->srq_posted)
				qp->srq_posted(qp);
			else
				soft_unexpected_deliver(qp);
			dapl_mutex_unlock(&qp->lock);
		}
	} while (qp);
	soft_progress_unlock(dev);
}

int soft_progress_open(struct dapl_device *dev)
{
	TAILQ_INIT(&dev->progress.acks);
	TAILQ_INIT(&dev->rings.list);
	LIST_INIT(&dev->accesses.list);
	dev->progress.scratch = malloc(SOFT_SCRATCH);
	if (!dev->progress.scratch)
		return ENOMEM;
	dev->data_epoll = epoll_create1(EPOLL_CLOEXEC);
	return dev->data_epoll < 0 ? errno : soft_owner_open(dev);
}

void soft_progress_close(struct dapl_device *dev)
{
	soft_owner_close(dev);
	soft_shm_close(dev);
	if (dev->progress.service_epoll >= 0)
		close(dev->progress.service_epoll);
	if (dev->data_epoll >= 0)
		close(dev->data_epoll);
	free(dev->rings.pending_conns);
	free(dev->progress.scratch);
}
