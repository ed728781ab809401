/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_unexpected.c - messages that come before their receive: what they cost, how much of them is kept, and how
 * they are delivered. */
#include "dapl/soft/rdmap/unexpected.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

static struct soft_unexpected *add(uint8_t op, uint32_t word, const char *text, bool complete)
{
	struct soft_unexpected *unexpected;

	dapl_mutex_lock(&s.qp->lock);
	unexpected = soft_unexpected_new(s.conn, op, word);
	assert_non_null(unexpected);
	assert_true(soft_unexpected_reserve(unexpected, (uint32_t)strlen(text)));
	if (*text)
		memcpy(unexpected->data, text, strlen(text));
	unexpected->length = (uint32_t)strlen(text);
	unexpected->complete = complete;
	s.conn->stream.unexpected_bytes += unexpected->length;
	dapl_mutex_unlock(&s.qp->lock);
	return unexpected;
}

static void deliver(void)
{
	dapl_mutex_lock(&s.qp->lock);
	soft_unexpected_deliver(s.qp);
	dapl_mutex_unlock(&s.qp->lock);
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;

	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	return wc;
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open, stream_test_close)

CASE(memory_grows_by_doubling)
{
	static const struct {
		uint32_t size, capacity;
	} steps[] = { { 0, 0 }, { 1, 256 }, { 256, 256 }, { 3, 256 }, { 257, 512 }, { 5000, 8192 }, { 8192, 8192 } };
	struct soft_unexpected unexpected = { .op = WIRE_SEND };

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		assert_true(soft_unexpected_reserve(&unexpected, steps[i].size));
		assert_int_equal(unexpected.capacity, steps[i].capacity);
		if (i == 1)
			memset(unexpected.data, 'x', 256);
	}
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal(unexpected.data[i], 'x');
	free(unexpected.data);
}

CASE(peer_of_this_implementation_must_stay_within_the_window)
{
	s.conn->stream.unexpected_bytes = SOFT_WINDOW;
	assert_int_equal(soft_unexpected_limit(s.conn), WIRE_TERM_NONE);
	s.conn->stream.unexpected_bytes = SOFT_WINDOW + 1;
	assert_int_equal(soft_unexpected_limit(s.conn), WIRE_TERM_NO_BUFFER);
	assert_false(s.conn->stream.rx.paused);
	s.conn->stream.unexpected_bytes = 0;
}

/* Other implementations have no window: the socket is read again once half of the window is free. */
CASE(other_peers_are_paused_and_go_on)
{
	uint64_t waiting = SOFT_WINDOW / 2 + 1;

	s.conn->stream.peer_is_dapl = false;
	s.conn->stream.unexpected_bytes = SOFT_WINDOW;
	assert_int_equal(soft_unexpected_limit(s.conn), WIRE_TERM_NONE);
	assert_false(s.conn->stream.rx.paused);
	s.conn->stream.unexpected_bytes = SOFT_WINDOW + 1;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(soft_unexpected_limit(s.conn), WIRE_TERM_NONE);
		assert_true(s.conn->stream.rx.paused);
	}
	s.conn->stream.unexpected_bytes = (uint32_t)waiting;
	deliver();
	assert_true(s.conn->stream.rx.paused);
	s.conn->stream.unexpected_bytes = (uint32_t)waiting - 1;
	deliver();
	assert_false(s.conn->stream.rx.paused);
	s.conn->stream.unexpected_bytes = 0;
}

CASE(messages_fill_receives_in_order)
{
	struct ibv_wc wc;

	add(WIRE_SEND, 0, "first", true);
	add(WIRE_SEND, 0, "second", true);
	add(WIRE_SEND, 0, "third", true);
	expect_no_completion();
	assert_true(stream_receive(&s, 1, 0, 64));
	assert_true(stream_receive(&s, 2, 64, 6));
	wc = completion();
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.byte_len, 5);
	wc = completion();
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, 6);
	expect_no_completion();
	assert_memory_equal(stream_device.memory->local, "first", 5);
	assert_memory_equal(stream_device.memory->local + 64, "second", 6);
	assert_int_equal(s.conn->stream.unexpected_bytes, SOFT_CHARGE + 5);
	assert_int_equal(s.conn->stream.consumed, 2 * SOFT_CHARGE + 11);
	assert_int_equal(s.conn->stream.delivered, 2);
	soft_unexpected_drop(s.conn);
}

