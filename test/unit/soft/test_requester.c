/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_requester.c - which segments the send queue and the answers to a peer become, in which order, and what
 * keeps the next request from being sent. */
#include "dapl/soft/rdmap/requester.h"
#include "dapl/soft/rdmap/transmit.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum {
	UNTAGGED = 1024 - WIRE_UNTAGGED, TAGGED = 1024 - WIRE_TAGGED,	/* bytes of payload of a full segment */
	REMOTE = 100,		/* address that requests name */
};

static bool no_memory;

UNIT_FAIL_MALLOC(no_memory)

static struct soft_batch b;
static uint8_t bytes[BATCH_PAYLOAD + SOFT_SCRATCH + BATCH_BYTES];	/* of the batch, in one piece */
static struct soft_tx_cursor cur;	/* behind the batch */

/* Fills a batch from the connection's cursor on. */
static enum soft_step fill(void)
{
	size_t n = 0;
	enum soft_step step;

	memset(&b, 0, sizeof b);
	cur = s.conn->stream.tx.cursor;
	stream_test_lock();
	step = soft_requester_fill(&b, s.conn, &cur);
	for (int i = 0; i < b.iovs; n += b.iov[i++].iov_len)
		memcpy(bytes + n, b.iov[i].iov_base, b.iov[i].iov_len);
	soft_mem_done(b.window);
	stream_test_unlock();
	free(b.bounce);
	assert_int_equal(n, b.total);
	return step;
}

static void fills(unsigned frames)
{
	assert_int_equal(fill(), STEP_NOTHING);
	assert_int_equal(b.frames, frames);
}

struct segment {
	bool tagged, last;
	unsigned op;
	uint32_t stag, qn, msn, mo;	/* stag: or the word of an untagged segment */
	uint64_t to;
	const uint8_t *body;
	uint32_t length;
};

static struct segment segment(int i)
{
	const uint8_t *fpdu = bytes + (i ? b.frame[i - 1].end : 0), *p = fpdu + WIRE_FPDU_LENGTH;
	struct segment is = { .tagged = p[0] & 0x80, .last = p[0] & 0x40, .op = p[1] & 15u, .stag = wire_get32(p + 2) };
	uint32_t head = is.tagged ? WIRE_TAGGED : WIRE_UNTAGGED;

	assert_true(i < b.frames);
	if (is.tagged) {
		is.to = wire_get64(p + 6);
	} else {
		is.qn = wire_get32(p + 6);
		is.msn = wire_get32(p + 10);
		is.mo = wire_get32(p + 14);
	}
	is.body = p + head;
	is.length = wire_get16(fpdu) - head;
	return is;
}

static struct soft_swqe *post(enum ibv_wr_opcode opcode, uint32_t length)
{
	assert_true(stream_request(&s, 1, opcode, 0, length, stream_device.open->rkey, REMOTE));
	return soft_swqe(s.qp, s.qp->sq_tail - 1);
}

/* The peer reads `length` bytes at an offset of the constant memory. */
static struct soft_answer *ask(uint32_t offset, uint32_t length)
{
	struct soft_answer *answer;

	if (!s.conn->stream.answers)
		s.conn->stream.answers = calloc(STREAM_READS, sizeof *answer);
	answer = &s.conn->stream.answers[s.conn->stream.answer_tail++ % STREAM_READS];
	*answer = (struct soft_answer){ .stag = stream_device.constant->rkey, .from = offset, .length = length,
					.sink_stag = 0x5151, .sink_to = 7000 };
	return answer;
}

static int set_up(void **state)
{
	for (int i = 0; i < STREAM_LOCAL; i++)
		stream_device.memory->local[i] = (char)(i * 167 >> 3);
	for (int i = 0; i < STREAM_REGION; i++)
		stream_device.memory->constant[i] = (char)(i * 59 >> 2);
	return stream_test_open_blocked(state);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, stream_test_close)

/* --- segments of requests ---------------------------------------------------------------------------- */

