/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - the end of a stream. Called with qp->lock held, unless a function says more. */
#ifndef SOFT_RDMAP_STREAM_H
#define SOFT_RDMAP_STREAM_H
#include <stdbool.h>
#include <stdint.h>
#include "common/lock.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"

/* Locks the stream of a connection, with the progress lock held. Returns the QP that it is attached to, to
 * be passed to soft_stream_unlock(). Without a QP the progress lock guards the stream. */
static inline struct soft_qp *soft_stream_lock(const struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;

	if (qp)
		dapl_mutex_lock(&qp->lock);
	return qp;
}

static inline void soft_stream_unlock(struct soft_qp *qp)
{
	if (qp)
		dapl_mutex_unlock(&qp->lock);
}

/* Returns true if input is discarded. */
static inline bool soft_stream_dropping(const struct dapl_conn *conn)
{
	return !conn->qp || conn->qp->state != IBV_QPS_RTS || conn->stream.tx.terminate ||
	       conn->stream.tx.close_notice || conn->stream.rx.close_notice;
}

/* Ends the stream: sends a Terminate, flushes the QP, reports the end. `term` is the Terminate code,
 * `check` names what failed, `index` is the peer's message (`read`: its read or atomic) that is to
 * blame; 0: none. */
void soft_stream_terminate(struct soft_qp *qp, struct dapl_conn *conn, int term, bool read,
			   uint32_t index, const char *check);
/* Ends the stream because of the message that is coming in. */
void soft_stream_fail(struct soft_qp *qp, struct dapl_conn *conn, int term, const char *check);
/* Ends the stream because of the answer at the cursor. */
void soft_stream_answer_fail(struct soft_qp *qp, struct dapl_conn *conn, int term,
			     const char *check);
/* Ends the stream because of a local request. */
void soft_stream_abort(struct soft_qp *qp, struct dapl_conn *conn, const char *check);
/* The peer's stream has ended (`orderly`) or is broken. Called with the progress lock held, too. */
void soft_stream_ended(struct soft_qp *qp, struct dapl_conn *conn, bool orderly);
/* Reports the end to core, once. */
void soft_stream_report_end(struct dapl_conn *conn, bool orderly);
/* Returns the status with which a request completes that a Terminate of this code is about. */
enum ibv_wc_status soft_stream_term_status(int term);

#endif
