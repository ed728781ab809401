/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_request.c - what a send queue keeps of a request, inline data, binds, and malformed requests (post.c). The
 * socket is full, so requests wait in the send queue. */
#include "dapl/soft/verbs/post.h"
#include "test/unit/soft/stream_test.h"
#include "dapl/soft/shm/proto.h"
#include "test/unit/unit.h"

enum { INLINE_MAX = 64, SGES = 4 };	/* of the queue pair of a stream */

static int post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = soft_qp_post_send(&s.qp->qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

/* What the queue keeps of this request. */
static const struct soft_swqe *kept(struct ibv_send_wr *wr)
{
	uint32_t at = s.qp->sq_tail;

	assert_int_equal(post(wr), 0);
	assert_int_equal(s.qp->sq_tail, at + 1);
	return soft_swqe(s.qp, at);
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open_blocked, stream_test_close)

/* --- what a request keeps ------------------------------------------------------------------------------------ */

CASE(nothing_of_an_earlier_request_is_left)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 1 };
	struct soft_swqe *wqe = soft_swqe(s.qp, s.qp->sq_tail);

	wqe->state = SOFT_DONE;
	wqe->status = IBV_WC_REM_OP_ERR;
	wqe->length = 77;
	wqe->sges = 3;
	wqe->measured = true;
	wqe->proto = PROTO_UNDECIDED + 1;
	assert_ptr_equal(kept(&wr), wqe);
	assert_int_equal(wqe->state, SOFT_POSTED);
	assert_int_equal(wqe->status, IBV_WC_SUCCESS);
	assert_int_equal(wqe->length, 0);
	assert_int_equal(wqe->sges, 0);
	assert_int_equal(wqe->proto, PROTO_UNDECIDED);
	assert_false(wqe->measured);
}

/* --- inline data ---------------------------------------------------------------------------------------------- */

static struct ibv_send_wr inlined(struct ibv_sge *sge, int sges)
{
	return (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = sges,
				     .send_flags = IBV_SEND_INLINE };
}

CASE(inline_data_may_change_after_the_post)
{
	struct ibv_sge sge[] = { stream_test_sge(0, 10), { 0, 0, 12345 }, stream_test_sge(100, 20) };
	struct ibv_send_wr wr = inlined(sge, 3);
	const struct soft_swqe *wqe;
	char expected[30];

	for (int i = 0; i < 200; i++)
		stream_device.memory->local[i] = (char)i;
	memcpy(expected, stream_device.memory->local, 10);
	memcpy(expected + 10, stream_device.memory->local + 100, 20);
	wqe = kept(&wr);
	memset(stream_device.memory->local, 0, 200);
	assert_int_equal(wqe->length, 30);
	assert_int_equal(wqe->sges, 0);
	assert_true(wqe->flags & IBV_SEND_INLINE);
	assert_memory_equal(wqe->sge, expected, 30);
}

CASE(inline_data_of_no_region_fails_when_it_is_sent)
{
	struct ibv_sge sge[] = { stream_test_sge(0, 10), { 0x1000, 8, 12345 } };
	struct ibv_send_wr wr = inlined(sge, 2);
	const struct soft_swqe *wqe = kept(&wr);

	assert_int_equal(wqe->sges, 2);
	assert_false(wqe->flags & IBV_SEND_INLINE);
	assert_memory_equal(wqe->sge, sge, sizeof sge);
}

CASE(more_inline_data_than_the_queue_holds_is_refused)
{
	struct ibv_sge sge = stream_test_sge(0, INLINE_MAX);
	struct ibv_send_wr wr = inlined(&sge, 1);

	assert_int_equal(kept(&wr)->length, INLINE_MAX);
	sge.length++;
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(s.qp->sq_tail, 1);
}

CASE(results_cannot_be_inline)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = stream_test_sge(0, 8);

	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = inlined(&sge, 1);

		wr.opcode = opcodes[i];
		assert_int_equal(post(&wr), EINVAL);
	}
	assert_int_equal(s.qp->sq_tail, 0);
}

/* --- malformed requests ---- ------------------------------------------------------------------------------------ */

CASE(wrong_number_of_segments_is_refused)
{
	struct ibv_sge sge[SGES + 1] = { { 0 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = SGES };

	assert_int_equal(post(&wr), 0);
	wr.num_sge = SGES + 1;
	assert_int_equal(post(&wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(s.qp->sq_tail, 1);
}

CASE(unknown_operation_is_refused)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_TSO };

	assert_int_equal(post(&wr), EOPNOTSUPP);
	assert_int_equal(s.qp->sq_tail, 0);
}

/* --- windows ---------------------------------------------------------------------------------------------------- */

static struct ibv_mw_bind_info part_of_open(void)
{
	return (struct ibv_mw_bind_info){ .mr = stream_device.open, .addr = 16, .length = 100,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED };
}

static void expect_part_of_open(const struct soft_swqe *wqe, const struct ibv_mw *mw)
{
	assert_ptr_equal(&wqe->bind.mw->mw, mw);
	assert_ptr_equal(&wqe->bind.mr->mr, stream_device.open);
	assert_int_equal(wqe->bind.addr, 16);
	assert_int_equal(wqe->bind.length, 100);
	assert_int_equal(wqe->bind.access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
}

CASE(window_of_type_1_needs_its_own_call)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .bind_mw.bind_info = part_of_open() };
	struct ibv_mw *mw;
	uint32_t before;

	assert_int_equal(soft_mw_alloc(stream_device.pd, IBV_MW_TYPE_1, &mw), 0);
	before = mw->rkey;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = before + 1;
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(mw->rkey, before);
	assert_int_equal(s.qp->sq_tail, 0);
	assert_int_equal(soft_mw_dealloc(mw), 0);
}

CASE(device_chooses_the_key_of_a_type_1_window)
{
	struct ibv_mw_bind bind = { .wr_id = 6, .send_flags = IBV_SEND_SIGNALED, .bind_info = part_of_open() };
	const struct soft_swqe *wqe;
	struct ibv_mw *mw;

	assert_int_equal(soft_mw_alloc(stream_device.pd, IBV_MW_TYPE_1, &mw), 0);
	for (uint32_t i = 0; i < STREAM_WRS; i++) {
		uint32_t before = mw->rkey;

		assert_int_equal(soft_qp_bind_mw(&s.qp->qp, mw, &bind), 0);
		assert_int_not_equal(mw->rkey, before);
		assert_int_equal(mw->rkey >> 8, before >> 8);
		wqe = soft_swqe(s.qp, i);
		assert_int_equal(wqe->wr_id, 6);
		assert_int_equal(wqe->opcode, IBV_WR_BIND_MW);
		assert_int_equal(wqe->flags, IBV_SEND_SIGNALED);
		assert_true(wqe->bind_type1);
		assert_int_equal(wqe->rkey, mw->rkey);
		expect_part_of_open(wqe, mw);
	}
	assert_int_equal(soft_qp_bind_mw(&s.qp->qp, mw, &bind), ENOMEM);
	s.qp->sq_head = s.qp->sq_tail;
	assert_int_equal(soft_mw_dealloc(mw), 0);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
