/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_place.c - where the payload of a segment goes: into a receive, an unexpected message, the memory
 * of a write, or the sink of a read. */
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/responder_place.h"
#include "dapl/soft/obj/store.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/wire.h"

static int place_recv(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, int *term)
{
	int n = soft_mem_slice(qp->dev, soft_receive_pd(qp), qp->taken->sge, qp->taken->sges,
			       conn->stream.rx.send_offset, length, IBV_ACCESS_LOCAL_WRITE, iov, max);

	if (n < 0)
		*term = soft_deliver_failed(qp, IBV_WC_LOC_PROT_ERR, WIRE_TERM_LOCAL);
	return n;
}

static int place_unexpected(struct dapl_conn *conn, uint32_t length, struct iovec *iov, int *term)
{
	struct soft_unexpected *unexpected = conn->stream.rx.unexpected;

	if (conn->stream.peer_is_dapl &&
	    conn->stream.unexpected_bytes + length > SOFT_WINDOW + SOFT_CHARGE + RING_CHUNK) {
		*term = WIRE_TERM_NO_BUFFER;	/* far more than the window that was granted */
		return -1;
	}
	if (!soft_unexpected_reserve(unexpected, unexpected->length + length)) {
		*term = WIRE_TERM_LOCAL;
		return -1;
	}
	iov[0] = (struct iovec){ unexpected->data + unexpected->length, length };
	return 1;
}

/* The last bytes of a write are collected in rx->tail until the rest is in place. */
static int place_write(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		       struct iovec *iov, int max, struct soft_region **held, int *term)
{
	struct soft_rx *rx = &conn->stream.rx;
	uint32_t body = rx->payload_left - rx->tail_length, part;
	enum soft_check check;
	char *at = NULL;
	int n = 0;

	if (rx->payload_left < rx->tail_length)
		body = 0;
	check = soft_mem_remote(qp, rx->write_stag, rx->write_to, rx->payload_left,
				IBV_ACCESS_REMOTE_WRITE, &at, held);
	if (check != SOFT_FINE) {
		*term = soft_responder_write_term(check);
		return -1;
	}
	if (body) {
		part = body < length ? body : length;
		iov[n++] = (struct iovec){ at, part };
		length -= part;
	}
	if (length && n < max) {
		part = rx->payload_left - body;		/* bytes of the tail that are missing */
		iov[n++] = (struct iovec){ rx->tail + rx->tail_length - part, length };
	}
	rx->tail_at = at + rx->payload_left - rx->tail_length;
	return n;
}

static int place_read(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, int *term)
{
	const struct soft_swqe *wqe = soft_swqe(qp, conn->stream.rx.read_wqe);
	int n = soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, conn->stream.rx.read_offset,
			       length, IBV_ACCESS_LOCAL_WRITE, iov, max);

	if (n < 0) {
		soft_flush_qp(qp, conn->stream.rx.read_wqe, IBV_WC_LOC_PROT_ERR);
		*term = WIRE_TERM_LOCAL;
	}
	return n;
}

static int place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		 struct iovec *iov, int max, struct soft_region **held, int *term)
{
	switch (conn->stream.rx.sink) {
	case SOFT_SINK_RECV:
		return place_recv(qp, conn, length, iov, max, term);
	case SOFT_SINK_UNEXPECTED:
		return place_unexpected(conn, length, iov, term);
	case SOFT_SINK_WRITE:
		return place_write(qp, conn, length, iov, max, held, term);
	case SOFT_SINK_READ:
		return place_read(qp, conn, length, iov, max, term);
	default:
		*term = WIRE_TERM_UNSPECIFIED;
		return -1;
	}
}

/* A payload that has no place is an error, since the caller would repeat the call for ever. */
int soft_responder_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length, struct iovec *iov, int max,
			 struct soft_region **held, int *term)
{
	int n;

	*held = NULL;
	n = place(qp, conn, length, iov, max, held, term);
	if (n || !length)
		return n;
	soft_mem_done(*held);
	*held = NULL;
	*term = WIRE_TERM_LOCAL;
	return -1;
}

void soft_responder_placed(struct dapl_conn *conn, uint32_t length)
{
	struct soft_rx *rx = &conn->stream.rx;

	rx->payload_left -= length;
	rx->payload_done += length;
	switch (rx->sink) {
	case SOFT_SINK_RECV:
		rx->send_offset += length;
		conn->stream.consumed += length;
		break;
	case SOFT_SINK_UNEXPECTED:
		rx->send_offset += length;
		rx->unexpected->length += length;
		conn->stream.unexpected_bytes += length;
		break;
	case SOFT_SINK_WRITE:
		rx->write_to += length;
		if (!rx->payload_left && rx->tail_length)
			soft_store_tail(rx->tail_at, rx->tail, rx->tail_length);
		break;
	case SOFT_SINK_READ:
		rx->read_offset += length;
		break;
	default:
		break;
	}
}
