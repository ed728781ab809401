/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_siw_queue.c - what test_siw.c leaves out of the send queue in front of siw's: the ring of completions,
 * unsignaled requests, requests that cannot be held, errors of posts to the device, and the count of held requests. */
#include "dapl/core/base/service.h"
#include "dapl/verbs/siw.h"
#include "dapl/verbs/siw_queue.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/siw_below.h"

static unsigned held(void)
{
	struct siw_cq *found = (struct siw_cq *)object_table_find(&cq);
	unsigned n;

	dapl_mutex_lock(&found->lock);
	n = found->held;
	dapl_mutex_unlock(&found->lock);
	return n;
}

static int post_segments(uint64_t id, unsigned flags, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = flags,
		.sg_list = sge, .num_sge = n }, *bad;

	return ibv_post_send(&qp, &wr, &bad);
}

static void fenced(uint64_t id) { post(id, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE); }
static void unsignaled(uint64_t id) { post(id, IBV_WR_SEND, 0); }

/* --- completions ----------------------------------------------------------------------------------- */

static void receive_completes(uint64_t id)
{
	cq_entries[cq_count++] = (struct ibv_wc){ .wr_id = id, .opcode = IBV_WC_RECV };
}

static void poll_in_order(int n, uint64_t *next, uint64_t end)
{
	struct ibv_wc wc[40];
	int got = ibv_poll_cq(&cq, n, wc);

	for (int i = 0; i < got; i++)
		assert_int_equal(wc[i].wr_id, (*next)++);
	assert_int_equal(*next, end);
}

#define TEST(name) UNIT_TEST_WITH(name, siw_begin, siw_end)

/* The ring has room for 32 at first: one poll, and all of the queue. */
TEST(ring_that_grows_keeps_its_completions)
{
	uint64_t last = 0, next = 0;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 10; i++)
			receive_completes(last++);
		poll_in_order(10, &next, last);
	}
	for (int i = 0; i < 10; i++)		/* across the end of the ring */
		receive_completes(last++);
	poll_in_order(1, &next, last - 9);
	for (int i = 0; i < 20; i++)
		receive_completes(last++);
	poll_in_order(40, &next, last);
	nothing_handed_out();
}

TEST(later_completion_stands_for_unsignaled_requests)
{
	for (unsigned i = 0; i < DEPTH - 2; i++)
		unsignaled(i);
	sends(77);
	unsignaled(78);
	assert_int_equal(post_at(79, IBV_WR_SEND, 0, memory, 100), ENOMEM);
	complete(DEPTH - 2);
	handed_out(77, IBV_WC_SUCCESS);
	nothing_handed_out();
	for (unsigned i = 0; i < DEPTH - 1; i++)	/* one is not known to be transmitted */
		unsignaled(i);
	assert_int_equal(post_at(79, IBV_WR_SEND, 0, memory, 100), ENOMEM);
}

TEST(next_completion_stands_for_one_unsignaled_request)
{
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		unsignaled(2 * i);
		sends(2 * i + 1);
		complete(2 * i + 1);
		handed_out(2 * i + 1, IBV_WC_SUCCESS);
	}
}

TEST(signaled_request_is_awaited_behind_a_later_one)
{
	unsignaled(1);
	sends(2);
	sends(3);
	complete(2);
	nothing_handed_out();
	complete(1);
	handed_out(2, IBV_WC_SUCCESS);
	handed_out(3, IBV_WC_SUCCESS);
}

/* With read 2 at the device's end, its completion must not take the count of transmitted requests back. */
TEST(late_read_does_not_undo_later_completions)
{
	reads(1);
	unsignaled(2);
	sends(3);
	complete(2);
	nothing_handed_out();
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	handed_out(3, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < DEPTH; i++)
		sends(i);
}

TEST(unsignaled_failure_is_handed_out)
{
	unsignaled(5);
	complete_with(0, IBV_WC_REM_OP_ERR);
	handed_out(5, IBV_WC_REM_OP_ERR);
}

