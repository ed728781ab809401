/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_hold.c - sends of a raw Ethernet QP that stay in its ring: held for those that follow, or until it is
 * known when the frame left; and the end of the ring (eth/send.c). */
#include "dapl/soft/eth/send.h"
#include "test/unit/soft/eth_sends.h"
#include "test/unit/unit.h"

#define TEST(name) UNIT_TEST_WITH(name, sends_set_up, sends_tear_down)

/* --- frames that are held --------------------------------------------------------------------------------------- */

TEST(held_frames_leave_with_the_one_that_ends_them)
{
	post_flags(0, ETH_SEND_MORE);
	post_flags(1, ETH_SEND_MORE);
	wake_too_early();
	assert_int_equal(left_count, 0);
	assert_true(timer_wait == MS);
	post(2);
	assert_left(0, 3);
	assert_int_equal(batches, 1);
	assert_all_completed(0, 3);
}

TEST(full_batch_is_not_held)
{
	for (int i = 0; i < BATCH; i++)
		post_flags(i, ETH_SEND_MORE);
	assert_left(0, BATCH);
	assert_int_equal(batches, 1);
	sends_restart();
	qp.sq_size = 4;
	for (int i = 0; i < 4; i++)
		post_flags(i, ETH_SEND_MORE);
	assert_left(0, 4);
}

/* The timer is set once for many batches: the youngest of them get their time when it fires. */
TEST(frames_are_held_for_their_time)
{
	post_flags(0, ETH_SEND_MORE);
	post(1);
	post_flags(2, ETH_SEND_MORE);
	assert_int_equal(timer_sets, 1);
	await_timer();
	assert_left(0, 2);
	assert_true(timer_wait == MS);
	await_timer();
	assert_left(0, 3);
	assert_int_equal(timer_sets, 2);
}

TEST(frame_that_waits_is_not_held)
{
	const struct dapl_eth_send how = launched(ETH_SEND_MORE, now + 5 * MS);

	assert_int_equal(post_how(0, &how), 0);
	assert_true(timer_wait == 5 * MS);
	post_flags(1, ETH_SEND_MORE);
	assert_false(eth.holding);
	await_timer();
	assert_left(0, 2);
}

/* --- times of departure ----------------------------------------------------------------------------------------- */

TEST(send_completes_with_the_time_at_which_it_left)
{
	const uint64_t time = 0x123456789abcdef0;

	post_flags(0, ETH_SEND_STAMP);
	assert_left(0, 1);
	assert_int_equal(completed, 0);
	assert_true(timer_wait == 100 * US);
	post(1);				/* no other frame leaves meanwhile */
	assert_left(0, 1);
	stamp_time = time;
	await_timer();
	assert_left(0, 2);
	assert_int_equal(completions[0].src_qp, time >> 32);
	assert_int_equal(completions[0].imm_data, (uint32_t)time);
	assert_all_completed(0, 2);
	assert_int_equal(completions[1].src_qp, 0);
}

TEST(send_with_a_time_is_not_held)
{
	post_flags(0, ETH_SEND_STAMP | ETH_SEND_MORE);
	assert_left(0, 1);
}

TEST(send_that_fails_has_no_time)
{
	error_of[0] = EMSGSIZE;
	post_flags(0, ETH_SEND_STAMP);
	assert_completed(0, IBV_WC_LOC_LEN_ERR);
}

/* A frame that the device had no room for has waited, as those behind a launch time. */
TEST(send_with_a_time_waits_for_a_full_device)
{
	set_rate(RATE, 0);
	error_of[0] = ENOBUFS;
	post_flags(0, ETH_SEND_STAMP);
	error_of[0] = 0;
	await_timer();
	assert_left(0, 1);
	assert_true(eth.pace.next_ns == now - 10 * MS + LENGTH * US);
}

/* The timer was set for the time of the frame before. */
TEST(frame_behind_a_time_is_held_as_long_as_others)
{
	post_flags(0, ETH_SEND_MORE);
	post_flags(1, ETH_SEND_STAMP);
	assert_true(timer_wait == 100 * US);
	stamp_time = 7;
	dapl_mutex_lock(&qp.lock);
	soft_eth_collect_stamp(&eth);
	dapl_mutex_unlock(&qp.lock);
	assert_all_completed(0, 2);
	post_flags(2, ETH_SEND_MORE);
	assert_true(timer_wait == MS);
}

TEST(time_that_does_not_come_is_not_known)
{
	unsigned tries = 0;

	post_flags(0, ETH_SEND_STAMP);
	while (!completed && tries++ < 20000)
		await_timer();
	assert_all_completed(0, 1);
	assert_true(now == 101 * SECOND);
	assert_int_equal(completions[0].src_qp | completions[0].imm_data, 0);
}

TEST(time_is_taken_when_the_socket_has_it)
{
	dapl_mutex_lock(&qp.lock);
	stamp_time = 5;
	soft_eth_collect_stamp(&eth);
	assert_int_equal(stamps_taken, 0);	/* no send has asked */
	dapl_mutex_unlock(&qp.lock);
	stamp_time = 0;
	post_flags(0, ETH_SEND_STAMP);
	stamp_time = 77;
	dapl_mutex_lock(&qp.lock);
	soft_eth_collect_stamp(&eth);
	assert_int_equal(completions[0].imm_data, 77);
	stamp_time = 88;
	soft_eth_collect_stamp(&eth);		/* it came too late: the socket would stay ready */
	assert_int_equal(stamps_taken, 2);
	dapl_mutex_unlock(&qp.lock);
	assert_all_completed(0, 1);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

TEST(sends_are_flushed_in_the_error_state)
{
	post_flags(0, ETH_SEND_STAMP);
	post(1);
	qp.state = IBV_QPS_ERR;
	post(2);
	assert_completed(0, IBV_WC_SUCCESS);	/* it has left */
	assert_completed(1, IBV_WC_WR_FLUSH_ERR);
	assert_completed(2, IBV_WC_WR_FLUSH_ERR);
	assert_left(0, 1);
	sends_restart();
	fill_ring(2);
	qp.state = IBV_QPS_ERR;
	await_timer();
	assert_completed(0, IBV_WC_WR_FLUSH_ERR);
	assert_completed(1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(left_count, 0);
}

TEST(reset_forgets_sends_and_the_rate)
{
	set_rate(RATE, 0);
	post(0);
	post(1);
	soft_eth_drop_sends(&eth);
	await_timer();
	assert_all_completed(0, 1);
	post(1);
	post(2);
	assert_left(0, 3);
}

UNIT_MAIN(NULL, NULL)
