/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_large.c - protocols of large payloads: reads by CMA or through the ring, and the rendezvous of large writes
 * and sends, which the target copies. */
#include "common/clock.h"
#include "dapl/soft/progress/progress.h"
#include "test/unit/soft/copies.h"
#include "test/unit/unit.h"

/* --- large reads ------------------------------------------------------------------------------ */

static const uint32_t large[] = { PROTO_MIN, CMA_SHORT_MAX + 1, 100001, 1 << 20, HALF };
enum { LARGE = sizeof large / sizeof *large };

/* Makes this protocol the faster one for the device of ends[0]. */
static void make_faster(struct shm_proto_table *table, enum shm_proto proto)
{
	for (int i = 0; i < PROTO_SIZES; i++)
		table->class[i] = (struct proto_class){
			.selected = proto, .due = proto_ticks(clock_now_ns()) + PROTO_VALID_TICKS,
		};
}

/* The next requests are measured with this protocol, up to PROTO_SERIES of them. */
static void measure(struct shm_proto_table *table, enum shm_proto proto)
{
	for (int i = 0; i < PROTO_SIZES; i++) {
		table->class[i].due = 0;
		table->class[i].turn = proto == PROTO_COPY ? PROTO_SERIES : 2 * PROTO_SERIES;
	}
}

/* Announces that the other end's device is polling, or blocked again. This thread then drives
 * its progress. */
static void announce_polling(void)
{
	wait_asleep(&ends[0]);
	served = &ends[1];
	__atomic_add_fetch(ends[1].dev->shm.process->sleep_count, 1, __ATOMIC_RELAXED);
}

static void let_sleep(void)
{
	served = NULL;
	__atomic_add_fetch(ends[1].dev->shm.process->sleep_count, 1, __ATOMIC_RELAXED);
}

static void read_large(uint32_t length, unsigned i)
{
	pattern(ends[1].buf, length, i);
	memset(ends[0].buf, 0, length);
	post_to_other(IBV_WR_RDMA_READ, length, 0);
	done(&ends[0]);
	assert_true(has_pattern(ends[0].buf, length, i));
}

/* A polling peer's memory is read by the faster protocol; a blocked peer's memory without a
 * wake-up. */
UNIT_TEST(large_reads_use_the_faster_protocol)
{
	for (int proto = 0; proto < 3; proto++) {
		uint32_t sleep_count;

		open_sleeper();
		sleep_count = sleeps_of_peer(&ends[0]);
		make_faster(&ends[0].dev->shm.protocols->reads, proto == 0 ? PROTO_CMA : PROTO_COPY);
		if (proto < 2)
			announce_polling();
		for (unsigned i = 0; i < LARGE; i++)
			read_large(large[i], i);
		if (proto == 2)
			assert_int_equal(sleeps_of_peer(&ends[0]), sleep_count);
		assert_int_equal(ends[0].conn->shm->direct, proto == 1 ? 0 : LARGE);
		if (proto < 2)
			let_sleep();
		close_two();
	}
}

/* With CMA no data arrives from which the peer could see that it must take over progress. So
 * its poll count decides, and whether the count still grows. */
UNIT_TEST(polling_peer_is_not_idle)
{
	const uint32_t *direct;
	time_t until = now() + LIMIT_S;
	uint32_t before;

	open_sleeper();
	direct = &ends[0].conn->shm->direct;
	make_faster(&ends[0].dev->shm.protocols->reads, PROTO_COPY);
	read_large(PROTO_MIN, 0);
	read_large(64, 1);
	assert_int_equal(*direct, 2);
	served = &ends[1];
	do {
		before = *direct;
		for (int i = 0; i < 100; i++)
			soft_progress_poll((const struct soft_cq *)ends[1].cq);
		read_large(PROTO_MIN, 2);
		read_large(64, 3);
	} while (*direct != before && now() < until);
	assert_int_equal(*direct, before);
	served = NULL;
	wait_asleep(&ends[0]);
	do
		read_large(64, 4);
	while (*direct == before && now() < until);
	assert_int_not_equal(*direct, before);
	close_two();
}

/* The first use of the ring's memory takes long, and must not count as a measurement. */
UNIT_TEST(first_use_of_memory_is_not_measured)
{
	const uint32_t *ns;

	open_sleeper();
	ns = ends[0].dev->shm.protocols->reads.class[1].ns;
	announce_polling();
	for (unsigned i = 0; i < 8; i++)
		read_large(RING_CHUNK, i);
	assert_int_equal(ends[0].dev->shm.protocols->reads.class[1].turn, 8);
	assert_int_equal(ends[0].conn->shm->direct, 4);
	assert_int_equal(ns[0], 0);
	assert_int_not_equal(ns[1], 0);
	for (unsigned i = 0; i < 64 && !ns[0]; i++)
		read_large(RING_CHUNK, i);
	assert_int_not_equal(ns[0], 0);
	let_sleep();
	close_two();
}

