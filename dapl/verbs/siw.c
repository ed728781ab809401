/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.c - a send queue in front of the one of the kernel's Soft-iWARP (seen in Linux 6.1).
 *
 * A siw queue pair transmits one request at a time. A request that waits (with a fence, for RDMA
 * reads to be answered; or a read, when as many are out as the peer allows) occupies the
 * transmitter, and the answers to the peer's reads wait behind it. When both ends wait, neither
 * gets its answers: the connection stands still for ever. And requests complete when they are sent,
 * reads when they are answered, so that without a fence completions overtake those of reads.
 *
 * So the kernel never gets a request that would have to wait, and no fence: such requests, and
 * those behind them, are held here and posted when reads complete. Completions that overtook a
 * read are held, too, and handed out in the order of the posts. Each poll of the CQ does both. While
 * requests are held, a timer polls as well, because a consumer may wait for something else.
 *
 * When siw flushes, it may complete a read twice; the second completion is dropped here.
 *
 * A payload of up to SHORT bytes in one segment that lies on two pages is sent with wrong bytes: as
 * many as lie on the second page are taken from the first, and the other way round. A send or an
 * RDMA write of that kind is inlined, which siw copies correctly. An RDMA read of such bytes at the
 * peer, which may be a siw, is split where the page ends, and what is posted behind it is held until
 * its second part is answered.
 *
 * Locks: a CQ's lock guards the CQ and all queue pairs that send to it; table_lock is innermost. */
#include "siw.h"
#include "common/bits.h"
#include "hw.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 16,		/* completions of one poll */
	BUCKETS = 256,
	HELD_POLL_US = 1000,	/* between two looks of the timer */
	SHORT = 32,		/* bytes; siw puts no more behind a header */
	PAGE = 4096,		/* bytes; the peer's pages are this large, or a multiple */
};

enum request_state { REQUEST_HELD, REQUEST_POSTED, REQUEST_COMPLETE };

/* A request; its address is the wr_id that the kernel sees. */
struct request {
	struct siw_qp *qp;
	uint32_t index;			/* place in the queue, counted from the first post */
	enum request_state state;
	bool is_read, signaled;		/* signaled: its user wants the completion */
	uint64_t wr_id;			/* its user's */
	struct ibv_send_wr wr;		/* held or split: the whole request, with sge and data */
	uint32_t rest;			/* bytes of a split read that are not posted yet */
	struct ibv_sge *sge;
	uint8_t *data;			/* of an inline request */
	struct ibv_wc wc;		/* complete */
};

/* Found in the table by the address of the verbs object. */
struct entry {
	const void *object;
	struct entry *next;
};

struct siw_cq {
	struct entry entry;		/* first */
	struct ibv_cq *cq;
	struct dapl_mutex lock;
	struct ibv_wc *ready;		/* a ring: completions in the order to hand out */
	uint32_t head, count, size;	/* size is a power of two */
	uint32_t held;			/* requests of all its queue pairs that have not ended */
	uint32_t sends;			/* depths of its queue pairs: one completion may let all go */
	bool watching;			/* the timer is started */
	struct dapl_timer timer;
};

/* Requests [tail, next_held) are posted or complete, [next_held, head) are held. */
struct siw_qp {
	struct entry entry;		/* first */
	struct ibv_qp *qp;
	struct siw_cq *cq;
	uint32_t head, next_held, tail;
	uint32_t done_to;		/* requests before this one are transmitted */
	uint32_t depth, mask;
	uint32_t reads_out, max_reads;
	uint32_t max_sge, max_inline;
	bool signal_all;		/* sq_sig_all: every request has a completion */
	struct request *split;		/* a split read that is out: all others wait */
	bool failed;			/* a failure was handed out: what follows is flushed */
	bool ended;			/* the connection is: nothing is held any more */
	bool over;			/* nothing is handed out any more */
	struct request *ring;
	struct ibv_sge *sges;
	uint8_t *data;
};

