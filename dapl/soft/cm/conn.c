/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - the connection object: its place in the epoll set of connection management, its life, and
 * the upcalls to core. initiator.c, listen.c, acceptor.c, handshake.c and cm.c decide which state
 * follows. rdmap/, tcp/ and shm/ carry the data.
 *
 * Upcalls are collected in conn->up and made by conn_work(), a task, with no lock held. Only that
 * task frees a connection, after the connection was taken from every list and set. So an epoll
 * event that was fetched before still finds it. */
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/rdmap/flush.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/rdmap/ud.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	struct dapl_device *dev = conn->dev;
	struct soft_qp *qp;

	soft_progress_lock(dev);
	qp = soft_stream_lock(conn);
	soft_conn_explain(conn, cause);
	if (!conn->local.ss_family)
		cause->local = dev->address;
	soft_stream_unlock(qp);
	soft_progress_unlock(dev);
}

const char *cm_carrier(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	const char *carrier;

	soft_progress_lock(dev);
	carrier = conn->cm->ud ? NULL : conn->shm ? "memory" : conn->stream.crc ? "tcp+crc" : "tcp";
	soft_progress_unlock(dev);
	return carrier;
}

/* --- sockets --------------------------------------------------------------------------------- */

/* No epoll set takes the socket, so its events would be missed: the sweep ends the connection.
 * errno is the cause. */
static void give_up_watching(struct dapl_conn *conn)
{
	conn->stream.io_error = errno;
	conn->progress.unwatched = true;
	cm_set_deadline(conn, 0);
}

void cm_watch(struct dapl_conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };
	int op = conn->cm->in_cm ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	assert_held(&conn->dev->progress_lock);
	if (epoll_ctl(conn->dev->cm.epoll, op, conn->fd, &event))
		give_up_watching(conn);
	conn->cm->in_cm = true;
}

void cm_unwatch(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->cm->in_cm)
		epoll_ctl(conn->dev->cm.epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	conn->cm->in_cm = false;
}

void cm_leave_handshake(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->state == SOFT_WAIT_REQUEST)
		soft_half_open_remove(conn);
	conn->cm->deadline_ns = 0;
}

void cm_end_attach(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->cm->attach_fd < 0)
		return;
	epoll_ctl(conn->dev->cm.epoll, EPOLL_CTL_DEL, conn->cm->attach_fd, NULL);
	close(conn->cm->attach_fd);
	conn->cm->attach_fd = -1;
}

static void end_offer(struct dapl_conn *conn)
{
	shm_segment_put(attach_offer_end(conn->cm->offer));
	conn->cm->offer = NULL;
}

void cm_close_socket(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	cm_leave_handshake(conn);
	cm_unwatch(conn);
	soft_progress_del(conn);
	cm_end_attach(conn);
	end_offer(conn);
	if (conn->fd >= 0) {
		if (conn->shm && conn->stream.rx.close_notice)
			cm_set_reset_on_close(conn->fd);
		close(conn->fd);
	}
	conn->fd = -1;
	conn->stream.tx.shut = true;
	if (conn->state != SOFT_CLOSED)
		cm_set_state(conn, SOFT_CLOSED, conn->caused ? "failed" : "ended");
}

void cm_learn_address(struct dapl_conn *conn)
{
	socklen_t length = sizeof conn->local;

	assert_held(&conn->dev->progress_lock);
	if (conn->local.ss_family == AF_UNSPEC)
		getsockname(conn->fd, (struct sockaddr *)&conn->local, &length);
}

/* --- life ------------------------------------------------------------------------------------ */

static void conn_work(struct dapl_task *task);
static void stream_ended(struct dapl_conn *conn);

const struct soft_conn_events cm_conn_events = { .work = conn_work, .ended = stream_ended };

struct whole_conn {
	struct dapl_conn conn;	/* first: cm_conn_free() frees the whole by it */
	struct soft_cm_conn cm;
};

struct dapl_conn *cm_conn_new(struct dapl_device *dev)
{
	struct whole_conn *whole = calloc(1, sizeof *whole);
	struct dapl_conn *conn;

	if (!whole)
		return NULL;
	conn = &whole->conn;
	conn->cm = &whole->cm;
	conn->cm->frame = conn->cm->short_frame;
	conn->dev = dev;
	conn->events = &cm_conn_events;
	conn->fd = -1;
	conn->cm->attach_fd = -1;
	conn->cm->frame_need = WIRE_MPA_HEADER;
	TAILQ_INIT(&conn->stream.unexpected);
	return conn;
}

static void free_frame(struct dapl_conn *conn)
{
	if (conn->cm->frame != conn->cm->short_frame)
		free(conn->cm->frame);
	conn->cm->frame = NULL;
}

static void free_stream(struct dapl_conn *conn)
{
	soft_unexpected_drop(conn);
	free(conn->stream.rx.whole);
	free(conn->stream.tx.rest);
	free(conn->stream.answers);
	shm_conn_free(conn->shm);
}

void cm_conn_free(struct dapl_conn *conn)
{
	free_stream(conn);
	free_frame(conn);
	free(conn->cm->pdata);
	free(conn);
}

void cm_conn_retire(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	cm_close_socket(conn);
	LIST_REMOVE(conn, link);
	soft_conn_queue_upcall(conn, SOFT_UP_DEAD);
}

