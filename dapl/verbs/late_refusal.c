/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* late_refusal.c - tells a peer that refused a request from a peer that only disconnected.
 *
 * A peer that refuses a request, such as an RDMA write to a context that does not exist, answers with a NAK, and its
 * queue pair fails. Then its program disconnects. The disconnect goes another way, through the CM, and the newer rxe
 * (seen in Linux 7.3) handles packets in a work queue: the disconnect may be reported before the NAK is handled. This
 * side would move its queue pair to ERR, and the request would complete with FLUSHED instead of the reason. So while
 * requests are left, the disconnect waits a little for the queue pair to fail by itself. */
#include <time.h>
#include "hw.h"
#include "late_refusal.h"

enum {
	NAP_US = 1000,		/* between two looks at the queue pair's state */
	NAPS = 10,		/* at most: the work queue needs microseconds, and other connections' events wait */
};

static bool has_failed(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR;
}

bool hw_request_was_refused(struct dapl_conn *conn)
{
	bool failed = false, waits;

	assert_held(&conn->lock);
	if (!conn->dev->late_refusals)
		return false;
	for (int i = 0; i <= NAPS; i++) {
		dapl_mutex_unlock(&conn->lock);
		waits = dapl_up_has_requests(conn->owner, conn);
		if (waits && i)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_US * 1000 }, NULL);
		dapl_mutex_lock(&conn->lock);
		if (!waits || conn->released || conn->state != CONN_ESTABLISHED)
			break;
		failed = has_failed(conn->qp);
		if (failed)
			break;
	}
	return failed;
}
