/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_device.c - drives the software RNIC through dapl_device_ops, without core. Two
 * devices of one process are the two ends: while one is polled, the service thread drives the
 * other. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "common/address.h"
#include "common/clock.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "test/unit/device_harness.h"

static const struct dapl_device_ops *ops = &dapl_device_ops;

/* --- upcalls ----------------------------------------------------------------------- */

static struct upcall expect_up(enum upcall_kind kind, void *owner)
{
	struct upcall up = { 0 };

	if (!upcall_take(kind, owner, 10000, &up))
		fail_msg("upcall %d did not come", kind);
	return up;
}

static void expect_no_up(enum upcall_kind kind, void *owner)
{
	struct upcall up;

	if (upcall_take(kind, owner, 50, &up))
		fail_msg("upcall %d came", kind);
}

/* --- one end ------------------------------------------------------------------------- */

enum { BUFFER = 4 << 20, PAGE = 4096 };

struct end {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct dapl_conn *conn;
	struct ibv_mr *mr;
	char *buf;
};

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct options {
	const char *device;
	int depth, sge, inlines, cqe;
	bool sig_all, srq;
	uint8_t reads;
	bool ud;
};

static const struct options plain = { .device = "lo 0", .depth = 128, .sge = 8,
	.inlines = 256, .cqe = 4096, .reads = 4 };

#define OK(call) assert_int_equal((call), 0)

static struct ibv_qp *make_qp(struct end *e, const struct options *o)
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

static void open_end(struct end *e, const struct options *o)
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

static void release_conn(struct end *e)
{
	if (!e->conn)
		return;
	ops->release(e->conn);
	e->conn = NULL;
	expect_up(RELEASED, e);
}

static void close_end(struct end *e)
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

static struct sockaddr_storage address_of(struct end *e, uint16_t port)
{
	struct dapl_device_attr attr;

	OK(ops->query(e->dev, &attr));
	if (attr.address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&attr.address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&attr.address)->sin_port = htons(port);
	return attr.address;
}

static struct dapl_conn_params params_of(struct end *e, const struct options *o,
					 const struct sockaddr_storage *to)
{
	return (struct dapl_conn_params){
		.qp = e->qp, .owner = e, .remote = (const struct sockaddr *)to,
		.reads_out = o->reads, .reads_in = o->reads, .srq = o->srq, .ud = o->ud,
	};
}

static void connect_ends(struct end *a, struct end *b, const struct options *o)
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

static void open_pair(struct end *a, struct end *b, const struct options *o)
{
	open_end(a, o);
	open_end(b, o);
	connect_ends(a, b, o);
}

static void close_pair(struct end *a, struct end *b)
{
	release_conn(a);
	release_conn(b);
	close_end(a);
	close_end(b);
}

/* --- posting and polling --------------------------------------------------------------- */

static struct ibv_sge sge_of(const struct end *e, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)e->buf + offset, length, e->mr->lkey };
}

static int post_recv(struct end *e, uint64_t id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(e, offset, length);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

static int post_wr(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

static int post(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, unsigned flags,
		size_t offset, uint32_t length, const struct end *to, size_t remote)
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

static int post_atomic(struct end *e, uint64_t id, bool swap, uint64_t compare_add,
		       uint64_t value, size_t offset, const struct end *to, size_t remote)
{
	struct ibv_sge sge = sge_of(e, offset, 8);
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { (uintptr_t)to->buf + remote, compare_add, value, to->mr->rkey },
	};

	return post_wr(e, &wr);
}

static bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
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

static struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	if (!poll_for(cq, &wc, 10000))
		fail_msg("no completion %llu", (unsigned long long)id);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

static struct ibv_wc done(struct ibv_cq *cq, uint64_t id)
{
	return expect_wc(cq, id, IBV_WC_SUCCESS);
}

static void expect_no_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (poll_for(cq, &wc, 20))
		fail_msg("completion %llu status %d", (unsigned long long)wc.wr_id, wc.status);
}

/* Changes the memory of the other end. The device no longer accesses it, which this thread
 * knows through a socket: a race detector does not see that order. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:touch_peer\n";
}

__attribute__((noinline)) static void touch_peer(char *p, int value, size_t n)
{
	memset(p, value, n);
	__asm__ volatile("" ::: "memory");
}

static void fill(char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(seed + i * 7 + (i >> 8));
}

/* --- tests: device and connections -------------------------------------------------------- */

static void device_opens_by_interface_address_and_name(void **state)
{
	static const char *const good[] = { "lo 0", "127.0.0.1 0", "localhost 0", "::1 0", " lo" };
	struct dapl_device *dev;
	struct dapl_device_attr attr;
	int ia;

	(void)state;
	for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
		int err = ops->open(good[i], &ia, &dev);

		if (err == ENODEV && i == 3)
			continue;	/* no IPv6 on this machine */
		OK(err);
		OK(ops->query(dev, &attr));
		assert_string_equal(attr.netdev, "lo");
		assert_true(attr.ud && attr.atomics && attr.windows_1 && attr.delayed_ack);
		assert_true(attr.port_active);
		ops->close(dev);
	}
	assert_int_equal(ops->open("nosuchdev0 0", &ia, &dev), ENODEV);
	assert_int_equal(ops->open("203.0.113.7 0", &ia, &dev), ENODEV);
	OK(ops->open("", &ia, &dev));		/* any interface that is up */
	ops->close(dev);
}

static void private_data_arrives_whole_and_exact(void **state)
{
	static const int lengths[] = { 0, 1, 52, 251, 252 };
	struct end a, b;
	char data[252];

	(void)state;
	fill(data, sizeof data, 3);
	open_end(&a, &plain);
	open_end(&b, &plain);
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		struct dapl_listener *listener;
		struct sockaddr_storage to;
		struct dapl_conn_params params;
		uint16_t port = 0;
		struct upcall up;

		OK(ops->listen(b.dev, NULL, &port, false, 8, &b, &listener));
		to = address_of(&b, port);
		params = params_of(&a, &plain, &to);
		params.pdata = data;
		params.pdata_len = lengths[i];
		OK(ops->connect(a.dev, &params, &a.conn));
		up = expect_up(REQUEST, &b);
		assert_int_equal(up.length, lengths[i]);
		assert_memory_equal(up.pdata, data, lengths[i]);
		assert_false(up.ud);
		assert_int_equal(((struct sockaddr_in *)&up.local)->sin_port, htons(port));
		b.conn = up.conn;
		params = params_of(&b, &plain, NULL);
		params.pdata = data;
		params.pdata_len = lengths[4 - i];
		OK(ops->accept(b.conn, &params));
		up = expect_up(ESTABLISHED, &a);
		assert_int_equal(up.length, lengths[4 - i]);
		assert_memory_equal(up.pdata, data, lengths[4 - i]);
		assert_int_equal(((struct sockaddr_in *)&up.remote)->sin_port, htons(port));
		up = expect_up(ESTABLISHED, &b);
		assert_int_equal(up.length, 0);
		release_conn(&a);
		expect_up(CLOSED, &b);
		release_conn(&b);
		OK(ops->reset_qp(a.dev, a.qp));
		OK(ops->reset_qp(b.dev, b.qp));
		ops->unlisten(listener);
	}
	close_pair(&a, &b);
}

