/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_responder.c - what the target does with the head of each segment and at the end of each message, and with
 * which Terminate it refuses one. */
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/responder.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum { RECEIVE = 64 };		/* bytes of each receive */

static bool no_memory;

UNIT_FAIL_CALLOC(no_memory)

#define LOCKED(term, call) do { stream_test_lock(); (term) = (call); stream_test_unlock(); } while (0)

/* --- sends --------------------------------------------------------------------------------------------- */

static int send_begin(uint8_t op, uint32_t word, uint32_t payload)
{
	int term;

	s.conn->stream.rx.seg = (struct wire_segment){ .op = op, .stag = word };
	s.conn->stream.rx.payload_left = payload;
	LOCKED(term, soft_responder_send_begin(s.qp, s.conn));
	return term;
}

static int send_end(void)
{
	int term;

	LOCKED(term, soft_responder_send_end(s.qp, s.conn));
	return term;
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open_blocked, stream_test_close)

CASE(send_beyond_the_largest_message_is_refused)
{
	assert_int_equal(send_begin(WIRE_SEND, 0, 0), WIRE_TERM_NONE);
	s.conn->stream.rx.send_offset = SOFT_MAX_MESSAGE - 10;
	assert_int_equal(send_begin(WIRE_SEND, 0, 10), WIRE_TERM_NONE);
	assert_int_equal(send_begin(WIRE_SEND, 0, 11), WIRE_TERM_TOO_LONG);
}

UNIT_FIXTURE(set_up_shared_queue) { stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true }); }

UNIT_TEST_WITH(send_waits_for_a_receive_of_the_shared_queue, set_up_shared_queue, stream_test_close)
{
	assert_int_equal(send_begin(WIRE_SEND, 0, 0), WIRE_TERM_NONE);
	assert_int_equal(send_end(), WIRE_TERM_NONE);
	assert_true(s.qp->srq_waiting);
	stream_test_lock();
	soft_srq_stop_waiting(s.qp);
	stream_test_unlock();
	assert_int_equal(send_begin(WIRE_SEND, 0, 0), WIRE_TERM_NONE);
	assert_true(s.qp->srq_waiting);		/* the second one waits, too */
	assert_int_equal(send_end(), WIRE_TERM_NONE);
	for (uint64_t id = 1; id <= 2; id++) {
		assert_true(stream_receive(&s, id, 0, RECEIVE));
		expect_completion(id, IBV_WC_SUCCESS);
	}
}

CASE(end_of_a_send_completes_its_receive)
{
	struct ibv_wc wc;

	assert_true(stream_receive(&s, 1, 0, RECEIVE));
	assert_int_equal(send_begin(WIRE_SEND_IMM, 77, 33), WIRE_TERM_NONE);
	s.conn->stream.rx.send_offset = 33;
	assert_int_equal(send_end(), WIRE_TERM_NONE);
	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	assert_int_equal(wc.byte_len, 33);
	assert_int_equal(wc.imm_data, htonl(77));
	assert_int_equal(s.conn->stream.arrived, 1);
	assert_int_equal(s.conn->stream.delivered, 1);
	assert_false(s.conn->stream.rx.send_open);
}

static int immediate(uint32_t word, uint32_t length)
{
	uint8_t body[WIRE_IMMEDIATE_LENGTH];
	int term;

	wire_put32(body, word);
	wire_put32(body + 4, length);
	s.conn->stream.rx.seg = (struct wire_segment){ .op = WIRE_IMMEDIATE };
	LOCKED(term, soft_responder_immediate(s.qp, s.conn, body));
	return term;
}

CASE(immediate_takes_a_receive)
{
	struct ibv_wc wc;

	assert_true(stream_receive(&s, 1, 0, RECEIVE));
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(immediate(77, 5000), WIRE_TERM_NONE);
		assert_int_equal(s.conn->stream.arrived, i);
		if (i == 2) {		/* without a receive it is kept */
			expect_no_completion();
			assert_true(stream_receive(&s, 1, 0, RECEIVE));
		}
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.imm_data, htonl(77));
		assert_int_equal(wc.byte_len, 5000);
		assert_int_equal(s.conn->stream.consumed, i * SOFT_CHARGE);
		assert_int_equal(s.conn->stream.delivered, i);
	}
	s.conn->stream.unexpected_bytes = SOFT_WINDOW;
	assert_int_equal(immediate(77, 0), WIRE_TERM_NO_BUFFER);
	assert_int_equal(s.conn->stream.arrived, 2);	/* the Terminate blames the message after these */
}

/* --- writes ----------------------------------------------------------------------------------------------- */

