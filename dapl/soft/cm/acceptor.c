/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acceptor.c - the passive side of a handshake: MPA Request, the decision of core, Reply, and the
 * first FPDU of the initiator. listen.c accepts the TCP connection. */
#include "dapl/soft/cm/acceptor.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/handshake.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/mpa.h"
#include "dapl/soft/cm/shm_fallback.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Prints the line about a request that is not reported to core. */
static void request_failed(struct dapl_conn *conn, const char *text)
{
	struct dapl_diag diag = { .ia = "soft", .what = DIAG_ACCEPT };

	soft_conn_caused(conn, 0, DAPL_CODE_NONE, 0, text);
	soft_conn_explain(conn, &diag.cause);
	dapl_diag_say(&diag);
}

/* Sends a Reply. Returns false and errno if it was not sent. */
static bool reply(struct dapl_conn *conn, uint8_t flags, const struct wire_trailer *trailer,
		  const void *pdata, size_t length)
{
	struct wire_mpa mpa = {
		.reply = true, .revision = conn->cm->mpa.revision,
		.flags = flags | (conn->cm->mpa.flags & WIRE_MPA_S),
		.ird = conn->stream.reads_in, .ord = conn->stream.reads_out,
	};

	if (conn->stream.peer_is_dapl)
		mpa.flags |= WIRE_DAPL_REPLY;
	if (conn->cm->mpa.p2p) {
		mpa.p2p = true;
		mpa.p2p_write = conn->cm->mpa.p2p_write;
		mpa.p2p_read = !conn->cm->mpa.p2p_write;
	}
	return mpa_send(conn, &mpa, trailer, pdata, length);
}

void acceptor_refuse(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->stream.peer_is_dapl)
		reply(conn, WIRE_MPA_REJECT | WIRE_DAPL_REFUSED, NULL, NULL, 0);
}

/* --- the Request ----------------------------------------------------------------------------- */

static const char *request_fault(const struct dapl_conn *conn)
{
	const struct wire_mpa *mpa = &conn->cm->mpa;

	if (mpa->revision != 1 && mpa->revision != 2)
		return "MPA request of an unknown revision";
	if (mpa->flags & WIRE_MPA_MARKERS)
		return "MPA request that wants markers";
	if (mpa->p2p && !mpa->p2p_write && !mpa->p2p_read)
		return "MPA request for a first frame of an unsupported kind";
	return NULL;
}

/* The Request is complete. Returns true if core decides; then *request and *sp are filled in. */
static bool request_complete(struct dapl_conn *conn, struct dapl_request *request, void **sp)
{
	const uint8_t *data = mpa_data(conn, &request->pdata_len);
	const char *fault = data ? request_fault(conn) : "MPA request with a wrong length";
	struct dapl_listener *listener;

	if (fault) {
		request_failed(conn, fault);
		if (data && conn->cm->mpa.revision <= 2)
			reply(conn, WIRE_MPA_REJECT, NULL, NULL, 0);
		cm_conn_retire(conn);
		return false;
	}
	conn->stream.peer_is_dapl = conn->cm->mpa.flags & WIRE_DAPL_REQUEST;
	conn->cm->ud = conn->stream.peer_is_dapl && (conn->cm->mpa.flags & WIRE_DAPL_UD);
	listener = conn->cm->ud ? conn->cm->port->ud : conn->cm->port->rc;
	if (!listener) {
		acceptor_refuse(conn);
		cm_conn_retire(conn);
		return false;
	}
	cm_leave_handshake(conn);
	cm_unwatch(conn);
	cm_learn_address(conn);
	cm_set_state(conn, SOFT_REQUESTED, "the request came");
	request->local = conn->local;
	request->remote = conn->remote;
	request->pdata = data;
	request->ud = conn->cm->ud;
	*sp = listener->sp;
	return true;
}

static bool request_readable(struct dapl_conn *conn, struct dapl_request *request, void **sp)
{
	switch (mpa_receive(conn)) {
	case GOT_PART:
		if (!conn->cm->in_cm)
			cm_watch(conn, EPOLLIN);
		return false;
	case GOT_ALL:
		return request_complete(conn, request, sp);
	case GOT_BAD:
		if (!conn->stream.io_error && conn->cm->frame_length == WIRE_MPA_HEADER) {
			cm_learn_address(conn);
			request_failed(conn, "no MPA request: the peer speaks another protocol");
		}
		/* fall through */
	default:	/* a port scan or a health check is no failure */
		soft_trace(TRC_LVL_NORMAL, "conn", conn, "no MPA request, closed");
		cm_conn_retire(conn);
		return false;
	}
}

void acceptor_take_request(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	struct dapl_request request;
	void *sp;

	assert_held(&conn->dev->progress_lock);
	if (!request_readable(conn, &request, &sp))
		return;
	soft_progress_unlock(dev);
	dapl_up_request(sp, conn, &request);
	soft_progress_lock(dev);
}

/* --- accept, reject -------------------------------------------------------------------------- */

