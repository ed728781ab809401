/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_transmit.c - what the socket is given, what happens if it takes a part or fails, when acknowledgements and
 * last frames are sent, and which requests take the fast path. The socket is replaced here. */
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/tunables.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum { SEND_FPDU = 2 + WIRE_UNTAGGED + 8 + WIRE_CRC };	/* bytes of a Send of 8 bytes */

static uint8_t sent[1 << 18];	/* what the socket took */
static size_t sent_length;
static size_t takes;		/* bytes that the socket takes before it blocks */
static int fails[4];		/* errno of the next calls, up to a 0 */
static int calls, plain, fin;	/* calls that send; of send(2); last argument of shutdown(2), or -1 */
static bool no_memory;

REPLACE(sendmsg)
EXTEND(send, shutdown)

static bool call_fails(void)
{
	errno = fails[0];
	memmove(fails, fails + 1, sizeof fails - sizeof *fails);
	calls++;
	return errno;
}

static size_t take(const void *p, size_t n)
{
	size_t part = n < takes ? n : takes;

	memcpy(sent + sent_length, p, part);
	sent_length += part;
	takes -= part;
	return part;
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	if (!s.conn || fd != s.conn->fd)	/* of another socket, as one that asks the kernel for addresses */
		return __real_send(fd, p, n, flags);
	plain++;
	if (!takes)
		fails[0] = EAGAIN;
	return call_fails() ? -1 : (ssize_t)take(p, n);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t n = 0;

	if (!takes)
		fails[0] = EAGAIN;
	if (call_fails())
		return -1;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += take(msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	return (ssize_t)n;
}

int __wrap_shutdown(int fd, int how)
{
	if (fd != s.conn->fd)
		return __real_shutdown(fd, how);
	fin = how;
	return 0;
}

UNIT_FAIL_MALLOC(no_memory)

UNIT_FIXTURE(set_up)
{
	stream_test_open(state);
	for (int i = 0; i < STREAM_LOCAL; i++)
		stream_device.memory->local[i] = (char)(i * 167 >> 3);
	sent_length = 0;
	takes = sizeof sent;
	memset(fails, 0, sizeof fails);
	calls = plain = 0;
	fin = -1;
}

static int tear_down(void **state)
{
	no_memory = false;
	takes = sizeof sent - sent_length;
	return stream_test_close(state);
}

static void post(uint64_t id, uint32_t length) { assert_true(stream_request(&s, id, IBV_WR_SEND, 0, length, 0, 0)); }

static void go_on(void)
{
	stream_test_lock();
	s.conn->stream.tx.blocked = false;
	soft_conn_send(s.conn);
	stream_test_unlock();
}

static uint8_t *frame(unsigned i)
{
	size_t at = 0;

	while (i-- && at < sent_length)
		at += ((WIRE_FPDU_LENGTH + wire_get16(sent + at) + 3u) & ~3u) + WIRE_CRC;
	return at < sent_length ? sent + at : NULL;
}

/* The frames sent have these opcodes, and there are no others. */
static void expect_frames(const char *ops)
{
	unsigned i = 0;

	for (; ops[i]; i++) {
		assert_non_null(frame(i));
		assert_int_equal("0123456789abcdef"[frame(i)[3] & 15], ops[i]);
	}
	assert_null(frame(i));
}

/* --- what the socket takes --------------------------------------------------------------------------------- */

UNIT_CASE(small_request_takes_one_system_call)
{
	post(1, 8);
	assert_int_equal(calls, 1);
	assert_int_equal(plain, 1);		/* cheaper than sendmsg(2) */
	assert_int_equal(sent_length, SEND_FPDU);
	assert_int_equal(s.conn->stream.tx.cursor.wqe, 1);
	assert_int_equal(s.conn->stream.tx.cursor.charged, SOFT_CHARGE + 8);
	post(2, 2000);		/* it is in two segments, in memory of their own */
	assert_int_equal(calls, 2);
	expect_frames("333");
}

UNIT_CASE(rest_of_a_frame_is_sent_first)
{
	uint8_t whole[3000];
	size_t length;

	post(1, 2000);
	length = sent_length;
	memcpy(whole, sent, length);
	s.conn->stream.tx.cursor.msn_send = 1;
	for (size_t cut = 0; cut < length; cut += cut < 60 ? 1 : 97) {
		s.conn->stream.tx.cursor.msn_send = 1;
		s.conn->stream.tx.cursor.charged = 0;
		sent_length = 0;
		takes = cut;
		assert_true(stream_request(&s, 2, IBV_WR_SEND, 0, 2000, 0, 0));
		assert_true(s.conn->stream.tx.blocked);
		assert_int_equal(sent_length, cut);
		memset(stream_device.memory->local, 0, cut ? 1 : 0);	/* a copy is sent */
		takes = sizeof sent;
		go_on();
		stream_device.memory->local[0] = (char)whole[2 + WIRE_UNTAGGED];
		assert_int_equal(sent_length, length);
		if (cut)
			assert_memory_equal(sent, whole, length);
		assert_null(s.conn->stream.tx.rest);
		s.qp->sq_head = s.qp->sq_tail;	/* a small queue */
		s.posted = 0;
	}
}

UNIT_CASE(frame_that_was_taken_whole_leaves_no_rest)
{
	s.conn->stream.tx.blocked = true;
	post(1, 8);
	post(2, 8);
	takes = SEND_FPDU;
	go_on();
	assert_null(s.conn->stream.tx.rest);
	assert_int_equal(s.conn->stream.tx.cursor.wqe, 1);
	assert_true(s.conn->stream.tx.blocked);
	assert_int_equal(soft_swqe(s.qp, 0)->state, SOFT_SENT);
	assert_int_equal(soft_swqe(s.qp, 1)->state, SOFT_POSTED);
	takes = sizeof sent - sent_length;
	go_on();
	expect_frames("33");
}

UNIT_CASE(stream_ends_if_the_rest_cannot_be_kept)
{
	s.conn->stream.tx.blocked = true;
	post(1, 8);
	takes = 10;
	no_memory = true;
	go_on();
	assert_true(s.conn->stream.tx.shut);
	assert_int_equal(s.conn->stream.io_error, ENOMEM);
	assert_int_equal(fin, SHUT_RDWR);
}

UNIT_CASE(full_socket_is_waited_for)
{
	static const int errors[] = { EAGAIN, ENOBUFS, ENOMEM };

	for (int i = 0; i < 3; i++) {
		s.conn->stream.tx.blocked = true;
		post(1, 8);
		fails[0] = errors[i];
		go_on();
		assert_true(s.conn->stream.tx.blocked);
		assert_false(s.conn->stream.tx.shut);
		assert_int_equal(s.conn->stream.io_error, 0);
		go_on();
		assert_int_equal(sent_length, (i + 1) * SEND_FPDU);
	}
}

UNIT_CASE(interrupted_call_is_repeated)
{
	s.conn->stream.tx.blocked = true;
	post(1, 8);
	fails[0] = fails[1] = EINTR;
	go_on();
	assert_int_equal(calls, 3);
	assert_int_equal(sent_length, SEND_FPDU);
}

UNIT_CASE(failed_socket_takes_no_more)
{
	s.conn->stream.tx.blocked = true;
	post(1, 8);
	fails[0] = EPIPE;
	go_on();
	assert_true(s.conn->stream.tx.shut);
	assert_int_equal(s.conn->stream.io_error, EPIPE);
	go_on();
	assert_int_equal(calls, 1);
}

UNIT_CASE(request_whose_memory_went_away_ends_the_stream)
{
	takes = 100;
	post(1, 2000);
	soft_swqe(s.qp, 0)->sge->lkey = 12345;
	takes = sizeof sent;
	go_on();
	expect_frames("37");	/* the segment that was cut, and a Terminate */
	expect_completion(1, IBV_WC_LOC_PROT_ERR);
}

/* The peer reads two regions; the second one is deregistered before the answer is sent. Its Terminate names
 * the read. */
UNIT_CASE(answer_whose_memory_went_away_ends_the_stream)
{
	struct soft_answer *answers = s.conn->stream.answers = calloc(STREAM_READS, sizeof *answers);
	const uint8_t *term;
	struct ibv_mr *mr;

	assert_int_equal(dapl_device_ops.reg_mr(stream_device.pd, stream_device.memory->constant, 100,
						IBV_ACCESS_REMOTE_READ, NULL, &mr), 0);
	assert_true(stream_receive(&s, 1, 0, 8));
	answers[0] = (struct soft_answer){ .stag = stream_device.constant->rkey, .length = 100, .msn = 6 };
	answers[1] = (struct soft_answer){ .stag = mr->rkey, .from = (uintptr_t)stream_device.memory->constant,
		.length = 100, .msn = 7 };
	s.conn->stream.answer_tail = 2;
	assert_int_equal(dapl_device_ops.dereg_mr(mr), 0);
	go_on();
	expect_frames("27");
	term = frame(1) + WIRE_FPDU_LENGTH + WIRE_UNTAGGED;
	assert_int_equal(term[0] << 8 | term[1], WIRE_TERM_STAG);
	assert_int_equal(term[4], 1);		/* it is about a read */
	assert_int_equal(term[5], IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wire_get32(term + 8), 7);
	expect_completion(1, IBV_WC_WR_FLUSH_ERR);
}

/* --- acknowledgements ------------------------------------------------------------------------------------------ */

UNIT_CASE(acknowledgement_goes_with_the_next_frame)
{
	const uint8_t *body;

	s.conn->stream.delivered = 3;
	s.conn->stream.consumed = 300;
	assert_true(stream_receive(&s, 9, 0, 8));
	assert_true(soft_owes_ack(s.conn));
	go_on();
	assert_int_equal(sent_length, 0);
	post(1, 8);
	expect_frames("3e");
	body = frame(1) + WIRE_FPDU_LENGTH + WIRE_UNTAGGED;
	assert_int_equal(wire_get32(body), 3);
	assert_int_equal(wire_get32(body + 4), 1);	/* the first Send has its receive */
	assert_int_equal(wire_get64(body + 8), 300);
	assert_false(soft_owes_ack(s.conn));
	post(2, 8);
	post(3, 2000);
	expect_frames("3e333");
	s.conn->stream.consumed++;
	post(4, 2000);			/* the general path, too */
	expect_frames("3e33333e");
}

/* --- the last frame ------------------------------------------------------------------------------------------- */

UNIT_CASE(last_frame_is_sent_once_and_then_a_fin)
{
	s.conn->stream.delivered = 1;
	s.conn->stream.tx.close_notice = true;
	takes = 0;
	go_on();
	assert_int_equal(fin, -1);
	takes = sizeof sent;
	go_on();
	expect_frames("ef");
	assert_int_equal(fin, SHUT_WR);
	assert_true(s.conn->stream.tx.shut);
	go_on();
	expect_frames("ef");
}

UNIT_CASE(terminate_replaces_the_close_notification)
{
	s.conn->stream.tx.close_notice = s.conn->stream.tx.terminate = true;
	memcpy(s.conn->stream.tx.term, "abcd", 4);
	s.conn->stream.tx.term_length = 4;
	go_on();
	expect_frames("7");
	assert_memory_equal(frame(0) + WIRE_FPDU_LENGTH + WIRE_UNTAGGED, "abcd", 4);
	assert_int_equal(fin, SHUT_WR);
}

UNIT_CASE(other_peers_get_a_fin_only)
{
	s.conn->stream.peer_is_dapl = false;
	s.conn->stream.tx.close_notice = true;
	go_on();
	assert_int_equal(sent_length, 0);
	assert_int_equal(fin, SHUT_WR);
}

UNIT_CASE(call_from_within_is_done_afterwards)
{
	s.conn->stream.tx.busy = true;
	post(1, 8);
	assert_int_equal(calls, 0);
	assert_true(s.conn->stream.tx.again);
	s.conn->stream.tx.busy = false;
	go_on();
	expect_frames("3");
	assert_false(s.conn->stream.tx.again);
}

/* --- fast path -------------------------------------------------------------------------------------------------- */

static bool post_fast(unsigned flags, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)stream_device.memory->local, length, stream_device.local->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = flags | IBV_SEND_SIGNALED };
	bool done;

	stream_test_lock();
	done = soft_tcp_post(s.qp, s.conn, &wr);
	stream_test_unlock();
	return done;
}

