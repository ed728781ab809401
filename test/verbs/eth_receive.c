/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_receive.c - receive queues of raw QPs in place of a device's: those of the QPs themselves, and work queues
 * with the tables that name them. Which queue gets a frame is eth.c's matter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "eth.h"

void fake_receives_open(struct receives *r, uint32_t max_wr, uint32_t max_sge, struct ibv_cq *cq)
{
	CHECK(max_sge <= MAX_SGE);
	r->max_wr = max_wr;
	r->max_sge = max_sge;
	r->ring = calloc(max_wr ? max_wr : 1, sizeof *r->ring);
	r->queue = fake_queue(cq);
	r->queue->users++;
	r->wq.state = IBV_WQS_RESET;
}

void fake_receives_close(struct receives *r)
{
	CHECK(!r->tables);
	r->queue->users--;
	free(r->ring);
}

static void flush(struct receives *r)
{
	for (; r->taken != r->posted; r->taken++) {
		struct done done = { .wc = { .wr_id = r->ring[r->taken % r->max_wr].wr_id,
			.status = IBV_WC_WR_FLUSH_ERR, .qp_num = r->wq.wq_num } };

		fake_complete(r->queue, &done);
	}
}

void fake_receives_to_state(struct receives *r, enum ibv_wq_state state)
{
	r->wq.state = state;
	if (state == IBV_WQS_ERR)
		flush(r);
	if (state == IBV_WQS_RESET)
		r->taken = r->posted;
}

int fake_receives_post(struct receives *r, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		struct receive *to = &r->ring[r->posted % r->max_wr];

		*bad = wr;
		CHECK(r->wq.state != IBV_WQS_RESET && wr->num_sge <= (int)r->max_sge);
		if (r->posted - r->taken == r->max_wr) {
			err = ENOMEM;
			break;
		}
		*to = (struct receive){ .wr_id = wr->wr_id, .n = wr->num_sge };
		for (int i = 0; i < wr->num_sge; i++) {
			CHECK(wr->sg_list[i].lkey && wr->sg_list[i].length);
			to->sge[i] = wr->sg_list[i];
		}
		r->posted++;
	}
	if (r->wq.state == IBV_WQS_ERR)
		flush(r);
	return err;
}

/* A frame that exceeds its receive ends the queue. */
void fake_receives_fill(struct receives *r, const uint8_t *frame, size_t length, uint32_t tag)
{
	const struct receive *to = &r->ring[r->taken % (r->max_wr ? r->max_wr : 1)];
	struct done done = { .wc = { .wr_id = to->wr_id, .opcode = IBV_WC_RECV, .qp_num = r->wq.wq_num },
		.stamp = fake_cycles(), .tag = tag };
	size_t at = 0;

	if (r->wq.state != IBV_WQS_RDY || r->taken == r->posted)
		return;
	r->taken++;
	if (fake_checksums_are_right(frame, length) && !fake_lacks("offloads"))
		done.wc.wc_flags = IBV_WC_IP_CSUM_OK;
	length += r->fcs ? FCS : 0;
	done.wc.byte_len = (uint32_t)length;
	for (int i = 0; i < to->n && at < length; i++) {
		size_t some = length - at < to->sge[i].length ? length - at : to->sge[i].length;

		memcpy((void *)(uintptr_t)to->sge[i].addr, frame + at, some);
		at += some;
	}
	if (at < length)
		done.wc.status = IBV_WC_LOC_LEN_ERR;
	fake_complete(r->queue, &done);
	if (at < length)
		fake_receives_to_state(r, IBV_WQS_ERR);
}

/* --- work queues ------------------------------------------------------------------------------- */

static int post_to_wq(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err;

	pthread_mutex_lock(&fake_lock);
	err = fake_receives_post((struct receives *)wq, wr, bad);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

struct ibv_wq *fake_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	static uint32_t numbers = 0x900000;
	struct receives *r;

	CHECK(attr->wq_type == IBV_WQT_RQ && attr->max_wr && attr->max_sge && attr->pd && attr->cq);
	CHECK(attr->comp_mask == (attr->create_flags ? IBV_WQ_INIT_ATTR_FLAGS : 0));
	CHECK(!attr->create_flags || (attr->create_flags == IBV_WQ_FLAGS_SCATTER_FCS && !fake_lacks("fcs")));
	if (fake_lacks("queues")) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	r = calloc(1, sizeof *r);
	r->wq = (struct ibv_wq){ .context = context, .pd = attr->pd, .cq = attr->cq, .wq_type = attr->wq_type,
		.post_recv = post_to_wq };
	pthread_mutex_lock(&fake_lock);
	r->wq.wq_num = numbers++;
	fake_receives_open(r, attr->max_wr, attr->max_sge, attr->cq);
	r->fcs = attr->create_flags;
	pthread_mutex_unlock(&fake_lock);
	return &r->wq;
}

int fake_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	CHECK(attr->attr_mask == IBV_WQ_ATTR_STATE);
	CHECK(attr->wq_state != IBV_WQS_RDY || wq->state == IBV_WQS_RESET);
	CHECK(attr->wq_state != IBV_WQS_ERR || wq->state != IBV_WQS_RESET);
	pthread_mutex_lock(&fake_lock);
	fake_receives_to_state((struct receives *)wq, attr->wq_state);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_destroy_wq(struct ibv_wq *wq)
{
	pthread_mutex_lock(&fake_lock);
	fake_receives_close((struct receives *)wq);	/* EBUSY if a table names it */
	pthread_mutex_unlock(&fake_lock);
	free(wq);
	return 0;
}

/* --- tables -------------------------------------------------------------------------------------- */

struct ibv_rwq_ind_table *fake_create_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr)
{
	uint32_t size = 1u << attr->log_ind_tbl_size;
	struct table *t;

	CHECK(!attr->comp_mask && size <= MAX_TABLE);
	t = calloc(1, sizeof *t + size * sizeof *t->queues);
	t->table.context = context;
	t->size = size;
	pthread_mutex_lock(&fake_lock);
	for (uint32_t i = 0; i < size; i++) {
		t->queues[i] = (struct receives *)attr->ind_tbl[i];
		t->queues[i]->tables++;
	}
	pthread_mutex_unlock(&fake_lock);
	return &t->table;
}

int fake_destroy_table(struct ibv_rwq_ind_table *table)
{
	struct table *t = (struct table *)table;

	pthread_mutex_lock(&fake_lock);
	CHECK(!t->users);	/* EBUSY */
	for (uint32_t i = 0; i < t->size; i++)
		t->queues[i]->tables--;
	pthread_mutex_unlock(&fake_lock);
	free(t);
	return 0;
}