/* Requests posted before are executed before: a read returns what a write stored. */
UNIT_TEST(large_read_keeps_the_order_of_requests)
{
	open_sleeper();
	for (unsigned i = 0; i < 100; i++) {
		uint32_t length = large[i % LARGE];

		pattern(ends[0].buf, length, i);
		post(&ends[0], IBV_WR_RDMA_WRITE, length, (uintptr_t)ends[1].buf, ends[1].mr->rkey);
		post_to_other(IBV_WR_RDMA_READ, length, 0);
		done(&ends[0]);
		done(&ends[0]);
		assert_true(has_pattern(ends[0].buf, length, i));
		assert_true(has_pattern(ends[1].buf, length, i));
	}
	assert_true(ends[0].conn->shm->direct > 0);
	close_two();
}

/* The ring executes a read that the kernel refuses, or reports its error. */
UNIT_TEST(large_read_that_the_kernel_refuses_uses_the_ring)
{
	open_sleeper();
	make_faster(&ends[0].dev->shm.protocols->reads, PROTO_CMA);
	copies_refused = true;
	read_large(100000, 1);
	copies_refused = false;
	assert_int_equal(ends[0].conn->shm->direct, 0);
	close_two();

	open_sleeper();
	post_to_other(IBV_WR_RDMA_READ, 8, 0);
	done(&ends[0]);
	meanwhile = deregister;
	meanwhile_at = copies + 1;
	post_to_other(IBV_WR_RDMA_READ, 100000, 0);
	assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	meanwhile = NULL;
	register_anew();
	close_two();
}

UNIT_TEST(reads_beyond_the_largest_measured_length_use_the_ring)
{
	open_sleeper();
	OK(ops->dereg_mr(ends[0].mr));
	free(ends[0].buf);
	ends[0].buf = aligned_alloc(4096, 2 * PROTO_MAX);
	OK(ops->reg_mr(ends[0].pd, ends[0].buf, 2 * PROTO_MAX, IBV_ACCESS_LOCAL_WRITE, NULL,
		       &ends[0].mr));
	OK(ops->dereg_mr(ends[1].mr));
	free(ends[1].buf);
	ends[1].buf = aligned_alloc(4096, 2 * PROTO_MAX);
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 2 * PROTO_MAX, IBV_ACCESS_LOCAL_WRITE |
		       IBV_ACCESS_REMOTE_READ, NULL, &ends[1].mr));
	read_large(PROTO_MAX, 1);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	read_large(PROTO_MAX + 1, 2);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	close_two();
}

/* --- rendezvous: the target copies large writes and sends --------------------------------- */

/* Posts a write or send of this length, and takes its completion. */
static void transfer_large(enum ibv_wr_opcode opcode, uint32_t length, unsigned i)
{
	char *at = ends[1].buf + (opcode == IBV_WR_SEND ? HALF : 0);

	pattern(ends[0].buf, length, i);
	memset(at, 0, length);
	if (opcode == IBV_WR_SEND)
		post_receive(&ends[1]);
	post_to_other(opcode, length, 0);
	done(&ends[0]);
	if (opcode == IBV_WR_SEND)
		done(&ends[1]);
	assert_true(has_pattern(at, length, i));
}

static const enum ibv_wr_opcode rendezvous_opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND };

UNIT_TEST(large_payloads_use_rendezvous)
{
	for (int proto = 0; proto < 4; proto++) {
		uint32_t before, parts = 0;

		open_sleeper();
		make_faster(&ends[0].dev->shm.protocols->writes, proto & 2 ? PROTO_COPY : PROTO_CMA);
		transfer_large(rendezvous_opcodes[proto & 1], RING_CHUNK, 99);	/* one message of the ring */
		before = ends[1].conn->shm->fetched;
		for (unsigned i = 1; i < LARGE; i++) {
			transfer_large(rendezvous_opcodes[proto & 1], large[i], i);
			parts += (large[i] + RING_RNDV_MAX - 1) / RING_RNDV_MAX;
		}
		if (proto & 2)
			assert_int_equal(ends[1].conn->shm->fetched, 0);
		else
			assert_true(!before && ends[1].conn->shm->fetched >= parts);
		close_two();
	}
}

/* The duration of a series is measured for all of its requests. A request with another
 * protocol waits until the series ends. */
UNIT_TEST(consecutive_large_writes_are_measured_as_a_series)
{
	enum { LENGTH = 20000, N = 3 };
	const struct shm_conn *shm;
	const struct soft_qp *qp;

	open_sleeper();
	announce_polling();
	shm = ends[0].conn->shm;
	qp = ends[0].conn->qp;
	ends[0].conn->shm->tx.touched = RING_BULK;
	measure(&ends[0].dev->shm.protocols->writes, PROTO_COPY);
	for (int i = 0; i < N; i++)
		post_to_other(IBV_WR_RDMA_WRITE, LENGTH, i * LENGTH);
	assert_int_equal(shm->proto.writes.under_way, N);
	measure(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, N * LENGTH);
	assert_int_equal(ends[0].conn->stream.tx.cursor.wqe, qp->sq_tail - 1);
	for (int i = 0; i < N; i++)
		done(&ends[0]);
	assert_int_equal(shm->proto.writes.under_way, 1);
	assert_int_equal(shm->proto.writes.bytes, 0);
	assert_int_not_equal(ends[0].dev->shm.protocols->writes.class[1].ns[0], 0);
	done(&ends[0]);
	assert_int_equal(shm->proto.writes.bytes, LENGTH);
	make_faster(&ends[0].dev->shm.protocols->writes, PROTO_COPY);	/* nothing is measured, and nothing waits */
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, 0);
	make_faster(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, LENGTH);
	assert_int_equal(ends[0].conn->stream.tx.cursor.wqe, qp->sq_tail);
	done(&ends[0]);
	done(&ends[0]);
	assert_int_equal(ends[0].dev->shm.protocols->writes.class[1].ns[0], 0);
	assert_int_equal(shm->proto.writes.under_way, 0);
	let_sleep();
	close_two();
}

