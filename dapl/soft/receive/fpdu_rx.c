/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu_rx.c - receives the byte stream, cuts it into FPDUs and checks their CRC. The form of a segment is
 * checked by rdmap/segment.c; rdmap/responder_place.c tells where its payload goes. */
#include "common/compiler.h"
#include "dapl/soft/rdmap/responder_place.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/receive/shm_rx.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static int consume_head(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			size_t *n, const char **check)
{
	struct soft_rx *rx = &conn->stream.rx;
	int term = WIRE_TERM_NONE;

	while (term == WIRE_TERM_NONE && *n) {
		uint32_t part = rx->part_need - rx->part_length;

		if (part > *n)
			part = *n;
		memcpy(rx->part + rx->part_length, *p, part);
		rx->part_length += part;
		*p += part;
		*n -= part;
		if (rx->part_length < rx->part_need)
			break;
		if (rx->part_need == WIRE_CONTROL_END) {
			term = soft_segment_control(conn, rx, check);
			continue;
		}
		term = soft_segment_begin(qp, conn, check);
		rx->phase = rx->payload_left ? SOFT_RX_PAYLOAD : SOFT_RX_TRAILER;
		break;
	}
	return term;
}

static int consume_payload(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			   size_t *n)
{
	struct soft_rx *rx = &conn->stream.rx;
	uint32_t length = rx->payload_left < *n ? rx->payload_left : *n;
	struct soft_region *held;
	struct iovec iov[8];
	int pieces, term = WIRE_TERM_NONE;

	pieces = soft_responder_place(qp, conn, length, iov, 8, &held, &term);
	if (pieces < 0)
		return term;
	length = copy_scatter(iov, pieces, *p) - *p;
	*p += length;
	*n -= length;
	soft_responder_placed(conn, length);
	soft_mem_done(held);
	if (!rx->payload_left)
		rx->phase = SOFT_RX_TRAILER;
	return WIRE_TERM_NONE;
}

static int consume_trailer(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p,
			   size_t *n, const char **check)
{
	struct soft_rx *rx = &conn->stream.rx;
	uint32_t part = rx->trailer_left < *n ? rx->trailer_left : *n;

	*p += part;
	*n -= part;
	rx->trailer_left -= part;
	if (rx->trailer_left)
		return WIRE_TERM_NONE;
	rx->phase = SOFT_RX_HEAD;
	rx->part_length = 0;
	rx->part_need = WIRE_CONTROL_END;
	return soft_segment_end(qp, conn, check);
}

/* --- fast path for small messages --------------------------------------------------------- */

enum {
	SLOW_PATH = -2,			/* not a case of the fast path; nothing was done */
	FIRST_UNTAGGED = 0x41,		/* first control byte: DDP version 1, last segment */
	FIRST_TAGGED = 0xc1,
	SECOND = 0x40,			/* second control byte, without the opcode: RDMAP version 1 */
	AT_WORD = 4, AT_TO = 8, AT_QN = 8, AT_MSN = 12, AT_MO = 16,
};

static int quick_ack(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p, uint32_t length,
		     const char **check)
{
	if (!conn->stream.peer_is_dapl || length != WIRE_ACK_LENGTH || wire_get32(p + AT_QN) != WIRE_QN_DAPL ||
	    wire_get32(p + AT_MSN) != conn->stream.rx.msn_dapl)
		return SLOW_PATH;
	conn->stream.rx.seg = (struct wire_segment){ .op = WIRE_ACK, .last = true };
	*check = "acknowledgement";
	return soft_segment_ack(qp, conn, p + WIRE_HEAD_MAX);
}

static int quick_message(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct soft_message *message)
{
	if (message->length >= RX_BULK_MIN || !soft_responder_quick(qp, conn, message))
		return SLOW_PATH;
	conn->stream.rx.bulk &= !message->length;
	return WIRE_TERM_NONE;
}

/* Executes the FPDU at p, which is complete, if it is a Send or a write of one segment, or an acknowledgement.
 * Only its length was checked. `length` is that of its ULPDU without an untagged header. */
static int quick_segment(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p,
			 uint32_t length, const char **check)
{
	struct soft_message message = {
		.op = p[3] & 15, .last = true, .length = length, .word = wire_get32(p + AT_WORD),
		.data = p + WIRE_HEAD_MAX,
	};

	if ((p[3] & 0xf0) != SECOND)
		return SLOW_PATH;
	if (p[2] == FIRST_TAGGED && message.op == WIRE_WRITE) {
		message.to = wire_get64(p + AT_TO);
		message.length += WIRE_UNTAGGED - WIRE_TAGGED;
		message.data -= WIRE_UNTAGGED - WIRE_TAGGED;
		return quick_message(qp, conn, &message);
	}
	if (p[2] != FIRST_UNTAGGED || wire_get32(p + AT_MO))
		return SLOW_PATH;
	if (message.op == WIRE_ACK)
		return quick_ack(qp, conn, p, length, check);
	if ((message.op != WIRE_SEND && message.op != WIRE_SEND_SE) ||
	    wire_get32(p + AT_QN) != WIRE_QN_SEND || wire_get32(p + AT_MSN) != conn->stream.rx.msn_send)
		return SLOW_PATH;
	return quick_message(qp, conn, &message);
}

