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
#include <string.h>
#include <sys/uio.h>
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/fastpath.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/tap_post.h"
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

static void put_payload(struct tap_entry *to, uint32_t captured, uint32_t behind, const struct iovec *from)
{
	uint8_t *at = behind ? (uint8_t *)(to + 1) : to->message.payload;

	to->message.captured = captured;
	for (; captured; captured -= (uint32_t)(from++)->iov_len) {
		memcpy(at, from->iov_base, from->iov_len);
		at += from->iov_len;
	}
}

/* Called with qp->lock held. */
static COLD bool show_connection(const struct soft_qp *qp)
{
	struct dapl_conn *conn = qp->conn;
	struct tap_ends ends = { .mtu = 0 };

	assert_held(&qp->lock);
	dapl_tap_put_address(&ends.local, &conn->local);
	dapl_tap_put_address(&ends.remote, &conn->remote);
	return dapl_tap_show(qp->qp.qp_num, (uint8_t)((conn->shm ? TAP_MEMORY : 0) | (conn->passive ? 0 : TAP_ACTIVE)),
			     &ends, &conn->tap_shown);
}

static ALWAYS_INLINE void put_head(struct tap_entry *to, const struct soft_qp *qp, uint64_t now)
{
	to->time = now;
	to->qpn = qp->qp.qp_num;
	to->state = TAP_VALID;
}

/* --- requests ------------------------------------------------------------------------------- */

/* A Send or write of one segment, whose payload fits into the line, with nothing new to look up. Called with qp->lock
 * held. Returns false if record_request() has to record it. */
static bool record_plain(struct soft_qp *qp, const struct ibv_send_wr *wr, struct tap_place *place)
{
	char *payload;

	assert_held(&qp->lock);
	return qp->conn && (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_RDMA_WRITE) && wr->num_sge == 1 &&
	       fastpath_payload(qp, wr, &payload) && tap_post_plain(qp, wr, payload, place);
}

/* Called with qp->lock held. Returns false if the request is not recorded. */
static NOINLINE bool record_request(struct soft_qp *qp, const struct ibv_send_wr *wr, struct tap_place *place)
{
	const uint64_t now = dapl_tap_now();
	uint8_t op = dapl_tap_operation(wr->opcode);
	struct iovec payload[SOFT_MAX_SGE];
	uint32_t length, captured = 0, behind;
	struct tap_message fetch;
	struct tap_entry *entry;

	assert_held(&qp->lock);
	if (!qp->conn || op == DAPL_TAP_NO_MESSAGE ||
	    (!dapl_tap_is_shown(qp->conn->tap_shown) && !show_connection(qp)))
		return false;
	length = dapl_tap_length(wr);
	if (!tap_fetches(op) && wr->num_sge > 0)
		captured = find_payload(qp, qp->qp.pd, wr->sg_list, (uint32_t)wr->num_sge, length, payload);
	behind = tap_payload_size(op, captured);
	entry = dapl_tap_reserve(TAP_LINE + behind, qp->conn->tap_shown);
	if (!entry)
		return false;
	put_head(entry, qp, now);
	dapl_tap_describe(entry, wr, op, length);
	put_payload(entry, captured, behind, payload);
	if (tap_fetches(op))
		fetch = entry->message;
	*place = dapl_tap_publish(TAP_LINE + behind);
	if (tap_fetches(op))
		dapl_tap_remember(wr->wr_id, wr->sg_list, wr->num_sge, &fetch);
	return true;
}

/* Called with qp->lock held. A request that is refused is not shown. */
static ALWAYS_INLINE int record_and_post(struct soft_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct tap_place place;
	bool recorded = record_plain(qp, wr, &place) || record_request(qp, wr, &place);
	int err = soft_qp_post_send_locked(qp, wr, &bad);

	assert_held(&qp->lock);
	if (unlikely(err) && recorded)
		dapl_tap_cancel(&place);
	return err;
}

/* Called with qp->lock held. A list is taken apart, since each request of it may be refused. */
static NOINLINE int record_and_post_all(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	assert_held(&qp->lock);
	if (likely(wr && !wr->next)) {
		*bad = wr;
		return record_and_post(qp, wr);
	}
	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr;

		one.next = NULL;
		err = record_and_post(qp, &one);
		*bad = wr;
	}
	return err;
}

/* HOT */
static int tap_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err = 0;

	dapl_mutex_lock(&qp->lock);
	if (!(likely(qp->conn && qp->conn->shm && wr) && likely(shm_conn_post_recorded(qp, qp->conn, wr))))
		err = record_and_post_all(qp, wr, bad);
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

/* Returns the protection domain of the memory of a completed request. */
static const struct ibv_pd *sink_pd(const struct soft_qp *qp, const struct ibv_wc *wc)
{
	return (wc->opcode & IBV_WC_RECV) && qp->srq ? qp->srq->srq.pd : qp->qp.pd;
}

