/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.c - the engine lock, and what its holder does: looks for messages, in rings and on sockets,
 * which execute.c executes; acknowledges, sends on; and how seldom that may be. Who serves is
 * handover.c's matter. */
#include "dapl/soft/soft.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	EVENTS = 32,
	HOT_TURNS = 4,			/* polls of the last busy socket for one of all, */
	ALONE_TURNS = 64,		/* ... which is the only one */
	QUIET_AFTER = 32,		/* messages of one socket, until it wakes nobody */
	MIXED_TURNS = 8,		/* polls of rings for one of the sockets that carry data */
	PAIRS_BUSY = 8,			/* rings that each poll looks at, */
	PAIRS_IN_TURN = 8,		/* ... and those of the others, */
	CALLING_POLLS = 8,		/* ... or one in so many polls where their peers call */
	PAIRS_FEW = PAIRS_BUSY + PAIRS_IN_TURN,
	REGULAR = 4,			/* messages found without a call, till the peer need not */
	IDLE_POLLS = 500,		/* empty polls until others get the processor, */
	IDLE_TURNS = 16,		/* ... then now and then */
	REFUSED_POLLS = 16,		/* that another kept from serving, until he gets the processor */
	ACKS_MAX = 32,			/* messages that may wait for their acknowledgement */
};

/* --- the lock -------------------------------------------------------------------------------- */

void soft_engine_lock(struct dapl_device *dev)
{
	__atomic_add_fetch(&dev->engine_waiting, 1, __ATOMIC_RELAXED);
	dapl_spin_lock(&dev->engine);
	__atomic_sub_fetch(&dev->engine_waiting, 1, __ATOMIC_RELAXED);
}

void soft_engine_unlock(struct dapl_device *dev)
{
	dapl_spin_unlock(&dev->engine);
}

/* Pollers give way to those who wait. */
bool soft_engine_try(struct dapl_device *dev)
{
	return !__atomic_load_n(&dev->engine_waiting, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&dev->engine.held, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&dev->engine.held, 1, __ATOMIC_ACQUIRE);
}

/* --- what is looked at ----------------------------------------------------------------------- */

void soft_engine_interest(struct dapl_conn *conn)
{
	uint32_t interest = (conn->rx.paused ? 0 : EPOLLIN) | (conn->tx.blocked ? EPOLLOUT : 0);
	struct epoll_event event = { .events = interest, .data.ptr = conn };

	if (!conn->in_data || conn->interest == interest || conn->pair)
		return;
	conn->interest = interest;
	epoll_ctl(conn->dev->data_epoll, EPOLL_CTL_MOD, conn->fd, &event);
}

/* The first that a poll looks at only when it's called, or in its turn. */
static struct soft_pair *behind_busy(const struct dapl_device *dev)
{
	struct soft_pair *pair = TAILQ_FIRST(&dev->pairs);

	for (int i = 0; i < PAIRS_BUSY && pair; i++)
		pair = TAILQ_NEXT(pair, link);
	return pair;
}

/* The last one is one of many, or has just made them many. */
static void have_call(struct dapl_device *dev, struct soft_pair *last)
{
	struct soft_pair *pair;

	if (dev->pair_count > PAIRS_FEW + 1) {
		soft_calls_join(last);
		soft_calls_ask(last);
		return;
	}
	TAILQ_FOREACH(pair, &dev->pairs, link)
		soft_calls_join(pair);
	for (pair = behind_busy(dev); pair; pair = TAILQ_NEXT(pair, link))
		soft_calls_ask(pair);
}

/* One has gone. Of few, each is looked at. */
static void need_not_call(struct dapl_device *dev, struct soft_pair *gone)
{
	struct soft_pair *pair;

	soft_calls_leave(gone);
	if (dev->pair_count == PAIRS_FEW)
		TAILQ_FOREACH(pair, &dev->pairs, link)
			soft_calls_leave(pair);
}

/* What came before nobody looked wakes whoever is to look. */
static void add_pair(struct soft_pair *pair)
{
	struct dapl_device *dev = pair->conn->dev;

	soft_quiet_end(dev);		/* beside rings the last busy socket is not read at each poll */
	TAILQ_INSERT_TAIL(&dev->pairs, pair, link);
	__atomic_add_fetch(&dev->pair_count, 1, __ATOMIC_RELAXED);
	if (dev->pair_count > PAIRS_FEW)
		have_call(dev, pair);
	if (soft_pair_ready(pair))
		soft_bell_again(dev->station);
}

