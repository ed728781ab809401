/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap_posts.c - records of work requests and completions: what each operation becomes, and whose memory is
 * remembered. */
#include "dapl/core/base/tap_posts.h"
#include "test/unit/unit.h"

static struct ibv_sge sges[6] = { { .addr = 0x1000, .length = 100, .lkey = 7 },
	{ .addr = 0x2000, .length = 20, .lkey = 8 } };

static struct ibv_send_wr request(enum ibv_wr_opcode opcode)
{
	return (struct ibv_send_wr){ .wr_id = 64, .opcode = opcode, .sg_list = sges, .num_sge = 2,
		.send_flags = IBV_SEND_SIGNALED };
}

UNIT_TEST(operations_of_requests)
{
	static const struct { enum ibv_wr_opcode opcode; uint8_t op, flags; } rows[] = {
		{ IBV_WR_SEND, TAP_SEND, 0 },
		{ IBV_WR_SEND_WITH_IMM, TAP_SEND, TAP_IMMEDIATE },
		{ IBV_WR_SEND_WITH_INV, TAP_SEND, TAP_INVALIDATE },
		{ IBV_WR_RDMA_WRITE, TAP_WRITE, 0 },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, TAP_WRITE, TAP_IMMEDIATE },
		{ IBV_WR_RDMA_READ, TAP_READ, 0 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, TAP_CMP_SWAP, 0 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, TAP_FETCH_ADD, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ibv_send_wr wr = request(rows[i].opcode);
		uint8_t op = dapl_tap_operation(wr.opcode);
		struct tap_entry entry = { .time = 5 };

		assert_int_equal(op, rows[i].op);
		assert_int_equal(dapl_tap_length(&wr), 120);
		dapl_tap_describe(&entry, &wr, op, 120);
		assert_int_equal(entry.kind, TAP_POSTED);
		assert_int_equal(entry.op, rows[i].op);
		assert_int_equal(entry.flags, rows[i].flags);
		assert_int_equal(entry.message.length, 120);
		assert_int_equal(tap_fetches(op), rows[i].op >= TAP_READ);
		assert_int_equal(entry.message.sink, rows[i].op >= TAP_READ ? 0x1000 : 0);
		assert_int_equal(entry.message.word, rows[i].op >= TAP_READ ? 7 : 0);
	}
}

UNIT_TEST(fields_of_requests)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE_WITH_IMM);
	struct tap_entry entry = { .time = 5 };

	wr.send_flags |= IBV_SEND_SOLICITED;
	wr.imm_data = htonl(0x01020304);
	wr.wr.rdma.rkey = 11;
	wr.wr.rdma.remote_addr = 0x3000;
	dapl_tap_describe(&entry, &wr, TAP_WRITE, 120);
	assert_int_equal(entry.flags, TAP_SOLICITED | TAP_IMMEDIATE);
	assert_int_equal(entry.message.word, 0x01020304);
	assert_int_equal(entry.message.stag, 11);
	assert_int_equal(entry.message.remote, 0x3000);

	wr = request(IBV_WR_SEND_WITH_INV);
	wr.invalidate_rkey = 13;
	dapl_tap_describe(&entry, &wr, TAP_SEND, 120);
	assert_int_equal(entry.flags, TAP_INVALIDATE);
	assert_int_equal(entry.message.word, 13);

	wr = request(IBV_WR_ATOMIC_CMP_AND_SWP);
	wr.wr.atomic.rkey = 12;
	wr.wr.atomic.remote_addr = 0x4000;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.swap = 2;
	dapl_tap_describe(&entry, &wr, TAP_CMP_SWAP, 120);
	assert_int_equal(entry.message.stag, 12);
	assert_int_equal(entry.message.remote, 0x4000);
	assert_int_equal(entry.message.compare_add, 1);
	assert_int_equal(entry.message.swap, 2);
}

UNIT_TEST(binds_are_no_messages)
{
	assert_int_equal(dapl_tap_operation(IBV_WR_BIND_MW), DAPL_TAP_NO_MESSAGE);
	assert_int_equal(dapl_tap_operation(IBV_WR_LOCAL_INV), DAPL_TAP_NO_MESSAGE);
	assert_int_equal(dapl_tap_operation(IBV_WR_DRIVER1), DAPL_TAP_NO_MESSAGE);
}

