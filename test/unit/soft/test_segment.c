/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_segment.c - the form and the order of incoming segments. */
#include "dapl/soft/rdmap/responder.h"
#include "dapl/soft/rdmap/segment.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { ANY = -1, SIDE = 77 };	/* a body of any length; what the responder returns */

static struct dapl_conn conn;
static struct soft_rx *const rx = &conn.stream.rx;
static struct soft_qp qp;
static const char *check;
static bool called;	/* the responder, for a Send */

REPLACE(soft_responder_send_begin)

int __wrap_soft_responder_send_begin(struct soft_qp *q, struct dapl_conn *c)
{
	assert_ptr_equal(q, &qp);
	assert_ptr_equal(c, &conn);
	called = true;
	return SIDE;
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
	check = NULL;
	called = false;
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

/* --- the whole header --------------------------------------------------------------------------- */

static int begin(unsigned op, bool last, uint32_t qn, uint32_t msn, uint32_t mo)
{
	rx->seg = (struct wire_segment){ .op = (uint8_t)op, .last = last, .tagged = forms[op].tagged };
	wire_put32(rx->part + 4, 0xaabbccdd);
	wire_put32(rx->part + 8, qn);
	wire_put32(rx->part + 12, msn);
	wire_put32(rx->part + 16, mo);
	rx->sink = SOFT_SINK_WRITE;	/* of the segment before */
	called = false;
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
		assert_false(called);
	}
}

TEST(send_continues_where_it_ended)
{
	rx->send_open = true;
	rx->send_op = WIRE_SEND_SE;
	rx->send_offset = 500;
	assert_int_equal(begin(WIRE_SEND_SE, false, 0, 10, 500), SIDE);
	assert_true(called);
	assert_int_equal(begin(WIRE_SEND_SE, false, 0, 10, 0), WIRE_TERM_MO);
	assert_int_equal(begin(WIRE_SEND, false, 0, 10, 500), WIRE_TERM_OPCODE);
	assert_string_equal(check, "opcode within a message");
	assert_int_equal(begin(WIRE_IMMEDIATE, true, 0, 10, 0), WIRE_TERM_OPCODE);
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

/* --- messages of a ring ---------------------------------------------------------------------------- */

static uint8_t payload[100];

static int arrive(unsigned op, bool last, uint32_t length)
{
	const struct soft_message message = { .op = (uint8_t)op, .last = last, .length = length, .word = 0xaabbccdd,
		.to = 0x0102030405060708, .data = payload };

	called = false;
	rx->payload_done = 9;
	rx->sink = SOFT_SINK_WRITE;	/* of the message before */
	return soft_segment_arrived(&qp, &conn, &message, &check);
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
	assert_false(called);
}

UNIT_MAIN(NULL, NULL)
