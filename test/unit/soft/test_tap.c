/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap.c - captures of the software device: its verbs before, during and after one, and what is recorded of posts,
 * receives and answers. The socket is full, so requests wait in the send queue. */
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/soft/verbs/tap.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

enum { SNAP = 100, OFFSET = 512 };

static const char *found;		/* a request is executed while it is posted, and finds this; NULL: it waits */

EXTEND(soft_tcp_post)

static void write_memory(const char *text) { memcpy(stream_device.memory->local + OFFSET, text, strlen(text)); }

bool __wrap_soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr)
{
	if (!found)
		return __real_soft_tcp_post(qp, conn, wr);
	write_memory(found);
	return true;
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

static void begin_capture(void)
{
	tap_records_begin(SNAP);
	soft_tap(stream_device.dev, true);
}

static void end_capture(void)
{
	soft_tap(stream_device.dev, false);
	dapl_tap_end();
}

static void address(struct sockaddr_storage *to, const char *ip, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
}

static void prepare(void)
{
	found = NULL;
	s.conn->stream.tx.blocked = true;
	address(&s.conn->local, "10.0.0.1", 1000);
	address(&s.conn->remote, "10.0.0.2", 2000);
	write_memory("payload");
	begin_capture();
}

UNIT_FIXTURE(set_up)
{
	stream_test_open(state);
	prepare();
}

UNIT_FIXTURE(set_up_shared_queue)
{
	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true });
	prepare();
}

static int tear_down(void **state)
{
	end_capture();
	tap_records_release();
	return stream_test_close(state);
}

