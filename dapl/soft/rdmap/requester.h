/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h - the send queue of a connection as segments. Called with qp->lock held. */
#ifndef SOFT_RDMAP_REQUESTER_H
#define SOFT_RDMAP_REQUESTER_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/tcp/fpdu.h"

/* Why the requester stopped. */
enum soft_step {
	STEP_FRAMED,		/* a segment was appended */
	STEP_NOTHING,		/* there is nothing to be sent now */
	STEP_FULL,		/* the batch has no room */
	STEP_LOCAL,		/* the next request is executed without a segment */
	STEP_BROKEN,		/* the stream ends */
};

/* Checks a request before its first segment is sent. Returns the status of its completion: SUCCESS if
 * nothing is wrong. */
enum ibv_wc_status soft_requester_fault(const struct soft_qp *qp, const struct dapl_conn *conn,
					const struct soft_swqe *wqe);
/* Fills the batch from the cursor on. Returns why it stopped: STEP_FULL, STEP_NOTHING, STEP_LOCAL or
 * STEP_BROKEN. */
enum soft_step soft_requester_fill(struct soft_batch *b, struct dapl_conn *conn, struct soft_tx_cursor *cur);
#endif
