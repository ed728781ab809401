/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_deliver.c - how the receive of each kind of message completes, and which receives are announced. */
#include "dapl/soft/rdmap/deliver.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

/* Delivers a message into a receive of its own. */
static int deliver(uint64_t id, uint8_t op, uint32_t word, uint32_t length)
{
	int term;

	assert_true(stream_receive(&s, id, 0, 64));
	arm_solicited();
	dapl_mutex_lock(&s.qp->lock);
	assert_true(soft_qp_take_receive(s.qp));
	term = soft_deliver(s.qp, s.conn, op, word, length);
	dapl_mutex_unlock(&s.qp->lock);
	return term;
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;

	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	return wc;
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open, stream_test_close)

CASE(each_kind_of_message_completes_its_receive)
{
	static const struct {
		uint8_t op;
		enum ibv_wc_opcode opcode;
		unsigned flags;
		bool solicited;
	} cases[] = {
		{ WIRE_SEND, IBV_WC_RECV, 0, false }, { WIRE_SEND_SE, IBV_WC_RECV, 0, true },
		{ WIRE_SEND_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM, false },
		{ WIRE_SEND_SE_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM, true },
		{ WIRE_IMMEDIATE, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, false },
		{ WIRE_IMMEDIATE_SE, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, true },
	};

	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ibv_wc wc;

		assert_int_equal(deliver(100 + i, cases[i].op, 0x01020304, 40 + i), WIRE_TERM_NONE);
		wc = completion();
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, cases[i].opcode);
		assert_int_equal(wc.byte_len, 40 + i);
		assert_int_equal(wc.wc_flags, cases[i].flags);
		if (cases[i].flags)
			assert_int_equal(wc.imm_data, htonl(0x01020304));
		assert_int_equal(wc.qp_num, s.qp->qp.qp_num);
		assert_int_equal(was_solicited(), cases[i].solicited);
		assert_int_equal(s.conn->stream.delivered, i + 1);
	}
}

CASE(send_invalidates_a_window_of_the_queue_pair)
{
	static const uint8_t ops[] = { WIRE_SEND_INV, WIRE_SEND_SE_INV };

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t stag = ibv_inc_rkey(s.window->mw.rkey);	/* as stream_bind makes it */
		struct ibv_wc wc;

		assert_true(stream_bind(&s, 1, 0, 64));
		assert_int_equal(completion().status, IBV_WC_SUCCESS);
		s.window->mw.rkey = stag;
		assert_int_equal(deliver(2, ops[i], stag, 8), WIRE_TERM_NONE);
		wc = completion();
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
		assert_int_equal(wc.invalidated_rkey, stag);
		assert_int_equal(was_solicited(), ops[i] == WIRE_SEND_SE_INV);
		assert_int_equal(s.conn->stream.delivered, i + 1);
	}
}

/* The message is not delivered: the connection ends, and its receive is flushed. */
CASE(invalidation_of_another_key_fails)
{
	const uint32_t keys[] = { s.window->mw.rkey, stream_device.open->rkey, 0 };
	struct ibv_wc wc;

	assert_true(stream_receive(&s, 1, 0, 64));
	dapl_mutex_lock(&s.qp->lock);
	assert_true(soft_qp_take_receive(s.qp));
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_int_equal(soft_deliver(s.qp, s.conn, WIRE_SEND_INV, keys[i], 8), WIRE_TERM_INVALIDATE);
	assert_true(s.qp->taken_valid);
	dapl_mutex_unlock(&s.qp->lock);
	assert_int_equal(s.conn->stream.delivered, 0);
	assert_int_equal(stream_poll(&s, &wc, 1), 0);
}

CASE(receives_are_announced_by_number)
{
	struct soft_unexpected waits = { .op = WIRE_SEND };
	struct soft_qp *qp = s.conn->qp;

	assert_int_equal(soft_deliver_ready(s.conn), 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(stream_receive(&s, i, 0, 64));
	assert_int_equal(soft_deliver_ready(s.conn), 3);
	s.conn->stream.rx.msn_send = 11;	/* ten Sends have come */
	assert_int_equal(soft_deliver_ready(s.conn), 13);
	s.conn->stream.rx.send_open = true;	/* the eleventh has its receive already */
	assert_int_equal(soft_deliver_ready(s.conn), 14);
	TAILQ_INSERT_TAIL(&s.conn->stream.unexpected, &waits, link);
	assert_int_equal(soft_deliver_ready(s.conn), 10);
	TAILQ_REMOVE(&s.conn->stream.unexpected, &waits, link);
	s.conn->qp = NULL;
	assert_int_equal(soft_deliver_ready(s.conn), 10);
	s.conn->qp = qp;
	s.conn->stream.rx.send_open = false;
	s.conn->stream.rx.msn_send = 0;	/* UINT32_MAX Sends have come */
	assert_int_equal(soft_deliver_ready(s.conn), 2);
	s.conn->stream.rx.msn_send = 1;
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