/* Polls read its socket first from now on. */
static void make_hot(struct dapl_device *dev, struct dapl_conn *conn)
{
	if (dev->hot == conn)
		return;
	soft_quiet_end(dev);
	dev->hot = conn;
	dev->hot_run = 0;
}

bool soft_engine_add(struct dapl_conn *conn)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	if (conn->tx.blocked)
		event.events |= EPOLLOUT;
	conn->interest = event.events;
	conn->in_data = true;
	conn->dev->turns = 0;		/* they are counted anew */
	if (conn->pair)
		add_pair(conn->pair);
	__atomic_add_fetch(&conn->dev->streams, 1, __ATOMIC_RELAXED);
	if (conn->pair)			/* cm.c watches its socket */
		return !conn->unwatched;
	if (!epoll_ctl(conn->dev->data_epoll, EPOLL_CTL_ADD, conn->fd, &event))
		return true;
	log_line(SOFT_LOG_ERR, "soft: epoll_ctl: %s", strerror(errno));
	return false;
}

/* The service thread serves, and looks at the rings after this. Whoever stores something
 * there later than it looks rings the bell anew: so it is cleared first. */
static void sleep_again(struct dapl_device *dev)
{
	if (!dev->station)
		return;
	soft_bell_clear(dev);
	__atomic_add_fetch(dev->station->sleeps, 2, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void unlist_ack(struct dapl_conn *conn)
{
	if (conn->ack_listed)
		TAILQ_REMOVE(&conn->dev->acks, conn, ack_link);
	conn->ack_listed = false;
}

void soft_engine_del(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	unlist_ack(conn);
	if (dev->hot == conn)
		make_hot(dev, NULL);
	if (!conn->in_data)
		return;
	conn->in_data = false;
	dev->turns = 0;
	if (conn->pair) {
		if (dev->next_pair == conn->pair)
			dev->next_pair = TAILQ_NEXT(conn->pair, link);
		TAILQ_REMOVE(&dev->pairs, conn->pair, link);
		__atomic_sub_fetch(&dev->pair_count, 1, __ATOMIC_RELAXED);
		need_not_call(dev, conn->pair);
	} else {
		epoll_ctl(dev->data_epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	}
	__atomic_sub_fetch(&dev->streams, 1, __ATOMIC_RELAXED);
}

/* --- acknowledgements ------------------------------------------------------------------------ */

static bool owes_ack(const struct dapl_conn *conn)
{
	return conn->ours && (conn->delivered != conn->tx.cursor.told_seq ||
			      conn->consumed != conn->tx.cursor.told_consumed ||
			      (conn->pair && ring_tell_due(&conn->pair->rx)));
}

static bool ack_urgent(const struct dapl_conn *conn)
{
	if (conn->pair && ring_tell_due(&conn->pair->rx))
		return true;
	return conn->delivered - conn->tx.cursor.told_seq >= ACKS_MAX ||
	       conn->consumed - conn->tx.cursor.told_consumed >= SOFT_WINDOW / 4;
}

/* All that is new over TCP is that a Send which is coming in takes part of the window: that is
 * told a quarter of the window at a time. A sender who waits has three quarters under way, which
 * make that quarter as they come, or wait for receives, and then it is told at once. */
static bool is_midway(const struct dapl_conn *conn)
{
	return !conn->pair && conn->delivered == conn->tx.cursor.told_seq && !ack_urgent(conn);
}

/* Outside the engine: at once. */
void soft_engine_want_ack(struct dapl_conn *conn)
{
	if (!owes_ack(conn))
		return;
	if (conn->pair) {
		soft_pair_tell(conn);
		return;
	}
	conn->tx.ack_now = true;
	soft_tcp_send(conn);
}

static void flush_pair(struct soft_pair *pair)
{
	struct soft_qp *qp = pair->conn->qp;

	pair->owing = false;
	if (!qp)
		return;
	dapl_spin_lock(&qp->lock);
	if (pair->ack_waits) {
		soft_pair_receive(pair->conn, false);
		soft_tcp_send(pair->conn);	/* it may have opened the window */
	}
	soft_engine_want_ack(pair->conn);
	dapl_spin_unlock(&qp->lock);
}

/* Engine lock held: acknowledgements that found nothing to ride on go alone now. Those of
 * pairs go when the ring is looked at and found empty, or from flush_all. */
static void flush_acks(struct dapl_device *dev)
{
	struct dapl_conn *conn;

	while ((conn = TAILQ_FIRST(&dev->acks))) {
		struct soft_qp *qp = conn->qp;

		unlist_ack(conn);
		if (!qp)
			continue;
		dapl_spin_lock(&qp->lock);
		soft_engine_want_ack(conn);
		dapl_spin_unlock(&qp->lock);
	}
}

void soft_engine_flush(struct dapl_device *dev)
{
	struct soft_pair *pair;

	flush_acks(dev);
	TAILQ_FOREACH(pair, &dev->pairs, link)
		if (pair->owing)
			flush_pair(pair);
}

/* May the acknowledgement wait for something to ride on? Only while somebody polls, who
 * will come back, or the timer that watches the pollers runs. */
static void settle_acks(struct dapl_conn *conn, bool polling)
{
	struct dapl_device *dev = conn->dev;

	if (!owes_ack(conn) || is_midway(conn))
		return;
	if (!polling || ack_urgent(conn) || !__atomic_load_n(&dev->polled, __ATOMIC_RELAXED)) {
		if (conn->pair)
			soft_pair_tell(conn);
		else
			conn->tx.ack_now = true;
	} else if (conn->pair) {
		conn->pair->owing = true;
	} else if (!conn->ack_listed) {
		conn->ack_listed = true;
		TAILQ_INSERT_TAIL(&dev->acks, conn, ack_link);
	}
}

/* --- looking: one stream, one ring ----------------------------------------------------------- */

/* True: the socket takes no more; epoll says when it does. */
static bool serve_stream(struct dapl_conn *conn, uint32_t events, bool polling)
{
	struct soft_qp *qp = conn->qp;
	bool alive = true, came = true, blocked;

	if (qp)
		dapl_spin_lock(&qp->lock);
	if (events & EPOLLOUT)
		conn->tx.blocked = false;
	if (conn->rx.paused && (events & (EPOLLERR | EPOLLHUP))) {
		soft_stream_over(qp, conn, false);
		alive = false;
	}
	if (alive && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		alive = soft_tcp_receive(conn, &came);
	conn->dev->hot_run += alive && came;
	if (alive && (came || (events & ~EPOLLIN))) {
		settle_acks(conn, polling);
		soft_tcp_send(conn);
		if (events & EPOLLOUT)
			soft_engine_interest(conn);
	}
	blocked = conn->tx.blocked;
	if (qp)
		dapl_spin_unlock(&qp->lock);
	return blocked;
}

void soft_engine_end(struct dapl_conn *conn)
{
	serve_stream(conn, EPOLLIN, false);
}

static void serve_pair(struct soft_pair *pair, bool polling)
{
	struct dapl_conn *conn = pair->conn;
	struct soft_qp *qp = conn->qp;
	bool more;

	if (qp)
		dapl_spin_lock(&qp->lock);
	more = soft_pair_receive(conn, polling &&
				 __atomic_load_n(&conn->dev->polled, __ATOMIC_RELAXED));
	pair->owing |= pair->ack_waits;
	settle_acks(conn, polling);
	if (more)
		soft_tcp_send(conn);
	if (!polling && soft_pair_ready(pair))	/* not all at once: its bell was rung before */
		soft_bell_again(conn->dev->station);
	if (qp)
		dapl_spin_unlock(&qp->lock);
}

/* True: there was something. */
static bool look_at_pair(struct soft_pair *pair, bool polling)
{
	if (soft_pair_ready(pair)) {
		serve_pair(pair, polling);
		return true;
	}
	if (unlikely(pair->owing))
		flush_pair(pair);
	return false;
}

/* --- looking: rings -------------------------------------------------------------------------- */

static bool serve_all_pairs(struct dapl_device *dev, bool polling)
{
	struct soft_pair *pair;
	bool busy = false;

	TAILQ_FOREACH(pair, &dev->pairs, link)
		busy |= look_at_pair(pair, polling);
	return busy;
}

/* Of many: it had something last, so it comes to the front. Who leaves the front is to call again. */
static void make_busy(struct dapl_device *dev, struct soft_pair *pair)
{
	struct soft_pair *other;

	TAILQ_REMOVE(&dev->pairs, pair, link);
	TAILQ_INSERT_HEAD(&dev->pairs, pair, link);
	pair->hits = 0;
	other = dev->uncalled ? behind_busy(dev) : NULL;
	if (other && !other->called)
		soft_calls_ask(other);
}

static bool look_behind(struct dapl_device *dev, struct soft_pair *pair)
{
	if (!look_at_pair(pair, true))
		return false;
	if (pair->conn->in_data)
		make_busy(dev, pair);
	return true;
}

static bool serve_busy_pairs(struct dapl_device *dev)
{
	struct soft_pair *pair = TAILQ_FIRST(&dev->pairs), *next;
	bool busy = false;

	for (int i = 0; i < PAIRS_BUSY && pair; i++, pair = next) {
		next = TAILQ_NEXT(pair, link);
		if (!look_at_pair(pair, true))
			continue;
		busy = true;
		if (pair->called && ++pair->hits == REGULAR)
			soft_calls_waive(pair);
	}
	return busy;
}

static bool serve_calling_pairs(struct dapl_device *dev)
{
	unsigned word = 0;
	uint64_t calls = soft_calls_take(dev, &word);
	bool busy = false;

	for (; calls; calls &= calls - 1) {
		struct soft_pair *pair = soft_calls_pair(dev, word * 64 + __builtin_ctzll(calls));

		busy |= pair && look_behind(dev, pair);
	}
	return busy;
}

static bool serve_pairs_in_turn(struct dapl_device *dev, int most)
{
	bool busy = false;

	for (int i = 0; i < most; i++) {
		struct soft_pair *pair = dev->next_pair ? dev->next_pair : TAILQ_FIRST(&dev->pairs);

		if (!pair)
			break;
		dev->next_pair = TAILQ_NEXT(pair, link);
		busy |= look_behind(dev, pair);
	}
	return busy;
}

/* Of many, a poll looks at those that had something last, which are in front, at those whose peers
 * call, and at some of the others in their turn. */
static bool serve_some_pairs(struct dapl_device *dev)
{
	bool all_call = dev->numbered == dev->pair_count;
	int in_turn = likely(all_call) ? dev->polls % CALLING_POLLS == 0 : PAIRS_IN_TURN;
	bool busy = serve_busy_pairs(dev);

	busy |= serve_calling_pairs(dev);
	return busy | serve_pairs_in_turn(dev, in_turn);
}

static bool serve_pairs(struct dapl_device *dev, bool polling)
{
	return polling && unlikely(dev->pair_count > PAIRS_FEW) ? serve_some_pairs(dev)
								: serve_all_pairs(dev, polling);
}

bool soft_engine_pairs_ready(struct dapl_device *dev)
{
	struct soft_pair *pair;

	TAILQ_FOREACH(pair, &dev->pairs, link)
		if (soft_pair_ready(pair))
			return true;
	return false;
}

/* --- looking: everything --------------------------------------------------------------------- */

/* Polls that only look at rings, or at the last busy socket, before one looks at all sockets.
 * Beside nothing but rings there is the bell only, which is the service thread's. */
static unsigned turns_until_sockets(const struct dapl_device *dev)
{
	unsigned streams = __atomic_load_n(&dev->streams, __ATOMIC_RELAXED);

	if (!dev->pair_count)
		return (streams == 1 ? ALONE_TURNS : HOT_TURNS) - 1;
	if (dev->pair_count == streams)
		return UINT_MAX;
	return MIXED_TURNS - 1;
}

/* Engine lock held. True: there was something. */
bool soft_engine_serve(struct dapl_device *dev, bool polling)
{
	struct epoll_event event[EVENTS];
	bool busy = false;
	int n;

	if (unlikely(!TAILQ_EMPTY(&dev->acks)))
		flush_acks(dev);
	if (!polling)
		sleep_again(dev);
	if (likely(dev->pair_count)) {
		busy = serve_pairs(dev, polling);
		if (polling && dev->turns)
			return dev->turns--, busy;
	} else if (polling && dev->hot) {
		if (serve_stream(dev->hot, EPOLLIN, true) && dev->turns >= HOT_TURNS)
			dev->turns = HOT_TURNS - 1;
		if (unlikely(dev->hot_run >= QUIET_AFTER))
			soft_quiet_begin(dev);
		if (dev->turns)
			return dev->turns--, true;
	}
	dev->turns = turns_until_sockets(dev);
	n = epoll_wait(dev->data_epoll, event, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct dapl_conn *conn = event[i].data.ptr;

		if (!conn) {
			soft_ud_receive(dev);
			continue;
		}
		if (event[i].data.ptr == &dev->station)
			continue;	/* the bell */
		make_hot(dev, conn);
		serve_stream(conn, event[i].events, polling);
	}
	return busy || n > 0;
}

/* Who finds nothing for long lets others run: the peer may be waiting for this very
 * processor. */
static void count_idle(struct dapl_device *dev, bool busy)
{
	uint32_t idle = busy ? 0 : ONCE(dev->idle_polls) + 1;

	STORE(dev->idle_polls, idle);
	soft_poller.tired = idle > IDLE_POLLS && !(idle % IDLE_TURNS);
	soft_poller.refused = 0;
}

/* Somebody serves, or is about to. He may need this processor for that. */
static void count_refused(void)
{
	soft_poller.tired = ++soft_poller.refused % REFUSED_POLLS == 0;
}

/* The look of a waiter who has armed the CQ: the service thread must not step aside for him. */
static bool is_about_to_sleep(void)
{
	return soft_poller.cq && __atomic_load_n(&soft_poller.cq->armed, __ATOMIC_RELAXED);
}

/* Engine lock held. Peers may know of it, too. */
static void count_poll(struct dapl_device *dev)
{
	uint32_t polls = dev->polls + 1;

	STORE(dev->polls, polls);
	if (likely(dev->station))
		STORE(dev->station->board->polls, polls);
}

bool soft_engine_poll(struct dapl_device *dev)
{
	bool busy;

	if (unlikely(dev->dead) || !__atomic_load_n(&dev->streams, __ATOMIC_RELAXED))
		return false;
	if (!soft_engine_try(dev)) {
		count_refused();
		return true;		/* whoever has it may find something */
	}
	if (likely(!is_about_to_sleep()))
		count_poll(dev);
	busy = soft_engine_serve(dev, true);
	count_idle(dev, busy);
	soft_engine_unlock(dev);
	return busy;
}

void soft_engine_idle(void)
{
	if (likely(!soft_poller.tired))
		return;
	soft_poller.tired = false;
	sched_yield();
}

/* --- a device's ------------------------------------------------------------------------------ */

void soft_engine_srq_posted(struct soft_srq *srq)
{
	struct dapl_device *dev = srq->dev;
	struct soft_qp *qp;

	soft_engine_lock(dev);	/* so that no QP goes */
	do {
		dapl_spin_lock(&srq->lock);
		qp = srq->rq.head != srq->rq.tail ? TAILQ_FIRST(&srq->waiting) : NULL;
		if (qp) {
			TAILQ_REMOVE(&srq->waiting, qp, srq_link);
			qp->srq_waiting = false;
		}
		dapl_spin_unlock(&srq->lock);
		if (qp) {
			dapl_spin_lock(&qp->lock);
			soft_target_receives(qp);
			dapl_spin_unlock(&qp->lock);
		}
	} while (qp);
	soft_engine_unlock(dev);
}

int soft_engine_open(struct dapl_device *dev)
{
	TAILQ_INIT(&dev->acks);
	TAILQ_INIT(&dev->pairs);
	dev->scratch = malloc(SOFT_SCRATCH);
	if (!dev->scratch)
		return ENOMEM;
	dev->data_epoll = epoll_create1(EPOLL_CLOEXEC);
	return dev->data_epoll < 0 ? errno : soft_handover_open(dev);
}

void soft_engine_close(struct dapl_device *dev)
{
	soft_handover_close(dev);
	soft_shm_close(dev);
	if (dev->service_epoll >= 0)
		close(dev->service_epoll);
	if (dev->data_epoll >= 0)
		close(dev->data_epoll);
	free(dev->callers);
	free(dev->scratch);
}
