/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw_below.c - see siw_below.h. */
#include "dapl/verbs/siw.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/siw_below.h"

pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t request_came = PTHREAD_COND_INITIALIZER;
struct posted posted[256];
unsigned posts;
struct ibv_wc cq_entries[64];
int cq_count, refuse, cq_in_use;
static int destroyed;

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct posted *p = &posted[posts];
	int err = refuse;

	refuse = 0;
	if (err)
		*bad = wr;
	if (err && err != -1)
		return err;
	pthread_mutex_lock(&device_lock);
	p->wr = *wr;
	if (wr->num_sge)
		p->sge = wr->sg_list[0];
	if (wr->send_flags & IBV_SEND_INLINE)
		memcpy(p->bytes, (void *)(uintptr_t)p->sge.addr, p->sge.length);
	posts++;
	pthread_cond_broadcast(&request_came);
	pthread_mutex_unlock(&device_lock);
	return err;
}

static int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	pthread_mutex_lock(&device_lock);
	got = cq_count < n ? cq_count : n;
	memcpy(wc, cq_entries, got * sizeof *wc);
	cq_count -= got;
	memmove(cq_entries, cq_entries + got, cq_count * sizeof *wc);
	pthread_mutex_unlock(&device_lock);
	return got;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	destroyed++;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	int err = cq_in_use;

	cq_in_use = 0;
	destroyed += !err;
	return err;
}

static struct ibv_context context;
struct ibv_cq cq = { .context = &context };
struct ibv_qp qp = { .context = &context, .send_cq = &cq, .recv_cq = &cq, .qp_num = 7 };
uint8_t memory[2 * PAGE] __attribute__((aligned(4096)));

int siw_begin(void **state)
{
	struct ibv_qp_init_attr attr = { .cap = {
		.max_send_wr = DEPTH, .max_send_sge = 2, .max_inline_data = 32 } };

	posts = cq_count = destroyed = refuse = cq_in_use = 0;
	context.ops.post_send = fake_post_send;
	context.ops.poll_cq = fake_poll_cq;
	hw_siw_adopt(&context);
	return hw_siw_cq_add(&cq) || hw_siw_qp_add(&qp, &attr);
}

int siw_end(void **state) { return hw_siw_qp_destroy(&qp) || hw_siw_cq_destroy(&cq) || destroyed != 2; }

int post_at(uint64_t id, enum ibv_wr_opcode opcode, unsigned flags, void *at, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = length, .lkey = 5 };
	struct ibv_send_wr wr = { .wr_id = id, .opcode = opcode, .send_flags = flags,
		.sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)at;
	return ibv_post_send(&qp, &wr, &bad);
}

void post(uint64_t id, enum ibv_wr_opcode opcode, unsigned flags)
{
	assert_int_equal(post_at(id, opcode, flags, memory, 100), 0);
}

void reads(uint64_t id) { post(id, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED); }
void sends(uint64_t id) { post(id, IBV_WR_SEND, IBV_SEND_SIGNALED); }

/* Completes post number i. With `device_lock` held: the timer of held requests polls the CQ on the service thread. */
void complete_locked(unsigned i, enum ibv_wc_status status)
{
	cq_entries[cq_count++] = (struct ibv_wc){ .wr_id = posted[i].wr.wr_id, .status = status,
		.opcode = posted[i].wr.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_SEND };
}

void complete_with(unsigned i, enum ibv_wc_status status)
{
	pthread_mutex_lock(&device_lock);
	complete_locked(i, status);
	pthread_mutex_unlock(&device_lock);
}

void complete(unsigned i) { complete_with(i, IBV_WC_SUCCESS); }

void handed_out(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
}

void nothing_handed_out(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), 0);
}