static int write_begin(uint32_t stag, uint64_t to, uint32_t payload, bool last)
{
	int term;

	s.conn->stream.rx.seg = (struct wire_segment){ .tagged = true, .op = WIRE_WRITE, .last = last, .stag = stag,
		.to = to };
	s.conn->stream.rx.payload_left = payload;
	LOCKED(term, soft_responder_write_begin(s.qp, s.conn));
	return term;
}

static void write_end(void)
{
	stream_test_lock();
	soft_responder_write_end(s.conn);
	stream_test_unlock();
}

CASE(each_check_of_a_write_has_its_terminate)
{
	assert_int_equal(soft_responder_write_term(SOFT_BAD_STAG), WIRE_TERM_DDP_STAG);
	assert_int_equal(soft_responder_write_term(SOFT_BOUNDS), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(soft_responder_write_term(SOFT_OTHER_STREAM), WIRE_TERM_DDP_STREAM);
	assert_int_equal(soft_responder_write_term(SOFT_WRAP), WIRE_TERM_DDP_WRAP);
	assert_int_equal(soft_responder_write_term(SOFT_ACCESS), WIRE_TERM_ACCESS);
	assert_int_equal(write_begin(12345, 0, 8, true), WIRE_TERM_DDP_STAG);
	assert_int_equal(write_begin(stream_device.open->rkey, STREAM_REGION - 7, 8, true), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(write_begin(stream_device.constant->rkey, 0, 8, true), WIRE_TERM_ACCESS);
	assert_int_equal(write_begin(stream_device.foreign->rkey, 0, 8, true), WIRE_TERM_DDP_STREAM);
	assert_int_equal(write_begin(12345, 0, 0, true), WIRE_TERM_NONE);	/* names no memory */
}

/* So that its last word is stored in one piece, after all others. */
CASE(write_ends_with_a_part_of_an_aligned_word)
{
	static const struct { uint64_t to; uint32_t payload, tail; } cases[] = {
		{ 0, 32, 8 }, { 0, 33, 1 }, { 0, 39, 7 }, { 3, 32, 3 }, { 5, 2, 2 }, { 7, 2, 1 }, { 8, 8, 8 },
		{ 0, 1, 1 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(write_begin(stream_device.open->rkey, cases[i].to, cases[i].payload, true),
				 WIRE_TERM_NONE);
		assert_int_equal(s.conn->stream.rx.tail_length, cases[i].tail);
		assert_int_equal(s.conn->stream.rx.sink, SOFT_SINK_WRITE);
	}
	assert_int_equal(write_begin(stream_device.open->rkey, 0, 32, false), WIRE_TERM_NONE);
	assert_int_equal(s.conn->stream.rx.tail_length, 0);	/* not the last segment */
}

CASE(write_is_acknowledged_after_unexpected_sends)
{
	write_end();
	assert_int_equal(s.conn->stream.arrived, 1);
	assert_int_equal(s.conn->stream.delivered, 1);
	assert_int_equal(send_begin(WIRE_SEND, 0, 0), WIRE_TERM_NONE);
	assert_int_equal(send_end(), WIRE_TERM_NONE);
	write_end();
	write_end();
	assert_int_equal(s.conn->stream.arrived, 4);
	assert_int_equal(s.conn->stream.delivered, 1);
	assert_true(stream_receive(&s, 1, 0, RECEIVE));
	assert_int_equal(s.conn->stream.delivered, 4);
}

/* --- reads and atomics -------------------------------------------------------------------------------------- */

static int read_of(uint32_t stag, uint64_t from, uint32_t length)
{
	uint8_t body[WIRE_READ_REQUEST_LENGTH];
	int term;

	wire_put32(body, 0x5151);
	wire_put64(body + 4, 7000);
	wire_put32(body + 12, length);
	wire_put32(body + 16, stag);
	wire_put64(body + 20, from);
	s.conn->stream.rx.seg = (struct wire_segment){ .op = WIRE_READ_REQUEST, .msn = 9 };
	LOCKED(term, soft_responder_read(s.qp, s.conn, body));
	return term;
}

CASE(read_of_other_memory_is_refused)
{
	assert_int_equal(read_of(12345, 0, 8), WIRE_TERM_STAG);
	assert_int_equal(read_of(stream_device.constant->rkey, STREAM_REGION - 7, 8), WIRE_TERM_BOUNDS);
	assert_int_equal(read_of(stream_device.local->rkey, (uintptr_t)stream_device.memory->local, 8),
			 WIRE_TERM_ACCESS);
	assert_int_equal(read_of(stream_device.foreign->rkey, 0, 8), WIRE_TERM_STREAM);
	assert_int_equal(s.conn->stream.answer_tail, 0);
	assert_int_equal(read_of(12345, 0, 0), WIRE_TERM_NONE);		/* names no memory */
}

static int atomic(uint32_t code, uint64_t to, uint64_t data, uint64_t compare)
{
	uint8_t body[WIRE_ATOMIC_REQUEST_LENGTH];
	uint64_t mask = code == WIRE_ATOMIC_CMP_SWAP ? UINT64_MAX : 0;
	int term;

	wire_put32(body, code);
	wire_put32(body + 4, 0x123);
	wire_put32(body + 8, stream_device.open->rkey);
	wire_put64(body + 12, to);
	wire_put64(body + 20, data);
	wire_put64(body + 28, mask);
	wire_put64(body + 36, compare);
	wire_put64(body + 44, mask);
	s.conn->stream.rx.seg = (struct wire_segment){ .op = WIRE_ATOMIC_REQUEST, .msn = 9 };
	LOCKED(term, soft_responder_atomic(s.qp, s.conn, body));
	return term;
}

static uint64_t *word(void) { return (uint64_t *)stream_device.memory->open; }

CASE(atomics_return_the_value_before)
{
	static const uint64_t before[] = { 10, 15, 15 };

	*word() = 10;
	assert_int_equal(atomic(WIRE_ATOMIC_FETCH_ADD, 0, 5, 0), WIRE_TERM_NONE);
	assert_int_equal(*word(), 15);
	assert_int_equal(atomic(WIRE_ATOMIC_CMP_SWAP, 0, 99, 14), WIRE_TERM_NONE);
	assert_int_equal(*word(), 15);
	assert_int_equal(atomic(WIRE_ATOMIC_CMP_SWAP, 0, 99, 15), WIRE_TERM_NONE);
	assert_int_equal(*word(), 99);
	assert_int_equal(s.conn->stream.answer_tail, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(s.conn->stream.answers[i].atomic);
		assert_int_equal(s.conn->stream.answers[i].sink_to, before[i]);
		assert_int_equal(s.conn->stream.answers[i].sink_stag, 0x123);
		assert_int_equal(s.conn->stream.answers[i].msn, 9);
	}
}

CASE(malformed_atomic_changes_nothing)
{
	uint8_t body[WIRE_ATOMIC_REQUEST_LENGTH] = { 0 };
	static const struct { uint32_t code; uint64_t data_mask, compare_mask; } masks[] = {
		{ WIRE_ATOMIC_FETCH_ADD, 1, 0 }, { WIRE_ATOMIC_CMP_SWAP, UINT64_MAX, 1 },
		{ WIRE_ATOMIC_CMP_SWAP, 1, UINT64_MAX }, { 1, 0, 0 },
	};
	int term;

	*word() = 10;
	wire_put32(body + 8, stream_device.open->rkey);
	wire_put64(body + 20, 5);
	for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
		wire_put32(body, masks[i].code);
		wire_put64(body + 28, masks[i].data_mask);
		wire_put64(body + 44, masks[i].compare_mask);
		LOCKED(term, soft_responder_atomic(s.qp, s.conn, body));
		assert_int_equal(term, WIRE_TERM_UNSPECIFIED);
	}
	assert_int_equal(atomic(WIRE_ATOMIC_FETCH_ADD, 4, 5, 0), WIRE_TERM_CATASTROPHIC);
	assert_int_equal(atomic(WIRE_ATOMIC_FETCH_ADD, STREAM_REGION, 5, 0), WIRE_TERM_BOUNDS);
	assert_int_equal(*word(), 10);
	assert_int_equal(s.conn->stream.answer_tail, 0);
}

CASE(first_request_makes_room_for_all)
{
	assert_null(s.conn->stream.answers);
	no_memory = true;
	assert_int_equal(read_of(stream_device.open->rkey, 0, 8), WIRE_TERM_NO_BUFFER);
	no_memory = false;
	assert_int_equal(s.conn->stream.answer_tail, 0);
	assert_int_equal(read_of(stream_device.open->rkey, 0, 8), WIRE_TERM_NONE);
	assert_int_equal(s.conn->stream.answers[0].length, 8);
}

CASE(more_requests_than_agreed_are_refused)
{
	*word() = 10;
	for (int i = 0; i < STREAM_READS; i++)
		assert_int_equal(read_of(stream_device.open->rkey, 0, 8), WIRE_TERM_NONE);
	assert_int_equal(read_of(stream_device.open->rkey, 0, 8), WIRE_TERM_NO_BUFFER);
	assert_int_equal(atomic(WIRE_ATOMIC_FETCH_ADD, 0, 5, 0), WIRE_TERM_NO_BUFFER);
	assert_int_equal(*word(), 10);
	s.conn->stream.tx.cursor.answer++;	/* one was answered */
	assert_int_equal(atomic(WIRE_ATOMIC_FETCH_ADD, 0, 5, 0), WIRE_TERM_NONE);
	assert_true(s.conn->stream.answers[0].atomic);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