CASE(each_kind_of_send_has_its_opcode)
{
	static const struct { enum ibv_wr_opcode opcode; unsigned flags, op; uint32_t word; } cases[] = {
		{ IBV_WR_SEND, 0, WIRE_SEND, 0 }, { IBV_WR_SEND, IBV_SEND_SOLICITED, WIRE_SEND_SE, 0 },
		{ IBV_WR_SEND_WITH_INV, 0, WIRE_SEND_INV, 77 },
		{ IBV_WR_SEND_WITH_INV, IBV_SEND_SOLICITED, WIRE_SEND_SE_INV, 77 },
		{ IBV_WR_SEND_WITH_IMM, 0, WIRE_SEND_IMM, 77 },
		{ IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED, WIRE_SEND_SE_IMM, 77 },
	};
	int n = sizeof cases / sizeof *cases;

	for (int i = 0; i < n; i++) {
		struct soft_swqe *wqe = post(cases[i].opcode, 40);

		wqe->word = 77;
		wqe->flags |= cases[i].flags;
	}
	fills(n);
	for (int i = 0; i < n; i++) {
		struct segment is = segment(i);

		assert_int_equal(is.op, cases[i].op);
		assert_int_equal(is.stag, cases[i].word);
		assert_true(is.last && !is.tagged);
		assert_int_equal(is.qn, WIRE_QN_SEND);
		assert_int_equal(is.msn, i + 1);
		assert_int_equal(is.length, 40);
		assert_memory_equal(is.body, stream_device.memory->local, 40);
		assert_int_equal(soft_swqe(s.qp, i)->seq, i + 1);
	}
	assert_int_equal(cur.wqe, n);
	assert_int_equal(cur.seq, n);
	assert_int_equal(cur.charged, n * (SOFT_CHARGE + 40));
}

CASE(large_segments_are_whole_cache_lines)
{
	s.conn->stream.mulpdu = WIRE_UNTAGGED + FPDU_ALIGN_MIN + FPDU_ALIGN + FPDU_ALIGN - 1;
	post(IBV_WR_SEND, 8000);
	assert_int_equal(fill(), STEP_NOTHING);
	assert_int_equal(segment(0).length, FPDU_ALIGN_MIN + FPDU_ALIGN);
}

CASE(immediate_follows_its_write)
{
	struct soft_swqe *wqe;

	wqe = post(IBV_WR_RDMA_WRITE_WITH_IMM, 24);
	wqe->word = 0x01020304;
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 0)->flags |= IBV_SEND_SOLICITED;
	fills(4);
	assert_int_equal(segment(0).op, WIRE_WRITE);
	assert_true(b.frame[0].cursor.second);
	assert_int_equal(b.frame[0].cursor.wqe, 0);
	assert_int_equal(segment(1).op, WIRE_IMMEDIATE);
	assert_int_equal(segment(1).length, WIRE_IMMEDIATE_LENGTH);
	assert_int_equal(wire_get32(segment(1).body), 0x01020304);
	assert_int_equal(wire_get32(segment(1).body + 4), 24);
	assert_int_equal(wqe->seq, 2);		/* of the immediate: it comes last */
	assert_int_equal(segment(3).op, WIRE_IMMEDIATE_SE);
	assert_int_equal(segment(3).msn, 2);
	assert_int_equal(cur.charged, 2 * SOFT_CHARGE);
	assert_false(cur.second);
}

