/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_recv.c - receives of raw QPs: the CQ and the memory they need, the segment for the rest of a long frame,
 * and what is known of a frame. The ring is test_eth_recv_ring.c's. */
#include "dapl/verbs/eth_recv.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_receives.h"

#define TEST(name) UNIT_TEST_WITH(name, receives_begin, receives_end)

/* --- opening ------------------------------------------------------------------------------------------------ */

TEST(best_cq_of_the_device_is_made)
{
	static const uint64_t stamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, tags = IBV_WC_EX_WITH_FLOW_TAG;
	static const struct { uint64_t known; int tries; uint64_t got; } cases[] = {
		{ stamps | tags, 1, stamps | tags }, { tags, 2, tags }, { stamps, 3, stamps }, { 0, 4, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		receives_begin(state);
		known_flags = cases[i].known;
		open_posted();
		assert_int_equal(tries, cases[i].tries);
		assert_ptr_equal(q.cq, ibv_cq_ex_to_cq(&extended_cq));
		assert_int_equal(q.wc_flags, cases[i].got | IBV_WC_EX_WITH_BYTE_LEN);
		assert_int_equal(q.rules.tagged, !!(cases[i].got & tags));
		assert_int_equal(cqe_asked, RECEIVES);
		assert_int_equal(receives_end(state), 0);
	}
	receives_begin(state);
	known_flags = ~(uint64_t)0;
	open_posted();
	assert_ptr_equal(q.cq, &plain_cq);
	assert_null(q.cq_ex);
	assert_false(q.rules.tagged);
	assert_int_equal(cqe_asked, RECEIVES);
}

TEST(what_probing_did_not_find_is_not_asked_for)
{
	eth.caps.tags = clock_works = false;
	open_posted();
	assert_int_equal(tries, 1);
	assert_int_equal(tried[0], 0);
}

TEST(cq_has_at_least_one_entry)
{
	q.init.cap.max_recv_wr = 0;
	open_posted();
	assert_int_equal(cqe_asked, 1);
}

TEST(longest_frame_has_two_tags_and_perhaps_an_fcs)
{
	open_posted();
	assert_int_equal(mrs[0].length, LONGEST);
	assert_int_equal(receives_end(state), 0);
	receives_begin(state);
	q.config.fcs = true;
	open_posted();
	assert_int_equal(mrs[0].length, LONGEST + HW_ETH_FCS);
}

TEST(failed_opening_leaves_nothing_after_the_close)
{
	for (int region = 0; region < 2; region++) {
		receives_begin(state);
		q.config.ring_frames = 4;
		bad_region = region;
		assert_int_equal(hw_eth_recv_open(&q), ENOMEM);
		assert_int_equal(receives_end(state), 0);
	}
}

/* --- posting -------------------------------------------------------------------------------------------------- */

TEST(receive_has_a_segment_for_the_rest)
{
	open_posted();
	assert_int_equal(post_two(7, 60, 40), 0);
	assert_int_equal(posted[0].wr_id, 7);
	assert_int_equal(posted[0].num_sge, 3);
	assert_int_equal(posted[0].sge[0].addr, 0x1000);
	assert_int_equal(posted[0].sge[1].length, 40);
	assert_int_equal(posted[0].sge[2].addr, (uintptr_t)mrs[0].addr);
	assert_int_equal(posted[0].sge[2].length, LONGEST - 100);
	assert_int_equal(posted[0].sge[2].lkey, mrs[0].lkey);
	assert_false(posted[0].by_wq);
}

TEST(large_receive_needs_no_more_segments)
{
	open_posted();
	assert_int_equal(post_two(7, 1000, LONGEST - 1000), 0);
	assert_int_equal(posted[0].num_sge, 2);
	assert_int_equal(post_two(8, 1000, LONGEST - 1001), 0);
	assert_int_equal(posted[1].num_sge, 3);
	assert_int_equal(posted[1].sge[2].length, 1);
}

TEST(empty_segments_are_left_out)
{
	open_posted();
	assert_int_equal(post_two(7, 0, 40), 0);
	assert_int_equal(posted[0].num_sge, 2);
	assert_int_equal(posted[0].sge[0].addr, 0x2000);
	assert_int_equal(posted[0].sge[1].length, LONGEST - 40);
}

TEST(receives_go_to_the_work_queue_if_there_is_one)
{
	open_posted();
	q.wq = &wq;
	assert_int_equal(post_two(7, 60, 40), 0);
	assert_true(posted[0].by_wq);
}

TEST(first_refused_receive_ends_the_post)
{
	struct ibv_sge sge[3] = { { 0x1000, 10, 1 } };
	struct ibv_recv_wr wr[3], *bad;

	open_posted();
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){ .sg_list = sge, .num_sge = 1, .next = i < 2 ? &wr[i + 1] : NULL };
	refuse_at = 1;
	assert_int_equal(hw_eth_post_recv(&q.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(q.posted, 1);
	refuse_at = -1;
	wr[1].num_sge = 3;
	assert_int_equal(hw_eth_post_recv(&q.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(posts, 2);
}

TEST(receives_are_posted_to_an_open_qp_without_a_ring)
{
	open_posted();
	q.hw = NULL;
	assert_int_equal(post_two(7, 60, 40), EOPNOTSUPP);
	q.hw = &device_qp;
	q.config.ring_frames = 8;
	assert_int_equal(post_two(7, 60, 40), EOPNOTSUPP);
	assert_int_equal(posts, 0);
}

/* --- frames of posted receives --------------------------------------------------------------------------------- */

TEST(frame_is_described_beside_its_completion)
{
	struct ibv_wc wc[4];

	for (int extended = 0; extended < 2; extended++) {
		receives_begin(state);
		known_flags = extended ? known_flags : ~(uint64_t)0;
		open_posted();
		post_two(7, 60, 40);
		post_two(8, 60, 40);
		complete((struct completion){ .wr_id = 7, .length = 90, .checksums = true, .stamp = 5 });
		complete((struct completion){ .wr_id = 8, .length = 1000, .stamp = 9 });
		assert_int_equal(hw_eth_poll_frames(&q, 4, wc), 2);
		assert_int_equal(wc[0].wr_id, 7);
		assert_int_equal(wc[0].opcode, IBV_WC_RECV);
		assert_int_equal(wc[0].qp_num, 33);
		assert_int_equal(wc[0].src_qp, 0);
		assert_int_equal(wc[0].byte_len, 90);
		assert_int_equal(frames[0].flags,
				 ETH_FRAME_IP_OK | ETH_FRAME_L4_OK | (extended ? ETH_FRAME_HW_TIME : 0));
		assert_int_equal(frames[0].time, extended ? 1005 : 0);
		assert_int_equal(frames[0].tag, RULE_TAG);
		assert_int_equal(wc[1].src_qp, 1);
		assert_int_equal(wc[1].byte_len, 100);		/* cut to the receive */
		assert_int_equal(frames[1].length, 100);
		assert_int_equal(frames[1].wire_length, 1000);
		assert_int_equal(frames[1].flags, extended ? ETH_FRAME_HW_TIME : 0);
		assert_int_equal(tag_hit, extended ? TAG : 0);
		assert_int_equal(bytes_hit, 1000);
		assert_int_equal(q.stats.received, 2);
		assert_int_equal(q.stats.received_bytes, 1090);
		assert_int_equal(receives_end(state), 0);
	}
}

TEST(fcs_is_not_counted)
{
	struct ibv_wc wc;

	q.config.fcs = true;
	open_posted();
	post_two(7, 60, 40);
	frame_comes(7, 64);
	assert_int_equal(hw_eth_poll_frames(&q, 1, &wc), 1);
	assert_int_equal(wc.byte_len, 64);
	assert_true(frames[0].flags & ETH_FRAME_FCS);
	assert_int_equal(q.stats.received_bytes, 60);
	assert_int_equal(bytes_hit, 60);
}

TEST(time_goes_back_by_more_than_a_second_only)
{
	static const uint64_t stamps[] = { 10, 4, 11, 5000000000, 12 };
	static const uint64_t times[] = { 1010, 1010, 1011, 5000001000, 1012 };
	struct ibv_wc wc;

	open_posted();
	for (int i = 0; i < 5; i++) {
		post_two(7, 60, 40);
		complete((struct completion){ .length = 60, .stamp = stamps[i] });
		assert_int_equal(hw_eth_poll_frames(&q, 1, &wc), 1);
		assert_int_equal(frames[i].time, times[i]);
	}
}

TEST(failed_receive_takes_its_place)
{
	struct ibv_wc wc[2];

	open_posted();
	post_two(7, 0, 40);
	post_two(8, 60, 40);
	complete((struct completion){ .wr_id = 7, .status = IBV_WC_LOC_LEN_ERR });
	frame_comes(8, 90);
	assert_int_equal(hw_eth_poll_frames(&q, 2, wc), 2);
	assert_int_equal(wc[0].status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(wc[0].vendor_err, 0x55);
	assert_int_equal(wc[0].byte_len, 0);
	assert_int_equal(wc[1].byte_len, 90);		/* of the second receive's room */
	assert_int_equal(q.stats.received, 1);
}

TEST(poll_takes_no_more_than_asked_for)
{
	struct ibv_wc wc[40];

	for (int extended = 0; extended < 2; extended++) {
		receives_begin(state);
		known_flags = extended ? known_flags : ~(uint64_t)0;
		open_posted();
		for (int i = 0; i < 30; i++)
			frame_comes((uint64_t)i, 60);
		assert_int_equal(hw_eth_poll_frames(&q, 3, wc), 3);
		assert_int_equal(ready, 27);
		assert_int_equal(hw_eth_poll_frames(&q, 40, wc), 16);	/* a batch */
		assert_int_equal(wc[0].wr_id, 3);
		assert_int_equal(hw_eth_poll_frames(&q, 40, wc), 11);
		assert_int_equal(hw_eth_poll_frames(&q, 40, wc), 0);
		assert_int_equal(receives_end(state), 0);
	}
}

UNIT_MAIN(NULL, NULL)
