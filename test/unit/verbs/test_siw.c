/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_siw.c - the send queue in front of siw's, on the device of siw_below.h:
 * which requests it gets and when, and the order of completions. */
#include "dapl/core/base/service.h"
#include "dapl/verbs/siw.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/siw_below.h"

#define TEST(name) UNIT_TEST_WITH(name, siw_begin, siw_end)

TEST(completions_do_not_overtake_reads)
{
	reads(1);
	sends(2);
	post(3, IBV_WR_RDMA_WRITE, 0);
	reads(4);
	sends(5);
	assert_int_equal(posts, 5);
	complete(1);
	complete(4);
	nothing_handed_out();
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	handed_out(2, IBV_WC_SUCCESS);
	nothing_handed_out();
	complete(3);
	handed_out(4, IBV_WC_SUCCESS);
	handed_out(5, IBV_WC_SUCCESS);
	nothing_handed_out();
}

TEST(receives_pass_unchanged)
{
	reads(1);
	pthread_mutex_lock(&device_lock);
	cq_entries[cq_count++] = (struct ibv_wc){ .wr_id = 99, .opcode = IBV_WC_RECV };
	pthread_mutex_unlock(&device_lock);
	handed_out(99, IBV_WC_SUCCESS);
}

TEST(unsignaled_read_is_awaited_without_a_completion)
{
	post(1, IBV_WR_RDMA_READ, 0);
	sends(2);
	assert_true(posted[0].wr.send_flags & IBV_SEND_SIGNALED);
	complete(1);
	nothing_handed_out();
	complete(0);
	handed_out(2, IBV_WC_SUCCESS);
}

TEST(fenced_request_waits_above_the_device)
{
	reads(1);
	reads(2);
	post(3, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	sends(4);
	assert_int_equal(posts, 2);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 2);
	complete(1);
	handed_out(2, IBV_WC_SUCCESS);
	assert_int_equal(posts, 4);
	assert_false(posted[2].wr.send_flags & IBV_SEND_FENCE);
	complete(2);
	complete(3);
	handed_out(3, IBV_WC_SUCCESS);
	handed_out(4, IBV_WC_SUCCESS);
}

TEST(fence_without_reads_does_not_wait)
{
	post(1, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(posts, 1);
	assert_false(posted[0].wr.send_flags & IBV_SEND_FENCE);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
}

TEST(reads_are_limited_to_the_agreed_number)
{
	hw_siw_qp_reads(&qp, 2);
	for (unsigned i = 1; i <= 5; i++)
		reads(i);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(posts, i + 2 < 5 ? i + 2 : 5);
		complete(i);
		handed_out(i + 1, IBV_WC_SUCCESS);
	}
}

TEST(held_requests_are_posted_without_a_poll)
{
	reads(1);
	post(2, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	pthread_mutex_lock(&device_lock);
	assert_int_equal(posts, 1);
	complete_locked(0, IBV_WC_SUCCESS);
	while (posts < 2)	/* the test program has a time limit */
		pthread_cond_wait(&request_came, &device_lock);
	pthread_mutex_unlock(&device_lock);
	handed_out(1, IBV_WC_SUCCESS);
}

TEST(cq_that_cannot_be_destroyed_works_on)
{
	reads(1);
	post(2, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	cq_in_use = EBUSY;
	assert_int_equal(hw_siw_cq_destroy(&cq), EBUSY);
	pthread_mutex_lock(&device_lock);
	complete_locked(0, IBV_WC_SUCCESS);
	while (posts < 2)	/* by the timer; the test program has a time limit */
		pthread_cond_wait(&request_came, &device_lock);
	pthread_mutex_unlock(&device_lock);
	handed_out(1, IBV_WC_SUCCESS);
}

TEST(a_short_read_on_two_pages_is_split)
{
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE - 7, 19), 0);
	sends(2);
	assert_int_equal(posts, 1);
	assert_int_equal(posted[0].sge.length, 7);
	complete(0);
	nothing_handed_out();
	assert_int_equal(posts, 2);
	assert_int_equal(posted[1].sge.length, 12);
	assert_int_equal(posted[1].sge.addr, (uintptr_t)memory + PAGE);
	assert_int_equal(posted[1].wr.wr.rdma.remote_addr, (uintptr_t)memory + PAGE);
	complete(1);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 3);
	complete(2);
	handed_out(2, IBV_WC_SUCCESS);
}

TEST(split_read_succeeds_only_as_a_whole)
{
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE - 7, 19), 0);
	complete(0);
	refuse = ENOTCONN;
	handed_out(1, IBV_WC_WR_FLUSH_ERR);
}

TEST(other_reads_are_not_split)
{
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE - 7, 33), 0);
	assert_int_equal(post_at(2, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE - 7, 7), 0);
	assert_int_equal(post_at(3, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE, 32), 0);
	assert_int_equal(posts, 3);
	assert_int_equal(posted[0].sge.length, 33);
}

