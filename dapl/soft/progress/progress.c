/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - the progress lock, and what its holder does: looks for messages in rings and on
 * sockets, which rdmap/responder.c executes; acknowledges them, and sends on. It also decides how
 * seldom a poll looks at what is likely to be empty. owner.c decides which thread drives progress. */
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/receive/ring_rx.h"
#include "common/lock.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/wakeup.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* --- the lock -------------------------------------------------------------------------------- */

/* --- the set of connections ------------------------------------------------------------------- */

/* The first ring that a poll looks at only if its peer has marked it as pending, or in its turn. */
static struct shm_conn *first_behind_busy(const struct dapl_device *dev)
{
	struct shm_conn *shm = TAILQ_FIRST(&dev->shm_conns);

	for (int i = 0; i < RINGS_BUSY && shm; i++)
		shm = TAILQ_NEXT(shm, link);
	return shm;
}

/* There are many rings now, `last` being the newest: polls need the pending bitmap. */
static void use_pending_bitmap(struct dapl_device *dev, struct shm_conn *last)
{
	struct shm_conn *shm;

	if (dev->shm_count > RINGS_FEW + 1) {
		pending_join(last);
		pending_ask(last);
		return;
	}
	TAILQ_FOREACH(shm, &dev->shm_conns, link)
		pending_join(shm);
	for (shm = first_behind_busy(dev); shm; shm = TAILQ_NEXT(shm, link))
		pending_ask(shm);
}

/* The connection is closed. If few rings are left, each poll looks at all of them. */
static void leave_pending_bitmap(struct dapl_device *dev, struct shm_conn *gone)
{
	struct shm_conn *shm;

	pending_leave(gone);
	if (dev->shm_count == RINGS_FEW)
		TAILQ_FOREACH(shm, &dev->shm_conns, link)
			pending_leave(shm);
}

/* A message may be in the ring already, for which no thread was woken: wakes the service thread. */
static void add_ring(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;

	soft_wakeup_end(dev);		/* beside rings, polls do not read the busy socket each time */
	TAILQ_INSERT_TAIL(&dev->shm_conns, shm, link);
	__atomic_add_fetch(&dev->shm_count, 1, __ATOMIC_RELAXED);
	if (dev->shm_count > RINGS_FEW)
		use_pending_bitmap(dev, shm);
	if (shm_conn_ready(shm))
		shm_notify_self(dev->process);
}

/* From now on, polls read the socket of this connection first. */
static void set_busy_conn(struct dapl_device *dev, struct dapl_conn *conn)
{
	if (dev->busy_conn == conn)
		return;
	soft_wakeup_end(dev);
	dev->busy_conn = conn;
	dev->busy_run = 0;
}

bool soft_progress_add(struct dapl_conn *conn)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	if (conn->tx.blocked)
		event.events |= EPOLLOUT;
	conn->interest = event.events;
	conn->in_data = true;
	conn->dev->turns = 0;		/* the next poll looks at all sockets */
	if (conn->shm)
		add_ring(conn->shm);
	__atomic_add_fetch(&conn->dev->streams, 1, __ATOMIC_RELAXED);
	if (conn->shm)			/* cm/conn.c watches its socket */
		return !conn->unwatched;
	if (!epoll_ctl(conn->dev->data_epoll, EPOLL_CTL_ADD, conn->fd, &event))
		return true;
	return false;
}

/* The service thread drives progress, and looks at the rings after this. A peer that stores a
 * message later than that look signals the eventfd again: so the eventfd is cleared first. */