/* Of a receive's segments the first ones are known when it completes, once. */
UNIT_TEST(receive_knows_its_memory)
{
	struct ibv_recv_wr wr = { .wr_id = 128, .sg_list = sges, .num_sge = 6 };
	struct ibv_wc wc = { .wr_id = 128, .opcode = IBV_WC_RECV, .byte_len = 50, .wc_flags = IBV_WC_WITH_IMM,
		.imm_data = htonl(9) };
	struct tap_entry entry = { .time = 5 };
	struct dapl_tap_sink sink;

	dapl_tap_remember_receives(&wr);
	assert_true(dapl_tap_is_recorded(&wc));
	assert_true(dapl_tap_recall(&wc, &sink));
	assert_int_equal(sink.sges, DAPL_TAP_SGES);
	assert_int_equal(sink.sge[1].addr, 0x2000);
	assert_int_equal(dapl_tap_completed(&wc), TAP_SEND);
	assert_int_equal(dapl_tap_came(&wc, &sink), 50);
	dapl_tap_describe_completion(&entry, &wc, TAP_SEND, 50, &sink);
	assert_int_equal(entry.kind, TAP_RECEIVED);
	assert_int_equal(entry.op, TAP_SEND);
	assert_int_equal(entry.message.length, 50);
	assert_int_equal(entry.flags, TAP_IMMEDIATE);
	assert_int_equal(entry.message.word, 9);
	assert_true(dapl_tap_recall(&wc, &sink));
	assert_int_equal(sink.sges, 0);
	wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;	/* the payload lies elsewhere */
	assert_int_equal(dapl_tap_completed(&wc), TAP_WRITE);
	assert_int_equal(dapl_tap_came(&wc, &sink), 0);
}

UNIT_TEST(answer_has_its_request)
{
	const struct ibv_wc wc = { .wr_id = 192, .opcode = IBV_WC_FETCH_ADD };
	const struct tap_message request = { .length = 120, .word = 6, .stag = 5, .remote = 0x3000, .sink = 0x1000,
		.compare_add = 1, .swap = 2 };
	struct tap_entry entry = { .time = 5 };
	struct dapl_tap_sink sink;

	dapl_tap_remember(192, sges, 2, &request);
	assert_true(dapl_tap_recall(&wc, &sink));
	assert_int_equal(dapl_tap_completed(&wc), TAP_FETCH_ADD);
	assert_int_equal(dapl_tap_came(&wc, &sink), 120);
	dapl_tap_describe_completion(&entry, &wc, TAP_FETCH_ADD, 120, &sink);
	assert_int_equal(entry.kind, TAP_ANSWERED);
	assert_int_equal(entry.op, TAP_FETCH_ADD);
	assert_int_equal(entry.flags, 0);
	assert_memory_equal(&entry.message, &request, sizeof request);
	assert_int_equal(sink.sges, 2);
	assert_int_equal(sink.sge[1].addr, 0x2000);
	assert_false(dapl_tap_recall(&wc, &sink));	/* of a post before the capture */
}

UNIT_TEST(failures_are_not_shown)
{
	const struct ibv_wc wc = { .wr_id = 128, .opcode = IBV_WC_RECV, .status = IBV_WC_WR_FLUSH_ERR };
	struct dapl_tap_sink sink;

	assert_false(dapl_tap_recall(&wc, &sink));
	assert_false(dapl_tap_is_recorded(&(struct ibv_wc){ .opcode = IBV_WC_SEND }));
}

UNIT_TEST(addresses_of_both_families)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(80),
		.sin_addr.s_addr = htonl(0x0a000001) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(81),
		.sin6_addr.s6_addr = { 0xfe, 0x80 } };
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
	struct tap_address to = { .family = 0 };

	memcpy(&from, &four, sizeof four);
	dapl_tap_put_address(&to, &from);
	assert_int_equal(to.family, 4);
	assert_int_equal(to.port, 80);
	assert_memory_equal(to.ip, "\x0a\0\0\1", 4);
	memcpy(&from, &six, sizeof six);
	dapl_tap_put_address(&to, &from);
	assert_int_equal(to.family, 6);
	assert_int_equal(to.port, 81);
	assert_memory_equal(to.ip, "\xfe\x80\0", 3);
}

UNIT_MAIN(NULL, NULL)
