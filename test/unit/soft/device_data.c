/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_data.c - tests of test_device: sends, writes, reads and atomics of all sizes, their order, and messages that
 * come before their receive. */
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "test/unit/unit.h"

void sends_of_all_sizes_arrive(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 7, 8, 255, 256, 257, 4096, 65471, 65472, 65473,
		100001, (1 << 20) + 13, 3 << 20 };
	struct end a, b;
	struct ibv_wc wc;

	open_pair(&a, &b, &plain);
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		fill(a.buf, sizes[i], i);
		OK(post_recv(&b, i, 0, BUFFER));
		OK(post(&a, 100 + i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, sizes[i], NULL, 0));
		wc = done(b.rcq, i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.qp_num, b.qp->qp_num);
		assert_int_equal(wc.wc_flags, 0);
		assert_memory_equal(a.buf, b.buf, sizes[i]);
		wc = done(a.scq, 100 + i);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		assert_int_equal(wc.qp_num, a.qp->qp_num);
	}
	/* and from the acceptor */
	OK(post_recv(&a, 1, 0, 100));
	OK(post(&b, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
	done(a.rcq, 1);
	done(b.scq, 2);
	close_pair(&a, &b);
}

void acceptor_may_send_first(void **state)
{
	struct end a, b;

	open_end(&a, &plain);
	open_end(&b, &plain);
	OK(post_recv(&a, 1, 0, 100));
	connect_ends(&a, &b, &plain);
	OK(post(&b, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0));
	done(a.rcq, 1);
	done(b.scq, 2);
	close_pair(&a, &b);
}

void segments_scatter_and_gather(void **state)
{
	static const uint32_t in[] = { 3, 0, 5000, 1, 70000, 8, 11, 977 };
	static const uint32_t out[] = { 1, 64, 0, 30000, 30000, 13000, 2500, 500 };
	struct ibv_sge from[8], to[8];
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = from, .num_sge = 8,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 8, .sg_list = to, .num_sge = 8 }, *bad_rr;
	struct end a, b;
	size_t at = 0, total = 0, n = 0;

	open_pair(&a, &b, &plain);
	fill(a.buf, BUFFER, 9);
	for (int i = 0; i < 8; i++) {
		from[i] = sge_of(&a, at, in[i]);
		at += in[i] + 10;
		total += in[i];
	}
	for (int i = 0, o = 1 << 20; i < 8; o += out[i++] + 3)
		to[i] = sge_of(&b, o, out[i]);
	for (int op = 0; op < 2; op++) {
		touch_peer(b.buf, 0, BUFFER);
		if (!op) {
			wr.opcode = IBV_WR_SEND;
			OK(ibv_post_recv(b.qp, &rr, &bad_rr));
			OK(ibv_post_send(a.qp, &wr, &bad));
			assert_int_equal(done(b.rcq, 8).byte_len, total);
			done(a.scq, 7);
			n = 0;
			for (int i = 0, o = 0; i < 8; i++)
				for (uint32_t j = 0; j < in[i]; j++, n++) {
					char *src = (char *)(uintptr_t)from[i].addr + j;
					static uint32_t piece, offset;

					if (!n)
						piece = offset = 0;
					while (offset == out[piece]) {
						piece++;
						offset = 0;
					}
					assert_int_equal(*src, *((char *)(uintptr_t)
							to[piece].addr + offset++));
					(void)o;
				}
			continue;
		}
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 1;
		wr.wr.rdma.rkey = b.mr->rkey;
		OK(ibv_post_send(a.qp, &wr, &bad));
		done(a.scq, 7);
		for (int i = 0, o = 1; i < 8; o += in[i++])
			assert_memory_equal(b.buf + o, (char *)(uintptr_t)from[i].addr, in[i]);
		/* read it back, scattered */
		memset(a.buf, 0, BUFFER);
		wr.opcode = IBV_WR_RDMA_READ;
		OK(ibv_post_send(a.qp, &wr, &bad));
		done(a.scq, 7);
		for (int i = 0, o = 1; i < 8; o += in[i++])
			assert_memory_equal(b.buf + o, (char *)(uintptr_t)from[i].addr, in[i]);
	}
	close_pair(&a, &b);
}

