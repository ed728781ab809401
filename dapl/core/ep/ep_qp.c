/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_qp.c - the queue pair of an endpoint: making, replacing, emptying and ending it, with the
 * rings of request records and the discard EVDs that belong to it.
 *
 * The QP exists as soon as the endpoint has a PZ and its EVDs, since receives may be posted
 * before connecting (CONN-17). An endpoint made without them gets its QP when it is first needed, with a
 * discard EVD for completions that the consumer has no EVD for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/bits.h"
#include "dapl/core/base/qp_table.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/recv_repost.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/mem/zero_based.h"

enum { MARKERS = 2 };	/* requests of the provider's own that may be outstanding at a time */

/* A change of the configuration releases ep->lock while it destroys a QP or a discard EVD, because both
 * wait for callbacks that take the lock. */
void dapl_ep_lock_settled(struct dapl_ep *ep)
{
	dapl_mutex_lock(&ep->lock);
	for (unsigned i = 0; ep->changing; i++) {
		dapl_mutex_unlock(&ep->lock);
		dapl_object_pause(i);
		dapl_mutex_lock(&ep->lock);
	}
}

static void set_changing(struct dapl_ep *ep, bool changing)
{
	assert_held(&ep->lock);
	dapl_post_lock(&ep->rq.lock);
	ep->changing = changing;
	dapl_post_unlock(&ep->rq.lock);
}

void dapl_ep_begin_change(struct dapl_ep *ep)
{
	set_changing(ep, true);
}

void dapl_ep_end_change(struct dapl_ep *ep)
{
	set_changing(ep, false);
}

/* Allocates the ring of request records, whose endpoint never changes. */
static int make_queue(struct dapl_ep *ep, struct dapl_queue *q, uint32_t entries)
{
	uint32_t size = round_up_power_of_two(entries);

	if (q->ring && q->mask == size - 1)
		return 0;
	free(q->ring);
	q->ring = calloc(size, sizeof *q->ring);
	if (!q->ring)
		return -1;
	q->mask = size - 1;
	for (uint32_t i = 0; i < size; i++)
		q->ring[i].ep = ep;
	return 0;
}

/* Sets a discard EVD, under sq.lock because a post to a full queue reads it there. Called with ep->lock
 * held, or when the endpoint ends. */
static void set_discard(struct dapl_ep *ep, struct dapl_evd **discard, struct dapl_evd *to)
{
	dapl_post_lock(&ep->sq.lock);
	*discard = to;
	dapl_post_unlock(&ep->sq.lock);
}

static DAT_RETURN make_discard(struct dapl_ep *ep, struct dapl_evd *have, struct dapl_evd **discard,
			       int qlen)
{
	struct dapl_evd *evd;
	DAT_RETURN ret;

	if (have || *discard)
		return DAT_SUCCESS;
	ret = dapl_evd_make(ep->obj.ia, qlen, DAT_EVD_DTO_FLAG, NULL, true, &evd);
	if (ret == DAT_SUCCESS)
		set_discard(ep, discard, evd);
	return ret;
}

static int most(int a, int b, int c)
{
	int m = a > b ? a : b;

	return m > c ? m : c;
}

static void wanted_qp(const struct dapl_ep *ep, struct ibv_qp_init_attr *init)
{
	*init = (struct ibv_qp_init_attr){
		.qp_context = (void *)ep,
		.send_cq = dapl_ep_request_evd(ep)->cq,
		.recv_cq = dapl_ep_recv_evd(ep)->cq,
		.srq = ep->srq ? ep->srq->srq : NULL,
		.qp_type = ep->is_raw ? IBV_QPT_RAW_PACKET : ep->is_ud ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {
			.max_send_wr = ep->attr.max_request_dtos + MARKERS,
			.max_recv_wr = ep->srq ? 0 : ep->attr.max_recv_dtos,
			.max_send_sge = most(ep->attr.max_request_iov, ep->attr.max_rdma_read_iov,
					     ep->attr.max_rdma_write_iov),
			.max_recv_sge = ep->srq ? 0 : ep->attr.max_recv_iov,
			.max_inline_data = ep->obj.ia->attr.max_inline,
		},
	};
}