static struct ibv_sge bytes(uint32_t n) { return stream_test_sge(OFFSET, n); }

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int sges)
{
	return (struct ibv_send_wr){ .wr_id = 64, .opcode = opcode, .sg_list = sge, .num_sge = sges };
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge *sge, int sges)
{
	struct ibv_send_wr wr = request(opcode, sge, sges), *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* The queue pair has one more request. */
static void posts(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int sges)
{
	uint32_t before = s.qp->sq_tail;

	assert_int_equal(post(&s.qp->qp, opcode, sge, sges), 0);
	assert_int_equal(s.qp->sq_tail, before + 1);
}

static void sends(uint32_t n)
{
	struct ibv_sge sge = bytes(n);

	posts(IBV_WR_SEND, &sge, 1);
}

static struct ibv_recv_wr receive(struct ibv_sge *sge, int sges)
{
	return (struct ibv_recv_wr){ .wr_id = 128, .sg_list = sge, .num_sge = sges };
}

/* The next receive completes; the program gets its completion. */
static void comes(enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
	struct ibv_wc wc = { .opcode = opcode, .byte_len = length };

	stream_test_lock();
	assert_true(soft_qp_take_receive(s.qp));
	soft_qp_received(s.qp, status, &wc, false);
	stream_test_unlock();
	assert_int_equal(ibv_poll_cq(stream_device.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 128);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.byte_len, length);
}

static void receives(struct ibv_sge *sge, int sges, uint32_t length)
{
	struct ibv_recv_wr wr = receive(sge, sges), *bad;

	assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
	comes(IBV_WC_RECV, IBV_WC_SUCCESS, length);
}

/* The request that was posted last has been sent. */
static struct soft_swqe *sent(void)
{
	struct soft_swqe *wqe = soft_swqe(s.qp, s.qp->sq_tail - 1);

	wqe->state = SOFT_SENT;
	s.conn->stream.rx.read_wqe = s.qp->sq_tail - 1;
	s.conn->stream.tx.cursor.wqe = s.qp->sq_tail;
	return wqe;
}

/* The payload of a read has come. */
static void read_ends(const char *text)
{
	sent();
	write_memory(text);
	stream_test_lock();
	soft_requester_response_end(s.qp, s.conn);
	stream_test_unlock();
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

UNIT_CASE(device_has_its_own_verbs_without_a_capture)
{
	const struct ibv_context_ops *ops = &stream_device.dev->verbs.ops;

	assert_true(ops->post_send != soft_qp_post_send);
	assert_int_equal(soft_detours(stream_device.dev), SOFT_TAPPED);
	soft_tap(stream_device.dev, true);	/* the client asks again */
	sends(7);
	end_capture();
	assert_true(ops->post_send == soft_qp_post_send);
	assert_int_equal(soft_detours(stream_device.dev), 0);
	sends(7);
	is_recorded(TAP_POSTED, TAP_SEND, 7, "payload");
	assert_false(next_record());
}

UNIT_CASE(each_capture_has_the_addresses_with_the_first_message)
{
	for (int i = 0; i < 2; i++) {
		sends(7);
		is_recorded(TAP_POSTED, TAP_SEND, 7, "payload");
		assert_int_equal(seen.entry.qpn, s.qp->qp.qp_num);
		assert_true(seen.first);
		assert_int_equal(seen.ends.local.port, 1000);
		assert_memory_equal(seen.ends.local.ip, "\x0a\0\0\1", 4);
		assert_int_equal(seen.ends.remote.port, 2000);
		assert_memory_equal(seen.ends.remote.ip, "\x0a\0\0\2", 4);
		sends(0);
		is_recorded(TAP_POSTED, TAP_SEND, 0, "");
		assert_false(seen.first);
		end_capture();
		begin_capture();
	}
}

/* Also where a short message cannot be recorded as it is. */
UNIT_CASE(first_message_has_the_addresses_with_any_snap)
{
	end_capture();
	tap_records_begin(4);
	soft_tap(stream_device.dev, true);
	sends(7);
	assert_true(next_record());
	assert_true(seen.first);
	assert_int_equal(seen.entry.message.length, 7);
	assert_int_equal(seen.entry.message.captured, 4);
}

UNIT_CASE(a_record_tells_the_carrier_and_the_side)
{
	sends(0);
	assert_true(next_record());
	assert_int_equal(seen.entry.flags, TAP_ACTIVE);
	end_capture();
	begin_capture();
	s.conn->passive = true;
	s.conn->shm = (struct shm_conn *)&s;	/* a receive looks whether it is there */
	receives(NULL, 0, 0);
	s.conn->shm = NULL;
	assert_true(next_record());
	assert_int_equal(seen.entry.flags, TAP_MEMORY);
}

/* --- posts ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(payload_is_that_of_all_segments)
{
	struct ibv_sge sge[3] = { bytes(3), bytes(0), bytes(4) };

	sge[2].addr += 3;
	posts(IBV_WR_RDMA_WRITE, sge, 3);
	is_recorded(TAP_POSTED, TAP_WRITE, 7, "payload");
	posts(IBV_WR_SEND, NULL, 0);
	is_recorded(TAP_POSTED, TAP_SEND, 0, "");
}

UNIT_CASE(payload_is_cut)
{
	struct ibv_sge sge[2] = { bytes(SNAP - 1), bytes(2) };

	memset(stream_device.memory->local + OFFSET, 'x', SNAP);
	posts(IBV_WR_SEND, sge, 2);
	assert_true(next_record());
	assert_int_equal(seen.entry.message.length, SNAP + 1);
	assert_int_equal(seen.entry.message.captured, SNAP);
	assert_int_equal(strlen(seen.payload), SNAP);
}

/* The device reports the failure in a completion. */
UNIT_CASE(memory_that_is_not_registered_is_left_out)
{
	struct ibv_sge sge[3] = { bytes(7), { .addr = 0, .length = 20, .lkey = stream_device.foreign->lkey },
		bytes(7) };

	posts(IBV_WR_SEND, sge, 3);
	is_recorded(TAP_POSTED, TAP_SEND, 34, "payload");
	posts(IBV_WR_SEND, &sge[1], 2);
	is_recorded(TAP_POSTED, TAP_SEND, 27, "");
}

UNIT_CASE(a_list_is_posted_up_to_the_request_that_is_refused)
{
	struct ibv_sge sge = bytes(7);
	struct ibv_send_wr wr[3], *bad = NULL;
	uint32_t before = s.qp->sq_tail;

	for (unsigned i = 0; i < 3; i++) {
		wr[i] = request(IBV_WR_SEND, &sge, 1);
		wr[i].wr_id = i + 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].num_sge = -1;
	assert_int_equal(ibv_post_send(&s.qp->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);		/* the program's own */
	assert_ptr_equal(wr[0].next, &wr[1]);
	assert_int_equal(s.qp->sq_tail, before + 1);
	assert_true(next_record());
	assert_false(next_record());
	wr[1].num_sge = 1;
	assert_int_equal(ibv_post_send(&s.qp->qp, wr, &bad), 0);
	assert_int_equal(s.qp->sq_tail, before + 4);
	assert_true(next_record() && next_record() && next_record());
}

UNIT_CASE(a_request_that_is_refused_is_not_shown)
{
	struct ibv_sge sge[5] = { bytes(1), bytes(1), bytes(1), bytes(1), bytes(1) };
	struct ibv_send_wr wr = request(IBV_WR_SEND, sge, 5), *bad = NULL;

	assert_int_equal(ibv_post_send(&s.qp->qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_false(next_record());
	assert_int_equal(ibv_post_send(&s.qp->qp, NULL, &bad), 0);
	assert_false(next_record());
}

static void receives_without_a_connection(struct soft_qp *qp)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV };

	dapl_mutex_lock(&qp->lock);
	soft_qp_received(qp, IBV_WC_SUCCESS, &wc, false);
	dapl_mutex_unlock(&qp->lock);
	assert_int_equal(ibv_poll_cq(stream_device.cq, 1, &wc), 1);
}

UNIT_CASE(requests_that_are_no_messages_of_a_connection_are_left_out)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_qp *qp;

	posts(IBV_WR_LOCAL_INV, NULL, 0);
	assert_int_equal(soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp), 0);
	receives_without_a_connection((struct soft_qp *)qp);
	assert_int_equal(soft_qp_destroy(qp), 0);
	attr.qp_type = IBV_QPT_RC;
	assert_int_equal(soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp), 0);
	assert_int_equal(post(qp, IBV_WR_SEND, NULL, 0), EINVAL);
	receives_without_a_connection((struct soft_qp *)qp);
	assert_int_equal(soft_qp_destroy(qp), 0);
	assert_false(next_record());
}

