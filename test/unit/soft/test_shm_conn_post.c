/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_conn_post.c - which requests take a slot of the ring, which are executed without a message, and what is
 * left of a request that takes neither way (shm_conn.c). Mapped memory, CMA and the choice of a protocol are replaced
 * here. */
#include <sys/eventfd.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/core/base/tap.h"
#include "test/unit/soft/ring_reader.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

enum { KEY = 0x300, RKEY = 0x500, REMOTE = 0x12345000, SLOTS = 4, STRIDE = sizeof(struct soft_swqe) + 64 };

static struct dapl_device dev;
static struct dapl_conn conn;
static struct soft_qp qp;
static struct shm_process own, peer;
static uint32_t sleep_count;		/* of the peer */
static struct ring_rx rx;		/* the peer's side of the ring */
static char sq[SLOTS * STRIDE] __attribute__((aligned(8)));
static char memory[RING_CHUNK + 1];	/* that requests send */

static struct {
	unsigned completions;
	bool good_memory, can_map, can_cma, suits_cma, peer_polls;
	enum shm_proto read_proto, queued_proto;
	const char *by;			/* what executed the last request */
	const struct soft_swqe *queued;
} is;

REPLACE(soft_qp_executed, soft_mem_to_send, soft_mem_local, rmem_map_write, rmem_map_read, rmem_map_atomic)
REPLACE(cma_read_now, cma_execute, proto_suits_cma, proto_peer_polls, proto_select_read, proto_select_queued)

void __wrap_soft_qp_executed(struct soft_qp *q, const struct ibv_send_wr *wr) { is.completions++; }

enum soft_check __wrap_soft_mem_to_send(struct soft_qp *q, const struct ibv_sge *sge, char **at)
{
	*at = (char *)(uintptr_t)sge->addr;
	return is.good_memory ? SOFT_FINE : SOFT_BAD_STAG;
}

enum soft_check __wrap_soft_mem_local(const struct dapl_device *d, const struct ibv_pd *pd, const struct ibv_sge *sge,
				      int access, char **at)
{
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	*at = (char *)(uintptr_t)sge->addr;
	return is.good_memory ? SOFT_FINE : SOFT_ACCESS;
}

static bool executed_by(const char *name, bool can, uint32_t stag, uint64_t remote, const char *at)
{
	assert_int_equal(stag, RKEY);
	assert_int_equal(remote, REMOTE);
	assert_ptr_equal(at, memory);
	is.by = can ? name : NULL;
	return can;
}

bool __wrap_rmem_map_write(struct dapl_conn *c, uint32_t stag, uint64_t remote, const char *from, uint32_t length)
{
	return executed_by("mapped write", is.can_map, stag, remote, from);
}

bool __wrap_rmem_map_read(struct dapl_conn *c, uint32_t stag, uint64_t remote, char *to, uint32_t length)
{
	return executed_by("mapped read", is.can_map, stag, remote, to);
}

bool __wrap_rmem_map_atomic(struct dapl_conn *c, const struct ibv_send_wr *wr, char *to)
{
	return executed_by("mapped atomic", is.can_map, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, to);
}

bool __wrap_cma_read_now(struct dapl_conn *c, uint32_t stag, uint64_t remote, char *to, uint32_t length)
{
	return executed_by("CMA read", is.can_cma, stag, remote, to);
}

bool __wrap_cma_execute(struct soft_qp *q, struct dapl_conn *c, struct soft_swqe *wqe)
{
	is.queued = wqe;
	return is.can_cma;
}

bool __wrap_proto_suits_cma(const struct soft_qp *q, const struct dapl_conn *c, unsigned flags) { return is.suits_cma; }
bool __wrap_proto_peer_polls(struct shm_conn *shm) { return is.peer_polls; }

enum shm_proto __wrap_proto_select_read(const struct soft_qp *q, struct dapl_conn *c, uint64_t length,
					unsigned refused)
{
	return refused & 1 << PROTO_CMA ? PROTO_UNDECIDED : is.read_proto;
}

enum shm_proto __wrap_proto_select_queued(const struct soft_qp *q, struct dapl_conn *c,
					  const struct proto_request *request)
{
	assert_int_equal(request->moment, PROTO_QUEUED);
	return is.queued_proto;
}

/* --- what the cases use ------------------------------------------------------------------------------------------ */

/* Wake-ups of the peer since the last call. */
static unsigned wakes(void)
{
	uint64_t count = 0;

	return read(peer.wake_fd, &count, sizeof count) < 0 ? 0 : (unsigned)count;
}

