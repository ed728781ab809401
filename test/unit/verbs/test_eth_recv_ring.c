/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_recv_ring.c - the ring of eth_recv.c: its slots, frames in order, slots given back, and the completion for
 * an armed ring. */
#include "dapl/verbs/eth_recv.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_receives.h"

enum { SLOTS = 8, MANY = 64, SNAP = 100, SLOT = 128 };

static const uint8_t *slot(unsigned n) { return q.ring.at + (size_t)(n % SLOTS) * SLOT; }

static void frames_come(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		frame_comes(0, 60 + i);
}

static int poll(struct dapl_eth_frame *into, int max) { return hw_eth_ring_poll(&q.qp, into, max); }

#define TEST(name) UNIT_TEST_WITH(name, receives_begin, receives_end)

TEST(slots_are_aligned_and_a_power_of_two)
{
	open_ring(5, SNAP);
	assert_int_equal(q.config.ring_frames, SLOTS);
	assert_int_equal(q.config.mask, SLOTS - 1);
	assert_int_equal(q.config.snap, SNAP);
	assert_int_equal(q.slot, SLOT);
	assert_int_equal(mrs[1].length, SLOTS * SLOT);
	assert_int_equal(cqe_asked, SLOTS);
}

TEST(frames_are_kept_whole_unless_they_are_cut)
{
	static const uint32_t snaps[] = { 0, LONGEST, LONGEST + 1, 64, 65 },
		kept[] = { LONGEST, LONGEST, LONGEST, 64, 65 };

	for (int i = 0; i < 5; i++) {
		receives_begin(state);
		open_ring(SLOTS, snaps[i]);
		assert_int_equal(q.config.snap, kept[i]);
		assert_int_equal(q.slot, (kept[i] + 63) / 64 * 64);
		assert_int_equal(posted[0].num_sge, kept[i] == LONGEST ? 1 : 2);
		assert_int_equal(receives_end(state), 0);
	}
}

TEST(each_slot_is_posted_with_a_segment_for_the_rest)
{
	open_ring(SLOTS, SNAP);
	assert_int_equal(posts, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(posted[i].sge[0].addr, (uintptr_t)slot(i));
		assert_int_equal(posted[i].sge[0].length, SNAP);
		assert_int_equal(posted[i].sge[0].lkey, mrs[1].lkey);
		assert_int_equal(posted[i].num_sge, 2);
		assert_int_equal(posted[i].sge[1].length, LONGEST - SNAP);
		assert_int_equal(posted[i].sge[1].lkey, mrs[0].lkey);
	}
	assert_int_equal(hw_eth_recv_fill(&q), 0);	/* it is full */
	assert_int_equal(posts, SLOTS);
}

TEST(filling_ends_with_the_first_refused_slot)
{
	q.config.ring_frames = SLOTS;
	assert_int_equal(hw_eth_recv_open(&q), 0);
	refuse_at = 3;
	assert_int_equal(hw_eth_recv_fill(&q), ENOMEM);
	refuse_at = -1;
	assert_int_equal(hw_eth_recv_fill(&q), 0);
	assert_int_equal(posts, SLOTS);
}

TEST(frames_are_polled_in_order_and_once)
{
	struct dapl_eth_frame got[SLOTS];

	open_ring(SLOTS, SNAP);
	frames_come(5);
	assert_int_equal(poll(got, 2), 2);
	assert_int_equal(poll(got + 2, SLOTS), 3);
	assert_int_equal(poll(got, SLOTS), 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_ptr_equal(got[i].data, slot(i));
		assert_int_equal(got[i].length, 60 + i);
	}
	assert_int_equal(q.stats.received, 5);
}

TEST(long_frame_is_cut_to_its_slot)
{
	struct dapl_eth_frame got;

	open_ring(SLOTS, SNAP);
	frame_comes(0, 1000);
	assert_int_equal(poll(&got, 1), 1);
	assert_int_equal(got.length, SNAP);
	assert_int_equal(got.wire_length, 1000);
	assert_int_equal(got.tag, RULE_TAG);
}

/* With a ring that is larger than a batch of completions. */
TEST(poll_takes_all_that_came)
{
	struct dapl_eth_frame got[MANY];

	open_ring(MANY, SNAP);
	frames_come(40);
	assert_int_equal(poll(got, MANY), 40);
	assert_int_equal(got[39].length, 99);
	assert_int_equal(ready, 0);
}

