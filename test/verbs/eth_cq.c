/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_cq.c - completions of raw QPs in place of a device's: they join those of a CQ of the real device, or come from an
 * extended CQ. And the clock that stamps them. eth.c says how a completion wakes. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "eth.h"

#define BELL_WR 0xbe11be11be11be11ull
enum { CQ_SIZE = 32768 };

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
int (*fake_real_poll)(struct ibv_cq *, int, struct ibv_wc *);
int (*fake_real_notify)(struct ibv_cq *, int);
int (*fake_real_post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static struct queue *queues;

/* --- clock --------------------------------------------------------------------------------- */

uint64_t fake_cycles(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return ((uint64_t)now.tv_sec * 300000000ull + (uint64_t)now.tv_nsec * 3 / 10 + 77777) &
	       ((1ull << CLOCK_BITS) - 1);
}

int fake_query_rt(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	CHECK(values->comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	values->raw_clock = (struct timespec){ .tv_nsec = (long)fake_cycles() };
	return 0;
}

/* --- completions; lock held ------------------------------------------------------------------ */

static struct queue *find_queue(const struct ibv_cq *cq)
{
	struct queue *q;

	for (q = queues; q && q->cq != cq && (const void *)&q->ex != (const void *)cq; q = q->next)
		;
	return q;
}

/* A QP of the real device in ERR: what is sent to it completes as flushed. */
static struct ibv_qp *make_bell(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = REAL(ibv_create_qp)(pd, &init);

	CHECK(qp && !REAL(ibv_modify_qp)(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					 IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!REAL(ibv_modify_qp)(qp, &attr, IBV_QP_STATE));
	return qp;
}

struct queue *fake_queue(struct ibv_cq *cq)
{
	struct queue *q = find_queue(cq);

	if (!q) {
		q = calloc(1, sizeof *q);
		q->cq = cq;
		q->next = queues;
		queues = q;
	}
	if (!q->ring)
		q->ring = calloc(CQ_SIZE, sizeof *q->ring);
	if (!q->bell && q->cq->channel) {
		q->pd = ibv_alloc_pd(q->cq->context);
		CHECK(q->pd);
		q->bell = make_bell(q->pd, q->cq);
		q->notify = true;	/* it may have been armed before it was ours */
	}
	return q;
}

void fake_complete(struct queue *q, const struct done *done)
{
	struct ibv_send_wr wr = { .wr_id = BELL_WR, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	CHECK(q->tail - q->head < CQ_SIZE);
	q->ring[q->tail++ % CQ_SIZE] = *done;
	if (q->notify && q->bell)
		CHECK(!fake_real_post_send(q->bell, &wr, &bad));
	q->notify = false;
}

/* Polls the real device without the bells. */
static int poll_real(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int taken = n > 0 ? fake_real_poll(cq, n, wc) : 0, kept = 0;

	for (int i = 0; i < taken; i++)
		if (wc[i].wr_id != BELL_WR)
			wc[kept++] = wc[i];
	return taken < 0 ? taken : kept;
}

int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct queue *q;
	int taken = 0, others;

	pthread_mutex_lock(&fake_lock);
	q = find_queue(cq);
	if (!q) {
		pthread_mutex_unlock(&fake_lock);
		return fake_real_poll(cq, n, wc);
	}
	CHECK(!q->extended);	/* an extended CQ is polled by its own functions */
	while (q->ring && taken < n && q->head != q->tail)
		wc[taken++] = q->ring[q->head++ % CQ_SIZE].wc;
	others = poll_real(q->cq, n - taken, wc + taken);
	pthread_mutex_unlock(&fake_lock);
	return others > 0 ? taken + others : taken;
}

int fake_notify(struct ibv_cq *cq, int solicited)
{
	struct queue *q;
	int err;

	pthread_mutex_lock(&fake_lock);
	q = find_queue(cq);
	err = fake_real_notify(q ? q->cq : cq, solicited);
	if (q)
		q->notify = true;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

/* --- extended CQs -------------------------------------------------------------------------------- */

static struct queue *queue_of(struct ibv_cq_ex *ex)
{
	return (struct queue *)ex;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct queue *q = queue_of(ex);
	int err = ENOENT;

	pthread_mutex_lock(&fake_lock);
	if (q->ring && q->head != q->tail) {
		q->now = q->ring[q->head++ % CQ_SIZE];
		ex->status = q->now.wc.status;
		ex->wr_id = q->now.wc.wr_id;
		err = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct ibv_wc bells[16];

	CHECK(!attr->comp_mask);
	while (poll_real(queue_of(ex)->cq, 16, bells) > 0)
		;
	return next_poll(ex);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	queue_of(ex)->now.wc.wr_id = ~0ull;	/* not to be read any more */
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.wc.byte_len;
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.wc.wc_flags;
}

static uint64_t read_stamp(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.stamp;
}

static uint32_t read_tag(struct ibv_cq_ex *ex)
{
	return queue_of(ex)->now.tag;
}

struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct queue *q;

	CHECK(!attr->comp_mask && !attr->flags && attr->cqe);
	CHECK(!(attr->wc_flags & ~(uint64_t)(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					     IBV_WC_EX_WITH_FLOW_TAG)));
	if (fake_lacks("extended") || (fake_lacks("tags") && attr->wc_flags & IBV_WC_EX_WITH_FLOW_TAG)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	q = calloc(1, sizeof *q);
	q->cq = REAL(ibv_create_cq)(context, 64, attr->cq_context, attr->channel, (int)attr->comp_vector);
	CHECK(q->cq);
	q->extended = true;
	q->wc_flags = attr->wc_flags;
	q->ex = (struct ibv_cq_ex){ .context = context, .channel = attr->channel, .cq_context = attr->cq_context,
		.cqe = (int)attr->cqe, .start_poll = start_poll, .next_poll = next_poll, .end_poll = end_poll,
		.read_opcode = read_opcode, .read_vendor_err = read_vendor_err, .read_wc_flags = read_wc_flags,
		.read_byte_len = read_byte_len };
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		q->ex.read_completion_ts = read_stamp;
	if (attr->wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		q->ex.read_flow_tag = read_tag;
	pthread_mutex_lock(&fake_lock);
	q->next = queues;
	queues = q;
	pthread_mutex_unlock(&fake_lock);
	return &q->ex;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct queue *q = NULL;
	int err;

	pthread_mutex_lock(&fake_lock);
	for (struct queue **at = &queues; *at; at = &(*at)->next)
		if (*at == find_queue(cq)) {
			q = *at;
			CHECK(!q->users);	/* EBUSY */
			*at = q->next;
			break;
		}
	pthread_mutex_unlock(&fake_lock);
	if (q && q->bell) {
		REAL(ibv_destroy_qp)(q->bell);
		ibv_dealloc_pd(q->pd);
	}
	err = REAL(ibv_destroy_cq)(q ? q->cq : cq);
	if (q) {
		free(q->ring);
		free(q);
	}
	return err;
}