/* Makes a QP and rings for the endpoint's configuration. Posts do not see the QP yet. */
static DAT_RETURN make_qp(struct dapl_ep *ep, struct ibv_qp **qp)
{
	int (*create)(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
	struct ibv_qp_init_attr init;
	DAT_RETURN ret;
	int err;

	if (!ep->pz)
		return BAD_STATE(EP_PZ);
	if ((ret = make_discard(ep, ep->request_evd, &ep->request_discard,
				ep->attr.max_request_dtos)) ||
	    (ret = make_discard(ep, ep->recv_evd, &ep->recv_discard, ep->attr.max_recv_dtos)))
		return ret;
	if (make_queue(ep, &ep->sq, ep->attr.max_request_dtos + MARKERS) ||
	    (!ep->srq && make_queue(ep, &ep->rq, ep->attr.max_recv_dtos)))
		return NO_RESOURCE(MEMORY);
	wanted_qp(ep, &init);
	create = ep->delayed_ack && init.qp_type == IBV_QPT_RC && dapl_device_ops.create_delayed_qp ?
		dapl_device_ops.create_delayed_qp : dapl_device_ops.create_qp;
	err = create(ep->obj.ia->dev, ep->pz->pd, &init, qp);
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", ep, NULL,
		      "create qp, %u sends %u receives: %s", init.cap.max_send_wr,
		      init.cap.max_recv_wr, strerror(abs(err)));
		return err == EINVAL ? NO_RESOURCE(TEP) : dapl_status(err, DAT_RESOURCE_TEP);
	}
	dapl_post_lock(&ep->sq.lock);
	ep->max_inline = dapl_pz_is_zero_based(ep->pz) ? 0 : init.cap.max_inline_data;
	dapl_post_unlock(&ep->sq.lock);
	ep->qpn = (*qp)->qp_num;
	if (ep->srq)
		dapl_qp_table_add(ep);
	return DAT_SUCCESS;
}

void dapl_ep_give_qp(struct dapl_ep *ep, struct ibv_qp *qp)
{
	assert_held(&ep->lock);
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	__atomic_store_n(&ep->qp, qp, __ATOMIC_RELEASE);
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	dapl_ep_set_room(ep);
}

DAT_RETURN dapl_ep_need_qp(struct dapl_ep *ep)
{
	struct ibv_qp *qp;
	DAT_RETURN ret;

	assert_held(&ep->lock);
	if (ep->qp)
		return DAT_SUCCESS;
	ret = make_qp(ep, &qp);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_ep_give_qp(ep, qp);
	return DAT_SUCCESS;
}

/* Removes every trace of the QP's requests. The QP was taken from posts, and is empty or destroyed. */
static void empty_queues(struct dapl_ep *ep)
{
	dapl_evd_purge(dapl_ep_request_evd(ep), ep, &ep->sq);
	dapl_evd_purge(dapl_ep_recv_evd(ep), ep, &ep->rq);
}

/* Takes the QP away from posts, and from calls that hold ep->lock. Returns it, or NULL if there is none.
 * Called with ep->lock held. */
static struct ibv_qp *take_qp(struct dapl_ep *ep)
{
	struct ibv_qp *qp;

	assert_held(&ep->lock);
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	qp = ep->qp;
	__atomic_store_n(&ep->qp, NULL, __ATOMIC_RELEASE);
	ep->sq.room = ep->rq.room = 0;
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	return qp;
}

/* Destroys a QP that was taken and removes every trace of its requests. Called without ep->lock, because
 * destroying waits for handlers of asynchronous events, which take it. */
static void end_taken(struct dapl_ep *ep, struct ibv_qp *qp)
{
	if (!qp)
		return;
	dapl_device_ops.destroy_qp(qp);
	if (ep->srq)
		dapl_qp_table_remove(ep);
	empty_queues(ep);
}

void dapl_ep_end_qp(struct dapl_ep *ep)
{
	struct ibv_qp *qp;

	dapl_mutex_lock(&ep->lock);
	qp = take_qp(ep);
	dapl_mutex_unlock(&ep->lock);
	end_taken(ep, qp);
}

static void end_discard(struct dapl_ep *ep, struct dapl_evd **discard)
{
	struct dapl_evd *evd = *discard;

	set_discard(ep, discard, NULL);
	if (evd)
		dapl_evd_destroy(evd);
}

void dapl_ep_end_discards(struct dapl_ep *ep)
{
	end_discard(ep, &ep->recv_discard);
	end_discard(ep, &ep->request_discard);
}

void dapl_ep_end_qp_unlocked(struct dapl_ep *ep)
{
	struct ibv_qp *qp = take_qp(ep);

	dapl_mutex_unlock(&ep->lock);
	end_taken(ep, qp);
	dapl_mutex_lock(&ep->lock);
}

void dapl_ep_end_discards_unlocked(struct dapl_ep *ep)
{
	struct dapl_evd *recv = ep->recv_evd ? ep->recv_discard : NULL;
	struct dapl_evd *request = ep->request_evd ? ep->request_discard : NULL;

	assert_held(&ep->lock);
	if (recv)
		set_discard(ep, &ep->recv_discard, NULL);
	if (request)
		set_discard(ep, &ep->request_discard, NULL);
	dapl_mutex_unlock(&ep->lock);
	if (recv)
		dapl_evd_destroy(recv);
	if (request)
		dapl_evd_destroy(request);
	dapl_mutex_lock(&ep->lock);
}

