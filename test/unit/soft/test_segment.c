/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_segment.c - the form and the order of incoming segments, and which side gets each one. The two sides
 * themselves are replaced here. */
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { ANY = -1, SIDE = 77 };	/* a body of any length; what the sides return */

static struct dapl_conn conn;
static struct soft_rx *const rx = &conn.stream.rx;
static struct soft_qp qp;
static const char *check;
static const char *called;	/* the function of a side that was called last */
static const uint8_t *called_with;
static uint32_t called_length;

static int note(const char *function, const struct soft_qp *q, const struct dapl_conn *c, const uint8_t *body)
{
	assert_ptr_equal(q, &qp);
	assert_ptr_equal(c, &conn);
	called = function;
	called_with = body;
	return SIDE;
}

#define WITHOUT_BODY(name) \
	int __wrap_##name(struct soft_qp *q, struct dapl_conn *c); \
	int __wrap_##name(struct soft_qp *q, struct dapl_conn *c) { return note(#name, q, c, NULL); }
#define WITH_BODY(name) \
	int __wrap_##name(struct soft_qp *q, struct dapl_conn *c, const uint8_t *body); \
	int __wrap_##name(struct soft_qp *q, struct dapl_conn *c, const uint8_t *body) \
	{ \
		return note(#name, q, c, body); \
	}

WITHOUT_BODY(soft_responder_send_begin)
WITHOUT_BODY(soft_responder_send_end)
WITHOUT_BODY(soft_responder_write_begin)
WITHOUT_BODY(soft_requester_response_begin)
WITH_BODY(soft_responder_read)
WITH_BODY(soft_responder_atomic)
WITH_BODY(soft_responder_immediate)
WITH_BODY(soft_requester_atomic)

REPLACE(soft_responder_write_end, soft_requester_response_end, soft_requester_acked, soft_requester_terminated)

void __wrap_soft_responder_write_end(struct dapl_conn *c)
{
	assert_ptr_equal(c, &conn);
	called = "soft_responder_write_end";
}

void __wrap_soft_requester_response_end(struct soft_qp *q, struct dapl_conn *c)
{
	called = "soft_requester_response_end";
}

int __wrap_soft_requester_acked(struct soft_qp *q, struct dapl_conn *c, uint32_t delivered, uint64_t consumed)
{
	assert_int_equal(delivered, 0x01020304);
	assert_int_equal(consumed, 0x090a0b0c0d0e0f10);
	called = "soft_requester_acked";
	return SIDE;
}

void __wrap_soft_requester_terminated(struct soft_qp *q, struct dapl_conn *c, const uint8_t *body, uint32_t length)
{
	called_with = body;
	called_length = length;
	called = "soft_requester_terminated";
}

/* What each opcode must look like. */
static const struct {
	bool tagged, dapl_only;
	uint8_t qn;
	int body;
} forms[16] = {
	[WIRE_WRITE] = { true, false, 0, ANY }, [WIRE_READ_REQUEST] = { false, false, 1, 28 },
	[WIRE_READ_RESPONSE] = { true, false, 0, ANY }, [WIRE_SEND] = { false, false, 0, ANY },
	[WIRE_SEND_INV] = { false, false, 0, ANY }, [WIRE_SEND_SE] = { false, false, 0, ANY },
	[WIRE_SEND_SE_INV] = { false, false, 0, ANY }, [WIRE_TERMINATE] = { false, false, 2, 4 },
	[WIRE_IMMEDIATE] = { false, true, 0, 8 }, [WIRE_IMMEDIATE_SE] = { false, true, 0, 8 },
	[WIRE_ATOMIC_REQUEST] = { false, true, 1, 52 }, [WIRE_ATOMIC_RESPONSE] = { false, true, 3, 12 },
	[WIRE_SEND_IMM] = { false, true, 0, ANY }, [WIRE_SEND_SE_IMM] = { false, true, 0, ANY },
	[WIRE_ACK] = { false, true, 4, 16 }, [WIRE_CLOSE] = { false, true, 4, 0 },
};

UNIT_FIXTURE(set_up)
{
	memset(&conn, 0, sizeof conn);
	memset(&qp, 0, sizeof qp);
	conn.stream.peer_is_dapl = true;
	rx->msn_send = 10, rx->msn_read = 20, rx->msn_atomic = 30, rx->msn_dapl = 40;
	check = called = NULL;
	called_with = NULL;
}

/* --- the first four bytes --------------------------------------------------------------------- */

static int control(uint32_t ulpdu, uint8_t first, uint8_t second)
{
	wire_put16(rx->part, (uint16_t)ulpdu);
	rx->part[2] = first;
	rx->part[3] = second;
	return soft_segment_control(&conn, rx, &check);
}

/* A segment of this opcode with `body` bytes behind its header. */
static int segment_of(unsigned op, bool tagged, uint32_t body)
{
	return control((tagged ? WIRE_TAGGED : WIRE_UNTAGGED) + body, tagged ? 0xc1 : 0x41, (uint8_t)(0x40 | op));
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(each_opcode_is_taken_in_its_form)
{
	for (unsigned op = 0; op < 16; op++) {
		bool tagged = forms[op].tagged;
		uint32_t body = forms[op].body == ANY ? 100 : (uint32_t)forms[op].body;
		uint32_t head = 2 + (tagged ? WIRE_TAGGED : WIRE_UNTAGGED);

		rx->payload_done = 1;
		assert_int_equal(segment_of(op, tagged, body), WIRE_TERM_NONE);
		assert_int_equal(rx->seg.op, op);
		assert_int_equal(rx->seg.tagged, tagged);
		assert_int_equal(rx->part_need, forms[op].body == ANY ? head : head + body);
		assert_int_equal(rx->payload_left, forms[op].body == ANY ? body : 0);
		assert_int_equal(rx->payload_done, 0);
	}
}

TEST(opcode_of_the_other_form_is_refused)
{
	for (unsigned op = 0; op < 16; op++) {
		assert_int_equal(segment_of(op, !forms[op].tagged, 28), WIRE_TERM_OPCODE);
		assert_string_equal(check, "opcode");
	}
}

TEST(other_implementations_have_the_common_opcodes_only)
{
	conn.stream.peer_is_dapl = false;
	for (unsigned op = 0; op < 16; op++)
		assert_int_equal(segment_of(op, forms[op].tagged, forms[op].body == ANY ? 1 : (uint32_t)forms[op].body),
				 forms[op].dapl_only ? WIRE_TERM_OPCODE : WIRE_TERM_NONE);
}

TEST(message_of_fixed_length_is_neither_shorter_nor_longer)
{
	for (unsigned op = 0; op < 16; op++) {
		if (forms[op].body == ANY || op == WIRE_TERMINATE)
			continue;
		assert_int_equal(segment_of(op, false, (uint32_t)forms[op].body + 1), WIRE_TERM_LENGTH);
		assert_string_equal(check, "ULPDU length");
		if (forms[op].body)
			assert_int_equal(segment_of(op, false, (uint32_t)forms[op].body - 1), WIRE_TERM_LENGTH);
	}
}

TEST(terminate_has_4_to_64_bytes)
{
	assert_int_equal(segment_of(WIRE_TERMINATE, false, 3), WIRE_TERM_LENGTH);
	assert_int_equal(segment_of(WIRE_TERMINATE, false, 4), WIRE_TERM_NONE);
	assert_int_equal(segment_of(WIRE_TERMINATE, false, 64), WIRE_TERM_NONE);
	assert_int_equal(rx->part_need, sizeof rx->part);
	assert_int_equal(segment_of(WIRE_TERMINATE, false, 65), WIRE_TERM_LENGTH);
	assert_int_equal(segment_of(WIRE_TERMINATE, false, 60000), WIRE_TERM_LENGTH);
}

TEST(header_must_fit_the_length)
{
	assert_int_equal(control(0, 0xc1, 0x40 | WIRE_WRITE), WIRE_TERM_LENGTH);
	assert_int_equal(control(WIRE_TAGGED - 1, 0xc1, 0x40 | WIRE_WRITE), WIRE_TERM_LENGTH);
	assert_int_equal(control(WIRE_TAGGED, 0xc1, 0x40 | WIRE_WRITE), WIRE_TERM_NONE);
	assert_int_equal(control(WIRE_UNTAGGED - 1, 0x41, 0x40 | WIRE_SEND), WIRE_TERM_LENGTH);
	assert_int_equal(control(WIRE_UNTAGGED, 0x41, 0x40 | WIRE_SEND), WIRE_TERM_NONE);
	assert_int_equal(rx->payload_left, 0);
}

TEST(other_versions_are_refused)
{
	static const struct { uint8_t first, second; int term; const char *check; } rows[] = {
		{ 0xc0, 0x40, WIRE_TERM_TAGGED_VERSION, "DDP version" },
		{ 0xc2, 0x40, WIRE_TERM_TAGGED_VERSION, "DDP version" },
		{ 0xc3, 0x00, WIRE_TERM_TAGGED_VERSION, "DDP version" },
		{ 0x40, 0x43, WIRE_TERM_UNTAGGED_VERSION, "DDP version" },
		{ 0x43, 0x43, WIRE_TERM_UNTAGGED_VERSION, "DDP version" },
		{ 0xc1, 0x00, WIRE_TERM_RDMAP_VERSION, "RDMAP version" },
		{ 0xc1, 0x80, WIRE_TERM_RDMAP_VERSION, "RDMAP version" },
		{ 0x41, 0xc3, WIRE_TERM_RDMAP_VERSION, "RDMAP version" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(control(100, rows[i].first, rows[i].second), rows[i].term);
		assert_string_equal(check, rows[i].check);
	}
}

TEST(last_flag_is_read)
{
	assert_int_equal(control(100, 0x81, 0x40 | WIRE_WRITE), WIRE_TERM_NONE);
	assert_false(rx->seg.last);
	assert_int_equal(control(100, 0xc1, 0x40 | WIRE_WRITE), WIRE_TERM_NONE);
	assert_true(rx->seg.last);
}

TEST(pad_ends_at_a_multiple_of_four)
{
	for (uint32_t ulpdu = WIRE_TAGGED; ulpdu < WIRE_TAGGED + 8; ulpdu++) {
		assert_int_equal(control(ulpdu, 0xc1, 0x40 | WIRE_WRITE), WIRE_TERM_NONE);
		assert_int_equal((2 + ulpdu + rx->trailer_left) % 4, 0);
		assert_in_range(rx->trailer_left, WIRE_CRC, WIRE_CRC + 3);
	}
}

/* --- the whole header --------------------------------------------------------------------------- */

static int begin(unsigned op, bool last, uint32_t qn, uint32_t msn, uint32_t mo)
{
	rx->seg = (struct wire_segment){ .op = (uint8_t)op, .last = last, .tagged = forms[op].tagged };
	wire_put32(rx->part + 4, 0xaabbccdd);
	wire_put32(rx->part + 8, qn);
	wire_put32(rx->part + 12, msn);
	wire_put32(rx->part + 16, mo);
	rx->sink = SOFT_SINK_WRITE;	/* of the segment before */
	called = NULL;
	return soft_segment_begin(&qp, &conn, &check);
}

static uint32_t expected_msn(unsigned op)
{
	static const uint32_t of_queue[] = { 10, 20, 1, 30, 40 };

	return of_queue[forms[op].qn];
}

TEST(each_queue_counts_its_messages)
{
	for (unsigned op = 0; op < 16; op++) {
		if (forms[op].tagged)
			continue;
		assert_int_equal(begin(op, true, forms[op].qn, expected_msn(op), 0),
				 forms[op].body == ANY ? SIDE : WIRE_TERM_NONE);
		assert_int_equal(rx->seg.stag, 0xaabbccdd);
		assert_int_equal(rx->sink, SOFT_SINK_NONE);
		assert_int_equal(begin(op, true, forms[op].qn, expected_msn(op) + 1, 0), WIRE_TERM_MSN);
		assert_string_equal(check, "message sequence number");
		assert_int_equal(begin(op, true, forms[op].qn, expected_msn(op), 1), WIRE_TERM_MO);
		assert_int_equal(begin(op, true, forms[op].qn + 1, expected_msn(op), 0), WIRE_TERM_QN);
		assert_null(called);
	}
}

TEST(tagged_segment_goes_to_its_side)
{
	assert_int_equal(begin(WIRE_WRITE, true, 0x01020304, 0x05060708, 0), SIDE);
	assert_string_equal(called, "soft_responder_write_begin");
	assert_int_equal(rx->seg.stag, 0xaabbccdd);
	assert_int_equal(rx->seg.to, 0x0102030405060708);
	assert_int_equal(begin(WIRE_READ_RESPONSE, true, 0, 0, 0), SIDE);
	assert_string_equal(called, "soft_requester_response_begin");
}

TEST(send_continues_where_it_ended)
{
	rx->send_open = true;
	rx->send_op = WIRE_SEND_SE;
	rx->send_offset = 500;
	assert_int_equal(begin(WIRE_SEND_SE, false, 0, 10, 500), SIDE);
	assert_string_equal(called, "soft_responder_send_begin");
	assert_int_equal(begin(WIRE_SEND_SE, false, 0, 10, 0), WIRE_TERM_MO);
	assert_int_equal(begin(WIRE_SEND, false, 0, 10, 500), WIRE_TERM_OPCODE);
	assert_string_equal(check, "opcode within a message");
	assert_int_equal(begin(WIRE_IMMEDIATE, true, 0, 10, 0), WIRE_TERM_OPCODE);
}

/* RDMAP lets messages of other queues come between two segments of a Send. */
TEST(other_queue_may_come_within_a_send)
{
	rx->send_open = true;
	rx->send_op = WIRE_SEND;
	rx->send_offset = 500;
	assert_int_equal(begin(WIRE_READ_REQUEST, true, 1, 20, 0), WIRE_TERM_NONE);
	assert_int_equal(begin(WIRE_ACK, true, 4, 40, 0), WIRE_TERM_NONE);
	assert_int_equal(begin(WIRE_WRITE, true, 0, 0, 0), SIDE);
}

TEST(message_of_fixed_length_is_one_segment)
{
	for (unsigned op = 0; op < 16; op++) {
		if (forms[op].body == ANY)
			continue;
		assert_int_equal(begin(op, false, forms[op].qn, expected_msn(op), 0), WIRE_TERM_UNSPECIFIED);
		assert_string_equal(check, "last flag of a message of one segment");
	}
}

TEST(large_segment_predicts_more)
{
	rx->payload_left = RX_BULK_MIN - 1;
	begin(WIRE_SEND, false, 0, 10, 0);
	assert_false(rx->bulk);
	rx->payload_left = RX_BULK_MIN;
	begin(WIRE_SEND, false, 0, 10, 0);
	assert_true(rx->bulk);
	rx->payload_left = 0;		/* says nothing of the next one */
	begin(WIRE_ACK, true, 4, 40, 0);
	assert_true(rx->bulk);
	rx->payload_left = 1;
	begin(WIRE_SEND, true, 0, 10, 0);
	assert_false(rx->bulk);
}

TEST(small_end_of_a_large_message_changes_no_prediction)
{
	static const struct { unsigned op; bool send, write, read, keeps; } rows[] = {
		{ WIRE_SEND, true, false, false, true }, { WIRE_WRITE, false, true, false, true },
		{ WIRE_READ_RESPONSE, false, false, true, true }, { WIRE_WRITE, true, false, false, false },
		{ WIRE_SEND, false, true, true, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		rx->bulk = true;
		rx->send_open = rows[i].send, rx->write_open = rows[i].write, rx->read_open = rows[i].read;
		rx->send_op = WIRE_SEND;
		rx->payload_left = 1;
		begin(rows[i].op, true, 0, 10, 0);
		assert_int_equal(rx->bulk, rows[i].keeps);
	}
}

/* --- messages of a ring ---------------------------------------------------------------------------- */

static uint8_t payload[100];

static int arrive(unsigned op, bool last, uint32_t length)
{
	const struct soft_message message = { .op = (uint8_t)op, .last = last, .length = length, .word = 0xaabbccdd,
		.to = 0x0102030405060708, .data = payload };

	called = NULL;
	rx->payload_done = 9;
	rx->sink = SOFT_SINK_WRITE;	/* of the message before */
	return soft_segment_arrived(&qp, &conn, &message, &check);
}

TEST(ring_message_is_a_segment)
{
	for (unsigned op = 0; op < 16; op++) {
		bool payload_follows = forms[op].body == ANY;
		uint32_t length = payload_follows ? 90 : (uint32_t)forms[op].body;

		memset(payload, (int)op + 1, sizeof payload);
		assert_int_equal(arrive(op, true, length), payload_follows ? SIDE : WIRE_TERM_NONE);
		assert_int_equal(rx->seg.stag, 0xaabbccdd);
		assert_int_equal(rx->seg.to, 0x0102030405060708);
		assert_int_equal(rx->payload_left, payload_follows ? 90 : 0);
		assert_int_equal(rx->payload_done, 0);
		assert_int_equal(rx->sink, SOFT_SINK_NONE);
		if (!payload_follows) {
			assert_memory_equal(rx->part + WIRE_HEAD_MAX, payload, length);
			assert_int_equal(rx->part_need, WIRE_HEAD_MAX + length);
		}
	}
}

TEST(ring_message_goes_to_its_side)
{
	arrive(WIRE_WRITE, true, 1);
	assert_string_equal(called, "soft_responder_write_begin");
	arrive(WIRE_READ_RESPONSE, true, 1);
	assert_string_equal(called, "soft_requester_response_begin");
	arrive(WIRE_SEND_IMM, true, 1);
	assert_string_equal(called, "soft_responder_send_begin");
}

/* The memory of a ring is the peer's to write. */
TEST(bad_ring_message_is_refused)
{
	assert_int_equal(arrive(16, true, 0), WIRE_TERM_OPCODE);
	assert_int_equal(arrive(255, true, 0), WIRE_TERM_OPCODE);
	assert_int_equal(arrive(WIRE_READ_REQUEST, false, 28), WIRE_TERM_UNSPECIFIED);
	assert_int_equal(arrive(WIRE_READ_REQUEST, true, 27), WIRE_TERM_LENGTH);
	assert_int_equal(arrive(WIRE_READ_REQUEST, true, 29), WIRE_TERM_LENGTH);
	assert_string_equal(check, "length of a message");
	assert_int_equal(arrive(WIRE_CLOSE, true, 1), WIRE_TERM_LENGTH);
	assert_int_equal(arrive(WIRE_TERMINATE, true, 3), WIRE_TERM_LENGTH);
	assert_int_equal(arrive(WIRE_TERMINATE, true, 64), WIRE_TERM_NONE);
	assert_int_equal(arrive(WIRE_TERMINATE, true, 65), WIRE_TERM_LENGTH);
	rx->send_open = true;
	rx->send_op = WIRE_SEND;
	assert_int_equal(arrive(WIRE_SEND_SE, true, 1), WIRE_TERM_OPCODE);
	assert_null(called);
}

/* --- the end ------------------------------------------------------------------------------------------ */

static int end(unsigned op, bool last)
{
	rx->seg = (struct wire_segment){ .op = (uint8_t)op, .last = last };
	called = NULL;
	return soft_segment_end(&qp, &conn, &check);
}

TEST(each_message_ends_at_its_side)
{
	static const struct {
		unsigned op;
		const char *function;
		int term;
		bool body, sends, reads, atomics;
	} rows[] = {
		{ WIRE_WRITE, "soft_responder_write_end", WIRE_TERM_NONE, false, false, false, false },
		{ WIRE_READ_RESPONSE, "soft_requester_response_end", WIRE_TERM_NONE, false, false, false, false },
		{ WIRE_READ_REQUEST, "soft_responder_read", SIDE, true, false, true, false },
		{ WIRE_ATOMIC_REQUEST, "soft_responder_atomic", SIDE, true, false, true, false },
		{ WIRE_ATOMIC_RESPONSE, "soft_requester_atomic", SIDE, true, false, false, true },
		{ WIRE_IMMEDIATE, "soft_responder_immediate", SIDE, true, true, false, false },
		{ WIRE_IMMEDIATE_SE, "soft_responder_immediate", SIDE, true, true, false, false },
		{ WIRE_SEND, "soft_responder_send_end", SIDE, false, true, false, false },
		{ WIRE_SEND_SE_IMM, "soft_responder_send_end", SIDE, false, true, false, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		assert_int_equal(end(rows[i].op, true), rows[i].term);
		assert_string_equal(called, rows[i].function);
		assert_ptr_equal(called_with, rows[i].body ? rx->part + WIRE_HEAD_MAX : NULL);
		assert_int_equal(rx->msn_send, 10 + rows[i].sends);
		assert_int_equal(rx->msn_read, 20 + rows[i].reads);
		assert_int_equal(rx->msn_atomic, 30 + rows[i].atomics);
		assert_int_equal(rx->msn_dapl, 40);
		assert_true(conn.stream.tx.open);	/* the peer has begun */
	}
}

TEST(message_ends_with_its_last_segment)
{
	static const unsigned ops[] = { WIRE_WRITE, WIRE_READ_RESPONSE, WIRE_SEND, WIRE_SEND_INV };

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		assert_int_equal(end(ops[i], false), WIRE_TERM_NONE);
		assert_null(called);
		assert_int_equal(rx->msn_send, 10);
	}
}

TEST(acknowledgement_is_decoded)
{
	for (unsigned i = 0; i < WIRE_ACK_LENGTH; i++)
		rx->part[WIRE_HEAD_MAX + i] = (uint8_t)(i + 1);
	assert_int_equal(end(WIRE_ACK, true), SIDE);
	assert_string_equal(called, "soft_requester_acked");
	assert_int_equal(conn.stream.peer_ready, 0x05060708);
	assert_int_equal(rx->msn_dapl, 41);
}

TEST(close_notification_is_kept)
{
	assert_int_equal(end(WIRE_CLOSE, true), WIRE_TERM_NONE);
	assert_true(rx->close_notice);
	assert_int_equal(rx->msn_dapl, 41);
	assert_int_equal(conn.up, 0);		/* over TCP the end of the stream tells */
}

TEST(terminate_is_handed_on_with_its_length)
{
	rx->part_need = WIRE_HEAD_MAX + 22;
	assert_int_equal(end(WIRE_TERMINATE, true), WIRE_TERM_NONE);
	assert_string_equal(called, "soft_requester_terminated");
	assert_ptr_equal(called_with, rx->part + WIRE_HEAD_MAX);
	assert_int_equal(called_length, 22);
}

UNIT_MAIN(NULL, NULL)