/* --- what is held ------------------------------------------------------------------------------------ */

TEST(too_large_requests_are_not_held)
{
	struct ibv_sge sge[MAX_SGE + 1] = { { (uintptr_t)memory, 20, 5 }, { (uintptr_t)memory, 13, 5 } };

	reads(1);
	assert_int_equal(post_segments(2, IBV_SEND_FENCE, sge, MAX_SGE + 1), EINVAL);
	assert_int_equal(post_segments(2, IBV_SEND_FENCE, sge, -1), EINVAL);
	assert_int_equal(post_segments(2, IBV_SEND_FENCE | IBV_SEND_INLINE, sge, 2), EINVAL);
	sge[0].length = MAX_INLINE + 1;
	assert_int_equal(post_segments(2, IBV_SEND_FENCE | IBV_SEND_INLINE, sge, 1), EINVAL);
	assert_int_equal(held(), 0);
}

TEST(held_segments_are_copied)
{
	struct ibv_sge sge[MAX_SGE] = { { (uintptr_t)memory, 20, 5 }, { (uintptr_t)memory, 13, 5 } };

	reads(1);
	assert_int_equal(post_segments(2, IBV_SEND_FENCE, sge, MAX_SGE), 0);
	assert_int_equal(post_segments(3, 0, sge, 0), 0);
	assert_int_equal(held(), 2);
	memset(sge, 0, sizeof sge);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 3);
	assert_int_equal(posted[1].wr.num_sge, MAX_SGE);
	assert_int_equal(posted[1].sge.addr, (uintptr_t)memory);
	assert_int_equal(posted[1].sge.length, 20);
	assert_int_equal(posted[2].wr.num_sge, 0);
	assert_int_equal(held(), 0);
}

TEST(held_inline_segments_become_one)
{
	struct ibv_sge sge[MAX_SGE] = { { (uintptr_t)memory, 20, 5 }, { (uintptr_t)memory + 100, 12, 5 } };

	memset(memory, 0x41, 100);
	memset(memory + 100, 0x42, 100);
	reads(1);
	assert_int_equal(post_segments(2, IBV_SEND_FENCE | IBV_SEND_INLINE, sge, MAX_SGE), 0);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 2);
	assert_int_equal(posted[1].wr.num_sge, 1);
	assert_int_equal(posted[1].sge.length, MAX_INLINE);
	for (int i = 0; i < MAX_INLINE; i++)
		assert_int_equal(posted[1].bytes[i], i < 20 ? 0x41 : 0x42);
}

TEST(refused_held_request_fails_and_ends_the_queue)
{
	struct ibv_wc wc[3];

	reads(1);
	fenced(2);
	fenced(3);
	assert_int_equal(held(), 2);
	refuse = ENOTCONN;
	complete(0);
	assert_int_equal(ibv_poll_cq(&cq, 3, wc), 2);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(wc[1].status, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(wc[1].qp_num, qp.qp_num);
	assert_int_equal(posts, 1);
	assert_int_equal(held(), 0);
}

TEST(failure_ends_what_is_held)
{
	reads(1);
	fenced(2);
	complete_with(0, IBV_WC_REM_ACCESS_ERR);
	handed_out(1, IBV_WC_REM_ACCESS_ERR);
	nothing_handed_out();
	assert_int_equal(held(), 0);
	assert_int_equal(posts, 1);
	fenced(3);			/* stays behind the held one */
	assert_int_equal(held(), 0);
	assert_int_equal(posts, 1);
	hw_siw_qp_end(&qp);		/* a second end */
	assert_int_equal(held(), 0);
}

TEST(nothing_waits_once_the_connection_has_failed)
{
	reads(1);
	reads(2);
	complete_with(0, IBV_WC_REM_ACCESS_ERR);
	handed_out(1, IBV_WC_REM_ACCESS_ERR);
	fenced(3);
	assert_int_equal(posts, 3);
	assert_int_equal(held(), 0);
}

/* --- errors of the device ------------------------------------------------------------------------------ */

/* libsiw returns -1 when the doorbell failed: the kernel may have the request. */
TEST(request_that_the_device_may_have_stands)
{
	refuse = -1;
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory, 100), -1);
	fenced(2);
	assert_int_equal(posts, 1);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 2);
}