/* Each case runs with the lock of the QP held. */
UNIT_FIXTURE(set_up)
{
	memset(&is, 0, sizeof is);
	is.good_memory = true;
	is.read_proto = PROTO_UNDECIDED;
	is.queued_proto = PROTO_COPY;
	memset(&dev, 0, sizeof dev);
	memset(&conn, 0, sizeof conn);
	dapl_spin_init(&dev.accesses.lock, RANK_SOFT_ACCESS);
	conn.dev = &dev;
	conn.stream.tx.open = true;
	conn.stream.reads_out = 1;
	conn.stream.delivered = 5;
	conn.stream.consumed = 600;
	own.sleep_count = peer.sleep_count = &sleep_count;
	sleep_count = 2;
	own.refs = peer.refs = 100;	/* the test has them */
	peer.wake_fd = eventfd(0, EFD_NONBLOCK);
	peer.notified = 0;
	qp = (struct soft_qp){ .dev = &dev, .conn = &conn, .state = IBV_QPS_RTS, .sq = sq, .sq_stride = STRIDE,
			       .sq_size = SLOTS, .max_inline = 64 };
	conn.qp = &qp;
	conn.shm = shm_conn_new(&conn, shm_segment_new(-1, &own, &peer));
	for (size_t i = 0; i < sizeof memory; i++)
		memory[i] = (char)(i * 167 >> 3);
	ring_rx_init(&rx, conn.shm->segment->memory, 0);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	dapl_mutex_lock(&qp.lock);
}

UNIT_FIXTURE(tear_down)
{
	dapl_mutex_unlock(&qp.lock);
	shm_conn_free(conn.shm);
	shm_segment_drop_spares();
	close(peer.wake_fd);
}

static bool post(enum ibv_wr_opcode opcode, unsigned flags, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, KEY };
	struct ibv_send_wr wr = { .wr_id = 9, .opcode = opcode, .send_flags = flags, .sg_list = &sge, .num_sge = 1 };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = RKEY;
		wr.wr.atomic.remote_addr = REMOTE;
	} else {
		wr.wr.rdma.rkey = RKEY;
		wr.wr.rdma.remote_addr = REMOTE;
	}
	return shm_conn_post(&qp, &conn, &wr);
}

static void expect_nothing_done(void)
{
	assert_false(ring_ready(&rx));
	assert_int_equal(qp.sq_tail, conn.shm->tx.tail);
	assert_int_equal(wakes(), 0);
	assert_int_equal(is.completions, 0);
	assert_null(is.by);
}

/* --- messages --------------------------------------------------------------------------------------------------- */

UNIT_CASE(short_send_takes_a_slot)
{
	const struct soft_swqe *wqe = soft_swqe(&qp, 0);
	struct soft_message message;

	assert_true(post(IBV_WR_SEND, IBV_SEND_SIGNALED, 40));
	message = ring_read(&rx);
	assert_int_equal(message.op, WIRE_SEND);
	assert_true(message.last);
	assert_false(message.rndv);
	assert_int_equal(message.length, 40);
	assert_memory_equal(message.data, memory, 40);
	assert_int_equal(message.delivered, 5);
	assert_int_equal(message.consumed, 600);
	assert_int_equal(conn.stream.tx.cursor.acked_seq, 5);
	assert_int_equal(conn.stream.tx.cursor.acked_consumed, 600);
	assert_int_equal(conn.stream.tx.cursor.charged, SOFT_CHARGE + 40);
	assert_int_equal(conn.stream.tx.cursor.msn_send, 1);
	assert_int_equal(conn.stream.tx.cursor.wqe, 1);
	assert_int_equal(wqe->wr_id, 9);
	assert_int_equal(wqe->state, SOFT_SENT);
	assert_int_equal(wqe->seq, 1);
	assert_true(post(IBV_WR_SEND, IBV_SEND_SOLICITED, 40));
	assert_int_equal(ring_read(&rx).op, WIRE_SEND_SE);
	assert_int_equal(soft_swqe(&qp, 1)->seq, 2);
}

UNIT_CASE(write_takes_no_credit)
{
	struct soft_message message;

	assert_true(post(IBV_WR_RDMA_WRITE, 0, 200));
	message = ring_read(&rx);
	assert_int_equal(message.op, WIRE_WRITE);
	assert_int_equal(message.word, RKEY);
	assert_int_equal(message.to, REMOTE);
	assert_int_equal(conn.stream.tx.cursor.charged, 0);
	assert_int_equal(conn.stream.tx.cursor.msn_send, 0);
}

/* A short Send and a longer one. */
static void expect_not_posted(void)
{
	assert_false(post(IBV_WR_SEND, 0, 8));
	assert_false(post(IBV_WR_SEND, 0, RING_INLINE + 1));
	assert_false(ring_ready(&rx));
	assert_int_equal(wakes(), 0);
}

