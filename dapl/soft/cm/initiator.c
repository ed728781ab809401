/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* initiator.c - the active side of a handshake: TCP connect, MPA Request, Reply, attaching the
 * shared memory that the acceptor offers. */
#include "dapl/soft/cm/initiator.h"
#include "common/address.h"
#include "common/clock.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/handshake.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/mpa.h"
#include "dapl/soft/cm/shm_fallback.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* CONN-11, 12 */
static enum dapl_conn_failure why_failed(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return DAPL_CONN_TIMED_OUT;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
	case EACCES:
	case EPERM:
	case EINVAL:
		return DAPL_CONN_UNREACHABLE;
	default:
		return DAPL_CONN_REFUSED;
	}
}

/* Makes a socket bound to the address of this device and starts to connect it. Returns 0 or the
 * errno of a local failure. *network is the errno of a failure that the peer's address causes, or
 * 0. */
static int start_tcp(struct dapl_conn *conn, int *network)
{
	const struct sockaddr *remote = (struct sockaddr *)&conn->remote;
	struct sockaddr_storage local = conn->dev->address;
	int on = 1;

	*network = 0;
	conn->fd = socket(remote->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return errno;
	cm_delay_handshake_ack(conn->fd);
	if (!cm_same_address(&conn->remote, &local))
		cm_set_keepalive(conn->fd, &conn->cm->tuning);	/* within this host, TCP reports every end */
	cm_set_traffic_class(conn);
	conn->local.ss_family = AF_UNSPEC;
	if (local.ss_family == remote->sa_family) {
		address_set_port((struct sockaddr *)&local, 0);
		setsockopt(conn->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
		if (bind(conn->fd, (struct sockaddr *)&local,
			 address_length((struct sockaddr *)&local)))
			*network = errno;
	}
	if (!*network && connect(conn->fd, remote, address_length(remote)) &&
	    errno != EINPROGRESS)
		*network = errno;
	return 0;
}

static bool send_request(struct dapl_conn *conn)
{
	struct wire_mpa mpa = {
		.revision = conn->cm->rev, .ird = conn->stream.reads_in, .ord = conn->stream.reads_out,
		.flags = conn->dev->want_crc ? WIRE_MPA_CRC : 0,
	};

	if (conn->cm->rev == 2)
		mpa.flags |= WIRE_MPA_S | WIRE_DAPL_REQUEST;
	if (conn->cm->ud)
		mpa.flags |= WIRE_DAPL_UD;
	return mpa_send(conn, &mpa, NULL, conn->cm->pdata, conn->cm->pdata_length);
}

/* Connects again with MPA revision 1 (RFC 5044), for peers that do not support revision 2. */
static bool fall_back(struct dapl_conn *conn)
{
	int network, err;

	if (conn->cm->fell_back || conn->cm->ud)
		return false;
	conn->cm->fell_back = true;
	conn->cm->rev = 1;
	cm_unwatch(conn);
	close(conn->fd);
	cm_set_state(conn, SOFT_CONNECTING, "again, as MPA revision 1");
	err = start_tcp(conn, &network);
	if (err || network) {
		soft_conn_caused(conn, err ? err : network, DAPL_CODE_NONE, 0,
			       "second attempt, as MPA revision 1");
		return false;
	}
	conn->cm->frame_length = 0;
	conn->cm->frame_need = WIRE_MPA_HEADER;
	conn->cm->deadline_ns = 0;
	cm_watch(conn, EPOLLOUT);
	return true;
}

/* Sends the Request if TCP is up. Within a host it is up by the time connect(2) returns. */
static void begin_exchange(struct dapl_conn *conn)
{
	if (send_request(conn)) {
		cm_set_state(conn, SOFT_WAIT_REPLY, "request sent");
		cm_watch(conn, EPOLLIN);
	} else if (errno == EAGAIN) {
		cm_watch(conn, EPOLLOUT);
	} else {
		cm_fail(conn, why_failed(errno), errno, NULL);
	}
}

void initiator_connecting(struct dapl_conn *conn)
{
	int err = 0;
	socklen_t length = sizeof err;

	assert_held(&conn->dev->progress_lock);
	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &length);
	if (err)
		cm_fail(conn, why_failed(err), err, NULL);
	else
		begin_exchange(conn);
}

/* --- shared memory --------------------------------------------------------------------------- */

static void begin_attach(struct dapl_conn *conn)
{
	if (conn->state == SOFT_ATTACHING)
		return;
	cm_unwatch(conn);
	cm_set_state(conn, SOFT_ATTACHING, "the reply came");
	conn->cm->attach_end_ns = clock_now_ns() + SOFT_ATTACH_S * 1000000000ull;
}

/* Data goes over TCP: errno says why; 0: memory is not wanted, or not offered. Always false. */
static bool attach_failed(struct dapl_conn *conn)
{
	uint64_t peer = 0;

	if (conn->dev->shm.process)		/* without one, this process failed to share its own memory */
		memcpy(&peer, conn->cm->attach_token, sizeof peer);
	shm_fallback_report(conn, peer, errno);
	return false;
}

/* The backlog of the peer process is full. Returns false if it was for too long. */
static bool attach_again(struct dapl_conn *conn)
{
	if (conn->cm->attach_end_ns && clock_now_ns() >= conn->cm->attach_end_ns) {
		errno = EAGAIN;
		return attach_failed(conn);
	}
	begin_attach(conn);
	cm_set_deadline_ms(conn, SOFT_ATTACH_RETRY_MS);
	return true;
}

static bool attach_wait(struct dapl_conn *conn)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	if (epoll_ctl(conn->dev->cm.epoll, EPOLL_CTL_ADD, conn->cm->attach_fd, &event)) {
		attach_failed(conn);
		close(conn->cm->attach_fd);
		conn->cm->attach_fd = -1;
		return false;
	}
	begin_attach(conn);
	cm_set_deadline(conn, SOFT_ATTACH_S);
	return true;
}

