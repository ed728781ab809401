/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_errors.c - tests of test_device: what fails: flushes, protection, receives that are too short, memory
 * that was deregistered, allocations of the acceptor. */
#include "common/log.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "test/unit/printed.h"
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "test/unit/unit.h"

void error_flushes_all_requests_in_order(void **state)
{
	struct end a, b;

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

void remote_protection_is_enforced(void **state)
{
	struct end a, b;
	struct ibv_mr *other;
	struct ibv_pd *pd;
	struct ibv_sge sge;

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

void receive_that_is_too_short_fails(void **state)
{
	struct end a, b;

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

void local_protection_is_enforced(void **state)
{
	struct end a, b;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_mr *readonly;

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

/* The QP caches the region of its last send. Context 0 must not match a region that was freed. */
void deregistered_memory_is_not_sent(void **state)
{
	struct end a, b;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

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

void reads_beyond_the_agreed_number_fail(void **state)
{
	struct options o = plain;
	struct end a, b;

	o.reads = 0;
	open_pair(&a, &b, &o);
	OK(post(&a, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 8, &b, 0));
	expect_wc(a.scq, 1, IBV_WC_LOC_QP_OP_ERR);
	expect_up(BROKEN, &a);
	close_pair(&a, &b);
}

void deregistered_memory_is_not_accessible(void **state)
{
	struct end a, b;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	int n = 0;

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

/* The next allocation of the service thread, or that of a device, fails. */
static _Atomic bool no_memory;

EXTEND(calloc)
void *__wrap_calloc(size_t n, size_t size)
{
	bool fails = no_memory && (dapl_service_here() || size > sizeof(struct dapl_device));

	if (fails)
		no_memory = false;
	return fails ? NULL : __real_calloc(n, size);
}

static void open_without_memory(void *ia)
{
	struct dapl_device *dev;

	no_memory = true;
	assert_int_equal(ops->open("eth\t0", ia, &dev), ENOMEM);
	assert_false(no_memory);
}

void device_without_memory_is_reported(void **state)
{
	unsigned mask = log_mask;
	const char *text;

	log_mask = 3;
	text = printed_by(open_without_memory, state);
	log_mask = mask;
	assert_int_equal(times_in(text, "\n"), 1);
	assert_int_equal(times_in(text, "soft: open eth?0: Cannot allocate memory\n"), 1);
}

/* The peer is this implementation: only to such peers is a refused write reported. */
void initiator_waits_while_the_acceptor_has_no_memory(void **state)
{
	struct end a, b;

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
