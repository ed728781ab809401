/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap.c - captures of the software device: its verbs before, during and after one, and what is recorded of posts
 * and completions. The socket is full, so requests wait in the send queue; completions are the test's. */
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/soft/verbs/tap.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

enum { SNAP = 100, OFFSET = 512 };

static struct ibv_wc completions[4];	/* of the next poll, if there are any */
static int completed;

EXTEND(soft_cq_poll)

int __wrap_soft_cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = completed;

	if (!n)
		return __real_soft_cq_poll(cq, entries, wc);
	assert_ptr_equal(cq, stream_device.cq);
	assert_true(n <= entries);
	memcpy(wc, completions, (size_t)n * sizeof *wc);
	completed = 0;
	return n;
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

static void write_memory(const char *text) { strcpy(stream_device.memory->local + OFFSET, text); }

static void prepare(void)
{
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

/* The program gets the completion unchanged. */
static void completes(uint64_t id, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
	struct ibv_wc wc = { .wr_id = 0 };

	completions[0] = (struct ibv_wc){ .wr_id = id, .opcode = opcode, .status = status, .byte_len = length,
		.qp_num = s.qp->qp.qp_num };
	completed = 1;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 1, &wc), 1);
	assert_memory_equal(&wc, completions, sizeof wc);
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

UNIT_CASE(device_has_its_own_verbs_without_a_capture)
{
	const struct ibv_context_ops *ops = &stream_device.dev->verbs.ops;

	assert_true(ops->post_send != soft_qp_post_send && ops->post_recv != soft_qp_post_recv &&
		    ops->post_srq_recv != soft_srq_post && ops->poll_cq != soft_cq_poll);
	soft_tap(stream_device.dev, true);	/* the client asks again */
	sends(7);
	end_capture();
	assert_true(ops->post_send == soft_qp_post_send && ops->post_recv == soft_qp_post_recv &&
		    ops->post_srq_recv == soft_srq_post && ops->poll_cq == soft_cq_poll);
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
	s.conn->shm = (struct shm_conn *)&completions;	/* a completion looks whether it is there */
	completes(64, IBV_WC_RECV, IBV_WC_SUCCESS, 0);
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

UNIT_CASE(requests_that_are_no_messages_of_a_connection_are_left_out)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_qp *qp;

	posts(IBV_WR_LOCAL_INV, NULL, 0);
	assert_int_equal(soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp), 0);
	completions[0] = (struct ibv_wc){ .opcode = IBV_WC_RECV, .qp_num = qp->qp_num };
	completed = 1;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 1, &completions[1]), 1);
	assert_int_equal(soft_qp_destroy(qp), 0);
	attr.qp_type = IBV_QPT_RC;
	assert_int_equal(soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp), 0);
	assert_int_equal(post(qp, IBV_WR_SEND, NULL, 0), EINVAL);
	completions[0].qp_num = qp->qp_num;
	completed = 1;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 1, &completions[1]), 1);
	assert_int_equal(soft_qp_destroy(qp), 0);
	assert_false(next_record());
}

/* --- completions ------------------------------------------------------------------------------------------------ */

UNIT_CASE(a_read_has_its_payload_when_it_completes)
{
	struct ibv_sge sge = bytes(6);

	posts(IBV_WR_RDMA_READ, &sge, 1);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	assert_int_equal(seen.entry.message.sink, sge.addr);
	write_memory("answer");
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 6);
	is_recorded(TAP_ANSWERED, TAP_READ, 6, "answer");
	assert_int_equal(seen.entry.qpn, s.qp->qp.qp_num);
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 6);	/* of a post before the capture */
	assert_false(next_record());
}

UNIT_CASE(an_atomic_tells_its_operands_and_the_old_value)
{
	struct ibv_sge sge = bytes(8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1), *bad;

	wr.wr.atomic.compare_add = 3;
	wr.wr.atomic.swap = 4;
	assert_int_equal(ibv_post_send(&s.qp->qp, &wr, &bad), 0);
	is_recorded(TAP_POSTED, TAP_CMP_SWAP, 8, "");
	assert_int_equal(seen.entry.message.compare_add, 3);
	assert_int_equal(seen.entry.message.swap, 4);
	write_memory("oldvalue");
	completes(64, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS, 8);
	is_recorded(TAP_ANSWERED, TAP_CMP_SWAP, 8, "oldvalue");
}

UNIT_CASE(a_read_that_was_posted_without_a_capture_is_not_shown)
{
	struct ibv_sge sge = bytes(6);

	end_capture();
	assert_int_equal(post(&s.qp->qp, IBV_WR_RDMA_READ, &sge, 1), 0);
	begin_capture();
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 6);
	assert_false(next_record());
}