static void connect_fails_for_the_right_reason(void **state)
{
	struct end a, b;
	struct dapl_listener *listener, *second;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	uint16_t port = 0, same;
	struct upcall up;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, false, 8, &b, &listener));
	same = port;
	assert_int_equal(ops->listen(b.dev, NULL, &same, false, 8, &b, &second), EADDRINUSE);
	assert_int_equal(ops->listen(a.dev, NULL, &same, false, 8, &a, &second), EADDRINUSE);
	to = address_of(&b, port);
	params = params_of(&a, &plain, &to);

	/* the consumer rejects */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	OK(ops->reject(up.conn, true, "sorry", 6));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REJECTED);
	assert_int_equal(up.length, 6);
	assert_string_equal(up.pdata, "sorry");
	release_conn(&a);

	/* the provider rejects */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	OK(ops->reject(up.conn, false, NULL, 0));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* a request is released without an answer */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	ops->release(up.conn);
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* the initiator releases: the accept fails */
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &b);
	release_conn(&a);
	b.conn = up.conn;
	params = params_of(&b, &plain, NULL);
	OK(ops->accept(b.conn, &params));
	expect_up(FAILED, &b);
	release_conn(&b);

	/* no listener */
	ops->unlisten(listener);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);

	/* the port is free again */
	OK(ops->listen(a.dev, NULL, &port, false, 8, &a, &listener));
	ops->unlisten(listener);
	close_pair(&a, &b);
}

static void request_to_the_other_kind_of_listener_is_refused(void **state)
{
	struct end a, b;
	struct dapl_listener *ud, *rc;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	uint16_t port = 0;
	struct upcall up;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, true, 8, &ud, &ud));
	to = address_of(&b, port);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(FAILED, &a);
	assert_int_equal(up.failure, DAPL_CONN_REFUSED);
	release_conn(&a);
	/* both kinds share a port */
	OK(ops->listen(b.dev, NULL, &port, false, 8, &rc, &rc));
	OK(ops->connect(a.dev, &params, &a.conn));
	up = expect_up(REQUEST, &rc);
	OK(ops->reject(up.conn, true, NULL, 0));
	expect_up(FAILED, &a);
	release_conn(&a);
	ops->unlisten(ud);
	ops->unlisten(rc);
	close_pair(&a, &b);
}

static void disconnect_tells_the_peer_after_its_data(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 8; i++)
		OK(post_recv(&b, i, i * 4096, 4096));
	fill(a.buf, 4096, 1);
	for (int i = 0; i < 8; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 4096, NULL, 0));
	for (int i = 0; i < 8; i++)
		done(a.scq, i);
	OK(ops->error_qp(a.qp));
	OK(ops->disconnect(a.conn));
	expect_up(CLOSED, &b);
	for (int i = 0; i < 8; i++)
		assert_int_equal(done(b.rcq, i).byte_len, 4096);
	assert_memory_equal(b.buf + 7 * 4096, a.buf, 4096);
	expect_no_up(BROKEN, &b);
	close_pair(&a, &b);
}

static void both_ends_disconnect_at_once(void **state)
{
	struct end a, b;

	(void)state;
	for (int i = 0; i < 20; i++) {
		open_pair(&a, &b, &plain);
		OK(post_recv(&a, 1, 0, 8));
		OK(ops->error_qp(a.qp));
		OK(ops->error_qp(b.qp));
		OK(ops->disconnect(a.conn));
		OK(ops->disconnect(b.conn));
		expect_wc(a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
		close_pair(&a, &b);
	}
}

static void unsent_requests_do_not_delay_an_abrupt_disconnect(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 100; i++)		/* far more than the sockets hold */
		OK(post(&a, i, IBV_WR_SEND, 0, 0, 1 << 20, NULL, 0));
	OK(ops->error_qp(a.qp));
	for (int i = 0; i < 100; i++)
		expect_wc(a.scq, i, IBV_WC_WR_FLUSH_ERR);
	OK(ops->disconnect(a.conn));
	expect_up(CLOSED, &b);
	expect_no_up(BROKEN, &b);
	close_pair(&a, &b);
}

static void many_connections_come_and_go(void **state)
{
	enum { N = 64 };
	struct end a, b, *ea = calloc(N, sizeof *ea), *eb = calloc(N, sizeof *eb);
	struct dapl_listener *listener;
	struct sockaddr_storage to;
	uint16_t port = 0;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(ops->listen(b.dev, NULL, &port, false, N, &listener, &listener));
	to = address_of(&b, port);
	for (int i = 0; i < N; i++) {
		struct dapl_conn_params params;

		ea[i] = a;
		eb[i] = b;
		ea[i].qp = make_qp(&a, &plain);
		eb[i].qp = make_qp(&b, &plain);
		params = params_of(&ea[i], &plain, &to);
		params.owner = &ea[i];
		OK(ops->connect(a.dev, &params, &ea[i].conn));
	}
	for (int i = 0; i < N; i++) {
		struct upcall up = expect_up(REQUEST, &listener);
		struct dapl_conn_params params = params_of(&eb[i], &plain, NULL);

		params.owner = &eb[i];
		eb[i].conn = up.conn;
		OK(ops->accept(up.conn, &params));
	}
	for (int i = 0; i < N; i++) {
		expect_up(ESTABLISHED, &ea[i]);
		expect_up(ESTABLISHED, &eb[i]);
	}
	for (int i = 0; i < N; i++)
		OK(post_recv(&eb[i], i, i * 64, 64));
	for (int i = 0; i < N; i++)
		OK(post(&ea[i], i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 64, NULL, 0));
	for (int i = 0; i < N; i++) {
		struct ibv_wc wc;

		assert_true(poll_for(a.scq, &wc, 10000));
		assert_int_equal(wc.status, 0);
		assert_true(poll_for(b.rcq, &wc, 10000));
		assert_int_equal(wc.status, 0);
	}
	for (int i = 0; i < N; i++)
		release_conn(&ea[i]);
	for (int i = 0; i < N; i++) {
		expect_up(CLOSED, &eb[i]);
		release_conn(&eb[i]);
		OK(ops->destroy_qp(ea[i].qp));
		OK(ops->destroy_qp(eb[i].qp));
	}
	ops->unlisten(listener);
	close_pair(&a, &b);
	free(ea);
	free(eb);
}

/* --- tests: data --------------------------------------------------------------------------- */