UNIT_CASE(send_waits_behind_the_stream)
{
	conn.stream.tx.blocked = true;
	expect_not_posted();
	conn.stream.tx.blocked = false;
	conn.stream.tx.cursor.wqe--;		/* a request is before it */
	expect_not_posted();
	conn.stream.tx.cursor.wqe++;
	qp.sq_head -= SLOTS;		/* the queue is full */
	expect_not_posted();
	qp.sq_head += SLOTS;
	qp.state = IBV_QPS_ERR;
	expect_not_posted();
	qp.state = IBV_QPS_RTS;
	is.good_memory = false;
	expect_not_posted();
	is.good_memory = true;
	assert_true(post(IBV_WR_SEND, 0, 8));
}

UNIT_CASE(send_waits_for_the_window)
{
	conn.stream.peer_consumed = 1000;
	for (int i = 0; i < 2; i++) {
		uint32_t length = i ? RING_INLINE + 1 : 8;

		conn.stream.tx.cursor.charged = 1000 + SOFT_WINDOW - SOFT_CHARGE - length + 1;
		assert_false(post(IBV_WR_SEND, 0, length));
		conn.stream.tx.cursor.charged--;
		assert_true(post(IBV_WR_SEND, 0, length));
	}
}

UNIT_CASE(send_waits_for_room_in_the_ring)
{
	for (int i = 0; i < RING_SLOTS - RING_SPARE; i++) {
		assert_true(post(IBV_WR_SEND, 0, 8));
		qp.sq_head = qp.sq_tail;
	}
	assert_false(post(IBV_WR_SEND, 0, 8));
	assert_false(post(IBV_WR_SEND, 0, RING_INLINE + 1));
	assert_int_equal(qp.sq_tail, RING_SLOTS - RING_SPARE);
}

UNIT_CASE(other_requests_need_the_slow_path)
{
	struct ibv_sge sge[2] = { { (uintptr_t)memory, 8, KEY }, { (uintptr_t)memory, 8, KEY } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2 }, next = wr;

	assert_false(shm_conn_post(&qp, &conn, &wr));
	wr.num_sge = 0;
	assert_false(shm_conn_post(&qp, &conn, &wr));
	wr.num_sge = 1;
	wr.next = &next;
	assert_false(shm_conn_post(&qp, &conn, &wr));
	assert_false(post(IBV_WR_SEND, IBV_SEND_FENCE, 8));
	assert_false(post(IBV_WR_RDMA_READ, 0, 8));
	expect_nothing_done();
}

/* --- during a capture ------------------------------------------------------------------------------------------- */

enum { SNAP = TAP_INLINE, QPN = 77 };

static void begin_capture(uint32_t snap)
{
	static const struct tap_ends ends = { .local.family = 4, .remote.family = 4 };

	qp.qp.qp_num = QPN;
	strcpy(memory, "a payload of some length");	/* TAP_INLINE bytes, and 0 */
	tap_records_begin(snap);
	assert_true(dapl_tap_show(QPN, 0, &ends, &conn.tap_shown));
}

static void end_capture(void)
{
	assert_false(next_record());
	dapl_tap_end();
	tap_records_release();
}

static bool post_recorded(enum ibv_wr_opcode opcode, unsigned flags, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, KEY };
	struct ibv_send_wr wr = { .wr_id = 9, .opcode = opcode, .send_flags = flags, .sg_list = &sge, .num_sge = 1 };

	return shm_conn_post_recorded(&qp, &conn, &wr);
}

UNIT_CASE(captured_send_takes_a_slot_and_a_record)
{
	static const struct { uint32_t length; const char *payload; } rows[] = { { 0, "" }, { 3, "a p" },
		{ 8, "a payloa" },
		{ 11, "a payload o" }, { TAP_INLINE, "a payload of some length" } };

	if (!ticks_are_usable())
		skip();
	begin_capture(SNAP);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		qp.sq_head = qp.sq_tail;
		assert_true(post_recorded(IBV_WR_SEND, i ? 0 : IBV_SEND_SOLICITED, rows[i].length));
		assert_int_equal(ring_read(&rx).length, rows[i].length);
		is_recorded(TAP_POSTED, TAP_SEND, rows[i].length, rows[i].payload);
		assert_int_equal(seen.entry.flags, i ? 0 : TAP_SOLICITED);
		assert_int_equal(seen.entry.qpn, QPN);
	}
	end_capture();
}