static struct ibv_recv_wr receive(struct ibv_sge *sge)
{
	return (struct ibv_recv_wr){ .wr_id = 128, .sg_list = sge, .num_sge = 1 };
}

UNIT_CASE(a_receive_has_what_has_come)
{
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = receive(&sge), *bad;
	uint32_t before = s.qp->rq.tail;

	assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
	assert_int_equal(s.qp->rq.tail, before + 1);
	completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 7);	/* was posted without a capture */
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "");
	completes(128, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
	completes(64, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
	assert_false(next_record());
}

/* A region that was deregistered is not remembered. */
UNIT_CASE(a_receive_in_memory_that_is_gone_has_no_payload)
{
	static char memory[16] = "region";
	const struct soft_memory region = { .at = memory, .length = sizeof memory, .file = -1 };
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = sizeof memory };
	struct ibv_recv_wr wr = receive(&sge), *bad;
	struct ibv_mr *mr;

	assert_int_equal(soft_mr_add(stream_device.pd, &region, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	sge.lkey = mr->lkey;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
		if (i == 2)
			assert_int_equal(soft_mr_dereg(mr), 0);
		completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 6);
		is_recorded(TAP_RECEIVED, TAP_SEND, 6, i == 2 ? "" : "region");
	}
}

/* Completions of one poll may be of several queue pairs, short or long. */
UNIT_CASE(completions_of_a_poll_have_their_queue_pair_and_payload)
{
	struct ibv_sge sge[2] = { bytes(100), bytes(100) };
	struct ibv_wc wc[4];

	write_memory("payload of more than twenty-four bytes");
	for (int i = 0; i < 4; i++) {
		struct ibv_recv_wr wr = receive(sge), *bad;

		wr.wr_id = 1024 + 64 * (uint64_t)i;
		wr.num_sge = i == 2 ? 2 : 1;
		assert_int_equal(ibv_post_recv(&s.qp->qp, &wr, &bad), 0);
		completions[i] = (struct ibv_wc){ .wr_id = wr.wr_id, .opcode = IBV_WC_RECV,
			.byte_len = i == 1 ? 38 : 7, .qp_num = i == 3 ? ~0U : s.qp->qp.qp_num };
	}
	completed = 4;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 4, wc), 4);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	is_recorded(TAP_RECEIVED, TAP_SEND, 38, "payload of more than twenty-four bytes");
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	assert_false(next_record());
}

/* The segments of a receive of a shared queue belong to the protection domain of that queue; those of a read to that
 * of the QP. */
UNIT_TEST_WITH(a_shared_receive_is_of_the_protection_domain_of_its_queue, set_up_shared_queue, tear_down)
{
	struct ibv_sge sge = bytes(100);
	struct ibv_recv_wr wr = receive(&sge), *bad;

	posts(IBV_WR_RDMA_READ, &sge, 1);
	assert_true(next_record());
	assert_int_equal(ibv_post_srq_recv(&s.srq->srq, &wr, &bad), 0);
	assert_int_equal(s.srq->rq.tail - s.srq->rq.head, 1);
	s.qp->qp.pd = stream_device.other_pd;
	completes(128, IBV_WC_RECV, IBV_WC_SUCCESS, 7);
	is_recorded(TAP_RECEIVED, TAP_SEND, 7, "payload");
	completes(64, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 100);
	is_recorded(TAP_ANSWERED, TAP_READ, 100, "");
	s.qp->qp.pd = stream_device.pd;
}

UNIT_CASE(each_completion_of_a_poll_is_looked_at)
{
	struct ibv_sge sge = bytes(6);
	struct ibv_wc wc[4];

	posts(IBV_WR_RDMA_READ, &sge, 1);
	is_recorded(TAP_POSTED, TAP_READ, 6, "");
	for (int i = 0; i < 4; i++)
		completions[i] = (struct ibv_wc){ .opcode = i % 2 ? IBV_WC_RECV : IBV_WC_SEND, .byte_len = (uint32_t)i,
			.wr_id = i % 2 ? 1 : 64, .qp_num = s.qp->qp.qp_num };
	completed = 4;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 4, wc), 4);
	assert_memory_equal(wc, completions, sizeof wc);
	is_recorded(TAP_RECEIVED, TAP_SEND, 1, "");
	is_recorded(TAP_RECEIVED, TAP_SEND, 3, "");
	assert_false(next_record());
	completions[0].qp_num = completions[1].qp_num = ~0U;	/* the QP is gone */
	completed = 2;
	assert_int_equal(ibv_poll_cq(stream_device.cq, 4, wc), 2);
	assert_int_equal(ibv_poll_cq(stream_device.cq, 4, wc), 0);
	assert_false(next_record());
}

static int init(void **state)
{
	dapl_tap_init();
	dapl_tap_posts_init();
	return stream_test_open_device(state);
}

UNIT_MAIN(init, stream_test_close_device)