static void sends_of_all_sizes_arrive(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 7, 8, 255, 256, 257, 4096, 65471, 65472, 65473,
		100001, (1 << 20) + 13, 3 << 20 };
	struct end a, b;
	struct ibv_wc wc;

	(void)state;
	open_pair(&a, &b, &plain);
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		fill(a.buf, sizes[i], i);
		OK(post_recv(&b, i, 0, BUFFER));
		OK(post(&a, 100 + i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, sizes[i], NULL, 0));
		wc = done(b.rcq, i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.qp_num, b.qp->qp_num);
		assert_int_equal(wc.wc_flags, 0);
		assert_memory_equal(a.buf, b.buf, sizes[i]);
		wc = done(a.scq, 100 + i);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		assert_int_equal(wc.qp_num, a.qp->qp_num);
	}
	/* and from the acceptor */
	OK(post_recv(&a, 1, 0, 100));
	OK(post(&b, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
	done(a.rcq, 1);
	done(b.scq, 2);
	close_pair(&a, &b);
}

static void acceptor_may_send_first(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(post_recv(&a, 1, 0, 100));
	connect_ends(&a, &b, &plain);
	OK(post(&b, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
	done(a.rcq, 1);
	done(b.scq, 2);
	close_pair(&a, &b);
}

static void segments_scatter_and_gather(void **state)
{
	static const uint32_t in[] = { 3, 0, 5000, 1, 70000, 8, 11, 977 };
	static const uint32_t out[] = { 1, 64, 0, 30000, 30000, 13000, 2500, 500 };
	struct ibv_sge from[8], to[8];
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = from, .num_sge = 8,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 8, .sg_list = to, .num_sge = 8 }, *bad_rr;
	struct end a, b;
	size_t at = 0, total = 0, n = 0;

	(void)state;
	open_pair(&a, &b, &plain);
	fill(a.buf, BUFFER, 9);
	for (int i = 0; i < 8; i++) {
		from[i] = sge_of(&a, at, in[i]);
		at += in[i] + 10;
		total += in[i];
	}
	for (int i = 0, o = 1 << 20; i < 8; o += out[i++] + 3)
		to[i] = sge_of(&b, o, out[i]);
	for (int op = 0; op < 2; op++) {
		touch_peer(b.buf, 0, BUFFER);
		if (!op) {
			wr.opcode = IBV_WR_SEND;
			OK(ibv_post_recv(b.qp, &rr, &bad_rr));
			OK(ibv_post_send(a.qp, &wr, &bad));
			assert_int_equal(done(b.rcq, 8).byte_len, total);
			done(a.scq, 7);
			n = 0;
			for (int i = 0, o = 0; i < 8; i++)
				for (uint32_t j = 0; j < in[i]; j++, n++) {
					char *src = (char *)(uintptr_t)from[i].addr + j;
					static uint32_t piece, offset;

					if (!n)
						piece = offset = 0;
					while (offset == out[piece]) {
						piece++;
						offset = 0;
					}
					assert_int_equal(*src, *((char *)(uintptr_t)
							to[piece].addr + offset++));
					(void)o;
				}
			continue;
		}
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 1;
		wr.wr.rdma.rkey = b.mr->rkey;
		OK(ibv_post_send(a.qp, &wr, &bad));
		done(a.scq, 7);
		for (int i = 0, o = 1; i < 8; o += in[i++])
			assert_memory_equal(b.buf + o, (char *)(uintptr_t)from[i].addr, in[i]);
		/* read it back, scattered */
		memset(a.buf, 0, BUFFER);
		wr.opcode = IBV_WR_RDMA_READ;
		OK(ibv_post_send(a.qp, &wr, &bad));
		done(a.scq, 7);
		for (int i = 0, o = 1; i < 8; o += in[i++])
			assert_memory_equal(b.buf + o, (char *)(uintptr_t)from[i].addr, in[i]);
	}
	close_pair(&a, &b);
}

static void inline_data_is_taken_at_the_post(void **state)
{
	struct end a, b;
	char expected[200];
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 2,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE }, *bad;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 2; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a.buf + i * 100, 100, a.mr->lkey };
	fill(expected, sizeof expected, 77);
	memcpy(a.buf, expected, sizeof expected);
	OK(ibv_post_send(a.qp, &wr, &bad));	/* before the receive is there */
	memset(a.buf, 0, sizeof expected);
	OK(post_recv(&b, 2, 0, 300));
	assert_int_equal(done(b.rcq, 2).byte_len, 200);
	done(a.scq, 1);
	assert_memory_equal(b.buf, expected, 200);
	sge[0].length = 1000;
	assert_int_not_equal(ibv_post_send(a.qp, &wr, &bad), 0);
	assert_ptr_equal(bad, &wr);
	close_pair(&a, &b);
}

static void writes_and_reads_of_all_sizes_arrive(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 4, 8, 9, 63, 4096, 65476, 65477, 200003, 2 << 20 };
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (unsigned shift = 0; shift < 3; shift++) {
			uint32_t n = sizes[i];

			touch_peer(b.buf, 0x55, n + 64);
			fill(a.buf, n, i + shift);
			OK(post(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, n, &b, 8 + shift));
			assert_int_equal(done(a.scq, 1).opcode, IBV_WC_RDMA_WRITE);
			assert_memory_equal(b.buf + 8 + shift, a.buf, n);
			assert_int_equal(b.buf[7 + shift], 0x55);
			assert_int_equal(b.buf[8 + shift + n], 0x55);
			memset(a.buf, 0, n);
			OK(post(&a, 2, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, n, &b, 8 + shift));
			assert_int_equal(done(a.scq, 2).opcode, IBV_WC_RDMA_READ);
			assert_memory_equal(b.buf + 8 + shift, a.buf, n);
		}
	expect_no_wc(b.rcq);
	close_pair(&a, &b);
}

static void immediate_data_arrives(void **state)
{
	struct end a, b;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED };

	(void)state;
	open_pair(&a, &b, &plain);
	fill(a.buf, 1000, 4);
	sge = sge_of(&a, 0, 1000);
	wr.imm_data = htonl(0x12345678);
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 5000;
	wr.wr.rdma.rkey = b.mr->rkey;
	OK(post_recv(&b, 2, 0, 10));
	OK(post_wr(&a, &wr));
	wc = done(b.rcq, 2);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 1000);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x12345678));
	assert_memory_equal(b.buf + 5000, a.buf, 1000);
	assert_int_equal(done(a.scq, 1).opcode, IBV_WC_RDMA_WRITE);

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	OK(post_wr(&a, &wr));			/* waits for its receive */
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	OK(post_wr(&a, &wr));
	expect_no_wc(a.scq);
	OK(post_recv(&b, 3, 0, 1000));
	OK(post_recv(&b, 4, 0, 1000));
	wc = done(b.rcq, 3);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x12345678));
	assert_int_equal(wc.byte_len, 1000);
	wc = done(b.rcq, 4);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 1000);
	done(a.scq, 1);
	done(a.scq, 1);
	close_pair(&a, &b);
}

static void atomics_return_the_previous_value(void **state)
{
	struct end a, b;
	uint64_t *target, *result;

	(void)state;
	open_pair(&a, &b, &plain);
	target = (uint64_t *)(b.buf + 64);
	result = (uint64_t *)(a.buf + 8);
	*target = 0x1122334455667788;
	OK(post_atomic(&a, 1, false, 5, 0, 8, &b, 64));
	assert_int_equal(done(a.scq, 1).opcode, IBV_WC_FETCH_ADD);
	assert_true(*result == 0x1122334455667788 && *target == 0x112233445566778d);
	OK(post_atomic(&a, 2, true, 1, 9, 8, &b, 64));
	assert_int_equal(done(a.scq, 2).opcode, IBV_WC_COMP_SWAP);
	assert_true(*result == 0x112233445566778d && *target == 0x112233445566778d);
	OK(post_atomic(&a, 3, true, 0x112233445566778d, 9, 8, &b, 64));
	done(a.scq, 3);
	assert_true(*result == 0x112233445566778d && *target == 9);
	for (int i = 0; i < 100; i++)		/* far beyond ORD */
		OK(post_atomic(&a, i, false, 1, 0, 8, &b, 64));
	for (int i = 0; i < 100; i++)
		done(a.scq, i);
	assert_true(*result == 108 && *target == 109);
	close_pair(&a, &b);
}

static void reads_beyond_ord_wait_and_order_holds(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	fill(b.buf, 1 << 20, 5);
	for (int i = 0; i < 8; i++)
		OK(post_recv(&b, i, 3 << 20, 64));
	for (int i = 0; i < 64; i++) {
		if (i % 8 == 7)
			OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
		else
			OK(post(&a, i, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED | (i % 3 ? 0 :
				IBV_SEND_FENCE), i * 10000, 10000, &b, i * 10000));
	}
	for (int i = 0; i < 64; i++) {
		done(a.scq, i);
		if (i % 8 != 7)
			assert_memory_equal(a.buf + i * 10000, b.buf + i * 10000, 10000);
	}
	close_pair(&a, &b);
}

static void fence_holds_a_write_behind_a_read(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 50; i++) {
		/* read 1 MiB to the source of the write that follows */
		touch_peer(b.buf, i + 1, 1 << 20);
		memset(a.buf, 0, 1 << 20);
		OK(post(&a, 1, IBV_WR_RDMA_READ, 0, 0, 1 << 20, &b, 0));
		OK(post(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
			(1 << 20) - 64, 64, &b, 2 << 20));
		done(a.scq, 2);
		for (int j = 0; j < 64; j++)
			assert_int_equal(b.buf[(2 << 20) + j], (char)(i + 1));
	}
	close_pair(&a, &b);
}

static void unsignalled_requests_make_no_completion(void **state)
{
	struct options o = plain;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 1000; i++) {
		OK(post(&a, i, IBV_WR_RDMA_WRITE, i % 100 == 99 ? IBV_SEND_SIGNALED : 0, 0, 8, &b,
			0));
		if (i % 100 == 99)
			done(a.scq, i);
	}
	expect_no_wc(a.scq);
	close_pair(&a, &b);
	o.sig_all = true;
	open_pair(&a, &b, &o);
	OK(post(&a, 1, IBV_WR_RDMA_WRITE, 0, 0, 8, &b, 0));
	done(a.scq, 1);
	close_pair(&a, &b);
}

