/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap_messages.c - what a capture of an RDMA device records of posts and completions, and what the device gets
 * and returns meanwhile. Captures and connections are test_tap.c's. */
#include "dapl/verbs/tap.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/tapped.h"

#define TEST_CAPTURED(name) UNIT_TEST_WITH(name, tapped_begin_captured, tapped_end)
#define TEST(name) UNIT_TEST_WITH(name, tapped_begin, tapped_end)

/* --- posts ------------------------------------------------------------------------------------------------------ */

TEST_CAPTURED(refused_requests_are_not_shown)
{
	struct ibv_sge sge = bytes(7);
	struct ibv_send_wr wr[3], *bad = NULL;

	for (unsigned i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = i + 1, .next = i < 2 ? &wr[i + 1] : NULL, .opcode = IBV_WR_SEND,
			.sg_list = &sge, .num_sge = 1 };
	refused = 2;
	assert_int_equal(ibv_post_send(&qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);		/* the program's own */
	assert_int_equal(posts, 1);
	assert_ptr_equal(wr[0].next, &wr[1]);
	assert_true(next_record());
	assert_false(next_record());
	refused = 0;
	assert_int_equal(ibv_post_send(&qp, wr, &bad), 0);
	assert_int_equal(posts, 4);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(posted[i], i);
	assert_true(next_record() && next_record() && next_record());
}

TEST_CAPTURED(payload_is_that_of_all_segments)
{
	struct ibv_sge sge[3] = { bytes(3), bytes(0), bytes(4) };

	sge[2].addr += 3;
	assert_int_equal(post(IBV_WR_RDMA_WRITE, sge, 3), 0);
	is_recorded(TAP_POSTED, TAP_WRITE, 7, "payload");
	assert_int_equal(post(IBV_WR_SEND, NULL, 0), 0);
	is_recorded(TAP_POSTED, TAP_SEND, 0, "");
}

/* The device reports the failure in a completion. */
TEST_CAPTURED(memory_that_is_not_there_is_left_out)
{
	struct ibv_sge sge[2] = { bytes(7), { .addr = 8, .length = 20 } };

	assert_int_equal(post(IBV_WR_SEND, sge, 2), 0);
	is_recorded(TAP_POSTED, TAP_SEND, 27, "payload");
	assert_int_equal(post(IBV_WR_SEND, &sge[1], 1), 0);
	is_recorded(TAP_POSTED, TAP_SEND, 20, "");
	assert_int_equal(posts, 2);
}

TEST_CAPTURED(payload_is_cut)
{
	struct ibv_sge sge[40];

	memset(memory, 'x', sizeof memory);
	sends(SNAP + 1);
	assert_true(next_record());
	assert_int_equal(seen.entry.message.length, SNAP + 1);
	assert_int_equal(seen.entry.message.captured, SNAP);
	for (int i = 0; i < 40; i++)
		sge[i] = bytes(1);
	assert_int_equal(post(IBV_WR_SEND, sge, 40), 0);
	assert_true(next_record());
	assert_int_equal(seen.entry.message.length, 40);
	assert_int_equal(seen.entry.message.captured, 32);	/* segments */
	end_capture();
	begin_capture(sizeof memory);
	sends(sizeof memory);
	assert_true(next_record());
	assert_int_equal(seen.entry.message.captured, 4096);	/* on the caller's stack */
}

/* --- completions ------------------------------------------------------------------------------------------------ */

TEST_CAPTURED(read_has_its_payload_when_it_completes)
{
	struct ibv_sge sge = bytes(6);

	assert_int_equal(post(IBV_WR_RDMA_READ, &sge, 1), 0);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	assert_int_equal(seen.entry.message.sink, (uintptr_t)memory);
	strcpy(memory, "answer");
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 6);
	is_recorded(TAP_ANSWERED, TAP_READ, 6, "answer");
	assert_int_equal(seen.entry.qpn, QPN);
	assert_int_equal(seen.entry.flags, TAP_ROCE);
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 6);	/* of a post before the capture */
	assert_false(next_record());
}

TEST_CAPTURED(receive_has_what_has_come)
{
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = { .wr_id = 128, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(&qp, &wr, &bad), 0);
	assert_int_equal(receives, 1);
	completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	assert_int_equal(ibv_post_srq_recv(&srq, &wr, &bad), ENOMEM);	/* what the device returns */
	assert_ptr_equal(bad, &wr);
	assert_int_equal(receives, 2);
	completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 3);
	is_recorded(TAP_RECEIVED, TAP_SEND, 3, "pay");
	completes(128, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
	completes(64, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
	assert_false(next_record());
}

TEST(receives_that_were_posted_without_a_capture_have_no_payload)
{
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = { .wr_id = 192, .sg_list = &sge, .num_sge = 1 }, *bad;

	begin_capture(SNAP);
	end_capture();
	ibv_post_recv(&qp, &wr, &bad);
	begin_capture(SNAP);
	completes(192, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "");
}

/* A thread may have loaded the function before the capture ended. */
TEST_CAPTURED(late_receives_reach_the_device_alone)
{
	int (*const late)(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) = context.ops.post_recv;
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = { .wr_id = 256, .sg_list = &sge, .num_sge = 1 }, *bad;

	end_capture();
	assert_int_equal(late(&qp, &wr, &bad), 0);
	assert_int_equal(receives, 1);
	begin_capture(SNAP);
	completes(256, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "");
}

TEST_CAPTURED(each_completion_of_a_poll_is_looked_at)
{
	struct ibv_sge sge = bytes(6);
	struct ibv_wc wc[4];

	post(IBV_WR_RDMA_READ, &sge, 1);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	for (int i = 0; i < 4; i++)
		completions[i] = (struct ibv_wc){ .opcode = i % 2 ? IBV_WC_RECV : IBV_WC_SEND, .byte_len = (uint32_t)i,
			.wr_id = i % 2 ? 1 : 64, .qp_num = QPN };
	completed = 4;
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 4);
	is_recorded(TAP_RECEIVED, TAP_SEND, 1, "");
	is_recorded(TAP_RECEIVED, TAP_SEND, 3, "");
	assert_false(next_record());
	completed = -1;				/* the device's error */
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), -1);
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 0);
	assert_false(next_record());
}

UNIT_FIXTURE(init) { tapped_init(); }

UNIT_MAIN(init, NULL)