TEST(failed_receives_are_no_frames)
{
	struct dapl_eth_frame got[2];

	open_ring(SLOTS, SNAP);
	frame_comes(0, 70);
	complete((struct completion){ .status = IBV_WC_WR_FLUSH_ERR });
	assert_int_equal(poll(got, 2), 1);
	assert_int_equal(got[0].length, 70);
	assert_int_equal(q.stats.received, 1);
}

TEST(slots_given_back_are_posted_again)
{
	struct dapl_eth_frame got[SLOTS];

	open_ring(SLOTS, SNAP);
	for (unsigned round = 0; round < 3; round++) {
		frames_come(5);
		assert_int_equal(poll(got, SLOTS), 5);
		assert_ptr_equal(got[0].data, slot(5 * round));
		assert_int_equal(hw_eth_ring_release(&q.qp, 5), 0);
		assert_int_equal(posts, SLOTS + 5 * (round + 1));
		assert_int_equal(posted[posts - 1].sge[0].addr, (uintptr_t)slot(posts - 1));
	}
}

TEST(only_polled_frames_are_given_back)
{
	struct dapl_eth_frame got[SLOTS];

	open_ring(SLOTS, SNAP);
	frames_come(5);
	assert_int_equal(poll(got, 3), 3);
	assert_int_equal(hw_eth_ring_release(&q.qp, 4), EINVAL);
	assert_int_equal(posts, SLOTS);
	assert_int_equal(hw_eth_ring_release(&q.qp, 2), 0);
	assert_int_equal(hw_eth_ring_release(&q.qp, 2), EINVAL);
	assert_int_equal(hw_eth_ring_release(&q.qp, 1), 0);
	assert_int_equal(hw_eth_ring_release(&q.qp, 0), 0);
	assert_int_equal(posts, SLOTS + 3);
}

TEST(armed_ring_has_one_completion)
{
	struct dapl_eth_frame got[SLOTS];
	struct ibv_wc wc[4];

	open_ring(SLOTS, SNAP);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);
	assert_int_equal(hw_eth_ring_arm(&q.qp, 44), 0);
	assert_int_equal(notifies, 1);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);
	frames_come(2);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 44);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV);
	assert_int_equal(wc[0].qp_num, 33);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);
	assert_int_equal(poll(got, SLOTS), 2);
}

TEST(frames_that_are_here_make_no_event)
{
	struct dapl_eth_frame got[SLOTS];
	struct ibv_wc wc[4];

	open_ring(SLOTS, SNAP);
	frames_come(2);
	assert_int_equal(hw_eth_ring_arm(&q.qp, 44), EALREADY);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 44);
	assert_int_equal(poll(got, 1), 1);
	assert_int_equal(hw_eth_ring_arm(&q.qp, 45), EALREADY);	/* one was not polled */
}

TEST(ring_that_cannot_be_armed_has_no_completion)
{
	struct ibv_wc wc[4];

	open_ring(SLOTS, SNAP);
	no_notify = ENOMEM;
	assert_int_equal(hw_eth_ring_arm(&q.qp, 44), ENOMEM);
	frames_come(1);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);
}

TEST(reset_empties_the_ring)
{
	struct dapl_eth_frame got[SLOTS];
	struct ibv_wc wc[4];

	open_ring(MANY, SNAP);
	frames_come(3);
	assert_int_equal(poll(got, 2), 2);
	frames_come(20);
	assert_int_equal(hw_eth_ring_arm(&q.qp, 44), EALREADY);
	frames_come(20);
	hw_eth_recv_empty(&q);
	assert_int_equal(ready, 0);
	assert_int_equal(poll(got, SLOTS), 0);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);
	assert_int_equal(hw_eth_ring_release(&q.qp, 1), EINVAL);
	posts = 0;
	assert_int_equal(hw_eth_recv_fill(&q), 0);
	assert_int_equal(posts, MANY);
	assert_int_equal(posted[0].sge[0].addr, (uintptr_t)slot(0));
	frames_come(1);
	assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 0);	/* it is armed no more */
}

UNIT_MAIN(NULL, NULL)
