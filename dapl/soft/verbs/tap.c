/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. During a capture posts to send queues are the function here, which records requests and calls
 * the other verbs; and what arrives leaves the fast path to be recorded (obj/tap_record.h). Else the path of a post has
 * no instruction for captures. The message of a thread that is within a verb when the capture begins or ends may
 * be recorded or not. */
#include "dapl/soft/verbs/tap.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/fastpath.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/tap_record.h"
#include "dapl/soft/verbs/post.h"

static bool is_fetch(const struct ibv_send_wr *wr)
{
	uint8_t op = dapl_tap_operation(wr->opcode);

	return op != DAPL_TAP_NO_MESSAGE && tap_fetches(op);
}

/* Called with qp->lock held. A list is taken apart, since each request of it may be refused. One that is refused is not
 * shown. */
static NOINLINE int record_and_post(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	assert_held(&qp->lock);
	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr, *refused;
		uint32_t tail = qp->sq_tail;
		struct tap_place place;
		bool recorded;

		one.next = NULL;
		recorded = tap_record_request(qp, &one, &place);
		err = soft_qp_post_send_locked(qp, &one, &refused);
		if (unlikely(err) && recorded)
			dapl_tap_cancel(&place);
		if (is_fetch(&one) && !err && qp->sq_tail == tail && qp->state == IBV_QPS_RTS)
			tap_record_answer(qp, &one);	/* was executed at once, and is not in the send queue */
		*bad = wr;
	}
	return err;
}

/* Records a short write of one segment. Returns false if record_and_post() is needed. Called with qp->lock held. */
static ALWAYS_INLINE bool record_write(struct soft_qp *qp, const struct ibv_send_wr *wr, struct tap_place *place)
{
	char *payload;

	assert_held(&qp->lock);
	return wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge == 1 && !wr->next && fastpath_payload(qp, wr, &payload) &&
	       tap_record_plain_request(qp, wr, TAP_WRITE, payload, place);
}

/* Called with qp->lock held. */
static ALWAYS_INLINE int post_send(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct tap_place place;
	int err;

	assert_held(&qp->lock);
	if (likely(qp->conn && wr)) {
		if (wr->opcode == IBV_WR_SEND && qp->conn->shm && likely(shm_conn_post_recorded(qp, qp->conn, wr)))
			return 0;
		if (record_write(qp, wr, &place)) {
			err = soft_qp_post_send_locked(qp, wr, bad);
			if (unlikely(err))
				dapl_tap_cancel(&place);
			return err;
		}
	}
	return record_and_post(qp, wr, bad);
}

/* HOT */
static int tap_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err;

	dapl_mutex_lock(&qp->lock);
	err = post_send(qp, wr, bad);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

/* The inline functions of verbs.h load these pointers without atomics, at the same time: a thread calls the old
 * function or the new one, and both work. A thread sanitizer must not compare such loads with these stores. */
__attribute__((no_sanitize_thread))
void soft_tap(struct dapl_device *dev, bool on)
{
	struct ibv_context_ops *ops = &dev->verbs.ops;

	__atomic_store_n(&ops->post_send, on ? tap_post_send : soft_qp_post_send, __ATOMIC_RELEASE);
	if (on)
		__atomic_or_fetch(&dev->detours, SOFT_TAPPED, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&dev->detours, (uint8_t)~SOFT_TAPPED, __ATOMIC_RELEASE);
}
