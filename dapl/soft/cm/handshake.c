/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handshake.c - the part of the handshake that initiator and acceptor share: the trailer, the end
 * of a datagram association, and the beginning of the stream. initiator.c and acceptor.c call
 * it. */
#include "dapl/soft/cm/handshake.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/base/traffic_class.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void handshake_switch_frame(uint8_t frame[SWITCH_LENGTH])
{
	wire_put16(frame, WIRE_TAGGED);
	wire_segment_put(frame + WIRE_FPDU_LENGTH,
			 &(struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE,
						 .stag = SWITCH_STAG });
}

struct wire_trailer handshake_trailer(const struct dapl_conn *conn)
{
	struct wire_trailer trailer = {
		.version = WIRE_TRAILER_VERSION, .max_ulpdu = MULPDU_LARGE,
	};

	if (conn->cm->ud && conn->qp) {
		trailer.qpn = conn->qp->qp.qp_num;
		trailer.qkey = conn->qp->qkey;
		trailer.udp_port = conn->dev->datagrams.port;
	}
	return trailer;
}

static int associate(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	struct sockaddr *remote = (struct sockaddr *)&conn->remote;
	int err;

	if (!conn->qp)
		return ECANCELED;
	conn->cm->peer.qpn = peer->qpn;
	conn->cm->peer.qkey = peer->qkey;
	err = soft_ud_ah_create(conn->qp->qp.pd, remote, peer->udp_port, &conn->cm->peer.ah);
	if (!err)
		soft_ud_ah_set_class(conn->cm->peer.ah, dapl_traffic_class(&conn->cm->tuning, conn->cm->qos));
	return err;
}

void handshake_associated(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	int err;

	assert_held(&conn->dev->progress_lock);
	cm_learn_address(conn);
	err = associate(conn, peer);
	if (err) {
		cm_fail(conn, DAPL_CONN_REFUSED, err, "address handle");
		return;
	}
	cm_close_socket(conn);
	soft_conn_queue_upcall(conn, SOFT_UP_ESTABLISHED);
}

/* --- the stream begins ----------------------------------------------------------------------- */

static uint32_t choose_mulpdu(const struct dapl_conn *conn)
{
	int mss = 536;	/* bytes; TCP's default, if the socket reports none */
	socklen_t length = sizeof mss;

	if (conn->shm)
		return RING_CHUNK + WIRE_UNTAGGED;
	if (conn->stream.peer_is_dapl || conn->stream.swaps)
		return MULPDU_LARGE;
	getsockopt(conn->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &length);
	mss -= 6 + mss % 4;	/* length and CRC of an FPDU, which is a multiple of 4 */
	return mss < MULPDU_LEAST ? MULPDU_LEAST : mss > WIRE_ULPDU_MAX ? WIRE_ULPDU_MAX : mss;
}

/* Prepares both directions. */
static void open_stream(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;

	conn->stream.mulpdu = choose_mulpdu(conn);
	conn->stream.sink_key = soft_random();
	conn->stream.tx.cursor.msn_send = conn->stream.tx.cursor.msn_read = 1;
	conn->stream.tx.cursor.msn_atomic = conn->stream.tx.cursor.msn_dapl = 1;
	conn->stream.rx.msn_send = conn->stream.rx.msn_read = conn->stream.rx.msn_atomic = conn->stream.rx.msn_dapl = 1;
	conn->stream.rx.part_need = WIRE_CONTROL_END;
	if (!qp)
		return;
	dapl_mutex_lock(&qp->lock);
	conn->stream.tx.cursor.wqe = qp->sq_tail;
	qp->read_next = qp->sq_tail;
	conn->stream.tx.open = !conn->passive || conn->stream.peer_is_dapl;	/* its first FPDU is here */
	conn->stream.tx.first = !conn->passive && conn->stream.peer_is_dapl && !conn->shm;
	if (qp->state == IBV_QPS_INIT)
		soft_qp_set_state(qp, IBV_QPS_RTS);
	shm_grant_open(qp, conn);
	soft_conn_send(conn);
	dapl_mutex_unlock(&qp->lock);
}

static bool send_switch(const struct dapl_conn *conn)
{
	uint8_t frame[SWITCH_LENGTH] = { 0 };
	ssize_t n;

	handshake_switch_frame(frame);
	n = send(conn->fd, frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		errno = EMSGSIZE;
	return n == sizeof frame;
}

/* The first frame of an initiator that has the memory tells so. The acceptor sends no such frame; an
 * initiator whose acceptor is of the same device need not. */
static bool confirm_memory(struct dapl_conn *conn)
{
	return !conn->shm || conn->passive || conn->cm->acceptor || send_switch(conn);
}

void handshake_established(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	cm_leave_handshake(conn);
	if (!conn->shm)
		cm_unwatch(conn);
	else if (!conn->cm->in_cm)
		cm_watch(conn, EPOLLIN);
	if (!conn->shm && !conn->passive)
		cm_set_no_delay(conn->fd);	/* of the handshake, no frame waits for an acknowledgement */
	cm_learn_address(conn);
	if (!confirm_memory(conn)) {
		cm_fail(conn, DAPL_CONN_REFUSED, errno, "first frame");
		return;
	}
	open_stream(conn);
	cm_set_state(conn, SOFT_OPEN, "established");
	cm_watch_liveness(conn);
	if (!conn->stream.tx.open && !conn->cm->mpa.p2p)
		cm_set_deadline_ms(conn, SOFT_FIRST_MS);
	soft_trace(TRC_LVL_DETAIL, "conn", conn, "data goes %s",
		   conn->shm ? "through shared memory" : "over TCP");
	soft_conn_queue_upcall(conn, SOFT_UP_ESTABLISHED);
}

bool handshake_use_rings(struct dapl_conn *conn, struct shm_segment *segment)
{
	struct shm_conn *shm = shm_conn_new(conn, segment);
	struct soft_qp *qp = soft_stream_lock(conn);	/* a flush of the QP may look for rings */

	assert_held(&conn->dev->progress_lock);
	conn->shm = shm;
	soft_stream_unlock(qp);
	return shm != NULL;
}

void handshake_rings_agreed(struct dapl_conn *conn, struct shm_segment *segment)
{
	assert_held(&conn->dev->progress_lock);
	if (handshake_use_rings(conn, segment))
		handshake_established(conn);
	else
		cm_fail(conn, DAPL_CONN_REFUSED, ENOMEM, "shared memory");
}
