/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.c - puts the queues of siw_queue.h between core and the kernel's Soft-iWARP: the functions in place of
 * libsiw's, and the life of the queues beside that of the verbs objects. siw_queue.h says why.
 *
 * Each poll of a CQ posts held requests and hands out completions. While requests are held, a timer
 * polls as well, because a consumer may wait for something else.
 *
 * Locks: that of a CQ is taken here, for the functions of siw_queue.h; the table's is innermost. */
#include "siw.h"
#include "common/bits.h"
#include "common/container_of.h"
#include "siw_queue.h"
#include "tap.h"
#include <errno.h>
#include <stdlib.h>

enum { HELD_POLL_US = 1000 };	/* between two polls of the timer, microseconds */

/* --- progress without a poller -------------------------------------------------------------- */

static void held_timer(struct dapl_timer *timer);

static void watch_held(struct siw_cq *cq)
{
	if (!cq->held || cq->watching)
		return;
	cq->watching = true;
	dapl_timer_start(&cq->timer, HELD_POLL_US, held_timer);
}

static void held_timer(struct dapl_timer *timer)
{
	struct siw_cq *cq = container_of(timer, struct siw_cq, timer);

	dapl_mutex_lock(&cq->lock);
	cq->watching = false;
	siw_queue_pull(cq, UINT32_MAX);
	watch_held(cq);
	dapl_mutex_unlock(&cq->lock);
}

/* --- in place of libsiw's functions --------------------------------------------------------- */

static int siw_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct siw_qp *q = (struct siw_qp *)object_table_find(qp);
	int err = 0;

	if (!q)
		return siw_device.post_send(qp, wr, bad);
	dapl_mutex_lock(&q->cq->lock);
	for (; wr && !err; wr = wr->next) {
		err = siw_queue_post(q, wr);
		if (err)
			*bad = wr;
	}
	watch_held(q->cq);
	dapl_mutex_unlock(&q->cq->lock);
	return err;
}

static int siw_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct siw_cq *cq = (struct siw_cq *)object_table_find(ibv);
	int taken;

	if (!cq)
		return siw_device.poll_cq(ibv, n, wc);
	dapl_mutex_lock(&cq->lock);
	siw_queue_pull(cq, (uint32_t)n);
	for (taken = 0; taken < n && cq->count; taken++) {
		wc[taken] = cq->ready[cq->head];
		cq->head = (cq->head + 1) & (cq->size - 1);
		cq->count--;
	}
	watch_held(cq);
	dapl_mutex_unlock(&cq->lock);
	return taken;
}

/* Guards the device's functions; of the rank of the table's lock, and never held with it. */
static struct dapl_mutex adopt_lock = DAPL_MUTEX_INIT(RANK_OBJECT_TABLE);

void hw_siw_adopt(struct ibv_context *verbs)
{
	dapl_mutex_lock(&adopt_lock);
	if (!siw_device.post_send) {
		siw_device.post_send = verbs->ops.post_send;
		siw_device.poll_cq = verbs->ops.poll_cq;
	}
	dapl_mutex_unlock(&adopt_lock);
	verbs->ops.post_send = siw_post_send;
	verbs->ops.poll_cq = siw_poll_cq;
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_adopted(const struct ibv_context *verbs)
{
	return hw_tap_poll_below(verbs) == siw_poll_cq;
}

int hw_siw_cq_add(struct ibv_cq *ibv)
{
	struct siw_cq *cq;

	if (!is_adopted(ibv->context))
		return 0;
	cq = calloc(1, sizeof *cq);
	if (!cq)
		return ENOMEM;
	cq->cq = ibv;
	dapl_mutex_init(&cq->lock, RANK_SIW_CQ);
	object_table_add(&cq->entry, ibv);
	return 0;
}

int hw_siw_cq_destroy(struct ibv_cq *ibv)
{
	struct siw_cq *cq = (struct siw_cq *)object_table_remove(ibv);
	int rc;

	if (cq)
		dapl_timer_drain(&cq->timer);
	rc = ibv_destroy_cq(ibv);
	if (!cq)
		return rc;
	if (rc) {
		object_table_add(&cq->entry, ibv);
		dapl_mutex_lock(&cq->lock);
		cq->watching = false;	/* the timer was stopped above */
		watch_held(cq);
		dapl_mutex_unlock(&cq->lock);
		return rc;
	}
	free(cq->ready);
	free(cq);
	return 0;
}

static void free_qp(struct siw_qp *q)
{
	free(q->ring);
	free(q->sges);
	free(q->data);
	free(q);
}

/* The ring has twice the depth of the queue: so no request takes the place of one whose second completion
 * may still come. */
static bool make_requests(struct siw_qp *q)
{
	uint32_t n = round_up_power_of_two(2 * q->depth);

	q->mask = n - 1;
	q->ring = calloc(n, sizeof *q->ring);
	q->sges = calloc((size_t)n * q->max_sge, sizeof *q->sges);
	q->data = calloc(n, q->max_inline + 1);
	if (!q->ring || !q->sges || !q->data)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		q->ring[i].qp = q;
		q->ring[i].sge = q->sges + (size_t)i * q->max_sge;
		q->ring[i].data = q->data + (size_t)i * (q->max_inline + 1);
	}
	return true;
}

int hw_siw_qp_add(struct ibv_qp *ibv, const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	struct siw_cq *cq = (struct siw_cq *)object_table_find(ibv->send_cq);
	struct siw_qp *q;

	if (!cq)
		return 0;
	q = calloc(1, sizeof *q);
	if (!q)
		return ENOMEM;
	q->qp = ibv;
	q->cq = cq;
	q->depth = cap->max_send_wr;
	q->max_reads = UINT32_MAX;
	q->max_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	q->max_inline = cap->max_inline_data;
	q->signal_all = attr->sq_sig_all;
	if (!make_requests(q)) {
		free_qp(q);
		return ENOMEM;
	}
	dapl_mutex_lock(&cq->lock);
	cq->sends += q->depth;
	dapl_mutex_unlock(&cq->lock);
	object_table_add(&q->entry, ibv);
	return 0;
}

void hw_siw_qp_end(struct ibv_qp *ibv)
{
	struct siw_qp *q = (struct siw_qp *)object_table_find(ibv);

	if (!q)
		return;
	dapl_mutex_lock(&q->cq->lock);
	siw_queue_end(q);
	siw_queue_pull(q->cq, UINT32_MAX);
	q->closed = true;
	dapl_mutex_unlock(&q->cq->lock);
}

int hw_siw_qp_destroy(struct ibv_qp *ibv)
{
	struct siw_qp *q = (struct siw_qp *)object_table_remove(ibv);
	bool drained;
	int rc = ibv_destroy_qp(ibv);

	if (!q)
		return rc;
	if (rc) {
		object_table_add(&q->entry, ibv);
		return rc;
	}
	dapl_mutex_lock(&q->cq->lock);
	siw_queue_end(q);
	q->closed = true;
	drained = siw_queue_pull(q->cq, UINT32_MAX);
	q->cq->sends -= q->depth;
	dapl_mutex_unlock(&q->cq->lock);
	if (drained)	/* else completions in the device's CQ still name its requests */
		free_qp(q);
	return 0;
}

void hw_siw_qp_reads(struct ibv_qp *ibv, unsigned reads)
{
	struct siw_qp *q = (struct siw_qp *)object_table_find(ibv);

	if (!q || !reads)
		return;
	dapl_mutex_lock(&q->cq->lock);
	if (reads < q->max_reads)
		q->max_reads = reads;
	dapl_mutex_unlock(&q->cq->lock);
}
