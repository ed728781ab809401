/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. During a capture the verbs of the device are the functions here, which record
 * messages and call the other verbs; else the data path has no instruction for captures. The message of
 * a thread that is within a verb when the capture begins or ends may be recorded or not.
 *
 * A request is recorded when it is posted. What arrives is recorded when its completion is polled:
 * Sends of the peer, and answers to reads and atomics. Writes and reads of a peer are not recorded
 * here, since they may not involve this process: the capture of the peer has them. Datagrams are left
 * out: their QPs have no connection. */
#include "dapl/soft/verbs/tap.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/verbs/post.h"

static uint32_t least(uint32_t a, uint64_t b)
{
	return a < b ? a : (uint32_t)b;
}

/* Finds the memory of the first bytes of a message, at most those that a record has. Called with qp->lock held, so
 * the memory stays registered until that is released. Returns the number of bytes. */
static uint32_t find_payload(const struct soft_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge,
			     uint32_t sges, uint32_t length, struct iovec pieces[SOFT_MAX_SGE])
{
	uint32_t done = 0, room = least(dapl_tap_snap(), length);

	assert_held(&qp->lock);
	for (uint32_t i = 0; i < sges && i < SOFT_MAX_SGE && done < room; i++) {
		uint32_t n = least(room - done, sge[i].length);
		char *at;

		if (soft_mem_local(qp->dev, pd, &sge[i], 0, &at) != SOFT_FINE)
			break;
		pieces[i] = (struct iovec){ at, n };
		done += n;
	}
	return done;
}

/* Called with qp->lock held. */
static void put_connection(struct tap_record *to, const struct soft_qp *qp)
{
	const struct dapl_conn *conn = qp->conn;

	assert_held(&qp->lock);
	to->qpn = qp->qp.qp_num;
	to->flags |= (conn->shm ? TAP_MEMORY : 0) | (conn->passive ? 0 : TAP_ACTIVE);
	if (likely(conn->tap_shown == dapl_tap_capture()))
		return;
	dapl_tap_put_address(&to->ends.local, &conn->local);
	dapl_tap_put_address(&to->ends.remote, &conn->remote);
}

/* --- requests ------------------------------------------------------------------------------- */

/* Called with qp->lock held. Returns false if the request is not recorded. */
static bool record_request(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t now, struct tap_place *place)
{
	struct tap_record is = { .time = now };
	struct iovec payload[SOFT_MAX_SGE];
	bool fetches, put;

	assert_held(&qp->lock);
	if (!qp->conn || !dapl_tap_describe(&is, wr))
		return false;
	fetches = dapl_tap_fetches(&is);
	if (!fetches && wr->num_sge > 0)
		is.captured = find_payload(qp, qp->qp.pd, wr->sg_list, (uint32_t)wr->num_sge, is.length, payload);
	put_connection(&is, qp);
	put = dapl_tap_put(&is, &qp->conn->tap_shown, payload, place);
	if (put && fetches)
		dapl_tap_remember(wr->wr_id, wr->sg_list, wr->num_sge, &is);
	return put;
}

/* Called with qp->lock held. A request that is refused is not shown. */
static int record_and_post(struct soft_qp *qp, struct ibv_send_wr *wr, uint64_t now)
{
	struct ibv_send_wr *bad;
	struct tap_place place;
	bool recorded = record_request(qp, wr, now, &place);
	int err = soft_qp_post_send_locked(qp, wr, &bad);

	assert_held(&qp->lock);
	if (recorded && err)
		dapl_tap_cancel(&place);
	return err;
}

/* A list is taken apart, since each request of it may be refused. */
static int record_and_post_list(struct soft_qp *qp, struct ibv_send_wr *wr, uint64_t now, struct ibv_send_wr **bad)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr;

		one.next = NULL;
		err = record_and_post(qp, &one, now);
		*bad = wr;
	}
	return err;
}

static int tap_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	uint64_t now = clock_read_ns(CLOCK_REALTIME);
	int err;

	dapl_mutex_lock(&qp->lock);
	if (likely(wr && !wr->next)) {
		err = record_and_post(qp, wr, now);
		*bad = wr;
	} else {
		err = record_and_post_list(qp, wr, now, bad);
	}
	dapl_mutex_unlock(&qp->lock);
	return err;
}

/* --- receives and completions ----------------------------------------------------------------- */

static int tap_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	dapl_tap_remember_receives(wr);
	return soft_qp_post_recv(qp, wr, bad);
}

static int tap_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	dapl_tap_remember_receives(wr);
	return soft_srq_post(srq, wr, bad);
}

/* Called with dev->qps_lock held, so that the QP stays. */
static void tap_completion(struct dapl_device *dev, const struct ibv_wc *wc, uint64_t now)
{
	struct iovec payload[SOFT_MAX_SGE];
	struct dapl_tap_sink sink;
	struct tap_place place;
	struct tap_record is;
	struct soft_qp *qp;

	assert_held(&dev->qps_lock);
	if (!dapl_tap_describe_completion(&is, &sink, wc))
		return;
	qp = soft_qp_by_number(dev, wc->qp_num);
	if (!qp)
		return;
	is.time = now;
	dapl_mutex_lock(&qp->lock);
	if (qp->conn) {
		is.captured = find_payload(qp, is.kind == TAP_RECEIVED && qp->srq ? qp->srq->srq.pd : qp->qp.pd,
					   sink.sge, sink.sges, is.length, payload);
		put_connection(&is, qp);
		dapl_tap_put(&is, &qp->conn->tap_shown, payload, &place);
	}
	dapl_mutex_unlock(&qp->lock);
}

/* Reads the clock, and locks the table of QPs, once for all completions. */
static int tap_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct dapl_device *dev = soft_device(cq->context);
	int n = soft_cq_poll(cq, entries, wc), i = 0;
	uint64_t now;

	while (i < n && !dapl_tap_is_recorded(&wc[i]))
		i++;
	if (i >= n)
		return n;
	now = clock_read_ns(CLOCK_REALTIME);
	dapl_mutex_lock(&dev->qps_lock);
	for (; i < n; i++)
		if (dapl_tap_is_recorded(&wc[i]))
			tap_completion(dev, &wc[i], now);
	dapl_mutex_unlock(&dev->qps_lock);
	return n;
}

/* The inline functions of verbs.h load these pointers without atomics, at the same time: a thread calls the old
 * function or the new one, and both work. A thread sanitizer must not compare such loads with these stores. */
__attribute__((no_sanitize_thread))
void soft_tap(struct dapl_device *dev, bool on)
{
	struct ibv_context_ops *ops = &dev->verbs.ops;

	__atomic_store_n(&ops->post_send, on ? tap_post_send : soft_qp_post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_recv, on ? tap_post_recv : soft_qp_post_recv, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_srq_recv, on ? tap_post_srq_recv : soft_srq_post, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->poll_cq, on ? tap_poll_cq : soft_cq_poll, __ATOMIC_RELEASE);
}