CASE(atomics_have_their_operands_and_masks)
{
	for (int i = 0; i < 2; i++) {
		struct soft_swqe *wqe = post(i ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

		wqe->atomic.compare_add = 0x1111;
		wqe->atomic.swap = 0x2222;
	}
	assert_int_equal(fill(), STEP_NOTHING);
	for (int i = 0; i < 2; i++) {
		const uint8_t *body = segment(i).body;

		assert_int_equal(segment(i).op, WIRE_ATOMIC_REQUEST);
		assert_int_equal(segment(i).qn, WIRE_QN_READ);
		assert_int_equal(segment(i).length, WIRE_ATOMIC_REQUEST_LENGTH);
		assert_int_equal(wire_get32(body), i ? WIRE_ATOMIC_CMP_SWAP : WIRE_ATOMIC_FETCH_ADD);
		assert_int_equal(wire_get32(body + 4), i + 1);
		assert_int_equal(wire_get32(body + 8), stream_device.open->rkey);
		assert_int_equal(wire_get64(body + 12), REMOTE);
		assert_int_equal(wire_get64(body + 20), i ? 0x2222 : 0x1111);
		assert_true(wire_get64(body + 28) == (i ? UINT64_MAX : 0));
		assert_int_equal(wire_get64(body + 36), i ? 0x1111 : 0);
		assert_true(wire_get64(body + 44) == (i ? UINT64_MAX : 0));
	}
}

/* --- what keeps a request from being sent ---------------------------------------------------------------- */

CASE(fence_waits_for_the_reads_before_it)
{
	post(IBV_WR_RDMA_READ, 8);
	post(IBV_WR_SEND, 8)->flags |= IBV_SEND_FENCE;
	fills(1);
	s.conn->stream.tx.cursor = cur;
	s.conn->stream.reads_done = 1;
	fills(1);
	assert_int_equal(segment(0).op, WIRE_SEND);
}

CASE(reads_wait_while_the_peer_has_as_many_as_it_allows)
{
	for (int i = 0; i <= STREAM_READS; i++)
		post(IBV_WR_RDMA_READ, 8);
	fills(STREAM_READS);
	s.conn->stream.tx.cursor = cur;
	s.conn->stream.reads_done = 1;
	fills(1);
}

CASE(nothing_is_sent_behind_a_request_that_failed)
{
	post(IBV_WR_SEND, 8)->state = SOFT_DONE;
	post(IBV_WR_SEND, 8);
	fills(0);
}

CASE(faulty_request_is_not_framed)
{
	post(IBV_WR_SEND, 8)->sge->lkey = 12345;
	assert_int_equal(fill(), STEP_LOCAL);
	assert_int_equal(b.frames, 0);
}

CASE(fault_is_the_status_of_the_completion)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint64_t length;
		bool foreign, no_reads, constant;
		enum ibv_wc_status status;
	} cases[] = {
		{ IBV_WR_SEND, SOFT_MAX_MESSAGE + 1ull, false, false, false, IBV_WC_LOC_LEN_ERR },
		{ IBV_WR_RDMA_READ, 8, false, true, false, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 4, false, false, false, IBV_WC_LOC_LEN_ERR },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8, false, false, false, IBV_WC_SUCCESS },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8, true, false, false, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 8, true, false, false, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WR_SEND_WITH_IMM, 8, true, false, false, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, 8, true, false, false, IBV_WC_LOC_QP_OP_ERR },
		{ IBV_WR_SEND_WITH_IMM, 8, false, false, false, IBV_WC_SUCCESS },
		{ IBV_WR_SEND_WITH_INV, 8, true, true, false, IBV_WC_SUCCESS },
		{ IBV_WR_RDMA_READ, 8, true, false, false, IBV_WC_SUCCESS },
		{ IBV_WR_RDMA_READ, 8, false, false, true, IBV_WC_LOC_PROT_ERR },
		{ IBV_WR_RDMA_WRITE, 8, false, false, true, IBV_WC_SUCCESS },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct soft_swqe *wqe = post(cases[i].opcode, 8);
		enum ibv_wc_status status;

		wqe->length = cases[i].length;
		if (cases[i].constant) {
			wqe->sge->lkey = stream_device.constant->lkey;
			wqe->sge->addr = 0;
		}
		s.conn->stream.peer_is_dapl = !cases[i].foreign;
		s.conn->stream.reads_out = cases[i].no_reads ? 0 : STREAM_READS;
		stream_test_lock();
		status = soft_requester_fault(s.qp, s.conn, wqe);
		stream_test_unlock();
		assert_int_equal(status, cases[i].status);
	}
}