/* Called with qp->lock held. */
static NOINLINE void record_completion(struct soft_qp *qp, const struct ibv_wc *wc, const struct dapl_tap_sink *sink,
				       uint64_t now)
{
	uint8_t op = dapl_tap_completed(wc);
	uint32_t length = dapl_tap_came(wc, sink), captured, behind;
	struct iovec payload[SOFT_MAX_SGE];
	struct tap_entry *entry;

	assert_held(&qp->lock);
	if (!qp->conn || (!dapl_tap_is_shown(qp->conn->tap_shown) && !show_connection(qp)))
		return;
	captured = find_payload(qp, sink_pd(qp, wc), sink->sge, sink->sges, length, payload);
	behind = tap_payload_size(op, captured);
	entry = dapl_tap_reserve(TAP_LINE + behind, qp->conn->tap_shown);
	if (!entry)
		return;
	put_head(entry, qp, now);
	dapl_tap_describe_completion(entry, wc, op, length, sink);
	put_payload(entry, captured, behind, payload);
	dapl_tap_publish(TAP_LINE + behind);
}

/* A Send in a receive of one segment. Called with qp->lock held. */
static NOINLINE void record_receive(struct soft_qp *qp, const struct ibv_wc *wc, const struct ibv_sge *sge,
				    uint64_t now)
{
	const struct dapl_tap_sink sink = { .sges = 1, .sge = { *sge } };

	record_completion(qp, wc, &sink, now);
}

/* HOT: a short Send in a receive of one segment, in the same way as record_plain(). */
static ALWAYS_INLINE bool record_plain_receive(struct soft_qp *qp, const struct ibv_wc *wc, const struct ibv_sge *sge,
					       uint64_t now)
{
	char *payload;

	assert_held(&qp->lock);
	return likely(qp->conn) &&
	       (likely(soft_local_find(&qp->sink, sge, &payload)) ||
		soft_mem_received(qp, sink_pd(qp, wc), sge, &payload) == SOFT_FINE) &&
	       tap_receive_plain(qp, wc, payload, now);
}

/* Locks the QP of a completion in place of the last one. Called with dev->qps_lock held, so that QPs stay. */
static ALWAYS_INLINE struct soft_qp *lock_next(struct dapl_device *dev, struct soft_qp *last, uint32_t number)
{
	struct soft_qp *qp;

	assert_held(&dev->qps_lock);
	if (last && last->qp.qp_num == number)
		return last;
	if (last)
		dapl_mutex_unlock(&last->lock);
	qp = soft_qp_by_number(dev, number);
	if (qp)
		dapl_mutex_lock(&qp->lock);
	return qp;
}

/* Returns true for a Send without more than its payload. */
static ALWAYS_INLINE bool is_plain_receive(const struct ibv_wc *wc)
{
	return wc->opcode == IBV_WC_RECV && wc->status == IBV_WC_SUCCESS &&
	       !(wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
}

/* Returns the QP that is locked then, as lock_next(). */
static NOINLINE struct soft_qp *record_other(struct dapl_device *dev, struct soft_qp *qp, const struct ibv_wc *wc,
					     uint64_t now)
{
	struct dapl_tap_sink sink;

	assert_held(&dev->qps_lock);
	if (!dapl_tap_is_recorded(wc) || !dapl_tap_recall(wc, &sink))
		return qp;
	qp = lock_next(dev, qp, wc->qp_num);
	if (qp)
		record_completion(qp, wc, &sink, now);
	return qp;
}

/* HOT: reads the clock, and locks the table of QPs, once for all completions. */
static NOINLINE void record_completions(struct dapl_device *dev, const struct ibv_wc *wc, int n)
{
	const uint64_t now = dapl_tap_found();
	struct soft_qp *qp = NULL;
	struct ibv_sge sge;

	dapl_mutex_lock(&dev->qps_lock);
	for (; n; n--, wc++) {
		if (unlikely(!is_plain_receive(wc)) || unlikely(!dapl_tap_recall_segment(wc->wr_id, &sge))) {
			qp = record_other(dev, qp, wc, now);
			continue;
		}
		qp = lock_next(dev, qp, wc->qp_num);
		if (likely(qp) && unlikely(!record_plain_receive(qp, wc, &sge, now)))
			record_receive(qp, wc, &sge, now);
	}
	if (qp)
		dapl_mutex_unlock(&qp->lock);
	dapl_mutex_unlock(&dev->qps_lock);
}

/* HOT */
static int tap_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = soft_cq_poll(cq, entries, wc);

	for (int i = 0; i < n; i++)
		if (dapl_tap_is_recorded(&wc[i])) {
			record_completions(soft_device(cq->context), wc + i, n - i);
			break;
		}
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