CASE(message_that_is_longer_than_its_receive_ends_the_connection)
{
	struct ibv_wc wc;

	add(WIRE_SEND, 0, "four", true);
	assert_true(stream_receive(&s, 1, 0, 3));
	wc = completion();
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	assert_true(s.conn->stream.tx.terminate);
	assert_int_equal(s.conn->stream.delivered, 0);
}

/* The part that is on its way must fit, too. */
CASE(rest_of_an_open_message_must_fit)
{
	s.conn->stream.rx.unexpected = add(WIRE_SEND, 0, "half", false);
	s.conn->stream.rx.sink = SOFT_SINK_UNEXPECTED;
	s.conn->stream.rx.payload_left = 5;
	assert_true(stream_receive(&s, 1, 0, 8));
	assert_int_equal(completion().status, IBV_WC_LOC_LEN_ERR);
	assert_true(s.conn->stream.tx.terminate);
	s.conn->stream.rx.sink = SOFT_SINK_NONE;
	s.conn->stream.rx.payload_left = 0;
}

CASE(rest_of_an_open_message_goes_straight_into_the_receive)
{
	s.conn->stream.rx.unexpected = add(WIRE_SEND, 0, "half", false);
	s.conn->stream.rx.sink = SOFT_SINK_UNEXPECTED;
	s.conn->stream.rx.payload_left = 4;
	assert_true(stream_receive(&s, 1, 0, 8));
	expect_no_completion();
	assert_null(s.conn->stream.rx.unexpected);
	assert_int_equal(s.conn->stream.rx.sink, SOFT_SINK_RECV);
	assert_true(s.qp->taken_valid);
	assert_memory_equal(stream_device.memory->local, "half", 4);
	assert_int_equal(s.conn->stream.delivered, 0);
	assert_int_equal(s.conn->stream.unexpected_bytes, 0);
	s.conn->stream.rx.sink = SOFT_SINK_NONE;
	s.conn->stream.rx.payload_left = 0;
}

/* A receive of a message whose segment is still being thrown away elsewhere keeps that sink. */
CASE(delivery_of_an_earlier_message_leaves_the_sink)
{
	add(WIRE_SEND, 0, "first", true);
	s.conn->stream.rx.unexpected = add(WIRE_SEND, 0, "half", false);
	s.conn->stream.rx.sink = SOFT_SINK_UNEXPECTED;
	assert_true(stream_receive(&s, 1, 0, 64));
	assert_int_equal(completion().byte_len, 5);
	assert_int_equal(s.conn->stream.rx.sink, SOFT_SINK_UNEXPECTED);
	assert_non_null(s.conn->stream.rx.unexpected);
	s.conn->stream.rx.sink = SOFT_SINK_NONE;
	soft_unexpected_drop(s.conn);
}

CASE(immediate_tells_the_length_of_its_write)
{
	static const uint8_t ops[] = { WIRE_IMMEDIATE, WIRE_IMMEDIATE_SE };

	for (uint32_t i = 0; i < 2; i++) {
		struct soft_unexpected *unexpected = add(ops[i], 7, "", true);
		struct ibv_wc wc;

		unexpected->write_length = 12345;
		assert_true(stream_receive(&s, i, 0, 8));
		wc = completion();
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, 12345);
	}
}

CASE(writes_behind_a_message_count_as_delivered_with_it)
{
	add(WIRE_SEND, 0, "x", true)->writes_after = 3;
	add(WIRE_SEND, 0, "y", true)->writes_after = 2;
	assert_true(stream_receive(&s, 1, 0, 8));
	completion();
	assert_int_equal(s.conn->stream.delivered, 1 + 3);
	assert_true(stream_receive(&s, 2, 0, 8));
	completion();
	assert_int_equal(s.conn->stream.delivered, 2 + 5);
}

/* A connection that ends takes no receive: the flush completes them all. */
CASE(ending_connection_delivers_nothing)
{
	bool *const ends[] = { &s.conn->stream.tx.terminate, &s.conn->stream.tx.close_notice };

	add(WIRE_SEND, 0, "x", true);
	for (int i = 0; i < 2; i++) {
		*ends[i] = true;
		assert_true(stream_receive(&s, (uint64_t)i, 0, 8));
		expect_no_completion();
		*ends[i] = false;
	}
	deliver();
	assert_int_equal(completion().wr_id, 0);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