/* Frames one Send of that many bytes, while `used` bytes of the window are. Returns the number of its bytes. */
static uint32_t send_into_window(uint64_t used, uint32_t length)
{
	s.conn->stream.tx.cursor.charged = used;
	post(IBV_WR_SEND, length);
	s.conn->stream.tx.cursor.wqe = s.qp->sq_tail - 1;
	assert_int_equal(fill(), STEP_NOTHING);
	return cur.offset ? cur.offset : b.frames ? length : 0;
}

CASE(unexpected_send_needs_room_in_the_window)
{
	s.conn->stream.mulpdu = 1 << 15;
	assert_int_equal(send_into_window(SOFT_WINDOW - SOFT_CHARGE - 100, 100), 100);
	assert_int_equal(send_into_window(SOFT_WINDOW - SOFT_CHARGE - 99, 100), 0);
	assert_int_equal(send_into_window(SOFT_WINDOW + 1000, 0), 0);
	/* a part of a long one, if it is worth a segment */
	assert_int_equal(send_into_window(SOFT_WINDOW - SOFT_CHARGE - WINDOW_USE_MIN, 9000), WINDOW_USE_MIN);
	assert_false(segment(0).last);
	assert_int_equal(send_into_window(SOFT_WINDOW - SOFT_CHARGE - WINDOW_USE_MIN + 1, 9000), 0);
	s.conn->stream.peer_consumed = 1;
	assert_int_equal(send_into_window(SOFT_WINDOW - SOFT_CHARGE - 99, 100), 100);
}

CASE(expected_send_needs_no_window)
{
	s.conn->stream.peer_ready = 5;
	s.conn->stream.tx.cursor.msn_send = 5;
	assert_int_equal(send_into_window(SOFT_WINDOW, 100), 100);
	s.conn->stream.tx.cursor.msn_send = 6;
	assert_int_equal(send_into_window(SOFT_WINDOW, 100), 0);
	s.conn->stream.peer_is_dapl = false;		/* another implementation has no window */
	assert_int_equal(send_into_window(SOFT_WINDOW, 100), 100);
}

CASE(immediate_needs_room_in_the_window)
{
	s.conn->stream.tx.cursor.charged = SOFT_WINDOW - SOFT_CHARGE + 1;
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	fills(1);
	assert_true(cur.second);
	s.conn->stream.tx.cursor = cur;
	s.conn->stream.peer_consumed = 1;
	assert_int_equal(fill(), STEP_NOTHING);
	assert_int_equal(segment(0).op, WIRE_IMMEDIATE);
}

CASE(batch_takes_a_limited_number_of_segments)
{
	for (int i = 0; i < BATCH_FRAMES + 1; i++)
		post(IBV_WR_SEND, 8);
	assert_int_equal(fill(), STEP_FULL);
	assert_int_equal(b.frames, BATCH_FRAMES);
	assert_int_equal(cur.wqe, BATCH_FRAMES);
}

CASE(memory_that_went_away_ends_the_stream)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };

	for (int i = 0; i < 2; i++) {
		post(opcodes[i], 2000)->sge->lkey = 12345;
		s.conn->stream.tx.cursor.wqe = i;
		s.conn->stream.tx.cursor.offset = 1000;	/* these were sent */
		assert_int_equal(fill(), STEP_BROKEN);
		assert_int_equal(b.term, WIRE_TERM_LOCAL);
		assert_false(b.answer);
		assert_non_null(b.check);
	}
}

CASE(nothing_follows_the_last_frame)
{
	bool *const last[] = { &s.conn->stream.tx.terminate, &s.conn->stream.tx.close_notice };

	post(IBV_WR_SEND, 8);
	ask(0, 8);
	for (int i = 0; i < 2; i++) {
		*last[i] = true;
		fills(0);
		*last[i] = false;
	}
	soft_qp_set_state(s.qp, IBV_QPS_ERR);
	fills(0);
	soft_qp_set_state(s.qp, IBV_QPS_RTS);
	fills(2);
}

