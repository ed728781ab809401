/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unexpected.c - see unexpected.h. */
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>

struct soft_unexpected *soft_unexpected_new(struct dapl_conn *conn, uint8_t op, uint32_t word)
{
	struct soft_unexpected *unexpected = calloc(1, sizeof *unexpected);

	if (!unexpected)
		return NULL;
	unexpected->op = op;
	unexpected->word = word;
	TAILQ_INSERT_TAIL(&conn->stream.unexpected, unexpected, link);
	conn->stream.unexpected_bytes += SOFT_CHARGE;
	return unexpected;
}

static void unexpected_free(struct dapl_conn *conn, struct soft_unexpected *unexpected)
{
	TAILQ_REMOVE(&conn->stream.unexpected, unexpected, link);
	conn->stream.unexpected_bytes -= SOFT_CHARGE + unexpected->length;
	free(unexpected->data);
	free(unexpected);
}

void soft_unexpected_drop(struct dapl_conn *conn)
{
	struct soft_unexpected *unexpected;

	while ((unexpected = TAILQ_FIRST(&conn->stream.unexpected)))
		unexpected_free(conn, unexpected);
	conn->stream.rx.unexpected = NULL;
}

/* Peers of this implementation honour the credit window; others are throttled by not reading the socket. */
int soft_unexpected_limit(struct dapl_conn *conn)
{
	if (conn->stream.unexpected_bytes <= SOFT_WINDOW)
		return WIRE_TERM_NONE;
	if (conn->stream.peer_is_dapl)
		return WIRE_TERM_NO_BUFFER;
	if (!conn->stream.rx.paused) {
		conn->stream.rx.paused = true;
		soft_conn_interest(conn);
	}
	return WIRE_TERM_NONE;
}

bool soft_unexpected_reserve(struct soft_unexpected *unexpected, uint32_t size)
{
	uint32_t capacity = unexpected->capacity ? unexpected->capacity : 256;	/* bytes; it doubles */
	uint8_t *data;

	if (size <= unexpected->capacity)
		return true;
	while (capacity < size)
		capacity *= 2;
	data = realloc(unexpected->data, capacity);
	if (!data)
		return false;
	unexpected->data = data;
	unexpected->capacity = capacity;
	return true;
}

/* Copies the arrived part of an unexpected message into the taken receive. The rest of the segment that is
 * being received must fit, too. */
static int unexpected_copy(struct soft_qp *qp, const struct dapl_conn *conn, const struct soft_unexpected *unexpected)
{
	bool coming = !unexpected->complete && conn->stream.rx.sink == SOFT_SINK_UNEXPECTED;
	uint64_t length = unexpected->length + (uint64_t)(coming ? conn->stream.rx.payload_left : 0);
	struct iovec iov[SOFT_MAX_SGE];
	int n;

	if (length > qp->taken->length)
		return soft_deliver_failed(qp, IBV_WC_LOC_LEN_ERR, WIRE_TERM_TOO_LONG);	/* DTO-4 */
	n = soft_mem_slice(qp->dev, soft_receive_pd(qp), qp->taken->sge, qp->taken->sges, 0,
			   unexpected->length, IBV_ACCESS_LOCAL_WRITE, iov, SOFT_MAX_SGE);
	if (n < 0)
		return soft_deliver_failed(qp, IBV_WC_LOC_PROT_ERR, WIRE_TERM_LOCAL);
	copy_scatter(iov, n, unexpected->data);
	return WIRE_TERM_NONE;
}

static int deliver_one(struct soft_qp *qp, struct dapl_conn *conn, struct soft_unexpected *unexpected)
{
	bool immediate = unexpected->op == WIRE_IMMEDIATE || unexpected->op == WIRE_IMMEDIATE_SE;
	int term = unexpected_copy(qp, conn, unexpected);

	if (term == WIRE_TERM_NONE && unexpected->complete)
		term = soft_deliver(qp, conn, unexpected->op, unexpected->word,
				    immediate ? unexpected->write_length : unexpected->length);
	if (term != WIRE_TERM_NONE)
		return term;
	conn->stream.consumed += SOFT_CHARGE + unexpected->length;
	if (unexpected->complete)
		conn->stream.delivered += unexpected->writes_after;
	else
		conn->stream.rx.unexpected = NULL;	/* the rest of the message goes straight into the receive */
	if (conn->stream.rx.sink == SOFT_SINK_UNEXPECTED && !unexpected->complete)
		conn->stream.rx.sink = SOFT_SINK_RECV;
	unexpected_free(conn, unexpected);
	return WIRE_TERM_NONE;
}

void soft_unexpected_deliver(struct soft_qp *qp)
{
	struct dapl_conn *conn = qp->conn;
	struct soft_unexpected *unexpected;
	int term = WIRE_TERM_NONE;

	assert_held(&qp->lock);
	if (!conn || qp->state != IBV_QPS_RTS || conn->stream.tx.terminate || conn->stream.tx.close_notice)
		return;
	while (term == WIRE_TERM_NONE && (unexpected = TAILQ_FIRST(&conn->stream.unexpected)) &&
	       soft_qp_take_receive(qp))
		term = deliver_one(qp, conn, unexpected);
	if (term != WIRE_TERM_NONE) {
		soft_stream_terminate(qp, conn, term, false, conn->stream.delivered + 1,
				      "delivery of an unexpected send");
		return;
	}
	if (conn->stream.rx.paused && conn->stream.unexpected_bytes <= SOFT_WINDOW / UNEXPECTED_RESUME_PART) {
		conn->stream.rx.paused = false;
		soft_conn_interest(conn);
	}
	soft_send_ack(conn);
}