static void post_to_a_full_queue_fails(void **state)
{
	struct end a, b;
	int n = 0;

	(void)state;
	open_pair(&a, &b, &plain);
	while (!post(&a, n, IBV_WR_SEND, 0, 0, 8, NULL, 0))
		n++;
	assert_int_equal(n, 128);
	for (n = 0; !post_recv(&b, n, 0, 8); n++)
		assert_true(n < 1000);
	close_pair(&a, &b);
}

/* --- tests: messages before their receive ----------------------------------------------------- */

static void sends_wait_for_receives_and_reads_pass_them(void **state)
{
	enum { N = 120, SIZE = 30000 };		/* more than the window takes */
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	fill(a.buf, SIZE, 1);
	for (int i = 0; i < N; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, SIZE, NULL, 0));
	expect_no_wc(a.scq);
	/* the peer reads: its answer comes behind all those sends */
	fill(a.buf + (1 << 20), 100000, 2);
	for (int i = 0; i < 10; i++) {
		OK(post(&b, 500, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 2 << 20, 100000, &a, 1 << 20));
		done(b.scq, 500);
		assert_memory_equal(b.buf + (2 << 20), a.buf + (1 << 20), 100000);
	}
	for (int i = 0; i < N; i++) {
		OK(post_recv(&b, i, 0, SIZE));
		assert_int_equal(done(b.rcq, i).byte_len, SIZE);
		assert_memory_equal(b.buf, a.buf, SIZE);
	}
	for (int i = 0; i < N; i++)
		done(a.scq, i);
	close_pair(&a, &b);
}

static void one_message_larger_than_the_window_waits(void **state)
{
	struct end a, b;
	int n = 3 << 20;

	(void)state;
	open_pair(&a, &b, &plain);
	fill(a.buf, n, 1);
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, n, NULL, 0));
	OK(post(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &b, n));
	expect_no_wc(a.scq);
	OK(post_recv(&b, 3, 0, n));
	assert_int_equal(done(b.rcq, 3).byte_len, n);
	done(a.scq, 1);
	done(a.scq, 2);
	assert_memory_equal(a.buf, b.buf, n);
	close_pair(&a, &b);
}

/* --- tests: errors ------------------------------------------------------------------------------- */

