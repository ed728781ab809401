/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_responder_place.c - where each payload goes, what becomes of one without a place, and what is counted when
 * it is there. */
#include "dapl/soft/rdmap/responder_place.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/shm/shm_ring.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum { AT = 256, LENGTH = 64, PLACES = 4 };	/* a receive or a read: its offset, bytes */

static struct iovec iov[PLACES];
static bool held;		/* a window was locked */
static int term;

static int place(uint32_t length, int max)
{
	struct soft_region *window = NULL;
	int n;

	term = WIRE_TERM_NONE;
	stream_test_lock();
	n = soft_responder_place(s.qp, s.conn, length, iov, max, &window, &term);
	held = window != NULL;
	soft_mem_done(window);
	stream_test_unlock();
	return n;
}

static void take_receive(void)
{
	assert_true(stream_receive(&s, 1, AT, LENGTH));
	stream_test_lock();
	soft_qp_take_receive(s.qp);
	stream_test_unlock();
	assert_true(s.qp->taken_valid);
	s.conn->stream.rx.sink = SOFT_SINK_RECV;
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open, stream_test_close)

CASE(receive_whose_memory_went_away_fails)
{
	take_receive();
	s.qp->taken->sge->lkey = 12345;
	assert_int_equal(place(10, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_LOCAL);
	expect_completion(1, IBV_WC_LOC_PROT_ERR);
}

static void keep_send(void)
{
	s.conn->stream.rx.sink = SOFT_SINK_UNEXPECTED;
	s.conn->stream.rx.unexpected = soft_unexpected_new(s.conn, WIRE_SEND, 0);
}

CASE(peer_far_beyond_its_window_is_refused)
{
	uint32_t before;

	keep_send();
	before = s.conn->stream.unexpected_bytes;
	s.conn->stream.unexpected_bytes = SOFT_WINDOW + SOFT_CHARGE + RING_CHUNK - 10;
	assert_int_equal(place(10, PLACES), 1);
	assert_int_equal(place(11, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_NO_BUFFER);
	s.conn->stream.peer_is_dapl = false;	/* is told nothing of the window */
	assert_int_equal(place(11, PLACES), 1);
	s.conn->stream.unexpected_bytes = before;
}

static void begin_write(uint32_t stag, uint64_t to, uint32_t length, uint32_t tail)
{
	struct soft_rx *rx = &s.conn->stream.rx;

	rx->sink = SOFT_SINK_WRITE;
	rx->write_stag = stag;
	rx->write_to = to;
	rx->payload_left = length;
	rx->tail_length = tail;
}

CASE(end_of_a_write_is_collected_first)
{
	struct soft_rx *rx = &s.conn->stream.rx;

	begin_write(stream_device.open->rkey, 4, 20, 8);
	assert_int_equal(place(20, PLACES), 2);
	assert_ptr_equal(iov[0].iov_base, stream_device.memory->open + 4);
	assert_int_equal(iov[0].iov_len, 12);
	assert_ptr_equal(iov[1].iov_base, rx->tail);
	assert_int_equal(iov[1].iov_len, 8);
	assert_ptr_equal(rx->tail_at, stream_device.memory->open + 16);
	assert_false(held);
	assert_int_equal(place(20, 1), 1);		/* no room for the second piece */
	assert_int_equal(place(5, PLACES), 1);
	assert_int_equal(iov[0].iov_len, 5);
}

CASE(write_checks_its_memory_each_time)
{
	begin_write(12345, 0, 20, 0);
	assert_int_equal(place(20, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_DDP_STAG);
	begin_write(stream_device.open->rkey, STREAM_REGION - 19, 20, 0);
	assert_int_equal(place(1, PLACES), -1);		/* the rest of the segment would not fit */
	assert_int_equal(term, WIRE_TERM_DDP_BOUNDS);
	begin_write(stream_device.constant->rkey, 0, 20, 0);
	assert_int_equal(place(20, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_ACCESS);
}

CASE(window_is_locked_while_it_is_written)
{
	assert_true(stream_bind(&s, 1, 128, 64));
	expect_completion(1, IBV_WC_SUCCESS);
	begin_write(s.window->mw.rkey, 8, 16, 0);
	assert_int_equal(place(16, PLACES), 1);
	assert_ptr_equal(iov[0].iov_base, stream_device.memory->open + 136);
	assert_true(held);
}

static void start_read(void)
{
	assert_true(stream_request(&s, 1, IBV_WR_RDMA_READ, AT, LENGTH, stream_device.open->rkey, 0));
	s.conn->stream.rx.sink = SOFT_SINK_READ;
	s.conn->stream.rx.read_wqe = 0;
	s.conn->stream.rx.payload_left = LENGTH;
}

CASE(read_whose_memory_went_away_fails)
{
	start_read();
	soft_swqe(s.qp, 0)->sge->lkey = 12345;
	assert_int_equal(place(8, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_LOCAL);
	expect_completion(1, IBV_WC_LOC_PROT_ERR);
}

/* A receiver that got no place and no error would ask for ever. */
CASE(payload_without_a_place_is_an_error)
{
	start_read();
	s.conn->stream.rx.read_offset = LENGTH;
	assert_int_equal(place(8, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_LOCAL);
	assert_int_equal(place(0, PLACES), 0);
	s.conn->stream.rx.sink = SOFT_SINK_NONE;
	assert_int_equal(place(8, PLACES), -1);
	assert_int_equal(term, WIRE_TERM_UNSPECIFIED);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