/* A message arrives before its receive is posted. */
UNIT_TEST(unexpected_rendezvous_is_copied_at_once)
{
	time_t end = now() + LIMIT_S;

	open_sleeper();
	make_faster(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
	pattern(ends[0].buf, 100000, 3);
	post_to_other(IBV_WR_SEND, 100000, 0);
	while (!__atomic_load_n(&ends[1].conn->shm->fetched, __ATOMIC_RELAXED))
		if (now() > end)
			fail_msg("it is not copied before there is a receive");
	settle(&ends[1]);
	post_receive(&ends[1]);
	done(&ends[0]);
	done(&ends[1]);
	assert_true(has_pattern(ends[1].buf + HALF, 100000, 3));
	close_two();
}

/* The target requests the data in pieces, and no request uses rendezvous any more. */
UNIT_TEST(rendezvous_without_cma_falls_back_to_the_ring)
{
	for (int proto = 0; proto < 4; proto++) {
		open_sleeper();
		make_faster(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
		if (proto & 2)		/* CMA works at first, then no more */
			transfer_large(rendezvous_opcodes[proto & 1], 100001, 1);
		copies_refused = true;
		transfer_large(rendezvous_opcodes[proto & 1], 100001, 2);
		assert_true(ends[0].conn->shm->peer_cannot_copy);
		assert_int_equal(ends[1].conn->shm->fallbacks_requested, 100001 / RING_CHUNK + 1);
		copies_refused = false;
		for (unsigned i = 1; i < LARGE; i++)
			transfer_large(rendezvous_opcodes[proto & 1], large[i], i);
		assert_int_equal(ends[1].conn->shm->fetched, proto >> 1);
		assert_int_equal(ends[1].conn->shm->fallbacks_requested, 100001 / RING_CHUNK + 1);
		close_two();
	}
}

static void take_back(void)
{
	OK(ops->error_qp(ends[0].qp));
	memset(ends[0].buf, 0x55, HALF);
}

/* The sender's completions return its memory to the consumer: a copy made afterwards must not
 * be delivered, nor any message behind it. The connection may still be closed in order. */
UNIT_TEST(cancelled_rendezvous_is_not_delivered)
{
	for (int proto = 0; proto < 2; proto++) {
		open_sleeper();
		make_faster(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
		post_receive(&ends[1]);
		post_receive(&ends[1]);
		transfer_large(IBV_WR_RDMA_WRITE, 100000, 1);
		meanwhile = take_back;
		meanwhile_at = copies + 1;
		copies_refused = proto == 1;
		post_to_other(IBV_WR_SEND, 100000, 0);
		post_to_other(IBV_WR_SEND, 8, 0);
		assert_int_equal(next_status(&ends[0]), IBV_WC_WR_FLUSH_ERR);
		meanwhile = NULL;
		OK(ops->disconnect(ends[0].conn));
		wait_up(&ends[1], CLOSED);
		OK(ops->error_qp(ends[1].qp));
		for (int i = 0; i < 2; i++)
			assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
		copies_refused = false;
		close_two();
	}
}

/* The source is no longer registered: the sender does not send it. */
/* In a thread that holds no lock: a deregistration may wait. */
static void *end_registration(void *mr)
{
	OK(ops->dereg_mr(mr));
	return NULL;
}

UNIT_TEST(deregistered_source_is_not_sent)
{
	pthread_t thread;

	open_sleeper();
	make_faster(&ends[0].dev->shm.protocols->writes, PROTO_CMA);
	transfer_large(IBV_WR_RDMA_WRITE, 100000, 1);
	copies_refused = true;
	dapl_mutex_lock(&ends[1].dev->progress_lock);
	post_to_other(IBV_WR_RDMA_WRITE, 100000, 0);
	OK(pthread_create(&thread, NULL, end_registration, ends[0].mr));
	pthread_join(thread, NULL);
	dapl_mutex_unlock(&ends[1].dev->progress_lock);
	assert_int_equal(next_status(&ends[0]), IBV_WC_LOC_PROT_ERR);
	wait_up(&ends[1], BROKEN);
	copies_refused = false;
	OK(ops->reg_mr(ends[0].pd, ends[0].buf, BUFFER, IBV_ACCESS_LOCAL_WRITE, NULL, &ends[0].mr));
	close_two();
}

UNIT_MAIN(use_shared_memory, NULL)
