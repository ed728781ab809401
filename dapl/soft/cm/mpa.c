/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.c - sends and receives the MPA frames of a handshake (mpa.h). */
#include "dapl/soft/cm/mpa.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

bool mpa_send(const struct dapl_conn *conn, const struct wire_mpa *mpa,
	      const struct wire_trailer *trailer, const void *pdata, size_t length)
{
	uint8_t frame[WIRE_MPA_MAX];
	size_t n = WIRE_MPA_HEADER;
	struct wire_mpa full = *mpa;
	ssize_t sent;

	assert_held(&conn->dev->progress_lock);
	if (full.flags & WIRE_MPA_S) {
		wire_enhanced_put(frame + n, &full);
		n += WIRE_MPA_ENHANCED;
	}
	if (trailer) {
		wire_trailer_put(frame + n, trailer);
		n += WIRE_TRAILER;
	}
	if (length)
		memcpy(frame + n, pdata, length);
	n += length;
	full.length = n - WIRE_MPA_HEADER;
	wire_mpa_put(frame, &full);
	sent = send(conn->fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		errno = EMSGSIZE;
	return sent == (ssize_t)n;
}

enum mpa_got mpa_receive(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	while (conn->frame_length < conn->frame_need) {
		ssize_t n = recv(conn->fd, conn->frame + conn->frame_length,
				 conn->frame_need - conn->frame_length, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return GOT_PART;
		if (n < 0)
			conn->io_error = errno;
		if (n <= 0)
			return n || conn->frame_length ? GOT_BAD : GOT_END;
		conn->frame_length += n;
		if (conn->frame_need != WIRE_MPA_HEADER || conn->frame_length != WIRE_MPA_HEADER)
			continue;
		if (!wire_mpa_get(conn->frame, !conn->passive, &conn->mpa) ||
		    conn->mpa.length > WIRE_MPA_MAX - WIRE_MPA_HEADER)
			return GOT_BAD;
		conn->frame_need += conn->mpa.length;
	}
	return GOT_ALL;
}

const uint8_t *mpa_data(struct dapl_conn *conn, size_t *length)
{
	const uint8_t *p = conn->frame + WIRE_MPA_HEADER;

	*length = conn->mpa.length;
	conn->mpa.ird = conn->mpa.ord = WIRE_ORD_NONE;
	if (!(conn->mpa.flags & WIRE_MPA_S))
		return p;
	if (conn->mpa.revision < 2 || *length < WIRE_MPA_ENHANCED)
		return NULL;
	wire_enhanced_get(p, &conn->mpa);
	*length -= WIRE_MPA_ENHANCED;
	return p + WIRE_MPA_ENHANCED;
}