UNIT_CASE(what_the_fast_path_leaves_was_not_sent)
{
	struct soft_tx *tx = &s.conn->stream.tx;
	bool *const never[] = { &tx->blocked, &tx->shut, &tx->close_notice, &tx->terminate, &tx->first, &tx->busy };

	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		*never[i] = true;
		assert_false(post_fast(0, 8));
		*never[i] = false;
	}
	assert_false(post_fast(IBV_SEND_FENCE, 8));
	assert_false(post_fast(0, BATCH_COPY_MAX + 1));
	tx->cursor.charged = SOFT_WINDOW - SOFT_CHARGE - 7;
	assert_false(post_fast(0, 8));
	tx->cursor.charged = 0;
	tx->cursor.wqe--;		/* a request waits */
	assert_false(post_fast(0, 8));
	tx->cursor.wqe++;
	s.qp->sq_head -= s.qp->sq_size;	/* the queue is full */
	assert_false(post_fast(0, 8));
	s.qp->sq_head += s.qp->sq_size;
	soft_qp_set_state(s.qp, IBV_QPS_ERR);
	assert_false(post_fast(0, 8));
	soft_qp_set_state(s.qp, IBV_QPS_RTS);
	assert_int_equal(calls, 0);
	assert_int_equal(s.qp->sq_tail, 0);
	assert_true(post_fast(0, BATCH_COPY_MAX));
	assert_int_equal(calls, 1);
	assert_int_equal(soft_swqe(s.qp, 0)->state, SOFT_SENT);
	s.posted++;
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
