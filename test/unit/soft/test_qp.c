/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qp.c - which receive is taken, and what the completions of receives, requests and flushes say. */
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/tunables.h"
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

static void received(enum ibv_wc_status status, const struct ibv_wc *is, bool is_solicited)
{
	arm_solicited();
	stream_test_lock();
	soft_qp_received(s.qp, status, is, is_solicited);
	stream_test_unlock();
}

static void post(uint64_t id, enum ibv_wr_opcode opcode)
{
	assert_true(stream_request(&s, id, opcode, 0, 8, stream_device.open->rkey, 0));
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, stream_test_close)
#define SHARED(name) UNIT_TEST_WITH(name, set_up_shared_queue, stream_test_close)

/* --- receives ---------------------------------------------------------------------------------------------- */

CASE(one_receive_is_taken_at_a_time)
{
	static const struct ibv_wc none = { .opcode = IBV_WC_RECV };

	assert_false(take());
	for (uint64_t id = 1; id <= 2; id++)
		assert_true(stream_receive(&s, id, 0, (uint32_t)id * 10));
	for (uint64_t id = 1; id <= 2; id++) {
		for (int i = 0; i < 2; i++) {
			assert_true(take());
			assert_int_equal(s.qp->taken->wr_id, id);
			assert_int_equal(s.qp->taken->length, id * 10);
		}
		received(IBV_WC_SUCCESS, &none, false);
		expect_completion(id, IBV_WC_SUCCESS);
	}
	assert_false(take());
}

SHARED(receive_of_the_shared_queue_is_taken)
{
	assert_false(take());
	assert_true(s.qp->srq_waiting);
	stream_test_lock();
	soft_srq_stop_waiting(s.qp);
	stream_test_unlock();
	assert_true(stream_receive(&s, 7, 0, 8));
	assert_true(take());
	assert_int_equal(s.qp->taken->wr_id, 7);
	assert_false(s.qp->srq_waiting);
	s.qp->taken_valid = false;
}

CASE(completion_keeps_what_the_message_said)
{
	static const struct ibv_wc is = { .wr_id = 99, .status = IBV_WC_GENERAL_ERR,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
					  .byte_len = 55, .wc_flags = IBV_WC_WITH_IMM };
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		assert_true(stream_receive(&s, 5, 0, 8));
		assert_true(take());
		received(i ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS, &is, i);
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.wr_id, 5);
		assert_int_equal(wc.status, i ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, s.qp->qp.qp_num);
		assert_int_equal(was_solicited(), i);
		if (!i) {
			assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
			assert_int_equal(wc.byte_len, 55);
		}
		assert_false(s.qp->taken_valid);
	}
}

CASE(next_receive_is_completed_in_place)
{
	struct ibv_wc wc;

	for (uint64_t id = 1; id <= 2; id++)
		assert_true(stream_receive(&s, id, 0, 8));
	for (uint64_t id = 1; id <= 2; id++) {
		arm_solicited();
		stream_test_lock();
		soft_qp_received_next(s.qp, (uint32_t)id * 3, id == 2);
		stream_test_unlock();
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, id * 3);
		assert_int_equal(was_solicited(), id == 2);
	}
	assert_int_equal(s.qp->rq.head, s.qp->rq.tail);
}

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

CASE(executed_write_completes)
{
	struct ibv_sge sge = { .length = 40 };
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	struct ibv_wc wc;

	stream_test_lock();
	soft_qp_executed(s.qp, &wr);
	stream_test_unlock();
	s.posted++;
	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wc.byte_len, 40);
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

CASE(flush_tells_one_request_from_the_others)
{
	for (uint64_t id = 1; id <= 3; id++)
		post(id, IBV_WR_SEND);
	end_flush(1, IBV_WC_REM_ACCESS_ERR);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
	expect_completion(2, IBV_WC_REM_ACCESS_ERR);
	expect_completion(3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(s.qp->sq_head, s.qp->sq_tail);
}

CASE(flush_without_a_culprit_fails_no_request)
{
	post(1, IBV_WR_SEND);
	end_flush(0, IBV_WC_SUCCESS);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
}

CASE(flush_completes_all_receives)
{
	for (uint64_t id = 1; id <= 3; id++)
		assert_true(stream_receive(&s, id, 0, 8));
	assert_true(take());		/* a message was under way */
	end_flush(0, IBV_WC_SUCCESS);
	for (uint64_t id = 1; id <= 3; id++)
		expect_completion(id, IBV_WC_WR_FLUSH_ERR);
	expect_no_completion();
	assert_int_equal(s.qp->last_receive.times, 0);
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

SHARED(flushed_queue_pair_waits_for_no_receive)
{
	assert_false(take());
	assert_true(s.qp->srq_waiting);
	end_flush(0, IBV_WC_SUCCESS);
	assert_false(s.qp->srq_waiting);
	assert_true(TAILQ_EMPTY(&s.srq->waiting));
}

CASE(queue_pair_is_found_by_its_number)
{
	struct dapl_device *dev = stream_device.dev;
	uint32_t number = s.qp->qp.qp_num;
	const struct soft_qp *found, *other;

	dapl_mutex_lock(&dev->qps_lock);
	found = soft_qp_by_number(dev, number);
	other = soft_qp_by_number(dev, number ^ QP_BUCKETS);	/* of the same bucket */
	dapl_mutex_unlock(&dev->qps_lock);
	assert_ptr_equal(found, s.qp);
	assert_null(other);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