/* Takes the memory that the acceptor offers. Returns true if the answer, or a retry, is due later. */
static bool attach_memory(struct dapl_conn *conn)
{
	struct shm_segment *segment;

	if (conn->stream.crc)
		return false;
	switch (soft_attach_begin(conn->dev, conn->cm->attach_token, &conn->cm->attach_fd, &segment,
				  &conn->cm->acceptor)) {
	case SOFT_ATTACH_DONE:
		handshake_use_rings(conn, segment);
		return false;
	case SOFT_ATTACH_WAIT:
		return attach_wait(conn);
	case SOFT_ATTACH_AGAIN:
		return attach_again(conn);
	default:
		return attach_failed(conn);
	}
}

/* If the acceptor is of this device, it is established here, too: no first frame has to cross the
 * socket. */
static void both_established(struct dapl_conn *conn)
{
	struct dapl_conn *acceptor = conn->cm->acceptor;
	struct attach_offer *offer;

	handshake_established(conn);
	conn->cm->acceptor = NULL;
	if (!acceptor || !conn->shm || conn->state != SOFT_OPEN)
		return;
	offer = acceptor->cm->offer;
	acceptor->cm->offer = NULL;
	handshake_rings_agreed(acceptor, attach_offer_end(offer));
}

void initiator_attach_ready(struct dapl_conn *conn)
{
	struct shm_segment *segment;

	assert_held(&conn->dev->progress_lock);
	switch (soft_attach_go_on(conn->dev, conn->cm->attach_fd, &segment)) {
	case SOFT_ATTACH_WAIT:
		return;
	case SOFT_ATTACH_DONE:
		handshake_use_rings(conn, segment);
		break;
	default:
		attach_failed(conn);
	}
	cm_end_attach(conn);
	handshake_established(conn);
}

void initiator_attach_expired(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	if (conn->cm->attach_fd < 0 && attach_memory(conn))
		return;
	if (conn->cm->attach_fd >= 0) {
		errno = ETIMEDOUT;
		attach_failed(conn);
	}
	cm_end_attach(conn);
	both_established(conn);
}

/* --- the Reply ------------------------------------------------------------------------------- */

static void rejected(struct dapl_conn *conn, const uint8_t *data, size_t length)
{
	bool by_provider = (conn->cm->mpa.flags & WIRE_DAPL_REPLY) &&
			   (conn->cm->mpa.flags & WIRE_DAPL_REFUSED);

	conn->cm->up_pdata = data;
	conn->cm->up_pdata_length = length;
	soft_conn_caused(conn, 0, DAPL_CODE_MPA, conn->cm->mpa.flags, by_provider ?
		       "refused by the peer's provider" : "rejected by the peer's program");
	cm_fail(conn, by_provider ? DAPL_CONN_REFUSED : DAPL_CONN_REJECTED, 0, NULL);
}

