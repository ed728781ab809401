/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw_queue.c - holds, splits and posts the requests of siw queue pairs, and orders their completions
 * (siw_queue.h). */
#include "siw_queue.h"
#include "common/bits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 16,		/* completions of one poll */
	SHORT = 32,		/* bytes: siw sends no longer payload together with its header */
	PAGE = 4096,		/* bytes; the peer's pages are this large, or a multiple */
};

struct siw_device siw_device;

static struct request *request_at(struct siw_qp *q, uint32_t index)
{
	return &q->ring[index & q->mask];
}

/* --- completions ------------------------------------------------------------- */

/* Makes room for `more` completions. Returns false if there is no memory. */
static bool make_room(struct siw_cq *cq, uint32_t more)
{
	uint32_t size = round_up_power_of_two(cq->count + more);
	struct ibv_wc *ready;

	if (size <= cq->size)
		return true;
	ready = malloc(size * sizeof *ready);
	if (!ready)
		return false;
	for (uint32_t i = 0; i < cq->count; i++)
		ready[i] = cq->ready[(cq->head + i) & (cq->size - 1)];
	free(cq->ready);
	cq->ready = ready;
	cq->size = size;
	cq->head = 0;
	return true;
}

/* The caller has made room. */
static void hand_out(struct siw_cq *cq, const struct ibv_wc *wc)
{
	cq->ready[(cq->head + cq->count++) & (cq->size - 1)] = *wc;
}

/* Only the first failure has a cause of its own; later requests are flushed. For a request that siw begins
 * to transmit after the connection has ended, it reports a QP operation error. */
static void complete(struct siw_qp *q, struct request *r)
{
	if (q->failed)
		r->wc.status = IBV_WC_WR_FLUSH_ERR;
	else if (r->wc.status != IBV_WC_SUCCESS)
		q->failed = true;
	if (r->signaled || r->wc.status != IBV_WC_SUCCESS)
		hand_out(q->cq, &r->wc);
}

/* Hands out what is complete, in order. An unsignaled request has no completion: that of a later request
 * shows that it was transmitted. */
static void advance(struct siw_qp *q)
{
	for (; !q->closed && q->tail != q->next_held; q->tail++) {
		struct request *r = request_at(q, q->tail);
		bool transmitted = !r->is_read && !r->signaled && (int32_t)(q->done_to - q->tail) > 0;

		if (r->state == REQUEST_COMPLETE)
			complete(q, r);
		else if (!transmitted)
			break;
	}
}

/* --- posting ------------------------------------------------------------------- */

static bool must_wait(const struct siw_qp *q, const struct ibv_send_wr *wr)
{
	if (q->ended)
		return false;
	if (q->split)
		return true;
	if (wr->send_flags & IBV_SEND_FENCE)
		return q->reads_out > 0;	/* DTO-28 */
	return wr->opcode == IBV_WR_RDMA_READ && q->reads_out >= q->max_reads;
}

static bool is_short_on_two_pages(uint64_t addr, uint32_t length)
{
	return length <= SHORT && addr % PAGE + length > PAGE;
}

/* Posts `length` bytes of a read, from the byte `from` on. */
static int post_read(struct siw_qp *q, struct request *r, uint32_t from, uint32_t length)
{
	struct ibv_sge sge = r->sge[0];
	struct ibv_send_wr wr = r->wr, *bad;

	sge.addr += from;
	sge.length = length;
	wr.wr_id = (uintptr_t)r;
	wr.next = NULL;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr += from;
	wr.send_flags = (wr.send_flags & ~IBV_SEND_FENCE) | IBV_SEND_SIGNALED;
	return siw_device.post_send(q->qp, &wr, &bad);
}

/* Posts the first part of a read that siw would answer with wrong bytes. */
static int split_read(struct siw_qp *q, struct request *r, const struct ibv_send_wr *wr)
{
	uint32_t first = PAGE - wr->wr.rdma.remote_addr % PAGE;
	int err;

	if (wr != &r->wr) {
		r->wr = *wr;
		r->sge[0] = wr->sg_list[0];
	}
	r->rest = r->sge[0].length - first;
	err = post_read(q, r, 0, first);
	if (!err || err == -1)
		q->split = r;
	return err;
}

/* Returns -1 if the device returned -1, although the request is in its queue. */
static int post_to_device(struct siw_qp *q, struct request *r, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr own = *wr, *bad;
	bool crosses_page =
		wr->num_sge == 1 &&
		is_short_on_two_pages(r->is_read ? wr->wr.rdma.remote_addr : wr->sg_list->addr, wr->sg_list->length);
	int err;

	own.wr_id = (uintptr_t)r;
	own.next = NULL;
	own.send_flags &= ~IBV_SEND_FENCE;
	if (r->is_read)
		own.send_flags |= IBV_SEND_SIGNALED;
	else if (crosses_page)
		own.send_flags |= IBV_SEND_INLINE;
	r->state = REQUEST_POSTED;
	r->rest = 0;
	err = r->is_read && crosses_page ? split_read(q, r, wr) : siw_device.post_send(q->qp, &own, &bad);
	if ((!err || err == -1) && r->is_read)
		q->reads_out++;
	return err;
}