void inline_data_is_taken_at_the_post(void **state)
{
	struct end a, b;
	char expected[200];
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 2,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE }, *bad;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 2; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a.buf + i * 100, 100, a.mr->lkey };
	fill(expected, sizeof expected, 77);
	memcpy(a.buf, expected, sizeof expected);
	OK(ibv_post_send(a.qp, &wr, &bad));	/* before the receive is there */
	memset(a.buf, 0, sizeof expected);
	OK(post_recv(&b, 2, 0, 300));
	assert_int_equal(done(b.rcq, 2).byte_len, 200);
	done(a.scq, 1);
	assert_memory_equal(b.buf, expected, 200);
	sge[0].length = 1000;
	assert_int_not_equal(ibv_post_send(a.qp, &wr, &bad), 0);
	assert_ptr_equal(bad, &wr);
	close_pair(&a, &b);
}

void writes_and_reads_of_all_sizes_arrive(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 4, 8, 9, 63, 4096, 65476, 65477, 200003, 2 << 20 };
	struct end a, b;

	open_pair(&a, &b, &plain);
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (unsigned shift = 0; shift < 3; shift++) {
			uint32_t n = sizes[i];

			touch_peer(b.buf, 0x55, n + 64);
			fill(a.buf, n, i + shift);
			OK(post(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, n, &b, 8 + shift));
			assert_int_equal(done(a.scq, 1).opcode, IBV_WC_RDMA_WRITE);
			assert_memory_equal(b.buf + 8 + shift, a.buf, n);
			assert_int_equal(b.buf[7 + shift], 0x55);
			assert_int_equal(b.buf[8 + shift + n], 0x55);
			memset(a.buf, 0, n);
			OK(post(&a, 2, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, n, &b, 8 + shift));
			assert_int_equal(done(a.scq, 2).opcode, IBV_WC_RDMA_READ);
			assert_memory_equal(b.buf + 8 + shift, a.buf, n);
		}
	expect_no_wc(b.rcq);
	close_pair(&a, &b);
}

void immediate_data_arrives(void **state)
{
	struct end a, b;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED };

	open_pair(&a, &b, &plain);
	fill(a.buf, 1000, 4);
	sge = sge_of(&a, 0, 1000);
	wr.imm_data = htonl(0x12345678);
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 5000;
	wr.wr.rdma.rkey = b.mr->rkey;
	OK(post_recv(&b, 2, 0, 10));
	OK(post_wr(&a, &wr));
	wc = done(b.rcq, 2);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 1000);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x12345678));
	assert_memory_equal(b.buf + 5000, a.buf, 1000);
	assert_int_equal(done(a.scq, 1).opcode, IBV_WC_RDMA_WRITE);

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	OK(post_wr(&a, &wr));			/* waits for its receive */
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	OK(post_wr(&a, &wr));
	expect_no_wc(a.scq);
	OK(post_recv(&b, 3, 0, 1000));
	OK(post_recv(&b, 4, 0, 1000));
	wc = done(b.rcq, 3);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x12345678));
	assert_int_equal(wc.byte_len, 1000);
	wc = done(b.rcq, 4);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 1000);
	done(a.scq, 1);
	done(a.scq, 1);
	close_pair(&a, &b);
}

void atomics_return_the_previous_value(void **state)
{
	struct end a, b;
	uint64_t *target, *result;

	open_pair(&a, &b, &plain);
	target = (uint64_t *)(b.buf + 64);
	result = (uint64_t *)(a.buf + 8);
	*target = 0x1122334455667788;
	OK(post_atomic(&a, 1, false, 5, 0, 8, &b, 64));
	assert_int_equal(done(a.scq, 1).opcode, IBV_WC_FETCH_ADD);
	assert_true(*result == 0x1122334455667788 && *target == 0x112233445566778d);
	OK(post_atomic(&a, 2, true, 1, 9, 8, &b, 64));
	assert_int_equal(done(a.scq, 2).opcode, IBV_WC_COMP_SWAP);
	assert_true(*result == 0x112233445566778d && *target == 0x112233445566778d);
	OK(post_atomic(&a, 3, true, 0x112233445566778d, 9, 8, &b, 64));
	done(a.scq, 3);
	assert_true(*result == 0x112233445566778d && *target == 9);
	for (int i = 0; i < 100; i++)		/* far beyond ORD */
		OK(post_atomic(&a, i, false, 1, 0, 8, &b, 64));
	for (int i = 0; i < 100; i++)
		done(a.scq, i);
	assert_true(*result == 108 && *target == 109);
	close_pair(&a, &b);
}

