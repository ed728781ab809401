/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_requester_done.c - when requests complete, in which order, and which acknowledgements and answers
 * of a peer are refused. */
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/transmit.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum { LENGTH = 64 };		/* bytes of each request but atomics */

static struct soft_swqe *post(uint64_t id, enum ibv_wr_opcode opcode)
{
	uint32_t length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : LENGTH;

	assert_true(stream_request(&s, id, opcode, (uint32_t)id * LENGTH, length, stream_device.open->rkey, 0));
	return soft_swqe(s.qp, s.qp->sq_tail - 1);
}

/* Posts a request, as if the transport had taken it as message `seq`. */
static struct soft_swqe *post_sent(uint64_t id, enum ibv_wr_opcode opcode, uint32_t seq)
{
	struct soft_swqe *wqe = post(id, opcode);

	wqe->state = SOFT_SENT;
	wqe->seq = seq;
	s.conn->stream.tx.cursor.wqe = s.qp->sq_tail;
	if (!soft_is_read(wqe))
		s.conn->stream.tx.cursor.seq = seq;
	return wqe;
}

static int acknowledge(uint32_t delivered, uint64_t consumed)
{
	int term;

	stream_test_lock();
	term = soft_requester_acked(s.qp, s.conn, delivered, consumed);
	stream_test_unlock();
	return term;
}

#define CASE(name) UNIT_TEST_WITH(name, stream_test_open_blocked, stream_test_close)

/* --- order of completions ------------------------------------------------------------------------ */

CASE(message_numbers_may_wrap)
{
	s.conn->stream.peer_delivered = UINT32_MAX - 1;
	post_sent(1, IBV_WR_SEND, UINT32_MAX);
	post_sent(2, IBV_WR_SEND, 0);
	post_sent(3, IBV_WR_SEND, 1);
	assert_int_equal(acknowledge(0, 0), WIRE_TERM_NONE);
	expect_completion(1, IBV_WC_SUCCESS);
	expect_completion(2, IBV_WC_SUCCESS);
	expect_no_completion();
}

CASE(done_request_waits_for_those_before_it)
{
	struct soft_swqe *read;

	read = post_sent(1, IBV_WR_RDMA_READ, 1);
	post_sent(2, IBV_WR_SEND, 1)->state = SOFT_DONE;
	post_sent(3, IBV_WR_SEND, 2);
	assert_int_equal(acknowledge(2, 0), WIRE_TERM_NONE);	/* which does not answer the read */
	expect_no_completion();
	read->state = SOFT_DONE;
	stream_test_lock();
	soft_requester_complete(s.qp);
	stream_test_unlock();
	for (uint64_t id = 1; id <= 3; id++)
		expect_completion(id, IBV_WC_SUCCESS);
}

CASE(unsignaled_request_has_no_completion)
{
	post_sent(1, IBV_WR_SEND, 1)->flags = 0;
	post_sent(2, IBV_WR_SEND, 2);
	post_sent(3, IBV_WR_SEND, 3)->flags = 0;
	assert_int_equal(acknowledge(3, 0), WIRE_TERM_NONE);
	expect_completion(2, IBV_WC_SUCCESS);
	expect_no_completion();
	assert_int_equal(s.qp->sq_head, s.qp->sq_tail);
	s.posted -= 2;
}

/* --- acknowledgements -------------------------------------------------------------------------------- */

CASE(acknowledgement_of_what_was_not_sent_is_refused)
{
	static const struct { uint32_t delivered; uint64_t consumed; int term; } cases[] = {
		{ 4, 500, WIRE_TERM_UNSPECIFIED },	/* fewer messages than before */
		{ 8, 500, WIRE_TERM_UNSPECIFIED },	/* more than were sent */
		{ 6, 499, WIRE_TERM_UNSPECIFIED },	/* less of the window than before */
		{ 6, 1001, WIRE_TERM_UNSPECIFIED },	/* more than was used */
		{ 5, 500, WIRE_TERM_NONE }, { 6, 700, WIRE_TERM_NONE }, { 7, 1000, WIRE_TERM_NONE },
	};

	s.conn->stream.tx.cursor.seq = 7;
	s.conn->stream.tx.cursor.charged = 1000;
	s.conn->stream.peer_delivered = 5;
	s.conn->stream.peer_consumed = 500;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool good = cases[i].term == WIRE_TERM_NONE;

		assert_int_equal(acknowledge(cases[i].delivered, cases[i].consumed), cases[i].term);
		assert_int_equal(s.conn->stream.peer_delivered, good ? cases[i].delivered : 5);
		assert_int_equal(s.conn->stream.peer_consumed, good ? cases[i].consumed : 500);
	}
}

/* --- answers ------------------------------------------------------------------------------------------- */

CASE(oldest_read_has_no_answer_yet)
{
	struct soft_swqe *read, *atomic;
	uint32_t index = 99;

	post_sent(1, IBV_WR_SEND, 1);
	post_sent(2, IBV_WR_RDMA_READ, 1)->state = SOFT_DONE;
	read = post_sent(3, IBV_WR_RDMA_READ, 2);
	atomic = post_sent(4, IBV_WR_ATOMIC_FETCH_AND_ADD, 3);
	post(5, IBV_WR_RDMA_READ)->state = SOFT_SENT;	/* behind the cursor: a part of it was framed */
	assert_ptr_equal(soft_requester_oldest_read(s.qp, s.conn, &index), read);
	assert_int_equal(index, 2);
	read->state = SOFT_DONE;
	assert_ptr_equal(soft_requester_oldest_read(s.qp, s.conn, &index), atomic);
	assert_int_equal(index, 3);
	atomic->state = SOFT_DONE;
	assert_null(soft_requester_oldest_read(s.qp, s.conn, &index));
}

