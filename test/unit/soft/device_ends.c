/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_ends.c - see device_ends.h. */
#include "test/unit/soft/device_ends.h"
#include <arpa/inet.h>

const struct dapl_device_ops *const ops = &dapl_device_ops;
const struct options plain = { .device = "lo 0", .depth = 128, .sge = 8,
	.inlines = 256, .cqe = 4096, .reads = 4 };

/* --- upcalls ----------------------------------------------------------------------- */

struct upcall expect_up(enum upcall_kind kind, void *owner)
{
	struct upcall up = { 0 };

	if (!upcall_take(kind, owner, 10000, &up))
		fail_msg("upcall %d did not come", kind);
	return up;
}

void expect_no_up(enum upcall_kind kind, void *owner)
{
	struct upcall up;

	if (upcall_take(kind, owner, 50, &up))
		fail_msg("upcall %d came", kind);
}

/* --- one end ------------------------------------------------------------------------- */

struct ibv_qp *make_qp(struct end *e, const struct options *o)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = e, .send_cq = e->scq, .recv_cq = e->rcq, .srq = e->srq,
		.cap = { o->depth, o->depth, o->sge, o->sge, o->inlines },
		.qp_type = o->ud ? IBV_QPT_UD : IBV_QPT_RC, .sq_sig_all = o->sig_all,
	};
	struct ibv_qp *qp;

	OK(ops->create_qp(e->dev, e->pd, &attr, &qp));
	assert_true(attr.cap.max_send_wr >= (unsigned)o->depth);
	assert_true(attr.cap.max_inline_data >= (unsigned)o->inlines);
	return qp;
}

void open_end(struct end *e, const struct options *o)
{
	struct ibv_srq_init_attr srq = { .srq_context = e, .attr = { 64, o->sge, 0 } };

	memset(e, 0, sizeof *e);
	OK(ops->open(o->device, e, &e->dev));
	OK(ops->alloc_pd(e->dev, &e->pd));
	OK(ops->create_channel(e->dev, &e->channel));
	OK(ops->create_cq(e->dev, o->cqe, e, e->channel, &e->scq));
	OK(ops->create_cq(e->dev, o->cqe, e, e->channel, &e->rcq));
	if (o->srq)
		OK(ops->create_srq(e->pd, &srq, &e->srq));
	e->qp = make_qp(e, o);
	e->buf = aligned_alloc(PAGE, BUFFER);
	memset(e->buf, 0, BUFFER);
	OK(ops->reg_mr(e->pd, e->buf, BUFFER, ALL_ACCESS, NULL, &e->mr));
}

void release_conn(struct end *e)
{
	if (!e->conn)
		return;
	ops->release(e->conn);
	e->conn = NULL;
	expect_up(RELEASED, e);
}

void close_end(struct end *e)
{
	release_conn(e);
	OK(ops->dereg_mr(e->mr));
	OK(ops->destroy_qp(e->qp));
	if (e->srq)
		OK(ops->destroy_srq(e->srq));
	OK(ops->destroy_cq(e->scq));
	OK(ops->destroy_cq(e->rcq));
	OK(ops->destroy_channel(e->channel));
	OK(ops->dealloc_pd(e->pd));
	ops->close(e->dev);
	free(e->buf);
}

struct sockaddr_storage address_of(struct end *e, uint16_t port)
{
	struct dapl_device_attr attr;

	OK(ops->query(e->dev, &attr));
	if (attr.address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&attr.address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&attr.address)->sin_port = htons(port);
	return attr.address;
}

struct dapl_conn_params params_of(struct end *e, const struct options *o, const struct sockaddr_storage *to)
{
	return (struct dapl_conn_params){
		.qp = e->qp, .owner = e, .remote = (const struct sockaddr *)to,
		.reads_out = o->reads, .reads_in = o->reads, .srq = o->srq, .ud = o->ud,
	};
}

void connect_ends(struct end *a, struct end *b, const struct options *o)
{
	struct dapl_listener *listener;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	uint16_t port = 0;
	struct upcall up;

	OK(ops->listen(b->dev, NULL, &port, o->ud, 8, &listener, &listener));
	to = address_of(b, port);
	params = params_of(a, o, &to);
	OK(ops->connect(a->dev, &params, &a->conn));
	up = expect_up(REQUEST, &listener);
	b->conn = up.conn;
	params = params_of(b, o, NULL);
	OK(ops->accept(b->conn, &params));
	expect_up(ESTABLISHED, b);
	expect_up(ESTABLISHED, a);
	ops->unlisten(listener);
}

void open_pair(struct end *a, struct end *b, const struct options *o)
{
	open_end(a, o);
	open_end(b, o);
	connect_ends(a, b, o);
}

void close_pair(struct end *a, struct end *b)
{
	release_conn(a);
	release_conn(b);
	close_end(a);
	close_end(b);
}

/* --- posting and polling --------------------------------------------------------------- */

struct ibv_sge sge_of(const struct end *e, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)e->buf + offset, length, e->mr->lkey };
}

int post_recv(struct end *e, uint64_t id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(e, offset, length);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

int post_wr(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

int post(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, unsigned flags, size_t offset, uint32_t length,
	 const struct end *to, size_t remote)
{
	struct ibv_sge sge = sge_of(e, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = flags,
	};

	if (to) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->buf + remote;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	return post_wr(e, &wr);
}

int post_atomic(struct end *e, uint64_t id, bool swap, uint64_t compare_add, uint64_t value, size_t offset,
		const struct end *to, size_t remote)
{
	struct ibv_sge sge = sge_of(e, offset, 8);
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { (uintptr_t)to->buf + remote, compare_add, value, to->mr->rkey },
	};

	return post_wr(e, &wr);
}

bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		assert_true(n >= 0);
		if (n)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >
		    ms)
			return false;
	}
}

struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	if (!poll_for(cq, &wc, 10000))
		fail_msg("no completion %llu", (unsigned long long)id);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

struct ibv_wc done(struct ibv_cq *cq, uint64_t id) { return expect_wc(cq, id, IBV_WC_SUCCESS); }

void expect_no_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (poll_for(cq, &wc, 20))
		fail_msg("completion %llu status %d", (unsigned long long)wc.wr_id, wc.status);
}

__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:touch_peer\n"; }

__attribute__((noinline)) void touch_peer(char *p, int value, size_t n)
{
	memset(p, value, n);
	__asm__ volatile("" ::: "memory");
}

void fill(char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(seed + i * 7 + (i >> 8));
}

int write_to(struct end *a, uint64_t id, uint64_t addr, uint32_t rkey, uint32_t n)
{
	struct ibv_sge sge = sge_of(a, 0, n);
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey } };

	return post_wr(a, &wr);
}
