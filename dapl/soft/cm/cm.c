/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.c - the operations of connection management, and the dispatch of its events: input of the
 * sockets in the handshake, and deadlines. The state of a connection says which function handles an
 * event.
 *
 * The service thread serves the sockets in the cm epoll set, with the progress lock held. A
 * socket moves to the data epoll set when both directions carry FPDUs. The socket of a connection
 * whose data goes through rings stays: it can only report the end of the peer. */
#include "dapl/soft/cm/cm.h"
#include "common/clock.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/acceptor.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/initiator.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Handles input of a socket. The event may be stale: the state says what is expected now. */
static void conn_ready(struct dapl_conn *conn)
{
	if (!conn->cm->in_cm && conn->cm->attach_fd < 0)
		return;
	switch (conn->state) {
	case SOFT_ATTACHING:
		initiator_attach_ready(conn);
		break;
	case SOFT_CONNECTING:
		initiator_connecting(conn);
		break;
	case SOFT_WAIT_REPLY:
		initiator_reply_readable(conn);
		break;
	case SOFT_WAIT_REQUEST:
		acceptor_take_request(conn);
		break;
	case SOFT_WAIT_FIRST:
		acceptor_first_readable(conn);
		break;
	default:		/* the socket of rings, once core knows that the connection is up */
		if (conn->progress.in_data)
			soft_progress_end(conn);
		break;
	}
}

static void cm_ready(struct dapl_watch *watch)
{
	struct dapl_device *dev = container_of(watch, struct dapl_device, cm.watch);
	struct epoll_event event[CM_EVENTS];
	int n = epoll_wait(dev->cm.epoll, event, CM_EVENTS, 0);

	soft_progress_lock(dev);
	for (int i = 0; i < n; i++) {
		uintptr_t p = event[i].data.u64;

		if (p & 1)
			listen_ready((struct soft_port *)(p & ~(uintptr_t)1));
		else
			conn_ready((struct dapl_conn *)p);
	}
	soft_progress_unlock(dev);
}

/* Returns false if the peer is lost, and the stream was ended. */
static bool stream_lives(struct dapl_conn *conn, uint64_t now)
{
	if (!cm_peer_is_lost(conn, now))
		return true;
	cm_end_stream(conn, ETIMEDOUT, "the peer does not answer any more");
	return false;
}

static void conn_expired(struct dapl_conn *conn)
{
	conn->cm->deadline_ns = 0;
	if (conn->state == SOFT_OPEN && !conn->progress.unwatched) {
		acceptor_speak_first(conn);
		return;
	}
	soft_trace(TRC_LVL_NORMAL, "conn", conn, "time is up while %s", cm_state_name(conn->state));
	switch (conn->state) {
	case SOFT_WAIT_REQUEST:
		cm_conn_retire(conn);
		break;
	case SOFT_ATTACHING:
		initiator_attach_expired(conn);
		break;
	case SOFT_CONNECTING:
	case SOFT_WAIT_REPLY:
	case SOFT_WAIT_FIRST:
		cm_fail(conn, DAPL_CONN_TIMED_OUT, ETIMEDOUT, NULL);
		break;
	case SOFT_OPEN:
		cm_end_stream(conn, conn->stream.io_error, "no epoll set takes its socket");
		break;
	default:		/* released, and the peer does not close */
		if (conn->cm->released)
			cm_conn_retire(conn);
	}
}

static void sweep(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, cm.sweep_timer);
	uint64_t now = clock_now_ns(), next = UINT64_MAX;
	struct dapl_conn *conn, *after;
	struct soft_port *port;

	soft_progress_lock(dev);
	dev->cm.sweep_ns = 0;
	for (conn = LIST_FIRST(&dev->cm.conns); conn; conn = after) {
		after = LIST_NEXT(conn, link);
		if (conn->cm->deadline_ns && conn->cm->deadline_ns <= now)
			conn_expired(conn);
		else if (conn->cm->deadline_ns && conn->cm->deadline_ns < next)
			next = conn->cm->deadline_ns;
		if (conn->progress.in_data && cm_patience_ms(&conn->cm->tuning) && stream_lives(conn, now))
			cm_watch_liveness(conn);
	}
	LIST_FOREACH(port, &dev->cm.ports, link)
		if (port->paused && listen_watch(port))
			cm_sweep_within(dev, RETRY_US);
	if (next != UINT64_MAX)
		cm_sweep_within(dev, (next - now) / 1000 > SWEEP_LEAST_US ? (next - now) / 1000 : SWEEP_LEAST_US);
	soft_progress_unlock(dev);
}