CASE(initiator_begins_with_an_empty_write)
{
	s.conn->stream.tx.first = true;
	post(IBV_WR_SEND, 8);
	fills(2);
	assert_int_equal(segment(0).op, WIRE_WRITE);
	assert_int_equal(segment(0).stag, 1);
	assert_int_equal(segment(0).length, 0);
	assert_int_equal(soft_swqe(s.qp, 0)->seq, 2);	/* the peer counts the write, too */
	s.conn->stream.tx.cursor = cur;
	fills(0);
}

/* --- answers ------------------------------------------------------------------------------------------------ */

CASE(read_is_answered_in_full_segments)
{
	ask(50, TAGGED + 10);
	ask(0, 0);
	fills(3);
	for (int i = 0; i < 2; i++) {
		struct segment is = segment(i);

		assert_int_equal(is.op, WIRE_READ_RESPONSE);
		assert_int_equal(is.stag, 0x5151);
		assert_int_equal(is.to, 7000 + i * TAGGED);
		assert_int_equal(is.last, i);
		assert_int_equal(is.length, i ? 10 : TAGGED);
		assert_memory_equal(is.body, stream_device.memory->constant + 50 + i * TAGGED, is.length);
	}
	assert_int_equal(b.frame[0].cursor.answered, TAGGED);
	assert_int_equal(segment(2).length, 0);
	assert_true(segment(2).last);
	assert_int_equal(cur.answer, 2);
	assert_int_equal(cur.answered, 0);
}

/* The CRC is made of a copy, which is the batch's only one. */
CASE(batch_with_crc_has_one_response)
{
	ask(0, 8);
	ask(8, 8);
	s.conn->stream.crc = true;
	assert_int_equal(fill(), STEP_FULL);
	assert_int_equal(b.frames, 1);
	assert_memory_equal(segment(0).body, stream_device.memory->constant, 8);
	s.conn->stream.crc = false;
	fills(2);
}

/* None of the requests of this side is to blame. */
CASE(response_without_memory_for_its_copy_fails_as_an_answer)
{
	post(IBV_WR_SEND, 8);
	ask(0, 8);
	s.conn->stream.crc = true;
	no_memory = true;
	assert_int_equal(fill(), STEP_BROKEN);
	no_memory = false;
	s.conn->stream.crc = false;
	assert_true(b.answer);
	assert_int_equal(b.term, WIRE_TERM_LOCAL);
	assert_string_equal(b.check, "memory for the answer to a read");
}

CASE(batch_has_one_response_from_a_window)
{
	assert_true(stream_bind(&s, 2, 0, 64));
	stream_test_lock();
	soft_requester_execute_local(s.conn);
	stream_test_unlock();
	ask(0, 8)->stag = s.window->mw.rkey;
	ask(8, 8)->stag = s.window->mw.rkey;
	assert_int_equal(fill(), STEP_FULL);
	assert_int_equal(b.frames, 1);
	assert_non_null(b.window);
}

CASE(only_our_peers_get_interleaved_messages)
{
	post(IBV_WR_SEND, 2 * UNTAGGED);
	ask(0, 2 * TAGGED);
	fills(4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(segment(i).op, i % 2 ? WIRE_SEND : WIRE_READ_RESPONSE);
	s.conn->stream.peer_is_dapl = false;
	assert_int_equal(fill(), STEP_NOTHING);
	for (int i = 0; i < 4; i++)
		assert_int_equal(segment(i).op, i < 2 ? WIRE_READ_RESPONSE : WIRE_SEND);
	s.conn->stream.tx.cursor.offset = 1;		/* the Send has begun */
	assert_int_equal(fill(), STEP_NOTHING);
	for (int i = 0; i < 4; i++)
		assert_int_equal(segment(i).op, i < 2 ? WIRE_SEND : WIRE_READ_RESPONSE);
	s.conn->stream.tx.cursor.offset = 0;
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