static struct dapl_mutex table_lock = DAPL_MUTEX_INIT(RANK_SIW_TABLE);	/* guards what follows */
static struct entry *table[BUCKETS];
/* libsiw's, the same for all contexts; written once, before the first object is made */
static int (*device_post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int (*device_poll_cq)(struct ibv_cq *, int, struct ibv_wc *);

/* --- the table ------------------------------------------------------------------------------ */

static struct entry **bucket_of(const void *object)
{
	uint64_t x = (uintptr_t)object;

	return &table[(x * 0x9e3779b97f4a7c15ull >> 32) % BUCKETS];
}

static struct entry *find(const void *object)
{
	struct entry *e;

	dapl_mutex_lock(&table_lock);
	for (e = *bucket_of(object); e && e->object != object; e = e->next)
		;
	dapl_mutex_unlock(&table_lock);
	return e;
}

static void enter(struct entry *e, const void *object)
{
	struct entry **bucket = bucket_of(object);

	e->object = object;
	dapl_mutex_lock(&table_lock);
	e->next = *bucket;
	*bucket = e;
	dapl_mutex_unlock(&table_lock);
}

static struct entry *take_out(const void *object)
{
	struct entry **e, *found;

	dapl_mutex_lock(&table_lock);
	for (e = bucket_of(object); *e && (*e)->object != object; e = &(*e)->next)
		;
	found = *e;
	if (found)
		*e = found->next;
	dapl_mutex_unlock(&table_lock);
	return found;
}

static struct request *request_at(struct siw_qp *q, uint32_t index)
{
	return &q->ring[index & q->mask];
}

/* --- completions; cq->lock held ------------------------------------------------------------- */

/* Room for `more` completions. */
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

/* There is room. */
static void hand_out(struct siw_cq *cq, const struct ibv_wc *wc)
{
	cq->ready[(cq->head + cq->count++) & (cq->size - 1)] = *wc;
}

/* Only the first failure has a cause of its own. Of a request that siw begins to transmit on the
 * connection that has ended, it reports a QP operation error. */
static void complete(struct siw_qp *q, struct request *r)
{
	if (q->failed)
		r->wc.status = IBV_WC_WR_FLUSH_ERR;
	else if (r->wc.status != IBV_WC_SUCCESS)
		q->failed = true;
	if (r->signaled || r->wc.status != IBV_WC_SUCCESS)
		hand_out(q->cq, &r->wc);
}

/* Hands out what is complete, in order. An unsignaled request has no completion: a later one
 * tells that it was transmitted. */
static void advance(struct siw_qp *q)
{
	for (; !q->over && q->tail != q->next_held; q->tail++) {
		struct request *r = request_at(q, q->tail);
		bool transmitted = !r->is_read && !r->signaled &&
			(int32_t)(q->done_to - q->tail) > 0;

		if (r->state == REQUEST_COMPLETE)
			complete(q, r);
		else if (!transmitted)
			break;
	}
}

/* --- posting; cq->lock held ------------------------------------------------------------------- */

static bool must_wait(const struct siw_qp *q, const struct ibv_send_wr *wr)
{
	if (q->ended)
		return false;
	if (q->split)
		return true;
	if (wr->send_flags & IBV_SEND_FENCE)
		return q->reads_out > 0;
	return wr->opcode == IBV_WR_RDMA_READ && q->reads_out >= q->max_reads;
}

static bool is_short_on_two_pages(uint64_t addr, uint32_t length)
{
	return length <= SHORT && addr % PAGE + length > PAGE;
}

/* One part of a read, the whole for most. `from` is its first byte. */
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
	return device_post_send(q->qp, &wr, &bad);
}

/* Splits what siw would answer with wrong bytes. */
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

/* -1: the device told no error of this request, which stands in its queue. */
static int post_to_device(struct siw_qp *q, struct request *r, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr own = *wr, *bad;
	bool odd = wr->num_sge == 1 &&
		is_short_on_two_pages(r->is_read ? wr->wr.rdma.remote_addr : wr->sg_list->addr,
				      wr->sg_list->length);
	int err;

	own.wr_id = (uintptr_t)r;
	own.next = NULL;
	own.send_flags &= ~IBV_SEND_FENCE;
	if (r->is_read)
		own.send_flags |= IBV_SEND_SIGNALED;
	else if (odd)
		own.send_flags |= IBV_SEND_INLINE;
	r->state = REQUEST_POSTED;
	r->rest = 0;
	err = r->is_read && odd ? split_read(q, r, wr) : device_post_send(q->qp, &own, &bad);
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

static int post_one(struct siw_qp *q, struct ibv_send_wr *wr)
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

/* The connection has failed. What is held is posted no more: core flushes what did not complete
 * (no_late_flush). */
static void end_queue(struct siw_qp *q)
{
	if (!q->ended)
		q->cq->held -= q->head - q->next_held;
	q->ended = true;
}

/* Posts of the held requests what may go. */
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
		end_queue(q);
	}
}