/* If the device cannot reset a QP (EOPNOTSUPP), another one is made. The lock is released because the
 * device may wait for a peer to end its accesses. Receives that are posted meanwhile wait for the end of
 * the change. */
DAT_RETURN dapl_ep_take_emptied_qp(struct dapl_ep *ep, struct ibv_qp **qp)
{
	DAT_RETURN ret;
	int err;

	assert_held(&ep->lock);
	*qp = take_qp(ep);
	if (!*qp) {
		dapl_queue_empty(&ep->sq);
		dapl_queue_empty(&ep->rq);
		return DAT_SUCCESS;
	}
	dapl_mutex_unlock(&ep->lock);
	err = dapl_device_ops.reset_qp(ep->obj.ia->dev, *qp);
	if (err == EOPNOTSUPP)
		end_taken(ep, *qp);
	dapl_mutex_lock(&ep->lock);
	if (err == EOPNOTSUPP) {
		ret = make_qp(ep, qp);
		if (ret != DAT_SUCCESS)
			*qp = NULL;
		return ret;
	}
	if (!err)
		empty_queues(ep);
	return dapl_status(err, DAT_RESOURCE_TEP);
}

/* --- replacing the QP ------------------------------------------------------------------- */

/* A QP with its rings of records, set aside while another one takes its place. */
struct qp_rings {
	struct ibv_qp *qp;
	struct dapl_dto *sq_ring, *rq_ring;
	uint32_t sq_mask, rq_mask, max_inline, qpn;
};

static struct qp_rings rings_of(const struct dapl_ep *ep, struct ibv_qp *qp)
{
	return (struct qp_rings){ qp, ep->sq.ring, ep->rq.ring, ep->sq.mask, ep->rq.mask,
		ep->max_inline, ep->qpn };
}

/* Takes the QP and its rings away from posts, which then wait for ep->lock. Called with ep->lock held. */
static struct qp_rings detach_qp(struct dapl_ep *ep)
{
	struct qp_rings rings;

	assert_held(&ep->lock);
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	rings = rings_of(ep, ep->qp);
	__atomic_store_n(&ep->qp, NULL, __ATOMIC_RELEASE);
	ep->sq.ring = ep->rq.ring = NULL;
	ep->sq.room = ep->rq.room = 0;
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	return rings;
}

static void attach_qp(struct dapl_ep *ep, const struct qp_rings *rings)
{
	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	ep->sq.ring = rings->sq_ring;
	ep->sq.mask = rings->sq_mask;
	ep->rq.ring = rings->rq_ring;
	ep->rq.mask = rings->rq_mask;
	ep->max_inline = rings->max_inline;
	ep->qpn = rings->qpn;
	__atomic_store_n(&ep->qp, rings->qp, __ATOMIC_RELEASE);
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
	dapl_ep_set_room(ep);
}

/* Keeps receives that were also posted to another QP from completing as flushed. Called with ep->lock
 * held. */
static void silence_qp(struct dapl_ep *ep, const struct qp_rings *rings)
{
	assert_held(&ep->lock);
	if (rings->qp)
		dapl_evd_silence(dapl_ep_recv_evd(ep), ep, rings->qp);
}

static void end_detached(struct qp_rings *rings)
{
	if (rings->qp)
		dapl_device_ops.destroy_qp(rings->qp);
	free(rings->sq_ring);
	free(rings->rq_ring);
}

/* Copies the records of the receives to the new ring, and posts the receives to the new QP. */
static DAT_RETURN repost_receives(struct dapl_ep *ep, const struct qp_rings *old, struct ibv_qp *qp)
{
	struct dapl_queue *q = &ep->rq;
	int err;

	dapl_post_lock(&q->lock);
	for (uint32_t i = q->tail; i != q->head; i++)
		q->ring[i & q->mask] = old->rq_ring[i & old->rq_mask];
	err = dapl_saved_recv_repost(ep, qp, ep->attr.max_recv_iov);
	dapl_post_unlock(&q->lock);
	if (err == E2BIG)
		return BAD_PARAM(3);
	if (err == ENODATA)
		return dapl_status_bad_ep_state(ep->state);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

DAT_RETURN dapl_ep_exchange_qp(struct dapl_ep *ep)
{
	struct qp_rings old = detach_qp(ep), new;
	struct ibv_qp *qp = NULL;
	DAT_RETURN ret = make_qp(ep, &qp);

	if (ret == DAT_SUCCESS)
		ret = repost_receives(ep, &old, qp);
	new = rings_of(ep, qp);
	if (ret != DAT_SUCCESS) {
		silence_qp(ep, &new);
		attach_qp(ep, &old);
	} else {
		silence_qp(ep, &old);
		attach_qp(ep, &new);
	}
	dapl_mutex_unlock(&ep->lock);
	end_detached(ret == DAT_SUCCESS ? &old : &new);
	dapl_mutex_lock(&ep->lock);
	return ret;
}
