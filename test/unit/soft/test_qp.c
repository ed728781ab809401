/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qp.c - what the completions of requests say, and what a flush completes. */
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

EXTEND(dapl_task_queue)
/* The service thread would tell core of events. */
void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	if (task != &stream_device.dev->async.task)
		__real_dapl_task_queue(task, run);
}

static int set_up(void **state) { return stream_test_open_blocked(state); }

UNIT_FIXTURE(set_up_shared_queue)
{
	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true });
	s.conn->stream.tx.blocked = true;
}

static bool take(void)
{
	bool taken;

	stream_test_lock();
	taken = soft_qp_take_receive(s.qp);
	stream_test_unlock();
	return taken;
}

static void post(uint64_t id, enum ibv_wr_opcode opcode)
{
	assert_true(stream_request(&s, id, opcode, 0, 8, stream_device.open->rkey, 0));
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, stream_test_close)
#define SHARED(name) UNIT_TEST_WITH(name, set_up_shared_queue, stream_test_close)

/* --- requests ---------------------------------------------------------------------------------------------- */

CASE(each_request_has_its_completion)
{
	static const struct { enum ibv_wr_opcode request; enum ibv_wc_opcode completion; } cases[] = {
		{ IBV_WR_SEND, IBV_WC_SEND }, { IBV_WR_SEND_WITH_IMM, IBV_WC_SEND },
		{ IBV_WR_SEND_WITH_INV, IBV_WC_SEND },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE }, { IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ }, { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD }, { IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV },
		{ IBV_WR_BIND_MW, IBV_WC_BIND_MW },
	};
	struct ibv_wc wc;

	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		stream_test_lock();
		soft_qp_complete_send(s.qp, 100 + i, cases[i].request, IBV_WC_SUCCESS, 30 + i);
		stream_test_unlock();
		s.posted++;
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.opcode, cases[i].completion);
		assert_int_equal(wc.byte_len, 30 + i);
		assert_int_equal(wc.qp_num, s.qp->qp.qp_num);
	}
}

/* --- flushes ------------------------------------------------------------------------------------------------ */

static void end_flush(uint32_t culprit, enum ibv_wc_status status)
{
	stream_test_lock();
	soft_qp_set_state(s.qp, IBV_QPS_ERR);
	s.qp->flush_culprit = culprit;
	s.qp->flush_status = status;
	soft_qp_end_flush(s.qp);
	stream_test_unlock();
}

CASE(flush_without_a_culprit_fails_no_request)
{
	post(1, IBV_WR_SEND);
	end_flush(0, IBV_WC_SUCCESS);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
}

SHARED(flush_leaves_the_shared_queue_alone)
{
	for (uint64_t id = 1; id <= 2; id++)
		assert_true(stream_receive(&s, id, 0, 8));
	assert_true(take());
	end_flush(0, IBV_WC_SUCCESS);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
	expect_no_completion();
	assert_int_equal(s.srq->rq.tail - s.srq->rq.head, 1);
	assert_int_equal(s.qp->last_receive.times, 1);
	assert_int_equal(s.qp->last_receive.event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(s.qp->last_receive.event.element.qp, &s.qp->qp);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