/* The peer's next segment of an answer to a read. */
static int response(uint32_t stag, uint64_t to, uint32_t length, bool last)
{
	int term;

	stream_test_lock();
	s.conn->stream.rx.seg = (struct wire_segment){ .tagged = true, .op = WIRE_READ_RESPONSE, .last = last,
						.stag = stag, .to = to };
	s.conn->stream.rx.payload_left = length;
	term = soft_requester_response_begin(s.qp, s.conn);
	stream_test_unlock();
	return term;
}

CASE(response_without_a_read_is_refused)
{
	assert_int_equal(response(STREAM_SINK + 1, 0, LENGTH, true), WIRE_TERM_OPCODE);
	post_sent(1, IBV_WR_SEND, 1);
	assert_int_equal(response(STREAM_SINK + 1, 0, LENGTH, true), WIRE_TERM_OPCODE);
	post_sent(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
	post_sent(3, IBV_WR_RDMA_READ, 2);	/* the atomic has to be answered before it */
	assert_int_equal(response(STREAM_SINK + 2, 0, LENGTH, true), WIRE_TERM_OPCODE);
	assert_false(s.conn->stream.rx.read_open);
}

CASE(response_must_fit_the_read)
{
	post_sent(1, IBV_WR_RDMA_READ, 7);
	post_sent(2, IBV_WR_RDMA_READ, 8);
	assert_int_equal(response(STREAM_SINK + 8, 0, LENGTH, true), WIRE_TERM_DDP_STAG);
	assert_int_equal(response(STREAM_SINK + 7, 1, LENGTH - 1, true), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(response(STREAM_SINK + 7, 0, LENGTH + 1, true), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(response(STREAM_SINK + 7, 0, LENGTH + 1, false), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(response(STREAM_SINK + 7, 0, LENGTH - 1, true), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(s.conn->stream.rx.sink, SOFT_SINK_NONE);
	assert_int_equal(response(STREAM_SINK + 7, 0, LENGTH, true), WIRE_TERM_NONE);
	assert_int_equal(s.conn->stream.rx.sink, SOFT_SINK_READ);
	assert_int_equal(s.conn->stream.rx.read_wqe, 0);
}

CASE(response_continues_where_its_last_segment_ended)
{
	post_sent(1, IBV_WR_RDMA_READ, 1);
	s.conn->stream.rx.read_offset = 999;	/* of the read before */
	assert_int_equal(response(STREAM_SINK + 1, 0, 16, false), WIRE_TERM_NONE);
	s.conn->stream.rx.read_offset = 16;
	assert_int_equal(response(STREAM_SINK + 1, 0, 16, false), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(response(STREAM_SINK + 1, 16, LENGTH - 15, true), WIRE_TERM_DDP_BOUNDS);
	assert_int_equal(response(STREAM_SINK + 1, 16, LENGTH - 16, true), WIRE_TERM_NONE);
}

static int answer_atomic(uint32_t id, uint64_t value)
{
	uint8_t body[WIRE_ATOMIC_RESPONSE_LENGTH];
	int term;

	wire_put32(body, id);
	wire_put64(body + 4, value);
	stream_test_lock();
	term = soft_requester_atomic(s.qp, s.conn, body);
	stream_test_unlock();
	return term;
}

CASE(answer_to_another_atomic_is_refused)
{
	assert_int_equal(answer_atomic(1, 0), WIRE_TERM_OPCODE);	/* none is outstanding */
	post_sent(1, IBV_WR_RDMA_READ, 1);
	post_sent(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 2);
	assert_int_equal(answer_atomic(1, 0), WIRE_TERM_OPCODE);	/* it is a read */
	assert_int_equal(response(STREAM_SINK + 1, 0, 16, false), WIRE_TERM_NONE);
	soft_swqe(s.qp, 0)->state = SOFT_DONE;
	assert_int_equal(answer_atomic(2, 0), WIRE_TERM_OPCODE);	/* the answer to a read is not complete */
	s.conn->stream.rx.read_open = false;
	assert_int_equal(answer_atomic(3, 0), WIRE_TERM_OPCODE);	/* another number */
	assert_int_equal(s.conn->stream.reads_done, 0);
	assert_int_equal(answer_atomic(2, 0), WIRE_TERM_NONE);
}

CASE(answer_without_a_place_fails_the_atomic)
{
	struct soft_swqe *wqe;

	post_sent(1, IBV_WR_SEND, 1);
	wqe = post_sent(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
	wqe->sge->lkey = stream_device.constant->lkey;	/* may not be written */
	wqe->sge->addr = 0;
	assert_int_equal(answer_atomic(1, 0), WIRE_TERM_LOCAL);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
	expect_completion(2, IBV_WC_LOC_PROT_ERR);
}

/* --- requests without a segment --------------------------------------------------------------------- */

static void execute(void)
{
	stream_test_lock();
	soft_requester_execute_local(s.conn);
	stream_test_unlock();
}

CASE(failed_invalidation_completes_after_those_before_it)
{
	post_sent(1, IBV_WR_SEND, 1);
	post(2, IBV_WR_LOCAL_INV)->word = 12345;
	execute();
	expect_no_completion();
	assert_int_equal(s.conn->stream.tx.cursor.wqe, 1);	/* nothing behind it is sent */
	assert_int_equal(acknowledge(1, 0), WIRE_TERM_NONE);
	expect_completion(1, IBV_WC_SUCCESS);
	expect_completion(2, IBV_WC_MW_BIND_ERR);
}

CASE(request_with_a_fault_completes_with_it)
{
	post(1, IBV_WR_RDMA_WRITE)->sge->lkey = 12345;
	execute();
	expect_completion(1, IBV_WC_LOC_PROT_ERR);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
