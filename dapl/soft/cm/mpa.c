/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.c - sends and receives the MPA frames of a handshake (mpa.h). */
#include "dapl/soft/cm/mpa.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include <errno.h>
#include <stdlib.h>
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

/* Moves the header of a frame that is too long for short_frame. Returns false without memory. */
static bool has_room(struct dapl_conn *conn)
{
	uint8_t *whole;

	if (conn->cm->frame_need <= MPA_SHORT || conn->cm->frame != conn->cm->short_frame)
		return true;
	whole = malloc(WIRE_MPA_MAX);
	if (!whole)
		return false;
	memcpy(whole, conn->cm->frame, WIRE_MPA_HEADER);
	conn->cm->frame = whole;
	return true;
}

enum mpa_got mpa_receive(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	while (conn->cm->frame_length < conn->cm->frame_need) {
		ssize_t n = recv(conn->fd, conn->cm->frame + conn->cm->frame_length,
				 conn->cm->frame_need - conn->cm->frame_length, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return GOT_PART;
		if (n < 0)
			conn->stream.io_error = errno;
		if (n <= 0)
			return n || conn->cm->frame_length ? GOT_BAD : GOT_END;
		conn->cm->frame_length += n;
		if (conn->cm->frame_need != WIRE_MPA_HEADER || conn->cm->frame_length != WIRE_MPA_HEADER)
			continue;
		if (!wire_mpa_get(conn->cm->frame, !conn->passive, &conn->cm->mpa) ||
		    conn->cm->mpa.length > WIRE_MPA_MAX - WIRE_MPA_HEADER)
			return GOT_BAD;
		conn->cm->frame_need += conn->cm->mpa.length;
		if (!has_room(conn)) {
			conn->stream.io_error = ENOMEM;
			return GOT_BAD;
		}
	}
	return GOT_ALL;
}

const uint8_t *mpa_data(struct dapl_conn *conn, size_t *length)
{
	const uint8_t *p = conn->cm->frame + WIRE_MPA_HEADER;

	*length = conn->cm->mpa.length;
	conn->cm->mpa.ird = conn->cm->mpa.ord = WIRE_ORD_NONE;
	if (!(conn->cm->mpa.flags & WIRE_MPA_S))
		return p;
	if (conn->cm->mpa.revision < 2 || *length < WIRE_MPA_ENHANCED)
		return NULL;
	wire_enhanced_get(p, &conn->cm->mpa);
	*length -= WIRE_MPA_ENHANCED;
	return p + WIRE_MPA_ENHANCED;
}