static void error_flushes_all_requests_in_order(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 20; i++) {
		OK(post_recv(&a, i, 0, 8));
		OK(post(&a, 100 + i, IBV_WR_SEND, 0, 0, 8, NULL, 0));
	}
	OK(ops->error_qp(a.qp));
	for (int i = 0; i < 20; i++) {
		struct ibv_wc wc = expect_wc(a.rcq, i, IBV_WC_WR_FLUSH_ERR);

		assert_int_equal(wc.qp_num, a.qp->qp_num);
		expect_wc(a.scq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	OK(post_recv(&a, 50, 0, 8));
	OK(post(&a, 51, IBV_WR_SEND, 0, 0, 8, NULL, 0));
	expect_wc(a.rcq, 50, IBV_WC_WR_FLUSH_ERR);
	expect_wc(a.scq, 51, IBV_WC_WR_FLUSH_ERR);
	OK(post_recv(&a, 52, 0, 8));
	release_conn(&a);
	OK(ops->reset_qp(a.dev, a.qp));
	expect_no_wc(a.rcq);
	OK(post_recv(&a, 53, 0, 8));
	assert_int_not_equal(post(&a, 54, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	expect_no_wc(a.rcq);
	close_pair(&a, &b);
}

/* Posts a request that must fail at the target; checks both ends. */
static void expect_remote(struct ibv_send_wr *wr, struct end *a, struct end *b,
			  enum ibv_wc_status status)
{
	wr->wr_id = 2;
	wr->send_flags = IBV_SEND_SIGNALED;
	OK(post(a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, b, 0));
	OK(post_recv(a, 7, 0, 8));
	OK(post_recv(b, 8, 0, 8));
	OK(post_wr(a, wr));
	OK(post(a, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	done(a->scq, 1);
	expect_wc(a->scq, 2, status);
	expect_wc(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(a->rcq, 7, IBV_WC_WR_FLUSH_ERR);
	expect_up(BROKEN, a);
	expect_up(BROKEN, b);
	expect_wc(b->rcq, 8, IBV_WC_WR_FLUSH_ERR);
	expect_no_up(BROKEN, a);
}

static void remote_protection_is_enforced(void **state)
{
	struct end a, b;
	struct ibv_mr *other;
	struct ibv_pd *pd;
	struct ibv_sge sge;

	(void)state;
	for (int op = 0; op < 4; op++)
		for (int fault = 0; fault < 6; fault++) {
			struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
			int access = ALL_ACCESS;
			enum ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;
			uint64_t addr;

			open_pair(&a, &b, &plain);
			OK(ops->alloc_pd(b.dev, &pd));
			sge = sge_of(&a, 0, op >= 2 ? 8 : 200000);
			wr.opcode = op == 0 ? IBV_WR_RDMA_WRITE : op == 1 ? IBV_WR_RDMA_READ :
				op == 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
			if (fault == 2)
				access &= op == 0 ? ~IBV_ACCESS_REMOTE_WRITE : op == 1 ?
					~IBV_ACCESS_REMOTE_READ : ~IBV_ACCESS_REMOTE_ATOMIC;
			OK(ops->reg_mr(fault == 3 ? pd : b.pd, b.buf + 4096, 300000, access, NULL,
				       &other));
			addr = (uintptr_t)b.buf + 4096;
			if (fault == 1)
				addr += 300000 - (op >= 2 ? 0 : 100000);
			if (fault == 4)
				addr = UINT64_MAX - 7;
			if (fault == 5) {
				addr += 4;	/* atomics only */
				status = IBV_WC_REM_INV_REQ_ERR;
			}
			if (op < 2) {
				wr.wr.rdma.remote_addr = addr;
				wr.wr.rdma.rkey = other->rkey;
			} else {
				wr.wr.atomic.remote_addr = addr;
				wr.wr.atomic.rkey = other->rkey;
			}
			if (!fault)
				OK(ops->dereg_mr(other));	/* its STag is invalid */
			if (fault != 5 || op >= 2)
				expect_remote(&wr, &a, &b, status);
			if (fault)
				OK(ops->dereg_mr(other));
			OK(ops->dealloc_pd(pd));
			close_pair(&a, &b);
		}
}

static void receive_that_is_too_short_fails(void **state)
{
	struct end a, b;

	(void)state;
	for (int unexpected = 0; unexpected < 2; unexpected++)
		for (int big = 0; big < 2; big++) {
			uint32_t n = big ? 100000 : 100;

			open_pair(&a, &b, &plain);
			if (!unexpected)
				OK(post_recv(&b, 1, 0, n - 1));
			OK(post(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, n, NULL, 0));
			OK(post(&a, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1, NULL, 0));
			if (unexpected) {
				expect_no_wc(b.rcq);
				OK(post_recv(&b, 1, 0, n - 1));
			}
			OK(post_recv(&b, 4, 0, 8));
			expect_wc(b.rcq, 1, IBV_WC_LOC_LEN_ERR);
			expect_wc(b.rcq, 4, IBV_WC_WR_FLUSH_ERR);
			expect_wc(a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
			expect_wc(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
			expect_up(BROKEN, &a);
			expect_up(BROKEN, &b);
			close_pair(&a, &b);
		}
}

static void local_protection_is_enforced(void **state)
{
	struct end a, b;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_mr *readonly;

	(void)state;
	/* the source of a send, of a write; the sink of a read */
	for (int op = 0; op < 3; op++) {
		open_pair(&a, &b, &plain);
		OK(ops->reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_REMOTE_READ, NULL, &readonly));
		wr.opcode = op == 0 ? IBV_WR_SEND : op == 1 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
		wr.wr.rdma.rkey = b.mr->rkey;
		sge = sge_of(&a, 0, 4096);
		sge.lkey = readonly->lkey;
		if (op < 2)
			sge.length++;
		OK(post_recv(&b, 9, 0, 8000));
		OK(post_recv(&b, 10, 0, 8000));
		OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
		OK(post_wr(&a, &wr));
		OK(post(&a, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
		done(a.scq, 1);
		expect_wc(a.scq, 2, IBV_WC_LOC_PROT_ERR);
		expect_wc(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
		done(b.rcq, 9);
		expect_wc(b.rcq, 10, IBV_WC_WR_FLUSH_ERR);
		expect_up(BROKEN, &a);
		expect_up(BROKEN, &b);
		OK(ops->dereg_mr(readonly));
		close_pair(&a, &b);
	}
	/* a receive; zero length skips the check */
	open_pair(&a, &b, &plain);
	sge = (struct ibv_sge){ 0, 0, 12345 };
	OK(ibv_post_recv(b.qp, &rr, &bad));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 0, NULL, 0));
	done(a.scq, 1);
	done(b.rcq, 3);
	sge = sge_of(&b, 0, 100);
	sge.lkey = 12345;
	OK(ibv_post_recv(b.qp, &rr, &bad));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
	expect_wc(b.rcq, 3, IBV_WC_LOC_PROT_ERR);
	expect_wc(a.scq, 1, IBV_WC_REM_OP_ERR);
	expect_up(BROKEN, &a);
	expect_up(BROKEN, &b);
	close_pair(&a, &b);
}

/* The QP remembers the region that it sent from last. Context 0 does not stand for one that is gone. */
static void deregistered_memory_is_not_sent(void **state)
{
	struct end a, b;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	(void)state;
	for (int i = 0; i < 4; i++) {
		wr.send_flags = IBV_SEND_SIGNALED | (i % 2 ? IBV_SEND_INLINE : 0);
		open_pair(&a, &b, &plain);
		OK(ops->reg_mr(a.pd, a.buf, 4096, 0, NULL, &mr));
		sge = (struct ibv_sge){ (uintptr_t)a.buf, 8, mr->lkey };
		for (wr.wr_id = 1; wr.wr_id < 3; wr.wr_id++) {
			OK(post_recv(&b, wr.wr_id, 0, 8));
			OK(post_wr(&a, &wr));
			done(a.scq, wr.wr_id);
			done(b.rcq, wr.wr_id);
		}
		OK(ops->dereg_mr(mr));
		if (i / 2)
			sge.lkey = 0;
		OK(post_recv(&b, 3, 0, 8));
		OK(post_wr(&a, &wr));
		expect_wc(a.scq, 3, IBV_WC_LOC_PROT_ERR);
		expect_wc(b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
		close_pair(&a, &b);
	}
}

static void reads_beyond_the_agreed_number_fail(void **state)
{
	struct options o = plain;
	struct end a, b;

	(void)state;
	o.reads = 0;
	open_pair(&a, &b, &o);
	OK(post(&a, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 8, &b, 0));
	expect_wc(a.scq, 1, IBV_WC_LOC_QP_OP_ERR);
	expect_up(BROKEN, &a);
	close_pair(&a, &b);
}

static void deregistered_memory_is_not_accessible(void **state)
{
	struct end a, b;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	int n = 0;

	(void)state;
	open_pair(&a, &b, &plain);
	OK(ops->reg_mr(b.pd, b.buf, 1 << 20, ALL_ACCESS, NULL, &mr));
	sge = sge_of(&a, 0, 1 << 20);
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = mr->rkey;
	for (int i = 0; i < 50; i++) {
		wr.wr_id = i;
		OK(post_wr(&a, &wr));
	}
	while (!poll_for(a.scq, &wc, 1))
		;
	OK(ops->dereg_mr(mr));
	touch_peer(b.buf, 7, 1 << 20);
	wr.wr_id = 50;				/* should all others have been done */
	OK(post_wr(&a, &wr));
	for (; n < 50 && wc.status == IBV_WC_SUCCESS; n++)
		assert_true(poll_for(a.scq, &wc, 10000));
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(b.buf[i], 7);
	close_pair(&a, &b);
}

/* --- tests: memory windows ---------------------------------------------------------------- */

static int bind2(struct end *e, struct ibv_mw *mw, uint32_t rkey, size_t offset, size_t length,
		 int access)
{
	struct ibv_send_wr wr = {
		.wr_id = 77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey, { e->mr, (uintptr_t)e->buf + offset, length, access } },
	};

	return post_wr(e, &wr);
}

static int bind1(struct end *e, struct ibv_mw *mw, size_t offset, size_t length, int access)
{
	struct ibv_mw_bind bind = { 77, IBV_SEND_SIGNALED,
		{ e->mr, (uintptr_t)e->buf + offset, length, access } };

	return ibv_bind_mw(e->qp, mw, &bind);
}

static int write_to(struct end *a, uint64_t id, uint64_t addr, uint32_t rkey, uint32_t n)
{
	struct ibv_sge sge = sge_of(a, 0, n);
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey } };

	return post_wr(a, &wr);
}

/* The next allocation of the service thread fails. */
static _Atomic bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	bool fails = no_memory && dapl_service_here();

	if (fails)
		no_memory = false;
	return fails ? NULL : __real_calloc(n, size);
}

/* The peer is this implementation: only such peers are told of a refused write. */
static void initiator_waits_while_the_acceptor_has_no_memory(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	no_memory = true;
	connect_ends(&a, &b, &plain);
	assert_false(no_memory);
	OK(write_to(&a, 1, (uintptr_t)b.buf, b.mr->rkey + 1, 8));
	expect_wc(a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_up(BROKEN, &a);
	expect_up(BROKEN, &b);
	close_pair(&a, &b);
}

static void type_1_windows_bind_and_protect(void **state)
{
	struct end a, b;
	struct ibv_mw *mw;
	uint32_t old;

	(void)state;
	open_pair(&a, &b, &plain);
	OK(ops->alloc_mw(b.pd, IBV_MW_TYPE_1, &mw));
	OK(bind1(&b, mw, 1000, 100, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(done(b.scq, 77).opcode, IBV_WC_BIND_MW);
	assert_int_equal(ops->dereg_mr(b.mr), EBUSY);
	OK(write_to(&a, 1, (uintptr_t)b.buf + 1000, mw->rkey, 100));
	done(a.scq, 1);
	old = mw->rkey;
	OK(bind1(&b, mw, 2000, 100, IBV_ACCESS_REMOTE_WRITE));
	done(b.scq, 77);
	assert_int_not_equal(old, mw->rkey);
	OK(write_to(&a, 1, (uintptr_t)b.buf + 2050, mw->rkey, 50));
	done(a.scq, 1);
	OK(write_to(&a, 1, (uintptr_t)b.buf + 1000, old, 100));
	expect_wc(a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_up(BROKEN, &a);
	OK(ops->dealloc_mw(mw));
	close_pair(&a, &b);

	/* outside the window; unbound by a bind of length 0 */
	for (int unbound = 0; unbound < 2; unbound++) {
		open_pair(&a, &b, &plain);
		OK(ops->alloc_mw(b.pd, IBV_MW_TYPE_1, &mw));
		OK(bind1(&b, mw, 1000, 100, IBV_ACCESS_REMOTE_WRITE));
		done(b.scq, 77);
		if (unbound) {
			OK(bind1(&b, mw, 0, 0, 0));
			done(b.scq, 77);
		}
		OK(write_to(&a, 1, (uintptr_t)b.buf + 1000 + (unbound ? 0 : 1), mw->rkey, 100));
		expect_wc(a.scq, 1, IBV_WC_REM_ACCESS_ERR);
		OK(ops->dealloc_mw(mw));
		close_pair(&a, &b);
	}
}

static void type_2_windows_bind_and_invalidate(void **state)
{
	struct end a, b;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct ibv_send_wr inv = { .wr_id = 5, .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge,
		.num_sge = 1, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED };
	struct ibv_send_wr local = { .wr_id = 6, .opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	uint32_t key;

	(void)state;
	for (int remote = 0; remote < 3; remote++) {
		open_pair(&a, &b, &plain);
		OK(ops->alloc_mw(b.pd, IBV_MW_TYPE_2, &mw));
		key = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
		OK(bind2(&b, mw, key, 1000, 100, IBV_ACCESS_REMOTE_WRITE));
		done(b.scq, 77);
		assert_int_equal(mw->rkey, key);
		OK(write_to(&a, 1, (uintptr_t)b.buf + 1000, key, 100));
		done(a.scq, 1);
		sge = sge_of(&a, 0, 10);
		inv.invalidate_rkey = local.invalidate_rkey = key;
		if (remote == 1) {
			OK(post_recv(&b, 3, 0, 10));
			OK(post_wr(&a, &inv));
			wc = done(b.rcq, 3);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, key);
			done(a.scq, 5);
		} else if (!remote) {
			OK(post_wr(&b, &local));
			assert_int_equal(done(b.scq, 6).opcode, IBV_WC_LOCAL_INV);
		}
		if (remote == 2) {	/* still bound: a second bind is an error */
			OK(bind2(&b, mw, key, 0, 10, IBV_ACCESS_REMOTE_WRITE));
			expect_wc(b.scq, 77, IBV_WC_MW_BIND_ERR);
			expect_up(BROKEN, &b);
			expect_up(BROKEN, &a);
		} else {
			OK(write_to(&a, 1, (uintptr_t)b.buf + 1000, key, 100));
			expect_wc(a.scq, 1, IBV_WC_REM_ACCESS_ERR);
		}
		OK(ops->dealloc_mw(mw));
		close_pair(&a, &b);
	}
	/* invalidating what may not be invalidated */
	open_pair(&a, &b, &plain);
	sge = sge_of(&a, 0, 10);
	inv.invalidate_rkey = b.mr->rkey;
	OK(post_recv(&b, 3, 0, 10));
	OK(post_wr(&a, &inv));
	expect_wc(a.scq, 5, IBV_WC_REM_ACCESS_ERR);
	expect_wc(b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
	close_pair(&a, &b);
}

/* --- tests: shared receive queues, completion queues ---------------------------------------------------- */

static void shared_receive_queue_feeds_all_its_qps(void **state)
{
	struct options o = plain;
	struct end a, b, a2, b2;
	struct ibv_srq_attr attr = { 0 };
	struct upcall up;

	(void)state;
	o.srq = true;
	open_pair(&a, &b, &o);
	a2 = a;
	b2 = b;
	a2.qp = make_qp(&a, &o);
	b2.qp = make_qp(&b, &o);
	connect_ends(&a2, &b2, &o);
	for (int i = 0; i < 4; i++)
		OK(post_recv(&b, i, i * 100, 100));
	attr.srq_limit = 3;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_LIMIT));
	expect_no_up(ASYNC, b.srq);
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	assert_int_equal(done(b.rcq, 0).qp_num, b.qp->qp_num);
	expect_no_up(ASYNC, b.srq);
	OK(post(&a2, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	assert_int_equal(done(b.rcq, 1).qp_num, b2.qp->qp_num);
	up = expect_up(ASYNC, b.srq);
	assert_int_equal(up.event, IBV_EVENT_SRQ_LIMIT_REACHED);
	done(a.scq, 1);
	done(a.scq, 2);
	/* empties it; messages wait on both QPs, and are received once receives are posted */
	for (int i = 0; i < 4; i++)
		OK(post(i & 1 ? &a2 : &a, i, IBV_WR_SEND, 0, 0, 20, NULL, 0));
	done(b.rcq, 2);
	done(b.rcq, 3);
	expect_no_wc(b.rcq);
	expect_no_up(ASYNC, b.srq);
	attr.max_wr = 200;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR));
	OK(post_recv(&b, 10, 0, 100));
	done(b.rcq, 10);
	OK(post_recv(&b, 11, 0, 100));
	done(b.rcq, 11);
	for (int i = 0; i < 200; i++)
		OK(post_recv(&b, i, 0, 100));
	attr.max_wr = 100;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 0;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = SOFT_MAX_WR + 1;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = SOFT_MAX_WR;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR));
	/* receives stay when a QP is destroyed, and the last-WQE event comes */
	OK(ops->error_qp(b2.qp));
	up = expect_up(ASYNC, b2.qp);
	assert_int_equal(up.event, IBV_EVENT_QP_LAST_WQE_REACHED);
	expect_no_wc(b.rcq);
	release_conn(&a2);
	release_conn(&b2);
	OK(ops->destroy_qp(a2.qp));
	OK(ops->destroy_qp(b2.qp));
	OK(post(&a, 5, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	done(b.rcq, 0);
	done(a.scq, 5);
	assert_int_equal(ops->destroy_srq(b.srq), EBUSY);
	close_pair(&a, &b);
}

static bool readable(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void completion_channel_notifies_once_per_request(void **state)
{
	struct end a, b;
	struct ibv_cq *cq;
	struct ibv_wc wc;

	(void)state;
	open_pair(&a, &b, &plain);
	for (int i = 0; i < 10; i++)
		OK(post_recv(&b, i, 0, 100));
	assert_int_equal(ops->get_cq_event(b.channel, &cq), EAGAIN);
	OK(ibv_req_notify_cq(b.rcq, 0));
	assert_false(readable(b.channel, 10));
	OK(post(&a, 1, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	assert_true(readable(b.channel, 10000));
	OK(post(&a, 2, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	OK(ops->get_cq_event(b.channel, &cq));
	assert_ptr_equal(cq, b.rcq);
	assert_int_equal(ops->get_cq_event(b.channel, &cq), EAGAIN);
	assert_false(readable(b.channel, 10));
	done(b.rcq, 0);
	done(b.rcq, 1);
	/* solicited only */
	OK(ibv_req_notify_cq(b.rcq, 1));
	OK(post(&a, 3, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	assert_false(readable(b.channel, 50));
	OK(post(&a, 4, IBV_WR_SEND, IBV_SEND_SOLICITED, 0, 10, NULL, 0));
	assert_true(readable(b.channel, 10000));
	OK(ops->get_cq_event(b.channel, &cq));
	done(b.rcq, 2);
	done(b.rcq, 3);
	/* an error counts as solicited */
	OK(ibv_req_notify_cq(b.rcq, 1));
	OK(ops->error_qp(b.qp));
	assert_true(readable(b.channel, 10000));
	OK(ops->get_cq_event(b.channel, &cq));
	/* two CQs of one channel, and a CQ that is destroyed with its event */
	OK(ibv_req_notify_cq(b.rcq, 0));
	OK(ibv_req_notify_cq(b.scq, 0));
	OK(post_recv(&b, 1, 0, 100));
	OK(post(&b, 2, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	OK(ops->get_cq_event(b.channel, &cq));
	assert_ptr_equal(cq, b.rcq);
	while (ibv_poll_cq(b.rcq, 1, &wc))
		;
	close_pair(&a, &b);
}

static void ping_pong_of_blocked_threads(void **state)
{
	struct end a, b, *e[2] = { &a, &b };
	struct ibv_cq *cq;
	struct ibv_wc wc;

	(void)state;
	open_pair(&a, &b, &plain);
	OK(post_recv(&a, 0, 0, 64));
	OK(post_recv(&b, 0, 0, 64));
	for (int i = 0; i < 200; i++) {
		struct end *from = e[i & 1], *to = e[!(i & 1)];

		OK(ibv_req_notify_cq(to->rcq, 0));
		assert_int_equal(ibv_poll_cq(to->rcq, 1, &wc), 0);
		OK(post(from, i, IBV_WR_SEND, 0, 0, 64, NULL, 0));
		assert_true(readable(to->channel, 10000));
		OK(ops->get_cq_event(to->channel, &cq));
		assert_int_equal(ibv_poll_cq(to->rcq, 1, &wc), 1);
		assert_int_equal(wc.status, 0);
		OK(post_recv(to, 0, 0, 64));
	}
	close_pair(&a, &b);
}

static void cq_overrun_is_reported_and_resize_keeps_completions(void **state)
{
	struct options o = plain;
	struct end a, b;
	struct upcall up;
	int n = 0;
	struct ibv_wc wc;

	(void)state;
	o.cqe = 16;
	open_pair(&a, &b, &o);
	for (int i = 0; i < 10; i++)
		OK(post_recv(&b, i, 0, 8));
	for (int i = 0; i < 10; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	for (int i = 0; i < 10; i++)
		done(a.scq, i);
	OK(ops->resize_cq(b.rcq, 100));
	assert_true(b.rcq->cqe >= 100);
	for (int i = 10; i < 60; i++)
		OK(post_recv(&b, i, 0, 8));
	OK(ops->error_qp(b.qp));
	for (int i = 0; i < 60; i++)
		expect_wc(b.rcq, i, i < 10 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 60; i++)
		OK(post_recv(&b, i, 0, 8));
	assert_int_equal(ops->resize_cq(b.rcq, 16), EINVAL);
	/* an overrun gives one event; the completions that fit are kept */
	OK(ops->error_qp(a.qp));
	for (int i = 0; i < 40; i++)
		OK(post(&a, i, IBV_WR_SEND, 0, 0, 8, NULL, 0));
	up = expect_up(ASYNC, a.scq);
	assert_int_equal(up.event, IBV_EVENT_CQ_ERR);
	expect_no_up(ASYNC, a.scq);
	while (ibv_poll_cq(a.scq, 1, &wc))
		n++;
	assert_int_equal(n, a.scq->cqe);
	close_pair(&a, &b);
}

static void destroyed_qp_leaves_no_completion_in_the_cq(void **state)
{
	struct end a, b;
	struct ibv_wc wc;

	(void)state;
	open_end(&a, &plain);
	open_end(&b, &plain);
	for (int i = 0; i < 5; i++)
		OK(post_recv(&a, i, 0, 8));
	OK(ops->error_qp(a.qp));
	OK(ops->destroy_qp(a.qp));
	assert_int_equal(ibv_poll_cq(a.rcq, 1, &wc), 0);
	a.qp = make_qp(&a, &plain);
	assert_int_equal(ops->destroy_cq(a.rcq), EBUSY);
	assert_int_equal(ops->dealloc_pd(a.pd), EBUSY);
	close_pair(&a, &b);
}

/* --- tests: datagrams ------------------------------------------------------------------------------------ */

static void datagrams_arrive_or_are_lost_whole(void **state)
{
	struct options o = plain;
	struct end a, b;
	struct dapl_listener *listener;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM, .sg_list = &sge,
		.num_sge = 1, .send_flags = IBV_SEND_SIGNALED };
	struct upcall at_a, at_b;
	uint16_t port = 0;
	struct ibv_wc wc;

	(void)state;
	o.ud = true;
	open_end(&a, &o);
	open_end(&b, &o);
	OK(ops->listen(b.dev, NULL, &port, true, 8, &listener, &listener));
	to = address_of(&b, port);
	params = params_of(&a, &o, &to);
	params.pdata = "hi";
	params.pdata_len = 3;
	OK(ops->connect(a.dev, &params, &a.conn));
	at_b = expect_up(REQUEST, &listener);
	assert_true(at_b.ud);
	assert_string_equal(at_b.pdata, "hi");
	b.conn = at_b.conn;
	params = params_of(&b, &o, NULL);
	params.pdata = "ho";
	params.pdata_len = 3;
	OK(ops->accept(b.conn, &params));
	at_a = expect_up(ESTABLISHED, &a);
	assert_string_equal(at_a.pdata, "ho");
	at_b = expect_up(ESTABLISHED, &b);
	assert_int_equal(at_a.peer.qpn, b.qp->qp_num);
	assert_int_equal(at_b.peer.qpn, a.qp->qp_num);
	release_conn(&a);
	release_conn(&b);

	fill(a.buf, 4096, 8);
	sge = sge_of(&a, 0, 4096);
	wr.imm_data = htonl(99);
	wr.wr.ud.ah = at_a.peer.ah;
	wr.wr.ud.remote_qpn = at_a.peer.qpn;
	wr.wr.ud.remote_qkey = at_a.peer.qkey;
	OK(post_wr(&a, &wr));			/* no receive: the datagram is lost */
	done(a.scq, 1);
	expect_no_wc(b.rcq);
	OK(post_recv(&b, 2, 0, 5000));
	OK(post_wr(&a, &wr));
	done(a.scq, 1);
	wc = done(b.rcq, 2);
	assert_int_equal(wc.byte_len, 40 + 4096);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(99));
	assert_int_equal(wc.src_qp, a.qp->qp_num);
	assert_memory_equal(b.buf + 40, a.buf, 4096);
	/* wrong Q_Key: lost */
	wr.wr.ud.remote_qkey++;
	OK(post_recv(&b, 3, 0, 5000));
	OK(post_wr(&a, &wr));
	done(a.scq, 1);
	expect_no_wc(b.rcq);
	/* the other way */
	sge = sge_of(&b, 0, 100);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = at_b.peer.ah;
	wr.wr.ud.remote_qpn = at_b.peer.qpn;
	wr.wr.ud.remote_qkey = at_b.peer.qkey;
	OK(post_recv(&a, 4, 0, 50));
	OK(post_recv(&a, 5, 0, 5000));
	OK(post_wr(&b, &wr));
	OK(post_wr(&b, &wr));
	expect_wc(a.rcq, 4, IBV_WC_LOC_LEN_ERR);
	wc = done(a.rcq, 5);
	assert_int_equal(wc.byte_len, 140);
	done(b.scq, 1);
	done(b.scq, 1);
	sge.length = 5000;
	OK(post_wr(&b, &wr));
	expect_wc(b.scq, 1, IBV_WC_LOC_LEN_ERR);
	OK(ops->destroy_ah(at_a.peer.ah));
	OK(ops->destroy_ah(at_b.peer.ah));
	ops->unlisten(listener);
	close_pair(&a, &b);
}

/* --- tests: two processes, and an end of one ---------------------------------------------------------------- */

static void serve_child(int out)
{
	struct end e;
	struct dapl_listener *listener;
	struct dapl_conn_params params;
	struct { uint16_t port; uint64_t addr; uint32_t rkey; } hello = { 0 };
	struct upcall up;

	open_end(&e, &plain);
	fill(e.buf, 1 << 20, 42);
	for (int i = 0; i < 32; i++)
		OK(post_recv(&e, i, 2 << 20, 1000));
	OK(ops->listen(e.dev, NULL, &hello.port, false, 8, &listener, &listener));
	hello.addr = (uintptr_t)e.buf;
	hello.rkey = e.mr->rkey;
	if (write(out, &hello, sizeof hello) != sizeof hello)
		_exit(1);
	up = expect_up(REQUEST, &listener);
	params = params_of(&e, &plain, NULL);
	OK(ops->accept(up.conn, &params));
	expect_up(ESTABLISHED, &e);
	for (;;)
		pause();	/* never polls: the service thread drives all progress */
}

static void stop(pid_t child)
{
	int status;

	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
}

static void blocked_process_makes_progress_and_its_exit_is_detected(void **state)
{
	struct { uint16_t port; uint64_t addr; uint32_t rkey; } hello;
	struct dapl_conn_params params;
	struct sockaddr_storage to;
	struct end a, peer;
	struct ibv_mr mr;
	int fds[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child)
		serve_child(fds[1]);
	assert_int_equal(read(fds[0], &hello, sizeof hello), sizeof hello);
	open_end(&a, &plain);
	to = address_of(&a, hello.port);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	expect_up(ESTABLISHED, &a);
	mr.rkey = hello.rkey;
	peer.mr = &mr;
	peer.buf = (char *)(uintptr_t)hello.addr;
	OK(post(&a, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 1 << 20, &peer, 0));
	done(a.scq, 1);
	fill(a.buf + (1 << 20), 1 << 20, 42);
	assert_memory_equal(a.buf, a.buf + (1 << 20), 1 << 20);
	OK(post(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1000, NULL, 0));
	OK(post(&a, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 1000, &peer, 0));
	done(a.scq, 2);
	done(a.scq, 3);
	OK(post_atomic(&a, 4, false, 1, 0, 8, &peer, 64));
	done(a.scq, 4);
	/* a stopped process answers nothing, and continues later; reads need its progress */
	stop(child);
	OK(post_atomic(&a, 5, false, 1, 0, 8, &peer, 64));
	expect_no_wc(a.scq);
	kill(child, SIGCONT);
	done(a.scq, 5);
	/* a killed process: outstanding requests end */
	stop(child);
	OK(post_recv(&a, 9, 0, 8));
	OK(post_atomic(&a, 6, false, 1, 0, 8, &peer, 64));
	OK(post(&a, 7, IBV_WR_RDMA_READ, 0, 0, 1000, &peer, 0));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	expect_wc(a.scq, 6, IBV_WC_RETRY_EXC_ERR);
	expect_wc(a.scq, 7, IBV_WC_WR_FLUSH_ERR);
	expect_wc(a.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	expect_up(BROKEN, &a);
	close(fds[0]);
	close(fds[1]);
	close_end(&a);
}

static void idle_process_uses_no_processor(void **state)
{
	struct timespec before, after;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, &plain);
	OK(post_recv(&b, 1, 0, 8));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	done(a.scq, 1);
	done(b.rcq, 1);
	usleep(20000);		/* the service thread takes over from the poller */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	usleep(500000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec <
		    5000000);
	close_pair(&a, &b);
}

static __thread unsigned yields;
int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	yields++;
	return __real_sched_yield();
}

/* The service thread may wait for the polling thread's own processor. Without a yield it would
 * wait until the time slice ends, during which the polls are empty. */
static void poller_without_the_lock_yields(void **state)
{
	struct end a, b;
	struct ibv_wc wc;

	(void)state;
	open_pair(&a, &b, &plain);
	soft_progress_lock(a.dev);
	yields = 0;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ibv_poll_cq(a.scq, 1, &wc), 0);
		ops->idle();
	}
	soft_progress_unlock(a.dev);
	assert_true(yields > 0);
	close_pair(&a, &b);
}

static void a_fork_leaves_the_parent_unharmed(void **state)
{
	struct end a, b;
	struct ibv_wc wc;
	pid_t child;
	int status;

	(void)state;
	open_pair(&a, &b, &plain);
	child = fork();
	if (!child) {	/* may make calls, which have no effect */
		ibv_poll_cq(a.scq, 1, &wc);
		post(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &b, 0);
		ibv_poll_cq(a.scq, 1, &wc);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	OK(post_recv(&b, 1, 0, 8));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	done(a.scq, 1);
	done(b.rcq, 1);
	close_pair(&a, &b);
}

/* --- tests: many threads ------------------------------------------------------------------------------------- */

struct storm {
	struct end *e, *peer;
	int n;
};

static void *storm_sender(void *arg)
{
	struct storm *s = arg;
	int posted = 0, completed = 0;
	struct ibv_wc wc[16];

	while (completed < s->n) {
		int k;

		while (posted < s->n && posted - completed < 60) {
			int err = post(s->e, posted, posted % 3 ? IBV_WR_SEND : IBV_WR_RDMA_READ,
				       IBV_SEND_SIGNALED, 0, posted % 3 ? posted % 3000 : 512,
				       posted % 3 ? NULL : s->peer, 0);

			assert(!err);
			posted++;
		}
		k = ibv_poll_cq(s->e->scq, 16, wc);
		for (int i = 0; i < k; i++)
			assert(wc[i].status == IBV_WC_SUCCESS &&
			       wc[i].wr_id == (uint64_t)completed + i);
		completed += k;
	}
	return NULL;
}

static void *storm_receiver(void *arg)
{
	struct storm *s = arg;
	int got = 0, want = s->n - (s->n + 2) / 3;
	struct ibv_wc wc[16];

	for (int i = 0; i < 100; i++)
		assert(!post_recv(s->e, i, 1 << 20, 4096));
	while (got < want) {
		int k = ibv_poll_cq(s->e->rcq, 16, wc);

		for (int i = 0; i < k; i++) {
			assert(wc[i].status == IBV_WC_SUCCESS);
			assert(!post_recv(s->e, 0, 1 << 20, 4096));
		}
		got += k;
	}
	return NULL;
}

static void threads_on_both_ends_transfer_concurrently(void **state)
{
	struct end a, b;
	struct storm s[4] = { { &a, &b, 4000 }, { &b, &a, 4000 }, { &a, &b, 4000 },
		{ &b, &a, 4000 } };
	pthread_t t[4];

	(void)state;
	open_pair(&a, &b, &plain);
	pthread_create(&t[0], NULL, storm_sender, &s[0]);
	pthread_create(&t[1], NULL, storm_sender, &s[1]);
	pthread_create(&t[2], NULL, storm_receiver, &s[2]);
	pthread_create(&t[3], NULL, storm_receiver, &s[3]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	close_pair(&a, &b);
}

static int empty_record(void **state)
{
	(void)state;
	upcalls_drop(NULL);
	return 0;
}

#define T(name) cmocka_unit_test_teardown(name, empty_record)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(blocked_process_makes_progress_and_its_exit_is_detected),
		T(device_opens_by_interface_address_and_name),
		T(private_data_arrives_whole_and_exact),
		T(connect_fails_for_the_right_reason),
		T(request_to_the_other_kind_of_listener_is_refused),
		T(disconnect_tells_the_peer_after_its_data),
		T(both_ends_disconnect_at_once),
		T(unsent_requests_do_not_delay_an_abrupt_disconnect),
		T(many_connections_come_and_go),
		T(sends_of_all_sizes_arrive),
		T(acceptor_may_send_first),
		T(segments_scatter_and_gather),
		T(inline_data_is_taken_at_the_post),
		T(writes_and_reads_of_all_sizes_arrive),
		T(immediate_data_arrives),
		T(atomics_return_the_previous_value),
		T(reads_beyond_ord_wait_and_order_holds),
		T(fence_holds_a_write_behind_a_read),
		T(unsignalled_requests_make_no_completion),
		T(post_to_a_full_queue_fails),
		T(sends_wait_for_receives_and_reads_pass_them),
		T(one_message_larger_than_the_window_waits),
		T(error_flushes_all_requests_in_order),
		T(remote_protection_is_enforced),
		T(receive_that_is_too_short_fails),
		T(local_protection_is_enforced),
		T(reads_beyond_the_agreed_number_fail),
		T(deregistered_memory_is_not_accessible),
		T(deregistered_memory_is_not_sent),
		T(initiator_waits_while_the_acceptor_has_no_memory),
		T(type_1_windows_bind_and_protect),
		T(type_2_windows_bind_and_invalidate),
		T(shared_receive_queue_feeds_all_its_qps),
		T(completion_channel_notifies_once_per_request),
		T(ping_pong_of_blocked_threads),
		T(cq_overrun_is_reported_and_resize_keeps_completions),
		T(destroyed_qp_leaves_no_completion_in_the_cq),
		T(datagrams_arrive_or_are_lost_whole),
		T(idle_process_uses_no_processor),
		T(poller_without_the_lock_yields),
		T(a_fork_leaves_the_parent_unharmed),
		T(threads_on_both_ends_transfer_concurrently),
	};

	alarm(300);
	dapl_settings_read();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("soft_device", tests, NULL, NULL);
}