/* The caller records them, and posts them then. */
UNIT_CASE(captured_request_that_needs_more_is_left)
{
	begin_capture(SNAP);
	assert_false(post_recorded(IBV_WR_SEND, 0, TAP_INLINE + 1));
	assert_false(post_recorded(IBV_WR_SEND, IBV_SEND_FENCE, 8));
	assert_false(post_recorded(IBV_WR_RDMA_WRITE, 0, 8));
	conn.stream.tx.blocked = true;
	assert_false(post_recorded(IBV_WR_SEND, 0, 8));
	conn.stream.tx.blocked = false;
	conn.tap_shown--;		/* the addresses come first */
	assert_false(post_recorded(IBV_WR_SEND, 0, 8));
	end_capture();
	assert_false(post_recorded(IBV_WR_SEND, 0, 8));
	begin_capture(SNAP - 1);
	assert_false(post_recorded(IBV_WR_SEND, 0, 8));
	end_capture();
	expect_nothing_done();
}

/* --- without a message ------------------------------------------------------------------------------------------ */

static void expect_executed(enum ibv_wr_opcode opcode, uint32_t length, const char *by)
{
	is.by = NULL;
	is.completions = 0;
	dev.progress.idle_polls = 3;
	assert_true(post(opcode, IBV_SEND_SIGNALED, length));
	assert_string_equal(is.by, by);
	assert_int_equal(is.completions, 1);
	assert_int_equal(dev.progress.idle_polls, 0);
	assert_true(post(opcode, 0, length));
	assert_int_equal(is.completions, 1);
	assert_int_equal(qp.sq_tail, 0);
	assert_false(ring_ready(&rx));
}

UNIT_CASE(mapped_memory_needs_no_message)
{
	dev.want_direct = is.can_map = true;
	expect_executed(IBV_WR_RDMA_WRITE, 200, "mapped write");
	expect_executed(IBV_WR_RDMA_READ, 200, "mapped read");
	expect_executed(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, "mapped atomic");
	is.by = NULL;
	is.completions = 0;
	assert_false(post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 7));
	expect_nothing_done();
}

UNIT_CASE(write_to_an_idle_peer_is_queued_for_cma)
{
	dev.want_direct = is.suits_cma = true;
	assert_true(post(IBV_WR_RDMA_WRITE, 0, 200));	/* the peer is awake */
	sleep_count++;
	is.peer_polls = true;
	assert_true(post(IBV_WR_RDMA_WRITE, 0, 200));
	is.peer_polls = false;
	assert_false(post(IBV_WR_RDMA_WRITE, 0, 200));
	is.suits_cma = false;
	assert_true(post(IBV_WR_RDMA_WRITE, 0, 200));
}

UNIT_CASE(read_that_cannot_be_mapped_is_tried_by_cma)
{
	dev.want_direct = is.can_cma = true;
	is.read_proto = PROTO_CMA;
	expect_executed(IBV_WR_RDMA_READ, 200, "CMA read");
	is.can_cma = false;
	is.completions = 0;
	assert_false(post(IBV_WR_RDMA_READ, 0, 200));
	expect_nothing_done();
}

UNIT_CASE(read_needs_memory_to_write_and_a_peer_that_answers)
{
	dev.want_direct = is.can_map = is.can_cma = true;
	is.read_proto = PROTO_CMA;
	assert_false(post(IBV_WR_RDMA_READ, IBV_SEND_INLINE, 8));
	is.good_memory = false;
	assert_false(post(IBV_WR_RDMA_READ, 0, 8));
	is.good_memory = true;
	conn.stream.reads_out = 0;
	assert_false(post(IBV_WR_RDMA_READ, 0, 8));
	expect_nothing_done();
}

UNIT_CASE(queued_request_takes_cma_only_at_once)
{
	struct shm_conn *shm = conn.shm;

	dev.want_direct = is.can_cma = true;
	is.queued_proto = PROTO_CMA;
	soft_swqe(&qp, 0)->opcode = IBV_WR_RDMA_WRITE;
	qp.sq_tail = 2;			/* another one was posted with it */
	assert_false(shm_conn_post_cma(&qp, &conn));
	qp.sq_tail = 1;
	qp.state = IBV_QPS_ERR;
	assert_false(shm_conn_post_cma(&qp, &conn));
	qp.state = IBV_QPS_RTS;
	conn.stream.tx.blocked = true;
	assert_false(shm_conn_post_cma(&qp, &conn));
	conn.stream.tx.blocked = false;
	conn.shm = NULL;
	assert_false(shm_conn_post_cma(&qp, &conn));
	conn.shm = shm;
	is.queued_proto = PROTO_COPY;
	assert_false(shm_conn_post_cma(&qp, &conn));
	assert_null(is.queued);
	qp.sq_tail = 0;
}

UNIT_MAIN(NULL, NULL)