/* The first part of a read has come. The second has the device to itself: what was posted before
 * has left its queue. False: it could not be posted. */
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

	if (q->over || r->state != REQUEST_POSTED)	/* over, or a read's second completion */
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
		end_queue(q);
	advance(q);
	post_held(q);
	advance(q);
}

/* Takes the device's completions until `wanted` are ready. False: out of memory. */
static bool pull(struct siw_cq *cq, uint32_t wanted)
{
	struct ibv_wc wc[BATCH];

	while (cq->count < wanted) {
		int n;

		if (!make_room(cq, BATCH + cq->sends))
			return false;
		n = device_poll_cq(cq->cq, BATCH, wc);
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
	pull(cq, UINT32_MAX);
	watch_held(cq);
	dapl_mutex_unlock(&cq->lock);
}

/* --- in place of libsiw's functions --------------------------------------------------------- */

static int siw_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct siw_qp *q = (struct siw_qp *)find(qp);
	int err = 0;

	if (!q)
		return device_post_send(qp, wr, bad);
	dapl_mutex_lock(&q->cq->lock);
	for (; wr && !err; wr = wr->next) {
		err = post_one(q, wr);
		if (err)
			*bad = wr;
	}
	watch_held(q->cq);
	dapl_mutex_unlock(&q->cq->lock);
	return err;
}

static int siw_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct siw_cq *cq = (struct siw_cq *)find(ibv);
	int taken;

	if (!cq)
		return device_poll_cq(ibv, n, wc);
	dapl_mutex_lock(&cq->lock);
	pull(cq, (uint32_t)n);
	for (taken = 0; taken < n && cq->count; taken++) {
		wc[taken] = cq->ready[cq->head];
		cq->head = (cq->head + 1) & (cq->size - 1);
		cq->count--;
	}
	watch_held(cq);
	dapl_mutex_unlock(&cq->lock);
	return taken;
}

void hw_siw_adopt(struct ibv_context *verbs)
{
	dapl_mutex_lock(&table_lock);
	if (!device_post_send) {
		device_post_send = verbs->ops.post_send;
		device_poll_cq = verbs->ops.poll_cq;
	}
	dapl_mutex_unlock(&table_lock);
	verbs->ops.post_send = siw_post_send;
	verbs->ops.poll_cq = siw_poll_cq;
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_adopted(const struct ibv_context *verbs)
{
	return verbs->ops.poll_cq == siw_poll_cq;
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
	enter(&cq->entry, ibv);
	return 0;
}

int hw_siw_cq_destroy(struct ibv_cq *ibv)
{
	struct siw_cq *cq = (struct siw_cq *)take_out(ibv);
	int rc;

	if (cq)
		dapl_timer_drain(&cq->timer);
	rc = ibv_destroy_cq(ibv);
	if (!cq)
		return rc;
	if (rc) {
		enter(&cq->entry, ibv);
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

/* The ring is twice the queue: no request takes the place of one whose second completion may
 * still come. */
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
	struct siw_cq *cq = (struct siw_cq *)find(ibv->send_cq);
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
	enter(&q->entry, ibv);
	return 0;
}

void hw_siw_qp_end(struct ibv_qp *ibv)
{
	struct siw_qp *q = (struct siw_qp *)find(ibv);

	if (!q)
		return;
	dapl_mutex_lock(&q->cq->lock);
	end_queue(q);
	pull(q->cq, UINT32_MAX);
	q->over = true;
	dapl_mutex_unlock(&q->cq->lock);
}

int hw_siw_qp_destroy(struct ibv_qp *ibv)
{
	struct siw_qp *q = (struct siw_qp *)take_out(ibv);
	bool drained;
	int rc = ibv_destroy_qp(ibv);

	if (!q)
		return rc;
	if (rc) {
		enter(&q->entry, ibv);
		return rc;
	}
	dapl_mutex_lock(&q->cq->lock);
	end_queue(q);
	q->over = true;
	drained = pull(q->cq, UINT32_MAX);
	q->cq->sends -= q->depth;
	dapl_mutex_unlock(&q->cq->lock);
	if (drained)	/* else completions in the device's CQ still name its requests */
		free_qp(q);
	return 0;
}

void hw_siw_qp_reads(struct ibv_qp *ibv, unsigned reads)
{
	struct siw_qp *q = (struct siw_qp *)find(ibv);

	if (!q || !reads)
		return;
	dapl_mutex_lock(&q->cq->lock);
	if (reads < q->max_reads)
		q->max_reads = reads;
	dapl_mutex_unlock(&q->cq->lock);
}
