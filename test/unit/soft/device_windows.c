/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_windows.c - tests of test_device: memory windows, which bind, protect and are invalidated. */
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "test/unit/unit.h"

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

void type_1_windows_bind_and_protect(void **state)
{
	struct end a, b;
	struct ibv_mw *mw;
	uint32_t old;

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

void type_2_windows_bind_and_invalidate(void **state)
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