int cm_attach_qp(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct soft_qp *qp = soft_qp(params->qp);
	int err = 0;

	assert_held(&conn->dev->progress_lock);
	dapl_mutex_lock(&qp->lock);
	if (!params->ud && (qp->conn || qp->state != IBV_QPS_INIT))
		err = EINVAL;
	if (!err && !params->ud)
		qp->conn = conn;
	if (!err)
		conn->qp = qp;
	dapl_mutex_unlock(&qp->lock);
	if (err)
		return err;
	conn->owner = params->owner;
	conn->stream.reads_in = params->reads_in;
	conn->stream.reads_out = params->reads_out;
	conn->cm->qos = params->qos;
	conn->cm->tuning = params->tuning;
	return 0;
}

void cm_detach(struct soft_qp *qp)
{
	struct dapl_device *dev = qp->dev;
	struct dapl_conn *conn = qp->conn;

	assert_held(&dev->progress_lock);
	if (qp->qp.qp_type == IBV_QPT_UD) {	/* associations under way */
		LIST_FOREACH(conn, &dev->cm.conns, link)
			if (conn->qp == qp)
				conn->qp = NULL;
		return;
	}
	if (!conn)
		return;
	dapl_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RTS)
		soft_flush_qp(qp, 0, IBV_WC_SUCCESS);
	conn->qp = NULL;
	qp->conn = NULL;
	dapl_mutex_unlock(&qp->lock);
}

void cm_fail(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text)
{
	struct soft_qp *qp;

	assert_held(&conn->dev->progress_lock);
	end_offer(conn);	/* takes a lock that comes before qp->lock */
	qp = soft_stream_lock(conn);
	soft_conn_caused(conn, err, DAPL_CODE_NONE, 0, text);
	cm_close_socket(conn);
	soft_stream_unlock(qp);
	conn->cm->failure = why;
	soft_conn_queue_upcall(conn, SOFT_UP_FAILED);
}

void cm_end_stream(struct dapl_conn *conn, int err, const char *why)
{
	struct soft_qp *qp;

	assert_held(&conn->dev->progress_lock);
	soft_trace(TRC_LVL_ERROR, "conn", conn, "%s", why);
	qp = soft_stream_lock(conn);
	soft_conn_caused(conn, err, DAPL_CODE_NONE, 0, why);
	conn->stream.tx.shut = true;
	soft_stream_ended(qp, conn, false);
	soft_stream_unlock(qp);
}

/* The stream of the peer has ended. */
static void stream_ended(struct dapl_conn *conn)
{
	cm_close_socket(conn);
	if (conn->cm->released)
		cm_conn_retire(conn);
}

/* --- upcalls --------------------------------------------------------------------------------- */

static void report_established(struct dapl_conn *conn)
{
	struct dapl_established info = {
		.pdata = conn->cm->up_pdata, .pdata_len = conn->cm->up_pdata_length,
		.local = conn->local, .remote = conn->remote,
		.ud = conn->cm->ud ? &conn->cm->peer : NULL,
	};

	dapl_up_established(conn->owner, conn, &info);
}

static void drop_frame(struct dapl_conn *conn)
{
	free_frame(conn);
	free(conn->cm->pdata);
	conn->cm->pdata = NULL;
	conn->cm->up_pdata = NULL;
	conn->cm->up_pdata_length = 0;
}

/* The ring of the peer brought its close notification, and nothing follows. Progress lock held. */
static void end_shm(struct dapl_conn *conn)
{
	struct soft_qp *qp;

	assert_held(&conn->dev->progress_lock);
	if (conn->state != SOFT_OPEN && conn->state != SOFT_CLOSING)
		return;
	qp = soft_stream_lock(conn);
	soft_stream_ended(qp, conn, true);
	soft_stream_unlock(qp);
}

/* Core knows that the connection is up: completions may be reported from now on. */
static void go_live(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	struct soft_qp *qp;

	soft_progress_lock(dev);
	qp = soft_stream_lock(conn);
	if ((conn->state == SOFT_OPEN || conn->state == SOFT_CLOSING) && !conn->progress.in_data &&
	    !soft_progress_add(conn))
		give_up_watching(conn);
	soft_stream_unlock(qp);
	soft_progress_unlock(dev);
}

static void conn_work(struct dapl_task *task)
{
	struct dapl_conn *conn = container_of(task, struct dapl_conn, task);
	struct dapl_device *dev = conn->dev;
	uint32_t up = __atomic_exchange_n(&conn->up, 0, __ATOMIC_ACQUIRE);
	bool notify;

	if (conn->cm->free_in_task) {
		cm_conn_free(conn);
		return;
	}
	soft_progress_lock(dev);
	notify = !conn->cm->released;
	if (up & SOFT_UP_CLOSE_SENT)
		end_shm(conn);
	soft_progress_unlock(dev);
	if ((up & SOFT_UP_ESTABLISHED) && notify)
		report_established(conn);
	else if ((up & SOFT_UP_ESTABLISHED) && conn->cm->peer.ah)
		soft_ud_ah_destroy(conn->cm->peer.ah);
	if (up & SOFT_UP_ESTABLISHED) {
		drop_frame(conn);
		go_live(conn);
	}
	if ((up & SOFT_UP_FAILED) && notify)
		dapl_up_failed(conn->owner, conn, conn->cm->failure, conn->cm->up_pdata,
			       conn->cm->up_pdata_length);
	if ((up & (SOFT_UP_CLOSED | SOFT_UP_BROKEN)) && notify)
		dapl_up_disconnected(conn->owner, conn, up & SOFT_UP_CLOSED);
	if (up & SOFT_UP_RELEASED)
		dapl_up_released(conn->owner);
	if (up & SOFT_UP_DEAD) {	/* the task may be queued again already */
		conn->cm->free_in_task = true;
		dapl_task_queue(&conn->task, conn_work);
	}
}
