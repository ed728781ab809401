/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_responder_quick.c - which messages of a ring are executed at once, to what effect, and which are left to the
 * general path, with nothing done. */
#include "dapl/core/base/tap.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/verbs/post.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

enum { AT = 256, RECEIVE = 1000 };	/* a receive: its offset, bytes */

static uint8_t payload[RECEIVE + 8];

static struct soft_message send_message(uint32_t length)
{
	return (struct soft_message){ .op = WIRE_SEND, .last = true, .length = length, .data = payload };
}

static struct soft_message write_message(uint64_t to, uint32_t length)
{
	return (struct soft_message){ .op = WIRE_WRITE, .last = true, .length = length, .data = payload, .to = to,
				      .word = stream_device.open->rkey };
}

static bool take(const struct soft_message *m)
{
	bool done;

	stream_test_lock();
	done = soft_responder_quick(s.qp, s.conn, m);
	stream_test_unlock();
	return done;
}

/* The message is left to the general path. */
static void expect_left(struct soft_message m)
{
	char before[STREAM_REGION];
	uint32_t head = s.qp->rq.head;

	memcpy(before, stream_device.memory->open, sizeof before);
	assert_false(take(&m));
	assert_int_equal(s.conn->stream.arrived, 0);
	assert_int_equal(s.conn->stream.delivered, 0);
	assert_int_equal(s.conn->stream.consumed, 0);
	assert_int_equal(s.conn->stream.rx.msn_send, 1);
	assert_int_equal(s.qp->rq.head, head);
	assert_memory_equal(stream_device.memory->open, before, sizeof before);
	expect_no_completion();
}

static int set_up(void **state)
{
	memset(stream_device.memory->open, 0, STREAM_REGION);
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	return stream_test_open(state);
}

UNIT_FIXTURE(set_up_shared_queue) { stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true }); }

#define CASE(name) UNIT_TEST_WITH(name, set_up, stream_test_close)

/* --- sends ----------------------------------------------------------------------------------------------- */

CASE(send_fills_the_next_receive)
{
	static const uint32_t lengths[] = { 0, 1, RING_INLINE, RING_INLINE + 1, RECEIVE };
	uint64_t consumed = 0;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct soft_message m = send_message(lengths[i]);

		m.op = i % 2 ? WIRE_SEND_SE : WIRE_SEND;
		memset(stream_device.memory->local + AT, 0, RECEIVE);
		assert_true(stream_receive(&s, 10 + i, AT, RECEIVE));
		arm_solicited();
		assert_true(take(&m));
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.wr_id, 10 + i);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_int_equal(was_solicited(), i % 2);
		assert_memory_equal(stream_device.memory->local + AT, payload, lengths[i]);
		consumed += SOFT_CHARGE + lengths[i];
		assert_int_equal(s.conn->stream.consumed, consumed);
		assert_int_equal(s.conn->stream.rx.msn_send, i + 2);
		assert_int_equal(s.conn->stream.arrived, i + 1);
		assert_int_equal(s.conn->stream.delivered, i + 1);
	}
}

UNIT_TEST_WITH(send_takes_a_receive_of_the_shared_queue, set_up_shared_queue, stream_test_close)
{
	struct soft_message m = send_message(20);

	assert_false(take(&m));
	assert_true(stream_receive(&s, 5, AT, RECEIVE));
	assert_true(take(&m));
	assert_memory_equal(stream_device.memory->local + AT, payload, 20);
	assert_int_equal(s.conn->stream.delivered, 1);
	assert_false(s.qp->taken_valid);
	expect_completion(5, IBV_WC_SUCCESS);
}