void reads_beyond_ord_wait_and_order_holds(void **state)
{
	struct end a, b;

	open_pair(&a, &b, &plain);
	fill(b.buf, 1 << 20, 5);
	for (int i = 0; i < 8; i++)
		OK(post_recv(&b, i, 3 << 20, 64));
	for (int i = 0; i < 64; i++) {
		if (i % 8 == 7)
			OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
		else
			OK(post(&a, i, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED | (i % 3 ? 0 :
				IBV_SEND_FENCE), i * 10000, 10000, &b, i * 10000));
	}
	for (int i = 0; i < 64; i++) {
		done(a.scq, i);
		if (i % 8 != 7)
			assert_memory_equal(a.buf + i * 10000, b.buf + i * 10000, 10000);
	}
	close_pair(&a, &b);
}

void fence_holds_a_write_behind_a_read(void **state)
{
	struct end a, b;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 50; i++) {
		/* read 1 MiB to the source of the write that follows */
		touch_peer(b.buf, i + 1, 1 << 20);
		memset(a.buf, 0, 1 << 20);
		OK(post(&a, 1, IBV_WR_RDMA_READ, 0, 0, 1 << 20, &b, 0));
		OK(post(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
			(1 << 20) - 64, 64, &b, 2 << 20));
		done(a.scq, 2);
		for (int j = 0; j < 64; j++)
			assert_int_equal(b.buf[(2 << 20) + j], (char)(i + 1));
	}
	close_pair(&a, &b);
}

void unsignaled_requests_make_no_completion(void **state)
{
	struct options o = plain;
	struct end a, b;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 1000; i++) {
		OK(post(&a, i, IBV_WR_RDMA_WRITE, i % 100 == 99 ? IBV_SEND_SIGNALED : 0, 0, 8, &b,
			0));
		if (i % 100 == 99)
			done(a.scq, i);
	}
	expect_no_wc(a.scq);
	close_pair(&a, &b);
	o.sig_all = true;
	open_pair(&a, &b, &o);
	OK(post(&a, 1, IBV_WR_RDMA_WRITE, 0, 0, 8, &b, 0));
	done(a.scq, 1);
	close_pair(&a, &b);
}

void post_to_a_full_queue_fails(void **state)
{
	struct end a, b;
	int n = 0;

	open_pair(&a, &b, &plain);
	while (!post(&a, n, IBV_WR_SEND, 0, 0, 8, NULL, 0))
		n++;
	assert_int_equal(n, 128);
	for (n = 0; !post_recv(&b, n, 0, 8); n++)
		assert_true(n < 1000);
	close_pair(&a, &b);
}

/* --- messages before their receive ----------------------------------------------------- */

void sends_wait_for_receives_and_reads_pass_them(void **state)
{
	enum { N = 120, SIZE = 30000 };		/* more than the window takes */
	struct end a, b;

	open_pair(&a, &b, &plain);
	fill(a.buf, SIZE, 1);
	for (int i = 0; i < N; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, SIZE, NULL, 0));
	expect_no_wc(a.scq);
	/* the peer reads: its answer comes behind all those sends */
	fill(a.buf + (1 << 20), 100000, 2);
	for (int i = 0; i < 10; i++) {
		OK(post(&b, 500, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 2 << 20, 100000, &a, 1 << 20));
		done(b.scq, 500);
		assert_memory_equal(b.buf + (2 << 20), a.buf + (1 << 20), 100000);
	}
	for (int i = 0; i < N; i++) {
		OK(post_recv(&b, i, 0, SIZE));
		assert_int_equal(done(b.rcq, i).byte_len, SIZE);
		assert_memory_equal(b.buf, a.buf, SIZE);
	}
	for (int i = 0; i < N; i++)
		done(a.scq, i);
	close_pair(&a, &b);
}

void one_message_larger_than_the_window_waits(void **state)
{
	struct end a, b;
	int n = 3 << 20;

	open_pair(&a, &b, &plain);
	fill(a.buf, n, 1);
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, n, NULL, 0));
	OK(post(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &b, n));
	expect_no_wc(a.scq);
	OK(post_recv(&b, 3, 0, n));
	assert_int_equal(done(b.rcq, 3).byte_len, n);
	done(a.scq, 1);
	done(a.scq, 2);
	assert_memory_equal(a.buf, b.buf, n);
	close_pair(&a, &b);
}
