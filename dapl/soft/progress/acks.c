/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acks.c - acknowledgements that wait for a message to ride on, and are sent alone if none comes.
 * rdmap/transmit.c and shm/shm_ring.c build them. */
#include "dapl/soft/progress/acks.h"
#include "common/lock.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/receive/shm_rx.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"

static bool ack_urgent(const struct dapl_conn *conn)
{
	if (conn->shm && ring_ack_due(&conn->shm->rx))
		return true;
	return conn->stream.delivered - conn->stream.tx.cursor.acked_seq >= ACKS_MAX ||
	       conn->stream.consumed - conn->stream.tx.cursor.acked_consumed >= SOFT_WINDOW / ACK_WINDOW_FRACTION;
}

/* True if an acknowledgement over TCP would only report bytes of the window that a Send takes which is
 * still coming in. These are reported a fraction of the window at a time (ACK_WINDOW_FRACTION). A
 * blocked sender goes on nevertheless: it has the rest of the window under way, which makes up that
 * fraction as it comes. If the Send waits for a receive instead, the acknowledgement is sent when that
 * is posted. */
static bool only_window_used(const struct dapl_conn *conn)
{
	return !conn->shm && conn->stream.delivered == conn->stream.tx.cursor.acked_seq && !ack_urgent(conn);
}

void soft_acks_flush_ring(struct shm_conn *shm)
{
	struct soft_qp *qp = shm->conn->qp;

	shm->ack_owed = false;
	if (!qp)
		return;
	dapl_mutex_lock(&qp->lock);
	if (shm->ack_waits) {
		shm_rx_receive(shm->conn, false);
		soft_conn_send(shm->conn);	/* the acknowledgement may have opened the window */
	}
	soft_send_ack(shm->conn);
	dapl_mutex_unlock(&qp->lock);
}

void soft_acks_flush_sockets(struct dapl_device *dev)
{
	struct dapl_conn *conn;

	assert_held(&dev->progress_lock);
	while ((conn = TAILQ_FIRST(&dev->progress.acks))) {
		struct soft_qp *qp = conn->qp;

		soft_acks_forget(conn);
		if (!qp)
			continue;
		dapl_mutex_lock(&qp->lock);
		soft_send_ack(conn);
		dapl_mutex_unlock(&qp->lock);
	}
}

void soft_acks_flush(struct dapl_device *dev)
{
	struct shm_conn *shm;

	assert_held(&dev->progress_lock);
	soft_acks_flush_sockets(dev);
	TAILQ_FOREACH(shm, &dev->rings.list, link)
		if (shm->ack_owed)
			soft_acks_flush_ring(shm);
}

void soft_acks_schedule(struct dapl_conn *conn, bool polling)
{
	struct dapl_device *dev = conn->dev;

	assert_held(&conn->dev->progress_lock);
	if (!soft_owes_ack(conn) || only_window_used(conn))
		return;
	if (!polling || ack_urgent(conn) || !soft_owner_polls(dev)) {
		if (conn->shm)
			shm_conn_send_ack(conn);
		else
			conn->stream.tx.ack_now = true;
	} else if (conn->shm) {
		conn->shm->ack_owed = true;
	} else if (!conn->progress.ack_listed) {
		conn->progress.ack_listed = true;
		TAILQ_INSERT_TAIL(&dev->progress.acks, conn, progress.ack_link);
	}
}

void soft_acks_forget(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->progress.ack_listed)
		TAILQ_REMOVE(&conn->dev->progress.acks, conn, progress.ack_link);
	conn->progress.ack_listed = false;
}