TEST(a_short_send_on_two_pages_is_inlined)
{
	memory[PAGE - 1] = 0x11;
	memory[PAGE] = 0x22;
	assert_int_equal(post_at(1, IBV_WR_SEND, IBV_SEND_SIGNALED, memory + PAGE - 1, 2), 0);
	assert_true(posted[0].wr.send_flags & IBV_SEND_INLINE);
	assert_int_equal(posted[0].bytes[0], 0x11);
	assert_int_equal(posted[0].bytes[1], 0x22);
	sends(2);
	assert_false(posted[1].wr.send_flags & IBV_SEND_INLINE);
}

TEST(split_read_is_flushed_once)
{
	reads(1);
	sends(2);
	complete_with(0, IBV_WC_WR_FLUSH_ERR);
	complete_with(0, IBV_WC_WR_FLUSH_ERR);
	complete_with(1, IBV_WC_WR_FLUSH_ERR);
	handed_out(1, IBV_WC_WR_FLUSH_ERR);
	handed_out(2, IBV_WC_WR_FLUSH_ERR);
	nothing_handed_out();
}

TEST(no_request_succeeds_after_a_failure)
{
	reads(1);
	sends(2);
	complete(1);
	complete_with(0, IBV_WC_REM_ACCESS_ERR);
	handed_out(1, IBV_WC_REM_ACCESS_ERR);
	handed_out(2, IBV_WC_WR_FLUSH_ERR);
}

TEST(only_the_first_failure_has_a_cause)
{
	reads(1);
	sends(2);
	complete_with(0, IBV_WC_REM_ACCESS_ERR);
	complete_with(1, IBV_WC_LOC_QP_OP_ERR);
	handed_out(1, IBV_WC_REM_ACCESS_ERR);
	handed_out(2, IBV_WC_WR_FLUSH_ERR);
}

TEST(no_completion_follows_the_destruction)
{
	reads(1);
	sends(2);
	post(3, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	complete_with(0, IBV_WC_WR_FLUSH_ERR);
	hw_siw_qp_end(&qp);
	complete_with(1, IBV_WC_WR_FLUSH_ERR);
	handed_out(1, IBV_WC_WR_FLUSH_ERR);
	nothing_handed_out();
	assert_int_equal(posts, 2);
}

TEST(a_refused_post_leaves_no_trace)
{
	refuse = ENOMEM;
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory, 100), ENOMEM);
	post(2, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(posts, 1);
	complete(0);
	handed_out(2, IBV_WC_SUCCESS);
}

TEST(queue_holds_its_depth)
{
	for (unsigned i = 0; i < DEPTH; i++)
		sends(i);
	assert_int_equal(post_at(DEPTH, IBV_WR_SEND, 0, memory, 100), ENOMEM);
	complete(0);
	handed_out(0, IBV_WC_SUCCESS);
	sends(DEPTH);
}

/* The ring wraps around many times, with the device completing at random. */
TEST(completions_are_delivered_in_post_order)
{
	uint64_t random = 0x9e3779b97f4a7c15ull, next = 0, expected = 0;
	bool completed[256] = { false }, full;
	struct ibv_wc wc[8];

	hw_siw_qp_reads(&qp, 3);
	while (expected < 3000) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		if ((random >> 33) % 2 && next - expected < DEPTH)
			post(next++, (random >> 40) % 3 ? IBV_WR_SEND : IBV_WR_RDMA_READ,
			     IBV_SEND_SIGNALED | ((random >> 45) % 4 ? 0 : IBV_SEND_FENCE));
		pthread_mutex_lock(&device_lock);
		/* reads are in order among themselves, and so are the other requests */
		for (int read = 0; read < 2; read++)
			for (unsigned i = 0; i < posts; i++) {
				if (completed[i] || (posted[i].wr.opcode == IBV_WR_RDMA_READ) != read)
					continue;
				if ((random >> (50 + read)) % 2 && cq_count < 60) {
					complete_locked(i, IBV_WC_SUCCESS);
					completed[i] = true;
				}
				break;
			}
		pthread_mutex_unlock(&device_lock);
		for (int i = 0, n = ibv_poll_cq(&cq, 8, wc); i < n; i++)
			assert_int_equal(wc[i].wr_id, expected++);
		pthread_mutex_lock(&device_lock);
		if (next == expected) {
			posts = 0;
			memset(completed, 0, sizeof completed);
		}
		full = posts >= 250;
		pthread_mutex_unlock(&device_lock);
		assert_false(full);
	}
}

UNIT_FIXTURE(start_service) { assert_int_equal(dapl_service_get(), 0); }
UNIT_FIXTURE(end_service) { dapl_service_put(); }

UNIT_MAIN(start_service, end_service)