/* --- what arrives ----------------------------------------------------------------------------------------------- */

UNIT_CASE(a_read_has_its_payload_when_its_answer_has_come)
{
	struct ibv_sge sge[2] = { bytes(2), bytes(4) };

	sge[1].addr += 2;
	posts(IBV_WR_RDMA_READ, sge, 2);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	assert_int_equal(seen.entry.message.sink, sge[0].addr);
	read_ends("answer");
	is_recorded(TAP_ANSWERED, TAP_READ, 6, "answer");
	assert_int_equal(seen.entry.qpn, s.qp->qp.qp_num);
	assert_int_equal(seen.entry.message.sink, sge[0].addr);
	assert_int_equal(seen.entry.message.word, sge[0].lkey);
	assert_false(next_record());
}

UNIT_CASE(an_atomic_tells_its_operands_and_the_old_value)
{
	static const uint8_t body[12] = { [4] = 'e', 'u', 'l', 'a', 'v', 'd', 'l', 'o' };	/* big endian */
	struct ibv_sge sge = bytes(8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1), *bad;

	wr.wr.atomic.rkey = 17;
	wr.wr.atomic.remote_addr = 4096;
	wr.wr.atomic.compare_add = 3;
	wr.wr.atomic.swap = 4;
	assert_int_equal(ibv_post_send(&s.qp->qp, &wr, &bad), 0);
	is_recorded(TAP_POSTED, TAP_CMP_SWAP, 8, "");
	assert_int_equal(seen.entry.message.compare_add, 3);
	assert_int_equal(seen.entry.message.swap, 4);
	sent()->seq = 0;
	stream_test_lock();
	assert_int_equal(soft_requester_atomic(s.qp, s.conn, body), WIRE_TERM_NONE);
	stream_test_unlock();
	is_recorded(TAP_ANSWERED, TAP_CMP_SWAP, 8, "oldvalue");
	assert_int_equal(seen.entry.message.compare_add, 3);
	assert_int_equal(seen.entry.message.swap, 4);
	assert_int_equal(seen.entry.message.stag, 17);
	assert_int_equal(seen.entry.message.remote, 4096);
}

UNIT_CASE(a_read_that_is_executed_while_it_is_posted_has_its_payload)
{
	struct ibv_sge sge = bytes(6);
	struct ibv_send_wr write = request(IBV_WR_RDMA_WRITE, &sge, 1), *bad;

	write.wr.rdma.rkey = 17;
	write.wr.rdma.remote_addr = 4096;
	found = "mapped";
	assert_int_equal(post(&s.qp->qp, IBV_WR_RDMA_READ, &sge, 1), 0);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	is_recorded(TAP_ANSWERED, TAP_READ, 6, "mapped");
	assert_int_equal(ibv_post_send(&s.qp->qp, &write, &bad), 0);
	is_recorded(TAP_POSTED, TAP_WRITE, 6, "mapped");
	assert_int_equal(seen.entry.message.stag, 17);
	assert_int_equal(seen.entry.message.remote, 4096);
	assert_false(next_record());		/* a write has no answer */
}