static int hold(struct siw_qp *q, struct request *r, const struct ibv_send_wr *wr)
{
	uint32_t length = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		r->sge[i] = wr->sg_list[i];
	r->wr = *wr;
	r->wr.sg_list = r->sge;
	if (wr->send_flags & IBV_SEND_INLINE) {
		for (int i = 0; i < wr->num_sge; length += wr->sg_list[i++].length) {
			if (wr->sg_list[i].length > q->max_inline - length)
				return EINVAL;
			memcpy(r->data + length, (void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
		}
		r->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)r->data, .length = length };
		r->wr.num_sge = 1;
	}
	r->state = REQUEST_HELD;
	q->cq->held += !q->ended;
	return 0;
}

int siw_queue_post(struct siw_qp *q, struct ibv_send_wr *wr)
{
	struct request *r = request_at(q, q->head);
	bool holds = q->next_held != q->head || must_wait(q, wr);
	int err;

	if (q->head - q->tail >= q->depth)
		return ENOMEM;
	r->index = q->head;
	r->wr_id = wr->wr_id;
	r->is_read = wr->opcode == IBV_WR_RDMA_READ;
	r->signaled = q->signal_all || (wr->send_flags & IBV_SEND_SIGNALED);
	err = holds ? hold(q, r, wr) : post_to_device(q, r, wr);
	if (err && err != -1)
		return err;
	q->head++;
	if (!holds)
		q->next_held = q->head;
	return err;
}

void siw_queue_end(struct siw_qp *q)
{
	if (!q->ended)
		q->cq->held -= q->head - q->next_held;
	q->ended = true;
}

/* Posts the held requests that need not wait any more, in order. */
static void post_held(struct siw_qp *q)
{
	while (q->next_held != q->head && !q->ended) {
		struct request *r = request_at(q, q->next_held);
		int err;

		if (must_wait(q, &r->wr))
			return;
		q->next_held++;
		q->cq->held--;
		err = post_to_device(q, r, &r->wr);
		if (!err || err == -1)
			continue;
		r->state = REQUEST_COMPLETE;
		r->wc = (struct ibv_wc){ .wr_id = r->wr_id, .qp_num = q->qp->qp_num,
			.status = IBV_WC_LOC_QP_OP_ERR };
		siw_queue_end(q);
	}
}

/* Posts the second part of a read whose first part was answered. No other request is in the device's queue:
 * all that were posted before are transmitted. Returns false if it could not be posted. */
static bool post_rest(struct siw_qp *q, struct request *r)
{
	int err = post_read(q, r, r->sge[0].length - r->rest, r->rest);

	if (err && err != -1)
		return false;
	r->rest = 0;
	return true;
}

/* The device has completed it. */
static void device_completed(struct request *r, const struct ibv_wc *wc)
{
	struct siw_qp *q = r->qp;

	if (q->closed || r->state != REQUEST_POSTED)	/* closed, or a read's second completion */
		return;
	if (r == q->split && wc->status == IBV_WC_SUCCESS && r->rest && !q->ended && post_rest(q, r))
		return;
	r->state = REQUEST_COMPLETE;
	r->wc = *wc;
	r->wc.wr_id = r->wr_id;
	if (r == q->split) {
		if (wc->status == IBV_WC_SUCCESS && r->rest)
			r->wc.status = IBV_WC_WR_FLUSH_ERR;
		q->split = NULL;
	}
	if (r->is_read)
		q->reads_out--;
	if ((int32_t)(r->index + 1 - q->done_to) > 0)
		q->done_to = r->index + 1;
	if (r->wc.status != IBV_WC_SUCCESS)
		siw_queue_end(q);
	advance(q);
	post_held(q);
	advance(q);
}

bool siw_queue_pull(struct siw_cq *cq, uint32_t wanted)
{
	struct ibv_wc wc[BATCH];

	while (cq->count < wanted) {
		int n;

		if (!make_room(cq, BATCH + cq->sends))
			return false;
		n = siw_device.poll_cq(cq->cq, BATCH, wc);
		if (n <= 0)
			return true;
		for (int i = 0; i < n; i++)
			if (wc[i].opcode & IBV_WC_RECV)
				hand_out(cq, &wc[i]);
			else
				device_completed((struct request *)(uintptr_t)wc[i].wr_id, &wc[i]);
	}
	return true;
}