/* An FPDU of any other form is left to the general path, which finds what is wrong with it. */
static int consume_fastpath(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t **p, size_t *n,
			    const char **check)
{
	uint32_t ulpdu, size;
	int term;

	if (conn->stream.rx.part_length || *n < WIRE_HEAD_MAX + WIRE_CRC)
		return SLOW_PATH;
	ulpdu = wire_get16(*p);
	size = ((WIRE_FPDU_LENGTH + ulpdu + 3) & ~3u) + WIRE_CRC;
	if (ulpdu < WIRE_UNTAGGED || size > *n)
		return SLOW_PATH;
	term = quick_segment(qp, conn, *p, ulpdu - WIRE_UNTAGGED, check);
	if (term == SLOW_PATH)
		return term;
	conn->stream.tx.open = true;		/* the initiator's first FPDU allows the acceptor to send */
	*p += size;
	*n -= size;
	return term;
}

/* Processes the next bytes of the stream. */
static void consume(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p, size_t n)
{
	struct soft_rx *rx = &conn->stream.rx;
	const char *check = "place for payload";
	int term = WIRE_TERM_NONE;

	while (n && term == WIRE_TERM_NONE && !soft_stream_dropping(conn)) {
		switch (rx->phase) {
		case SOFT_RX_PAYLOAD:
			term = consume_payload(qp, conn, &p, &n);
			break;
		case SOFT_RX_TRAILER:
			term = consume_trailer(qp, conn, &p, &n, &check);
			break;
		default:
			term = consume_fastpath(qp, conn, &p, &n, &check);
			if (term == SLOW_PATH)
				term = consume_head(qp, conn, &p, &n, &check);
		}
	}
	if (unlikely(term != WIRE_TERM_NONE))
		soft_stream_fail(qp, conn, term, check);
}

static bool reserve_whole(struct soft_rx *rx, uint32_t size)
{
	uint8_t *p;

	if (size <= rx->whole_size)
		return true;
	p = realloc(rx->whole, size);
	if (!p)
		return false;
	rx->whole = p;
	rx->whole_size = size;
	return true;
}

/* With CRC, an FPDU is collected and checked before any of it is processed. */
static void consume_checked(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *p,
			    size_t n)
{
	struct soft_rx *rx = &conn->stream.rx;
	uint32_t want, part;
	uint8_t crc[4];

	while (n && !soft_stream_dropping(conn)) {
		want = WIRE_FPDU_LENGTH;
		if (rx->whole_length >= want)
			want = ((WIRE_FPDU_LENGTH + wire_get16(rx->whole) + 3) & ~3u) + WIRE_CRC;
		if (!reserve_whole(rx, want)) {
			soft_stream_fail(qp, conn, WIRE_TERM_LOCAL, "memory for an FPDU");
			return;
		}
		part = want - rx->whole_length < n ? want - rx->whole_length : n;
		memcpy(rx->whole + rx->whole_length, p, part);
		rx->whole_length += part;
		p += part;
		n -= part;
		if (rx->whole_length < want || want == WIRE_FPDU_LENGTH)
			continue;
		wire_crc_put(crc, wire_crc(WIRE_CRC_START, rx->whole, want - WIRE_CRC));
		if (memcmp(crc, rx->whole + want - WIRE_CRC, WIRE_CRC)) {
			soft_stream_fail(qp, conn, WIRE_TERM_CRC, "CRC");
			return;
		}
		rx->whole_length = 0;
		consume(qp, conn, rx->whole, want);
	}
}

/* --- the socket --------------------------------------------------------------------------- */

/* How much is read beyond a segment's payload: among large segments only the next header, so that all of
 * the next payload is received in place, too. */
static size_t beyond_payload(const struct soft_rx *rx)
{
	return rx->bulk ? rx->trailer_left + segment_head_length(rx->seg.tagged) : RX_BEYOND;
}

