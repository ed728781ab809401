/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - the life of a connection: making it, what both sides do, the task that makes late upcalls,
 * the end (conn.h). The active side is in initiator.c, the passive one in acceptor.c, events of
 * the connection manager are in conn_event.c. Threads, locks and lifetimes are explained in cm.c. */
#include <errno.h>
#include <stdlib.h>
#include "conn.h"
#include "conn_cause.h"
#include "conn_report.h"
#include "conn_state.h"
#include "hw.h"
#include "common/container_of.h"
#include "dapl/core/base/traffic_class.h"

enum {
	LINGER_US = 2000000,		/* for the answer to our disconnect */
	HANDSHAKE_US = 30000000,	/* for an iWARP driver to give up a handshake */
	RESTARTS = 8,			/* with another port, when a socket has taken it */
};

static enum hw_wire wire_of(const struct dapl_device *dev, bool ud)
{
	return ud ? HW_WIRE_UD : dev->attr.iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
}

struct dapl_conn *hw_conn_new(struct dapl_device *dev, bool ud, enum conn_state state)
{
	struct dapl_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->dev = dev;
	conn->ud = ud;
	conn->active = state != CONN_REQUESTED;
	conn->wire = wire_of(dev, ud);
	conn->state = state;
	conn->restarts = RESTARTS;
	conn->local = dev->attr.address;
	dapl_mutex_init(&conn->lock, RANK_VERBS_CONN);
	dapl_mutex_lock(&dev->lock);
	conn->next = dev->conns;
	conn->prev = &dev->conns;
	if (conn->next)
		conn->next->prev = &conn->next;
	dev->conns = conn;
	dapl_mutex_unlock(&dev->lock);
	return conn;
}

void hw_conn_destroy(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	dapl_timer_stop(&conn->linger);
	if (conn->id)
		rdma_destroy_id(conn->id);
	if (conn->late_peer.ah)
		ibv_destroy_ah(conn->late_peer.ah);
	dapl_mutex_lock(&dev->lock);
	*conn->prev = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	dapl_mutex_unlock(&dev->lock);
	free(conn);
}

/* CONN-11, 12 */
enum dapl_conn_failure hw_conn_failure_of(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return DAPL_CONN_TIMED_OUT;
	case ECONNREFUSED: case ECONNRESET:
		return DAPL_CONN_REFUSED;
	default:
		return DAPL_CONN_UNREACHABLE;
	}
}

void hw_conn_adopt(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	assert_held(&conn->lock);
	conn->owner = params->owner;
	conn->qp = params->qp;
	conn->srq = params->srq;
	conn->reads_out = params->reads_out;
	conn->reads_in = params->reads_in;
	conn->tuning = params->tuning;
	conn->tos = dapl_traffic_class(&params->tuning, params->qos);
}

static void linger_over(struct dapl_timer *timer)
{
	hw_conn_destroy(container_of(timer, struct dapl_conn, linger));
}

/* Service thread only. The connection was released, so no other thread refers to it. */
static void finish(struct dapl_conn *conn)
{
	uint64_t wait = 0;

	switch (conn->state) {
	case CONN_REQUESTED:
		hw_report_refusal(conn->id, conn->wire);	/* SP-44 */
		break;
	case CONN_CONNECTING:
		/* rdma_destroy_id would wait for an iWARP driver's handshake to end. */
		if (conn->wire == HW_WIRE_IWARP)
			wait = HANDSHAKE_US;
		break;
	case CONN_ESTABLISHED:
		if (!conn->ud && rdma_disconnect(conn->id) == 0 && conn->wire == HW_WIRE_IB)
			wait = LINGER_US;
		break;
	case CONN_DISCONNECTING:
		/* TCP closes by itself; elsewhere the id repeats what was lost. */
		if (conn->wire == HW_WIRE_IB)
			wait = LINGER_US;
		break;
	default:
		break;
	}
	if (conn->owner)
		dapl_up_released(conn->owner);
	if (!wait) {
		hw_conn_destroy(conn);
		return;
	}
	conn->lingering = true;
	dapl_timer_start(&conn->linger, wait, linger_over);
}

static void conn_task(struct dapl_task *task)
{
	struct dapl_conn *conn = container_of(task, struct dapl_conn, task);
	struct dapl_ud_peer peer;

	dapl_mutex_lock(&conn->lock);
	if (conn->released) {
		dapl_mutex_unlock(&conn->lock);
		finish(conn);
	} else if (conn->late == LATE_FAILED) {
		conn->late = LATE_NOTHING;
		hw_report_failed(conn, conn->why, NULL, 0);
	} else if (conn->late == LATE_ESTABLISHED) {
		conn->late = LATE_NOTHING;
		peer = conn->late_peer;
		if (conn->state != CONN_CLOSED)	/* else there is no upcall, and the handle stays here */
			conn->late_peer.ah = NULL;
		hw_report_established(conn, NULL, 0, &peer);
	} else {
		dapl_mutex_unlock(&conn->lock);
	}
}

void hw_conn_queue_task(struct dapl_conn *conn)
{
	dapl_task_queue(&conn->task, conn_task);
}

void hw_conn_fail_later(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text)
{
	assert_held(&conn->lock);
	hw_caused(conn, err, DAPL_CODE_NONE, 0, text);
	conn->late = LATE_FAILED;
	conn->why = why;
	hw_conn_queue_task(conn);
}

int hw_conn_disconnect(struct dapl_conn *conn)
{
	dapl_mutex_lock(&conn->lock);
	if (conn->ud) {
		hw_conn_set_state(conn, CONN_CLOSED);
	} else if (conn->state == CONN_ESTABLISHED) {
		rdma_disconnect(conn->id);
		hw_conn_set_state(conn, CONN_DISCONNECTING);
	} else if (conn->state == CONN_PEER_CLOSED) {
		rdma_disconnect(conn->id);
		hw_conn_set_state(conn, CONN_CLOSED);
	}
	dapl_mutex_unlock(&conn->lock);
	return 0;
}

void hw_conn_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	dapl_mutex_lock(&conn->lock);
	*cause = conn->cause;
	if (!conn->caused)
		cause->step = hw_conn_step(conn);
	cause->local = conn->local;
	cause->remote = conn->remote;
	dapl_mutex_unlock(&conn->lock);
}

void hw_conn_release(struct dapl_conn *conn)
{
	dapl_mutex_lock(&conn->lock);
	conn->released = true;
	conn->qp = NULL;
	hw_conn_queue_task(conn);
	dapl_mutex_unlock(&conn->lock);
}