static void associate_active(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	struct wire_trailer trailer = handshake_trailer(conn);
	uint8_t bytes[WIRE_TRAILER];

	wire_trailer_put(bytes, &trailer);
	if (send(conn->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof bytes)
		cm_fail(conn, DAPL_CONN_REFUSED, errno, NULL);
	else
		handshake_associated(conn, peer);
}

/* Takes the trailer off the data of a Reply. Returns false if it is malformed. */
static bool take_trailer(struct dapl_conn *conn, const uint8_t **data, size_t *length,
			 struct wire_trailer *trailer)
{
	if (*length < WIRE_TRAILER || !wire_trailer_get(*data, trailer))
		return false;
	memcpy(conn->cm->attach_token, trailer->token, sizeof conn->cm->attach_token);
	*data += WIRE_TRAILER;
	*length -= WIRE_TRAILER;
	return true;
}

/* Returns why this side cannot go on with a Reply that accepts, or NULL. */
static const char *reply_fault(const struct dapl_conn *conn)
{
	if (conn->cm->mpa.flags & WIRE_MPA_MARKERS)
		return "the peer wants MPA markers";
	if (conn->cm->ud && !conn->stream.peer_is_dapl)
		return "the peer knows no datagram endpoints";
	return NULL;
}

static void reply_complete(struct dapl_conn *conn)
{
	struct wire_trailer trailer;
	size_t length;
	const uint8_t *data = mpa_data(conn, &length);
	const struct wire_mpa *mpa = &conn->cm->mpa;
	const char *fault;

	if (data && mpa->revision == 1 && conn->cm->rev == 2 && (mpa->flags & WIRE_MPA_REJECT) &&
	    fall_back(conn))
		return;
	if (!data || mpa->revision < 1 || mpa->revision > conn->cm->rev) {
		cm_fail(conn, DAPL_CONN_REFUSED, 0, data ? "MPA reply of an unknown revision" :
			"MPA reply with a wrong length");
		return;
	}
	if (mpa->flags & WIRE_MPA_REJECT) {
		rejected(conn, data, length);
		return;
	}
	conn->stream.peer_is_dapl = conn->cm->rev == 2 && (mpa->flags & WIRE_DAPL_REPLY);
	conn->stream.swaps = conn->cm->rev == 2 && !conn->stream.peer_is_dapl && (mpa->flags & WIRE_DAPL_REQUEST);
	fault = conn->stream.peer_is_dapl && !take_trailer(conn, &data, &length, &trailer)
		? "malformed MPA reply: trailer" : reply_fault(conn);
	if (fault) {
		cm_fail(conn, DAPL_CONN_REFUSED, 0, fault);
		return;
	}
	conn->stream.crc = (mpa->flags & WIRE_MPA_CRC) || conn->dev->want_crc;
	if (mpa->ird != WIRE_ORD_NONE)
		conn->stream.reads_out = handshake_min(conn->stream.reads_out, mpa->ird);
	conn->cm->up_pdata = data;
	conn->cm->up_pdata_length = length;
	if (conn->cm->ud)
		associate_active(conn, &trailer);
	else if (!conn->stream.peer_is_dapl || !attach_memory(conn))
		both_established(conn);
}

void initiator_reply_readable(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	switch (mpa_receive(conn)) {
	case GOT_PART:
		if (!conn->cm->deadline_ns && conn->cm->frame_length)
			cm_set_deadline(conn, SOFT_HANDSHAKE_S);
		break;
	case GOT_ALL:
		reply_complete(conn);
		break;
	case GOT_END:
		if (fall_back(conn))
			break;
		cm_fail(conn, DAPL_CONN_REFUSED, 0, "the peer closed without an MPA reply");
		break;
	default:
		cm_fail(conn, DAPL_CONN_REFUSED, conn->stream.io_error, conn->stream.io_error ? NULL :
			"malformed MPA reply: the peer speaks another protocol");
	}
}

/* --- connect --------------------------------------------------------------------------------- */

int initiator_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
		    struct dapl_conn **out)
{
	struct dapl_conn *conn;
	int err, network;

	if (params->pdata_len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	conn = cm_conn_new(dev);
	if (!conn)
		return ENOMEM;
	memcpy(&conn->remote, params->remote, address_length(params->remote));
	conn->cm->rev = 2;
	conn->cm->ud = params->ud;
	conn->cm->qos = params->qos;
	conn->cm->tuning = params->tuning;
	cm_set_state(conn, SOFT_CONNECTING, "connect");
	if (params->pdata_len) {
		conn->cm->pdata = malloc(params->pdata_len);
		if (!conn->cm->pdata) {
			err = ENOMEM;
			goto failed;
		}
		memcpy(conn->cm->pdata, params->pdata, params->pdata_len);
		conn->cm->pdata_length = params->pdata_len;
	}
	err = start_tcp(conn, &network);
	if (err)
		goto failed;
	soft_progress_lock(dev);
	err = cm_attach_qp(conn, params);
	if (!err) {
		*out = conn;
		LIST_INSERT_HEAD(&dev->cm.conns, conn, link);
		if (network)
			cm_fail(conn, why_failed(network), network, NULL);
		else
			begin_exchange(conn);
	}
	soft_progress_unlock(dev);
	if (!err)
		return 0;
failed:
	if (conn->fd >= 0)
		close(conn->fd);
	cm_conn_free(conn);
	return err;
}