/* One recvmsg: the payload straight into place, the bytes after it into the scratch buffer. */
static ssize_t receive_direct(struct soft_qp *qp, struct dapl_conn *conn, size_t *asked)
{
	struct dapl_device *dev = conn->dev;
	struct iovec iov[SOFT_MAX_SGE + 2];
	struct msghdr msg = { .msg_iov = iov };
	struct soft_region *held;
	size_t placed = 0, direct;
	int pieces, term = WIRE_TERM_NONE;
	ssize_t n;

	*asked = 0;
	pieces = soft_responder_place(qp, conn, conn->stream.rx.payload_left, iov, SOFT_MAX_SGE + 1, &held, &term);
	if (pieces < 0) {
		soft_stream_fail(qp, conn, term, "place for payload");
		return 1;
	}
	for (int i = 0; i < pieces; i++)
		placed += iov[i].iov_len;
	iov[pieces] = (struct iovec){ dev->progress.scratch, beyond_payload(&conn->stream.rx) };
	msg.msg_iovlen = pieces + 1;
	*asked = placed + iov[pieces].iov_len;
	n = recvmsg(conn->fd, &msg, MSG_DONTWAIT);
	direct = n > 0 ? (size_t)n < placed ? (size_t)n : placed : 0;
	soft_responder_placed(conn, direct);
	soft_mem_done(held);
	if (n <= 0)
		return n;
	if (!conn->stream.rx.payload_left && conn->stream.rx.phase == SOFT_RX_PAYLOAD)
		conn->stream.rx.phase = SOFT_RX_TRAILER;
	consume(qp, conn, dev->progress.scratch, n - direct);
	return n;
}

static ssize_t receive_scratch(struct soft_qp *qp, struct dapl_conn *conn, size_t *asked)
{
	struct dapl_device *dev = conn->dev;
	ssize_t n;

	/* Reads only the beginning of large messages, so that the rest is received in place. */
	*asked = conn->stream.rx.bulk && !conn->stream.crc ? RX_BULK_HEAD : SOFT_SCRATCH;
	n = recv(conn->fd, dev->progress.scratch, *asked, MSG_DONTWAIT);
	if (n <= 0 || soft_stream_dropping(conn))
		return n;
	if (conn->stream.crc)
		consume_checked(qp, conn, dev->progress.scratch, n);
	else
		consume(qp, conn, dev->progress.scratch, n);
	return n;
}

static bool at_boundary(const struct dapl_conn *conn)
{
	const struct soft_rx *rx = &conn->stream.rx;

	return rx->phase == SOFT_RX_HEAD && !rx->part_length && !rx->whole_length &&
	       !rx->send_open && !rx->write_open;
}

/* The stream ended with the peer's FIN (err 0) or with an error of the socket. A killed peer of this
 * implementation sends no close notification. */
static void stream_ended(struct soft_qp *qp, struct dapl_conn *conn, int err)
{
	bool orderly = conn->stream.rx.close_notice || (!conn->stream.peer_is_dapl && !err && at_boundary(conn));

	err = err ? err : conn->stream.io_error;
	if (!orderly)
		soft_conn_caused(conn, err, DAPL_CODE_NONE, 0,
			       err ? NULL : conn->stream.peer_is_dapl ?
			       "the peer's process ended without disconnecting" :
			       "the peer's stream ended within a message");
	soft_stream_ended(qp, conn, orderly);
}

/* The socket of a shared-memory connection only reports the end of the peer. All messages that the peer
 * sent before are in the ring by then, and are received in one go. Messages stored later are discarded. */
static bool receive_end(struct dapl_conn *conn)
{
	ssize_t n = recv(conn->fd, conn->dev->progress.scratch, SOFT_SCRATCH, MSG_DONTWAIT);
	int turns = 0, err = n < 0 ? errno : 0;

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	do
		shm_rx_receive(conn, false);
	while (shm_conn_ready(conn->shm) && ++turns < RING_SLOTS);
	stream_ended(conn->qp, conn, err);
	return false;
}

bool soft_tcp_receive(struct dapl_conn *conn, bool *came)
{
	struct soft_qp *qp = conn->qp;
	size_t budget = RX_BUDGET, asked;
	ssize_t n;

	assert_held(&conn->dev->progress_lock);
	*came = true;
	if (conn->shm)
		return receive_end(conn);
	*came = false;
	while (!conn->stream.rx.paused) {
		if (!soft_stream_dropping(conn) && !conn->stream.crc && conn->stream.rx.phase == SOFT_RX_PAYLOAD &&
		    conn->stream.rx.payload_left >= RX_IN_PLACE_MIN)
			n = receive_direct(qp, conn, &asked);
		else
			n = receive_scratch(qp, conn, &asked);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		*came = true;
		if (n <= 0) {
			stream_ended(qp, conn, n < 0 ? errno : 0);
			return false;
		}
		if ((size_t)n < asked || (size_t)n >= budget)
			return true;
		budget -= n;
	}
	return true;
}