static void rearm_wakeup(struct dapl_device *dev)
{
	if (!dev->process)
		return;
	shm_notify_clear(dev);
	__atomic_add_fetch(dev->process->sleep_count, 2, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void unlist_ack(struct dapl_conn *conn)
{
	if (conn->ack_listed)
		TAILQ_REMOVE(&conn->dev->acks, conn, ack_link);
	conn->ack_listed = false;
}

void soft_progress_del(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	unlist_ack(conn);
	if (dev->busy_conn == conn)
		set_busy_conn(dev, NULL);
	if (!conn->in_data)
		return;
	conn->in_data = false;
	dev->turns = 0;
	if (conn->shm) {
		if (dev->next_shm == conn->shm)
			dev->next_shm = TAILQ_NEXT(conn->shm, link);
		TAILQ_REMOVE(&dev->shm_conns, conn->shm, link);
		__atomic_sub_fetch(&dev->shm_count, 1, __ATOMIC_RELAXED);
		leave_pending_bitmap(dev, conn->shm);
	} else {
		epoll_ctl(dev->data_epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	}
	__atomic_sub_fetch(&dev->streams, 1, __ATOMIC_RELAXED);
}

/* --- acknowledgements ------------------------------------------------------------------------ */

static bool ack_urgent(const struct dapl_conn *conn)
{
	if (conn->shm && ring_ack_due(&conn->shm->rx))
		return true;
	return conn->delivered - conn->tx.cursor.acked_seq >= ACKS_MAX ||
	       conn->consumed - conn->tx.cursor.acked_consumed >= SOFT_WINDOW / 4;
}

/* True if the only news over TCP is that a Send which is still coming in takes part of the window.
 * That is acknowledged a quarter of the window at a time. A blocked sender has three quarters under
 * way. They make up that quarter as they come; or they wait for receives, and then the
 * acknowledgement is sent at once. */
static bool only_window_used(const struct dapl_conn *conn)
{
	return !conn->shm && conn->delivered == conn->tx.cursor.acked_seq && !ack_urgent(conn);
}

static void flush_ring_ack(struct shm_conn *shm)
{
	struct soft_qp *qp = shm->conn->qp;

	shm->ack_owed = false;
	if (!qp)
		return;
	dapl_mutex_lock(&qp->lock);
	if (shm->ack_waits) {
		shm_conn_receive(shm->conn, false);
		soft_tcp_send(shm->conn);	/* the acknowledgement may have opened the window */
	}
	soft_send_ack(shm->conn);
	dapl_mutex_unlock(&qp->lock);
}

/* Sends the acknowledgements that found no message to ride on. Progress lock held. Those of
 * shared-memory connections are sent when a poll finds their ring empty, or by
 * soft_progress_flush(). */
static void flush_acks(struct dapl_device *dev)
{
	struct dapl_conn *conn;

	while ((conn = TAILQ_FIRST(&dev->acks))) {
		struct soft_qp *qp = conn->qp;

		unlist_ack(conn);
		if (!qp)
			continue;
		dapl_mutex_lock(&qp->lock);
		soft_send_ack(conn);
		dapl_mutex_unlock(&qp->lock);
	}
}

void soft_progress_flush(struct dapl_device *dev)
{
	struct shm_conn *shm;

	flush_acks(dev);
	TAILQ_FOREACH(shm, &dev->shm_conns, link)
		if (shm->ack_owed)
			flush_ring_ack(shm);
}

/* Decides whether the acknowledgement may wait for a message to ride on. It may only while a thread
 * polls, which will come back, or while the timer that watches the polling threads runs. */
static void schedule_ack(struct dapl_conn *conn, bool polling)
{
	struct dapl_device *dev = conn->dev;

	if (!soft_owes_ack(conn) || only_window_used(conn))
		return;
	if (!polling || ack_urgent(conn) || !__atomic_load_n(&dev->polled, __ATOMIC_RELAXED)) {
		if (conn->shm)
			shm_conn_send_ack(conn);
		else
			conn->tx.ack_now = true;
	} else if (conn->shm) {
		conn->shm->ack_owed = true;
	} else if (!conn->ack_listed) {
		conn->ack_listed = true;
		TAILQ_INSERT_TAIL(&dev->acks, conn, ack_link);
	}
}

/* --- serving one socket, one ring ------------------------------------------------------------- */

/* True: the socket takes no more; epoll reports when it does. */
static bool serve_socket(struct dapl_conn *conn, uint32_t events, bool polling)
{
	struct soft_qp *qp;
	bool alive = true, came = true, blocked;

	qp = soft_stream_lock(conn);
	if (events & EPOLLOUT)
		conn->tx.blocked = false;
	if (conn->rx.paused && (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))) {
		soft_conn_socket_error(conn);
		soft_stream_over(qp, conn, false);
		alive = false;
	}
	if (alive && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		alive = soft_tcp_receive(conn, &came);
	conn->dev->busy_run += alive && came;
	if (alive && (came || (events & ~EPOLLIN))) {
		schedule_ack(conn, polling);
		soft_tcp_send(conn);
		if (events & EPOLLOUT)
			soft_conn_interest(conn);
	}
	blocked = conn->tx.blocked;
	soft_stream_unlock(qp);
	return blocked;
}

void soft_progress_end(struct dapl_conn *conn)
{
	serve_socket(conn, EPOLLIN, false);
}

static void serve_ring(struct shm_conn *shm, bool polling)
{
	struct dapl_conn *conn = shm->conn;
	struct soft_qp *qp = soft_stream_lock(conn);
	bool more;

	more = shm_conn_receive(conn, polling &&
				 __atomic_load_n(&conn->dev->polled, __ATOMIC_RELAXED));
	shm->ack_owed |= shm->ack_waits;
	schedule_ack(conn, polling);
	if (more)
		soft_tcp_send(conn);
	if (!polling && shm_conn_ready(shm))	/* the budget was used up, and the eventfd was
						 * signalled before */
		shm_notify_self(conn->dev->process);
	soft_stream_unlock(qp);
}

/* True: there was a message or an acknowledgement. */
static bool poll_ring(struct shm_conn *shm, bool polling)
{
	if (shm_conn_ready(shm)) {
		serve_ring(shm, polling);
		return true;
	}
	if (unlikely(shm->ack_owed))
		flush_ring_ack(shm);
	return false;
}

/* --- serving the rings ------------------------------------------------------------------------ */

static bool poll_all_rings(struct dapl_device *dev, bool polling)
{
	struct shm_conn *shm;
	bool busy = false;

	TAILQ_FOREACH(shm, &dev->shm_conns, link)
		busy |= poll_ring(shm, polling);
	return busy;
}

/* A ring that had a message moves to the front of the list. The peer of the ring that leaves the
 * front marks it as pending from now on. */
static void move_to_front(struct dapl_device *dev, struct shm_conn *shm)
{
	struct shm_conn *other;

	TAILQ_REMOVE(&dev->shm_conns, shm, link);
	TAILQ_INSERT_HEAD(&dev->shm_conns, shm, link);
	shm->hits = 0;
	other = dev->unasked ? first_behind_busy(dev) : NULL;
	if (other && !other->pending_asked)
		pending_ask(other);
}

static bool poll_ring_behind(struct dapl_device *dev, struct shm_conn *shm)
{
	if (!poll_ring(shm, true))
		return false;
	if (shm->conn->in_data)
		move_to_front(dev, shm);
	return true;
}

static bool poll_busy_rings(struct dapl_device *dev)
{
	struct shm_conn *shm = TAILQ_FIRST(&dev->shm_conns), *next;
	bool busy = false;

	for (int i = 0; i < RINGS_BUSY && shm; i++, shm = next) {
		next = TAILQ_NEXT(shm, link);
		if (!poll_ring(shm, true))
			continue;
		busy = true;
		if (shm->pending_asked && ++shm->hits == RINGS_WAIVE_HITS)
			pending_waive(shm);
	}
	return busy;
}

static bool poll_pending_rings(struct dapl_device *dev)
{
	unsigned word = 0;
	uint64_t pending = pending_take(dev, &word);
	bool busy = false;

	for (; pending; pending &= pending - 1) {
		struct shm_conn *shm = pending_conn(dev, word * 64 + __builtin_ctzll(pending));

		busy |= shm && poll_ring_behind(dev, shm);
	}
	return busy;
}

static bool poll_rings_in_turn(struct dapl_device *dev, int most)
{
	bool busy = false;

	for (int i = 0; i < most; i++) {
		struct shm_conn *shm = dev->next_shm ? dev->next_shm : TAILQ_FIRST(&dev->shm_conns);

		if (!shm)
			break;
		dev->next_shm = TAILQ_NEXT(shm, link);
		busy |= poll_ring_behind(dev, shm);
	}
	return busy;
}

/* If there are many rings, a poll looks at those at the front of the list, which had messages last,
 * at those that are marked as pending, and at some of the others in turn. */
static bool poll_some_rings(struct dapl_device *dev)
{
	bool all_marked = dev->numbered == dev->shm_count;
	int in_turn = likely(all_marked) ? dev->polls % RINGS_PENDING_POLLS == 0 : RINGS_IN_TURN;
	bool busy = poll_busy_rings(dev);

	busy |= poll_pending_rings(dev);
	return busy | poll_rings_in_turn(dev, in_turn);
}

static bool poll_rings(struct dapl_device *dev, bool polling)
{
	return polling && unlikely(dev->shm_count > RINGS_FEW) ? poll_some_rings(dev)
								: poll_all_rings(dev, polling);
}

bool soft_progress_rings_ready(struct dapl_device *dev)
{
	struct shm_conn *shm;

	TAILQ_FOREACH(shm, &dev->shm_conns, link)
		if (shm_conn_ready(shm))
			return true;
	return false;
}

/* --- polling ---------------------------------------------------------------------------------- */

/* The number of polls that look only at rings, or only at the busy socket, until one looks at all
 * sockets. If all connections use rings, the only other descriptor is the wake-up eventfd, which is
 * for the service thread. */
static unsigned turns_until_sockets(const struct dapl_device *dev)
{
	unsigned streams = __atomic_load_n(&dev->streams, __ATOMIC_RELAXED);

	if (!dev->shm_count)
		return (streams == 1 ? SOCKET_ALONE_TURNS : SOCKET_BUSY_TURNS) - 1;
	if (dev->shm_count == streams)
		return UINT_MAX;
	return SOCKET_MIXED_TURNS - 1;
}

/* Progress lock held. True: there was something. */
bool soft_progress_serve(struct dapl_device *dev, bool polling)
{
	struct epoll_event event[PROGRESS_EVENTS];
	bool busy = false;
	int n;

	if (unlikely(!TAILQ_EMPTY(&dev->acks)))
		flush_acks(dev);
	if (!polling)
		rearm_wakeup(dev);
	if (likely(dev->shm_count)) {
		busy = poll_rings(dev, polling);
		if (polling && dev->turns)
			return dev->turns--, busy;
	} else if (polling && dev->busy_conn) {
		if (serve_socket(dev->busy_conn, EPOLLIN, true) && dev->turns >= SOCKET_BUSY_TURNS)
			dev->turns = SOCKET_BUSY_TURNS - 1;
		if (unlikely(dev->busy_run >= SUPPRESS_AFTER))
			soft_wakeup_begin(dev);
		if (dev->turns)
			return dev->turns--, true;
	}
	dev->turns = turns_until_sockets(dev);
	n = epoll_wait(dev->data_epoll, event, PROGRESS_EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct dapl_conn *conn = event[i].data.ptr;

		if (!conn) {
			soft_ud_receive(dev);
			continue;
		}
		if (event[i].data.ptr == &dev->process)
			continue;	/* the wake-up eventfd */
		set_busy_conn(dev, conn);
		serve_socket(conn, event[i].events, polling);
	}
	return busy || n > 0;
}

/* A thread whose polls stay empty for long yields: the peer may be waiting for this very processor. */
static void count_idle(struct dapl_device *dev, bool busy)
{
	uint32_t idle = busy ? 0 : READ_ONCE(dev->idle_polls) + 1;

	WRITE_ONCE(dev->idle_polls, idle);
	soft_poller.should_yield = idle > IDLE_POLLS && !(idle % IDLE_YIELD_INTERVAL);
	soft_poller.refused = 0;
}

/* Another thread drives progress, or is about to. It may need this processor for that. */
static void count_refused(void)
{
	soft_poller.should_yield = ++soft_poller.refused % REFUSED_POLLS == 0;
}

/* True for the last poll of a thread that has armed the CQ and will block. It does not count as a
 * poll: the service thread must not hand over to this thread. */
static bool is_about_to_sleep(void)
{
	return soft_poller.cq && __atomic_load_n(&soft_poller.cq->armed, __ATOMIC_RELAXED);
}

/* Progress lock held. Peers on this host read the count, too. */
static void count_poll(struct dapl_device *dev)
{
	uint32_t polls = dev->polls + 1;

	WRITE_ONCE(dev->polls, polls);
	if (likely(dev->process))
		WRITE_ONCE(dev->process->mr_dir->polls, polls);
}

bool soft_progress_poll(struct dapl_device *dev)
{
	bool busy;

	if (unlikely(dev->dead) || !__atomic_load_n(&dev->streams, __ATOMIC_RELAXED))
		return false;
	if (!soft_progress_try(dev)) {
		count_refused();
		return true;		/* the holder of the lock may find something */
	}
	if (likely(!is_about_to_sleep()))
		count_poll(dev);
	busy = soft_progress_serve(dev, true);
	count_idle(dev, busy);
	soft_progress_unlock(dev);
	return busy;
}

void soft_progress_idle(void)
{
	if (likely(!soft_poller.should_yield))
		return;
	soft_poller.should_yield = false;
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
	TAILQ_INIT(&dev->acks);
	TAILQ_INIT(&dev->shm_conns);
	LIST_INIT(&dev->accesses);
	dev->scratch = malloc(SOFT_SCRATCH);
	if (!dev->scratch)
		return ENOMEM;
	dev->data_epoll = epoll_create1(EPOLL_CLOEXEC);
	return dev->data_epoll < 0 ? errno : soft_owner_open(dev);
}

void soft_progress_close(struct dapl_device *dev)
{
	soft_owner_close(dev);
	soft_shm_close(dev);
	if (dev->service_epoll >= 0)
		close(dev->service_epoll);
	if (dev->data_epoll >= 0)
		close(dev->data_epoll);
	free(dev->pending_conns);
	free(dev->scratch);
}