/* Sends the Reply that accepts. */
static void send_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct wire_trailer trailer = handshake_trailer(conn);
	uint8_t flags = 0;

	if (conn->cm->mpa.ird != WIRE_ORD_NONE)
		conn->stream.reads_out = handshake_min(conn->stream.reads_out, conn->cm->mpa.ird);
	conn->stream.crc = (conn->cm->mpa.flags & WIRE_MPA_CRC) || conn->dev->want_crc;
	if (conn->stream.crc)
		flags = WIRE_MPA_CRC;
	if (conn->stream.peer_is_dapl && !conn->cm->ud && !conn->stream.crc && cm_peer_is_local(conn)) {
		conn->cm->offer = attach_offer_new(conn->dev, conn, trailer.token);
		if (!conn->cm->offer)
			shm_fallback_report(conn, 0, errno);
	}
	if (!reply(conn, flags, conn->stream.peer_is_dapl ? &trailer : NULL, params->pdata, params->pdata_len)) {
		cm_fail(conn, DAPL_CONN_REFUSED, errno, NULL);
		return;
	}
	if (!conn->stream.peer_is_dapl) {
		handshake_established(conn);
		return;
	}
	cm_set_state(conn, SOFT_WAIT_FIRST, "reply sent");
	conn->cm->frame_length = 0;
	conn->cm->frame_need = WIRE_TRAILER;
	conn->cm->up_pdata = NULL;
	cm_set_deadline(conn, SOFT_HANDSHAKE_S);
	cm_watch(conn, EPOLLIN);
}

/* The socket was accepted with the limits of the environment. The endpoint may have others, and a QoS. */
static void tune_socket(const struct dapl_conn *conn)
{
	if (conn->cm->tuning.ack_timeout || conn->cm->tuning.ack_retry)
		cm_set_keepalive(conn->fd, &conn->cm->tuning);
	cm_set_traffic_class(conn);
}

int acceptor_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct dapl_device *dev = conn->dev;
	int err;

	if (params->pdata_len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	if (params->ud != conn->cm->ud)
		return EINVAL;
	soft_progress_lock(dev);
	err = conn->state == SOFT_REQUESTED ? cm_attach_qp(conn, params) : EINVAL;
	if (!err) {
		tune_socket(conn);
		send_accept(conn, params);
	}
	soft_progress_unlock(dev);
	return err;
}

int acceptor_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len)
{
	struct dapl_device *dev = conn->dev;

	if (len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	soft_progress_lock(dev);
	if (by_consumer)
		reply(conn, WIRE_MPA_REJECT, NULL, pdata, len);
	else
		acceptor_refuse(conn);
	cm_conn_retire(conn);
	soft_progress_unlock(dev);
	return 0;
}

/* --- the initiator's first FPDU, or its half of an association ------------------------------- */

/* Sets the number of bytes that make the socket readable. Its end makes it readable, too. */
static void wake_at(struct dapl_conn *conn, int bytes)
{
	if ((bytes > 1) == conn->cm->wakes_late)
		return;
	setsockopt(conn->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
	conn->cm->wakes_late = bytes > 1;
}

static bool has_ended(const struct dapl_conn *conn)
{
	struct pollfd on = { .fd = conn->fd, .events = POLLRDHUP };

	return poll(&on, 1, 0) > 0 && on.revents;
}

/* The STag of the first frame tells where data goes. A frame that switches to the rings is removed from the
 * stream; others stay in it. */
static void first_frame(struct dapl_conn *conn)
{
	struct shm_segment *segment;
	uint8_t expected[SWITCH_LENGTH] = { 0 }, frame[SWITCH_LENGTH];
	ssize_t n = recv(conn->fd, frame, sizeof frame, MSG_PEEK | MSG_DONTWAIT);
	uint64_t peer = 0;
	int err;

	handshake_switch_frame(expected);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && n < SWITCH_LENGTH && conn->cm->offer && !memcmp(frame, expected, n) &&
	    !has_ended(conn)) {
		wake_at(conn, SWITCH_LENGTH);
		return;
	}
	err = errno;
	wake_at(conn, 1);
	if (n <= 0) {
		cm_fail(conn, DAPL_CONN_REFUSED, n ? err : 0, n ? NULL :
			"the peer closed before its first frame");
		return;
	}
	err = attach_offer_error(conn->cm->offer, &peer);
	segment = attach_offer_end(conn->cm->offer);
	conn->cm->offer = NULL;
	if (n == SWITCH_LENGTH && segment && !memcmp(frame, expected, n)) {
		recv(conn->fd, frame, sizeof frame, MSG_DONTWAIT);
		handshake_rings_agreed(conn, segment);
		return;
	}
	shm_segment_put(segment);
	shm_fallback_report(conn, peer, err);
	handshake_established(conn);
}

void acceptor_first_readable(struct dapl_conn *conn)
{
	struct wire_trailer peer;

	assert_held(&conn->dev->progress_lock);
	if (!conn->cm->ud) {
		first_frame(conn);
		return;
	}
	switch (mpa_receive(conn)) {
	case GOT_PART:
		return;
	case GOT_ALL:
		if (wire_trailer_get(conn->cm->frame, &peer)) {
			handshake_associated(conn, &peer);
			return;
		}
		cm_fail(conn, DAPL_CONN_REFUSED, 0, "malformed datagram association");
		break;
	default:
		cm_fail(conn, DAPL_CONN_REFUSED, conn->stream.io_error, conn->stream.io_error ? NULL :
			"the peer closed before its half of the association");
	}
}

void acceptor_speak_first(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;
	int unread = 0;

	assert_held(&conn->dev->progress_lock);
	if (!qp)
		return;
	if (!ioctl(conn->fd, SIOCOUTQ, &unread) && unread) {
		cm_set_deadline_ms(conn, SOFT_FIRST_MS);
		return;
	}
	dapl_mutex_lock(&qp->lock);
	conn->stream.tx.open = true;
	soft_conn_send(conn);
	dapl_mutex_unlock(&qp->lock);
}