/* --- disconnect, release --------------------------------------------------------------------- */

/* Progress lock held. */
static void send_close(struct dapl_conn *conn)
{
	struct soft_qp *qp = soft_stream_lock(conn);

	assert_held(&conn->dev->progress_lock);
	conn->stream.tx.close_notice = true;
	shm_grant_revoke(conn);
	soft_conn_send(conn);
	cm_set_state(conn, SOFT_CLOSING, "disconnect");
	soft_stream_unlock(qp);
}

int soft_cm_disconnect(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	soft_progress_lock(dev);
	if (conn->state == SOFT_OPEN)
		send_close(conn);
	soft_progress_unlock(dev);
	return 0;
}

void soft_cm_release(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	soft_progress_lock(dev);
	conn->cm->released = true;
	if (conn->state == SOFT_OPEN)
		send_close(conn);
	if (conn->state == SOFT_REQUESTED)
		acceptor_refuse(conn);	/* SP-44 */
	if (conn->qp && conn->qp->conn == conn)
		cm_detach(conn->qp);
	conn->qp = NULL;
	if (conn->owner)
		soft_conn_queue_upcall(conn, SOFT_UP_RELEASED);
	if (conn->state != SOFT_CLOSING || (conn->shm && conn->stream.tx.shut)) {
		cm_conn_retire(conn);	/* the peer can read what is in its ring */
	} else {		/* so that the last frames arrive, the socket is open until the peer's FIN */
		if (!conn->progress.in_data)
			soft_progress_add(conn);
		cm_set_deadline(conn, SOFT_LINGER_S);
	}
	soft_progress_unlock(dev);
}

/* --- open, close ----------------------------------------------------------------------------- */

int soft_cm_open(struct dapl_device *dev)
{
	LIST_INIT(&dev->cm.conns);
	TAILQ_INIT(&dev->half_open.list);
	LIST_INIT(&dev->cm.ports);
	dev->cm.sweep_timer.fire = sweep;
	dev->cm.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (dev->cm.epoll < 0)
		return errno;
	return dapl_watch_start(&dev->cm.watch, dev->cm.epoll, cm_ready);
}

/* Sends what the closing connections still have. Fills `sockets` with those that take no more just now.
 * Returns their number. Progress lock held. */
static int send_last(struct dapl_device *dev, struct pollfd sockets[CLOSE_SOCKETS])
{
	struct dapl_conn *conn, *after;
	int n = 0;

	assert_held(&dev->progress_lock);
	for (conn = LIST_FIRST(&dev->cm.conns); conn; conn = after) {
		after = LIST_NEXT(conn, link);
		if (conn->state != SOFT_CLOSING)
			continue;
		conn->stream.tx.blocked = false;
		soft_conn_send(conn);
		if (conn->fd >= 0 && !conn->stream.tx.shut && n < CLOSE_SOCKETS)
			/* a ring makes no socket writable */
			sockets[n++] = (struct pollfd){ .fd = conn->fd, .events = conn->shm ? 0 : POLLOUT };
	}
	return n;
}

static void wait_for_sockets(struct pollfd *sockets, int n)
{
	assert_no_lock_held();
	poll(sockets, n, CLOSE_POLL_MS);
}

/* Gives the sockets time to take the last frames. No lock is held while it waits: connections may end
 * meanwhile, so each round begins with the list. Returns with the progress lock held. */
static void flush_last(struct dapl_device *dev)
{
	uint64_t until = clock_now_ns() + CLOSE_FLUSH_MS * 1000000ull;
	struct pollfd sockets[CLOSE_SOCKETS];
	int n;

	soft_progress_lock(dev);
	while ((n = send_last(dev, sockets)) && clock_now_ns() < until) {
		soft_progress_unlock(dev);
		wait_for_sockets(sockets, n);
		soft_progress_lock(dev);
	}
}

void soft_cm_close(struct dapl_device *dev)
{
	struct dapl_conn *conn;

	dapl_watch_stop(&dev->cm.watch);
	flush_last(dev);
	while ((conn = LIST_FIRST(&dev->cm.conns)))
		cm_conn_retire(conn);
	soft_progress_unlock(dev);
	dapl_timer_drain(&dev->cm.sweep_timer);
	dapl_service_flush();	/* the last upcalls; each of them queues a task that frees the connection */
	dapl_service_flush();	/* these tasks: from here on there is no connection */
	if (dev->cm.epoll >= 0)
		close(dev->cm.epoll);
}