TEST(held_request_that_the_device_may_have_stands)
{
	reads(1);
	fenced(2);
	refuse = -1;
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 2);
	complete(1);
	handed_out(2, IBV_WC_SUCCESS);
}

TEST(both_parts_of_a_read_may_stand)
{
	refuse = -1;
	assert_int_equal(post_at(1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, memory + PAGE - 7, 19), -1);
	sends(2);
	assert_int_equal(posts, 1);		/* the read is not whole yet */
	refuse = -1;
	complete(0);
	nothing_handed_out();
	assert_int_equal(posts, 2);
	complete(1);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 3);
}

/* --- what siw gets ---------------------------------------------------------------------------------------- */

TEST(other_flags_of_a_request_stay)
{
	memory[PAGE - 1] = 1;
	assert_int_equal(post_at(1, IBV_WR_SEND, IBV_SEND_SOLICITED, memory + PAGE - 1, 2), 0);
	assert_int_equal(posted[0].wr.send_flags, IBV_SEND_SOLICITED | IBV_SEND_INLINE);
	post(2, IBV_WR_RDMA_READ, IBV_SEND_SOLICITED);
	assert_int_equal(posted[1].wr.send_flags, IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
}

/* Two segments that are short are no payload that lies on two pages. */
TEST(short_payload_is_at_most_32_bytes_in_one_segment)
{
	struct ibv_sge sge[MAX_SGE] = { { (uintptr_t)memory + PAGE - 1, 2, 5 }, { (uintptr_t)memory, 2, 5 } };

	assert_int_equal(post_at(1, IBV_WR_SEND, 0, memory + PAGE - 1, 32), 0);
	assert_true(posted[0].wr.send_flags & IBV_SEND_INLINE);
	assert_int_equal(post_at(2, IBV_WR_SEND, 0, memory + PAGE - 1, 33), 0);
	assert_false(posted[1].wr.send_flags & IBV_SEND_INLINE);
	assert_int_equal(post_segments(3, 0, sge, MAX_SGE), 0);
	assert_false(posted[2].wr.send_flags & IBV_SEND_INLINE);
}

TEST(parts_of_a_held_read_are_those_of_the_request)
{
	hw_siw_qp_reads(&qp, 1);
	reads(1);
	assert_int_equal(post_at(2, IBV_WR_RDMA_READ, IBV_SEND_FENCE, memory + PAGE - 30, 32), 0);
	complete(0);
	handed_out(1, IBV_WC_SUCCESS);
	assert_int_equal(posts, 2);
	complete(1);
	nothing_handed_out();
	assert_int_equal(posts, 3);
	for (int part = 0; part < 2; part++) {
		const struct posted *p = &posted[1 + part];
		uint64_t at = (uintptr_t)memory + PAGE - (part ? 0 : 30);

		assert_int_equal(p->wr.send_flags, IBV_SEND_SIGNALED);
		assert_int_equal(p->sge.addr, at);
		assert_int_equal(p->sge.length, part ? 2 : 30);
		assert_int_equal(p->sge.lkey, 5);
		assert_int_equal(p->wr.wr.rdma.remote_addr, at);
		assert_null(p->wr.next);
	}
	reads(3);			/* held: one is out */
	assert_int_equal(posts, 3);
	complete(2);
	nothing_handed_out();
	assert_int_equal(posts, 4);
}

UNIT_FIXTURE(start_service) { assert_int_equal(dapl_service_get(), 0); }
UNIT_FIXTURE(end_service) { dapl_service_put(); }

UNIT_MAIN(start_service, end_service)