CASE(send_that_does_not_fit_its_receive_is_left)
{
	struct ibv_sge sge[2] = { { .lkey = stream_device.local->lkey }, { .lkey = stream_device.local->lkey } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	expect_left(send_message(8));			/* there is none */
	assert_true(stream_receive(&s, 1, AT, RECEIVE));
	expect_left(send_message(RECEIVE + 1));
	soft_rwqe(&s.qp->rq, 0)->sge->lkey = 12345;
	expect_left(send_message(8));
	s.qp->rq.head++;
	for (int i = 0; i < 2; i++)			/* two pieces */
		sge[i] = (struct ibv_sge){ (uintptr_t)stream_device.memory->local + AT, 100, sge[i].lkey };
	assert_int_equal(soft_qp_post_recv(&s.qp->qp, &wr, &bad), 0);
	expect_left(send_message(8));
}

CASE(send_does_not_overtake_another)
{
	struct soft_unexpected waits = { .op = WIRE_SEND };

	assert_true(stream_receive(&s, 1, AT, RECEIVE));
	s.conn->stream.rx.send_open = true;
	expect_left(send_message(8));
	s.conn->stream.rx.send_open = false;
	TAILQ_INSERT_TAIL(&s.conn->stream.unexpected, &waits, link);
	expect_left(send_message(8));
	expect_left(write_message(0, 8));
	TAILQ_REMOVE(&s.conn->stream.unexpected, &waits, link);
	s.qp->taken_valid = true;		/* of a message that is not complete */
	expect_left(send_message(8));
	s.qp->taken_valid = false;
}

CASE(other_messages_are_left)
{
	static const uint8_t ops[] = { WIRE_SEND_INV, WIRE_SEND_SE_INV, WIRE_SEND_IMM, WIRE_SEND_SE_IMM, WIRE_IMMEDIATE,
		WIRE_READ_REQUEST, WIRE_READ_RESPONSE, WIRE_ATOMIC_REQUEST, WIRE_ACK, WIRE_CLOSE };
	struct soft_message m = send_message(8);

	assert_true(stream_receive(&s, 1, AT, RECEIVE));
	for (size_t i = 0; i < sizeof ops; i++) {
		m.op = ops[i];
		expect_left(m);
	}
	m = send_message(8);
	m.last = false;
	expect_left(m);
	m = send_message(8);
	m.rndv = true;
	expect_left(m);
	stream_device.dev->detours = SOFT_GUARDED;	/* each access is to be checked */
	expect_left(send_message(8));
	stream_device.dev->detours = 0;
}

/* With its receive, before the program can see the completion; a write is the sender's to record. */
CASE(send_is_recorded_during_a_capture)
{
	static const uint32_t lengths[] = { 8, 0, TAP_INLINE, TAP_INLINE + 1, 3 };
	struct soft_message m;
	char text[RECEIVE + 1];

	dapl_tap_init();
	tap_records_begin(RECEIVE);
	stream_device.dev->detours = SOFT_TAPPED;
	memset(payload, 'x', sizeof payload);
	for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		m = send_message(lengths[i]);
		assert_true(stream_receive(&s, 1, AT, RECEIVE));
		assert_true(take(&m));
		expect_completion(1, IBV_WC_SUCCESS);
		snprintf(text, sizeof text, "%.*s", (int)lengths[i], (char *)payload);
		is_recorded(TAP_RECEIVED, TAP_SEND, lengths[i], text);
		assert_int_equal(seen.first, !i);
	}
	m = write_message(0, 8);
	assert_true(take(&m));
	assert_false(next_record());
	stream_device.dev->detours = SOFT_TAPPED | SOFT_GUARDED;
	assert_true(stream_receive(&s, 1, AT, RECEIVE));
	m = send_message(8);
	assert_false(take(&m));
	stream_device.dev->detours = 0;
	dapl_tap_end();
	tap_records_release();
}

/* --- writes ---------------------------------------------------------------------------------------------- */

CASE(write_is_stored)
{
	static const struct {
		uint64_t to;
		uint32_t length;
	} cases[] = { { 0, 8 }, { 3, 13 }, { 64, RING_INLINE }, { 72, 8 * RING_INLINE } };

	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct soft_message m = write_message(cases[i].to, cases[i].length);

		memset(stream_device.memory->open, 0, STREAM_REGION);
		assert_true(take(&m));
		assert_memory_equal(stream_device.memory->open + cases[i].to, payload, cases[i].length);
		assert_int_equal(stream_device.memory->open[cases[i].to + cases[i].length], 0);
		assert_int_equal(s.conn->stream.rx.write_length, cases[i].length);
		assert_int_equal(s.conn->stream.arrived, i + 1);
		assert_int_equal(s.conn->stream.delivered, i + 1);
		assert_int_equal(s.conn->stream.rx.msn_send, 1);
	}
	expect_no_completion();
}

/* The last word could not be stored in one piece. */
CASE(write_that_ends_within_a_word_is_left)
{
	expect_left(write_message(0, 7));
	expect_left(write_message(8, 0));
	expect_left(write_message(0, 9));
	expect_left(write_message(1, 8));
}

/* A window that begins at an odd address of a region: offsets and addresses differ in their alignment. */
CASE(write_to_an_unaligned_window_is_left)
{
	struct soft_message m = write_message(0, 16);

	assert_true(stream_bind(&s, 1, 4, 64));
	expect_completion(1, IBV_WC_SUCCESS);
	m.word = s.window->mw.rkey;
	expect_left(m);
	expect_left(m);			/* the window is not locked any more */
}

CASE(window_is_unlocked_after_a_write)
{
	struct soft_message m = write_message(8, 16);

	assert_true(stream_bind(&s, 1, 64, 64));
	expect_completion(1, IBV_WC_SUCCESS);
	m.word = s.window->mw.rkey;
	assert_true(take(&m));
	assert_true(dapl_mutex_try(&s.window->region.lock));
	dapl_mutex_unlock(&s.window->region.lock);
	assert_memory_equal(stream_device.memory->open + 72, payload, 16);
}

CASE(refused_write_is_left)
{
	struct soft_message m = write_message(0, 8);

	m.word = stream_device.constant->rkey;
	expect_left(m);
	expect_left(write_message(STREAM_REGION, 8));
	s.conn->stream.rx.write_open = true;	/* it is the end of a longer one */
	expect_left(write_message(0, 8));
	s.conn->stream.rx.write_open = false;
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
