/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_send.c - when sends of a raw Ethernet QP leave: at once, or by rate and launch time, from a ring in which
 * they wait (eth/send.c). Frames that are held are test_eth_hold.c's matter, turns of a rate test_pace.c's. */
#include "dapl/soft/eth/send.h"
#include "test/unit/soft/eth_sends.h"
#include "test/unit/unit.h"

#define TEST(name) UNIT_TEST_WITH(name, sends_set_up, sends_tear_down)

/* --- at once ---------------------------------------------------------------------------------------------------- */

TEST(send_completes_as_the_port_says)
{
	static const struct {
		int err;
		enum ibv_wc_status status;
	} rows[] = { { EMSGSIZE, IBV_WC_LOC_LEN_ERR }, { ENETDOWN, IBV_WC_GENERAL_ERR } };
	struct ibv_sge sge = sge_of(5);
	struct ibv_send_wr silent = { .wr_id = 5, .opcode = IBV_WR_SEND }, *bad;

	for (int i = 0; i < 2; i++) {
		error_of[i] = rows[i].err;
		post(i);
		assert_completed((uint64_t)i, rows[i].status);
	}
	unregistered[2] = true;
	post(2);
	assert_completed(2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(left_count, 0);
	silent.sg_list = &sge;
	silent.num_sge = 1;
	assert_int_equal(soft_eth_post_send(&qp.qp, &silent, &bad), 0);
	assert_int_equal(completed, 3);		/* it asks for no completion */
	error_of[5] = ENETDOWN;
	assert_int_equal(soft_eth_post_send(&qp.qp, &silent, &bad), 0);
	assert_completed(5, IBV_WC_GENERAL_ERR);
}

TEST(post_fails_where_the_port_refuses)
{
	static const int errors[] = { EAGAIN, ENOBUFS, EINVAL };

	for (size_t i = 0; i < 3; i++) {
		error_of[0] = errors[i];
		assert_int_equal(post_how(0, NULL), errors[i]);
	}
	assert_int_equal(completed, 0);
}

/* Core passes on frames that exceed the limit by a VLAN tag. */
TEST(frame_above_the_limit_must_be_tagged)
{
	struct dapl_eth_send inserted = { .flags = ETH_SEND_VLAN }, message = { .flags = ETH_SEND_TSO };
	uint8_t *type = (uint8_t *)(uintptr_t)sge_of(0).addr + 12;

	eth.config.max_frame = LENGTH - 4;
	assert_int_equal(post_how(0, NULL), EMSGSIZE);
	assert_int_equal(post_how(0, &message), 0);
	eth.config.max_tso = LENGTH - 4;
	assert_int_equal(post_how(0, &message), EMSGSIZE);
	type[0] = 0x81;
	assert_int_equal(post_how(0, NULL), 0);
	assert_int_equal(post_how(0, &message), 0);
	assert_int_equal(post_how(0, &inserted), EMSGSIZE);	/* would have two tags */
	unregistered[0] = true;			/* the tag cannot be read */
	assert_int_equal(post_how(0, NULL), EMSGSIZE);
	assert_int_equal(left_count, 3);
}

TEST(first_bad_request_of_a_list_is_told)
{
	struct ibv_sge sge = sge_of(0);
	struct ibv_send_wr wrs[3], *bad;

	for (unsigned i = 0; i < 3; i++)
		wrs[i] = (struct ibv_send_wr){ .next = i < 2 ? &wrs[i + 1] : NULL, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_SEND };
	wrs[1].opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(soft_eth_post_send(&qp.qp, wrs, &bad), EINVAL);
	assert_ptr_equal(bad, &wrs[1]);
	assert_int_equal(left_count, 1);
	wrs[1].opcode = IBV_WR_SEND;
	wrs[1].num_sge = -1;
	assert_int_equal(soft_eth_post_send(&qp.qp, wrs, &bad), EINVAL);
	wrs[1].num_sge = SGES + 1;
	assert_int_equal(soft_eth_post_send(&qp.qp, wrs, &bad), EINVAL);
	assert_ptr_equal(bad, &wrs[1]);
	assert_int_equal(left_count, 3);
}

/* --- launch times and rates ------------------------------------------------------------------------------------- */

TEST(frame_waits_for_its_launch_time)
{
	post_at(0, now + 5 * MS);
	assert_int_equal(left_count, 0);
	assert_true(timer_wait == 5 * MS);
	post(1);				/* completions have the order of posts */
	assert_int_equal(left_count, 0);
	assert_true(timer_wait == 5 * MS);
	await_timer();
	assert_left(0, 2);
	assert_all_completed(0, 2);
	assert_int_equal(eth.late, 0);
	post(2);
	assert_left(0, 3);
}

/* CLOCK_REALTIME may be set meanwhile. */
TEST(clocks_are_read_again_after_a_second)
{
	post_at(0, now + 10 * SECOND);
	assert_true(timer_wait == SECOND);
	await_timer();
	assert_int_equal(left_count, 0);
	assert_true(timer_wait == SECOND);
}

TEST(late_frame_is_counted_and_leaves)
{
	post_at(0, now);
	post_at(1, now - 1);
	assert_left(0, 2);
	assert_int_equal(eth.late, 2);
	error_of[2] = EAGAIN;
	assert_int_equal(post_how(2, &(struct dapl_eth_send){ .flags = ETH_SEND_LAUNCH, .launch = 1 }), EAGAIN);
	assert_int_equal(eth.late, 2);
}

TEST(frames_keep_the_rate)
{
	set_rate(RATE, 0);
	post(0);
	post(1);
	assert_left(0, 1);
	assert_true(timer_wait == LENGTH * US);
	now += LENGTH * US / 2;
	post(2);
	assert_true(timer_wait == LENGTH * US / 2);
	await_timer();
	assert_left(0, 2);
	await_timer();
	assert_left(0, 3);
	assert_all_completed(0, 3);
	assert_true(eth.pace.next_ns == 100 * SECOND + 3 * LENGTH * US);
}

TEST(later_one_of_launch_time_and_turn_counts)
{
	set_rate(RATE, 0);
	post(0);
	post_at(1, now + LENGTH * US / 2);
	assert_true(timer_wait == LENGTH * US);
	await_timer();
	post_at(2, now + 2 * LENGTH * US);
	assert_true(timer_wait == 2 * LENGTH * US);
}

/* A frame that waits for its launch time is not late: those behind it keep the rate from then on. */
TEST(launch_time_is_no_delay_of_the_queue)
{
	set_rate(RATE, 0);
	post_at(0, now + 100 * MS);
	for (int i = 1; i < 4; i++)
		post(i);
	await_timer();
	assert_left(0, 1);
	assert_true(timer_wait == LENGTH * US);
	await_timer();
	assert_left(1, 2);
}

/* Each frame that a message becomes has the headers, and a tag. */
TEST(rate_counts_the_bytes_on_the_wire)
{
	static const struct {
		struct dapl_eth_send how;
		uint64_t bytes;
	} rows[] = { { { .flags = ETH_SEND_CSUM }, 100 }, { { .flags = ETH_SEND_VLAN }, 104 },
		{ { .flags = ETH_SEND_TSO, .header_length = 54, .mss = 20 }, 46 + 3 * 54 },
		{ { .flags = ETH_SEND_TSO, .header_length = 54, .mss = 23 }, 46 + 2 * 54 },
		{ { .flags = ETH_SEND_TSO | ETH_SEND_VLAN, .header_length = 54, .mss = 20 }, 46 + 3 * 58 },
		{ { .flags = ETH_SEND_TSO, .header_length = 100, .mss = 20 }, 100 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		sends_restart();
		set_rate(RATE, 0);
		assert_int_equal(post_how(0, &rows[i].how), 0);
		assert_true(eth.pace.next_ns == now + rows[i].bytes * US);
	}
}

TEST(end_of_a_rate_lets_frames_leave)
{
	set_rate(RATE, 0);
	for (int i = 0; i < 4; i++)
		post(i);
	assert_left(0, 1);
	set_rate(0, 0);
	assert_left(0, 4);
	assert_int_equal(batches, 1);
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

TEST(queue_has_the_size_that_was_asked_for)
{
	fill_ring(QUEUE);
	assert_int_equal(post_how(0, NULL), ENOMEM);
	await_timer();
	assert_left(0, BATCH);			/* then other work has its turn */
	await_timer();
	assert_left(0, QUEUE);
	assert_all_completed(0, QUEUE);
	assert_int_equal(batches, 2);
}

TEST(full_device_is_tried_again)
{
	fill_ring(3);
	error_of[1] = ENOBUFS;
	await_timer();
	assert_left(0, 1);
	assert_all_completed(0, 1);
	assert_true(timer_wait == 100 * US);
	await_timer();
	assert_true(timer_wait == 100 * US);
	error_of[1] = 0;
	await_timer();
	assert_left(0, 3);
	assert_all_completed(1, 3);
}

/* A queue that waits makes up for 10 ms at most: pace.c. */
TEST(frame_that_fails_does_not_stop_those_behind_it)
{
	set_rate(RATE, 100 * LENGTH);
	fill_ring(4);
	error_of[1] = EMSGSIZE;
	await_timer();
	assert_completed(0, IBV_WC_SUCCESS);
	assert_completed(1, IBV_WC_LOC_LEN_ERR);
	assert_completed(2, IBV_WC_SUCCESS);
	assert_completed(3, IBV_WC_SUCCESS);
	assert_int_equal(left_count, 3);
	assert_true(eth.pace.next_ns == now + 3 * LENGTH * US);
}

TEST(batch_has_a_limit_of_segments)
{
	struct ibv_sge sges[SGES];
	struct ibv_send_wr wr = { .sg_list = sges, .num_sge = SGES, .opcode = IBV_WR_SEND }, *bad;

	post_at(0, now + MS);
	for (int i = 1; i < 20; i++) {
		for (int j = 0; j < SGES; j++)
			sges[j] = sge_of(i);
		assert_int_equal(soft_eth_post_send(&qp.qp, &wr, &bad), 0);
	}
	await_timer();			/* the port looks at the number of segments */
	assert_left(0, 20);
	assert_int_equal(batches, 3);
}

TEST(frame_that_was_changed_meanwhile_completes_with_an_error)
{
	fill_ring(3);
	error_of[0] = EINVAL;
	unregistered[1] = true;
	await_timer();
	assert_completed(0, IBV_WC_LOC_QP_OP_ERR);
	assert_completed(1, IBV_WC_LOC_PROT_ERR);
	assert_completed(2, IBV_WC_SUCCESS);
}

TEST(frame_that_waits_is_checked_while_it_is_posted)
{
	const struct dapl_eth_send how = launched(0, now + MS);

	check_refuses = true;
	assert_int_equal(post_how(0, &how), EINVAL);
	assert_int_equal(timer_sets, 0);
}

TEST(ring_needs_memory_and_a_timer)
{
	const struct dapl_eth_send how = launched(0, now + MS);

	fails_size = sizeof(struct eth_pending);
	assert_int_equal(post_how(0, &how), ENOMEM);
	sends_restart();
	fails_size = sizeof(struct ibv_sge);
	assert_int_equal(post_how(0, &how), ENOMEM);
	fails_size = 0;
	fails_timer = EMFILE;
	assert_int_equal(post_how(0, &how), EMFILE);
	fails_timer = 0;
	fails_watch = ENOSPC;
	assert_int_equal(post_how(0, &how), ENOSPC);
	assert_false(timer_open);
	fails_watch = 0;
	assert_int_equal(post_how(0, &how), 0);
	await_timer();
	assert_left(0, 1);
	assert_all_completed(0, 1);
}

/* The port has not seen a frame whose memory was not registered while it was posted. */
TEST(message_without_a_segment_size_is_left_to_the_port)
{
	const struct dapl_eth_send how = { .flags = ETH_SEND_TSO };

	set_rate(RATE, 100 * LENGTH);
	post_at(0, now + MS);
	unregistered[1] = true;			/* so it is not checked */
	assert_int_equal(post_how(1, &how), 0);
	unregistered[1] = false;
	error_of[1] = EINVAL;
	await_timer();
	assert_completed(0, IBV_WC_SUCCESS);
	assert_completed(1, IBV_WC_LOC_QP_OP_ERR);
}

UNIT_MAIN(NULL, NULL)
