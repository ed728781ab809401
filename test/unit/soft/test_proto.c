/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_proto.c - protocol selection; test_proto_table.c is about the choice by measurements.
 * test_cma.c, test_large.c and test_rmem_map.c test that requests use the selected protocol. */
#include "common/clock.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/proto.h"
#include "test/unit/unit.h"

enum { K = 1024 };
static const uint64_t lengths[] = { 8 * K, 16 * K - 1, 100 * K, 1024 * K, PROTO_MAX };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* An idle connection with no peer, whose process polls. */
static struct {
	struct dapl_device dev;
	struct shm_proto_tables protocols;
	struct dapl_conn conn;
	struct shm_conn shm;
	struct shm_process peer;
	struct soft_cq cq;
	struct soft_qp qp;
	uint32_t sleep_count;
} one;

static void open_one(bool direct)
{
	memset(&one, 0, sizeof one);
	one.dev.want_direct = direct;
	one.dev.shm.protocols = &one.protocols;
	one.conn.dev = &one.dev;
	one.conn.shm = &one.shm;
	one.conn.stream.tx.open = true;
	one.conn.stream.reads_out = 1;
	one.shm.conn = &one.conn;
	one.shm.peer = &one.peer;
	one.peer.sleep_count = &one.sleep_count;
	one.qp.dev = &one.dev;
	one.qp.state = IBV_QPS_RTS;
	one.qp.qp.send_cq = &one.cq.cq;
	one.shm.proto.unmapped = 5;
}

static enum shm_proto posted(unsigned opcode, uint32_t stag, uint64_t length)
{
	struct proto_request request = { .moment = PROTO_POSTED, .opcode = opcode, .stag = stag,
		.length = length };

	return proto_select(&one.qp, &one.conn, &request);
}

static enum shm_proto started(unsigned opcode, uint64_t length)
{
	struct soft_swqe wqe = { .opcode = opcode, .length = length };
	struct proto_request request = proto_request_of(PROTO_STARTS, &wqe);

	request.alone = true;
	return proto_select(&one.qp, &one.conn, &request);
}

static const unsigned opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD };

UNIT_TEST(without_direct_access_all_requests_take_the_ring)
{
	open_one(false);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(posted(opcodes[i], 1, 8), PROTO_INLINE);
		assert_int_equal(posted(opcodes[i], 1, RING_INLINE), PROTO_INLINE);
		assert_int_equal(posted(opcodes[i], 1, RING_INLINE + 1), PROTO_COPY);
		for (int j = 0; j < LENGTHS; j++) {
			assert_int_equal(posted(opcodes[i], 1, lengths[j]), PROTO_COPY);
			for (int turn = 0; turn < 2 * PROTO_TRIES; turn++)
				assert_int_equal(started(opcodes[i], lengths[j]), PROTO_COPY);
		}
	}
}

UNIT_TEST(short_requests_take_mapped_memory_or_the_ring)
{
	open_one(true);
	assert_int_equal(posted(IBV_WR_SEND, 1, 8), PROTO_INLINE);
	assert_int_equal(posted(IBV_WR_RDMA_WRITE, 1, 8), PROTO_MAPPED);
	assert_int_equal(posted(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8), PROTO_MAPPED);
	assert_int_equal(posted(IBV_WR_RDMA_READ, 1, 8), PROTO_MAPPED);
	assert_int_equal(posted(IBV_WR_RDMA_WRITE, 5, 8), PROTO_INLINE);
	assert_int_equal(posted(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 8), PROTO_UNDECIDED);
	assert_int_equal(posted(IBV_WR_RDMA_READ, 5, 8), PROTO_UNDECIDED);
}

UNIT_TEST(refused_protocol_is_not_selected_again)
{
	struct proto_request request = { .moment = PROTO_POSTED, .opcode = IBV_WR_RDMA_WRITE,
		.length = 8, .refused = 1 << PROTO_MAPPED };

	open_one(true);
	assert_int_equal(proto_select(&one.qp, &one.conn, &request), PROTO_INLINE);
}

/* The kernel copies for the initiator of a read, and for the target of a write or a send. */
UNIT_TEST(large_requests_take_what_is_faster)
{
	open_one(true);
	for (int i = 0; i < PROTO_SIZES; i++)
		one.protocols.reads.class[i] = one.protocols.writes.class[i] = (struct proto_class){
			.selected = PROTO_CMA, .due = proto_ticks(clock_now_ns()) + PROTO_VALID_TICKS,
		};
	assert_int_equal(started(IBV_WR_SEND, 100 * K), PROTO_RNDV);
	assert_int_equal(started(IBV_WR_RDMA_WRITE, 100 * K), PROTO_RNDV);
	assert_int_equal(started(IBV_WR_RDMA_READ, 100 * K), PROTO_CMA);
	assert_int_equal(started(IBV_WR_RDMA_READ, PROTO_MAX + 1), PROTO_COPY);
	one.shm.peer_cannot_copy = true;
	assert_int_equal(started(IBV_WR_SEND, 100 * K), PROTO_COPY);
}

static uint32_t measured_cma(void) { return one.protocols.reads.class[proto_size_class(100 * K)].ns[1]; }

/* Reads by CMA are measured until the faster protocol is known, and then do not look at the clock. */
UNIT_TEST(only_a_read_that_is_measured_is_timed)
{
	struct soft_swqe wqe = { .opcode = IBV_WR_RDMA_READ, .length = 100 * K };
	struct proto_class *class;
	uint64_t begun_ns;

	open_one(true);
	class = &one.protocols.reads.class[proto_size_class(100 * K)];
	assert_int_equal(started(IBV_WR_RDMA_READ, 100 * K), PROTO_CMA);
	begun_ns = proto_read_begins(&one.conn);
	assert_int_not_equal(begun_ns, 0);
	proto_read_by_cma(&one.conn, &wqe, begun_ns);
	assert_int_not_equal(measured_cma(), 0);
	class->selected = PROTO_CMA;
	class->due = proto_ticks(clock_now_ns()) + PROTO_VALID_TICKS;
	class->ns[1] = 0;
	assert_int_equal(started(IBV_WR_RDMA_READ, 100 * K), PROTO_CMA);
	begun_ns = proto_read_begins(&one.conn);
	assert_int_equal(begun_ns, 0);
	proto_read_by_cma(&one.conn, &wqe, begun_ns);
	assert_int_equal(measured_cma(), 0);
}

UNIT_MAIN(NULL, NULL)