UNIT_CASE(requests_that_are_refused_or_flushed_have_no_answer)
{
	struct ibv_sge sge = bytes(6);

	assert_int_equal(post(&s.qp->qp, IBV_WR_RDMA_READ, &sge, -1), EINVAL);
	assert_false(next_record());
	stream_test_lock();
	soft_qp_set_state(s.qp, IBV_QPS_ERR);
	stream_test_unlock();
	assert_int_equal(post(&s.qp->qp, IBV_WR_RDMA_READ, &sge, 1), 0);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	assert_false(next_record());
}

UNIT_CASE(nothing_that_arrives_without_a_capture_is_shown)
{
	struct ibv_sge sge = bytes(6);

	posts(IBV_WR_RDMA_READ, &sge, 1);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	soft_tap(stream_device.dev, false);
	read_ends("answer");
	receives(&sge, 1, 6);
	assert_false(next_record());
}

/* With a capture it is, though its receive was posted before. */
UNIT_CASE(a_receive_has_what_has_come)
{
	struct ibv_sge sge[2] = { bytes(3), bytes(100) };
	struct ibv_recv_wr wr = receive(sge, 2), *bad;

	sge[1].addr += 3;
	soft_tap(stream_device.dev, false);
	assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
	soft_tap(stream_device.dev, true);
	comes(IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	write_memory("payload of more than twenty-four bytes");
	receives(sge, 2, 38);
	is_recorded(TAP_RECEIVED, TAP_SEND, 38, "payload of more than twenty-four bytes");
	receives(sge, 0, 0);
	is_recorded(TAP_RECEIVED, TAP_SEND, 0, "");
}

UNIT_CASE(a_receive_that_fails_is_not_shown)
{
	struct ibv_sge sge = bytes(6);
	struct ibv_recv_wr wr = receive(&sge, 1), *bad;

	assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
	comes(IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
	assert_false(next_record());
}

/* The memory that the peer wrote to is unknown. */
UNIT_CASE(a_receive_that_ends_a_write_has_its_immediate_data)
{
	struct ibv_sge sge = bytes(6);
	struct ibv_recv_wr wr = receive(&sge, 1), *bad;
	struct ibv_wc wc = { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .wc_flags = IBV_WC_WITH_IMM, .imm_data = htonl(7) };

	assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
	stream_test_lock();
	assert_true(soft_qp_take_receive(s.qp));
	soft_qp_received(s.qp, IBV_WC_SUCCESS, &wc, false);
	stream_test_unlock();
	is_recorded(TAP_RECEIVED, TAP_WRITE, 0, "");
	assert_true(seen.entry.flags & TAP_IMMEDIATE);
	assert_int_equal(seen.entry.message.word, 7);
}

UNIT_CASE(a_receive_in_memory_that_is_gone_has_no_payload)
{
	static char memory[16] = "region";
	const struct soft_memory region = { .at = memory, .length = sizeof memory, .file = -1 };
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = sizeof memory };
	struct ibv_mr *mr;

	assert_int_equal(soft_mr_add(stream_device.pd, &region, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	sge.lkey = mr->lkey;
	receives(&sge, 1, 6);
	is_recorded(TAP_RECEIVED, TAP_SEND, 6, "region");
	assert_int_equal(soft_mr_dereg(mr), 0);
	receives(&sge, 1, 6);
	is_recorded(TAP_RECEIVED, TAP_SEND, 6, "");
}

/* The segments of a receive of a shared queue belong to the protection domain of that queue; those of a read to that
 * of the QP. */
UNIT_TEST_WITH(a_shared_receive_is_of_the_protection_domain_of_its_queue, set_up_shared_queue, tear_down)
{
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = receive(&sge, 1), *bad;

	posts(IBV_WR_RDMA_READ, &sge, 1);
	assert_true(next_record());
	assert_int_equal(ibv_post_srq_recv(&s.srq->srq, &wr, &bad), 0);
	s.qp->qp.pd = stream_device.other_pd;
	comes(IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	read_ends("");
	is_recorded(TAP_ANSWERED, TAP_READ, 100, "");
	s.qp->qp.pd = stream_device.pd;
}

static int init(void **state)
{
	dapl_tap_init();
	dapl_tap_posts_init();
	return stream_test_open_device(state);
}

UNIT_MAIN(init, stream_test_close_device)
