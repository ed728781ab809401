/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_revoke.c - no peer writes to a region after its revocation, which waits for a write in progress, and gives
 * up a peer that stays within one. */
#include "test/unit/soft/mapped.h"
#include "dapl/soft/shm/peer.h"
#include "test/unit/unit.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

UNIT_TEST(revoked_region_is_not_written)
{
	for (int proto = 0; proto < 3; proto++) {
		struct shared s = open_shared();
		uint32_t rkey = s.mr->rkey;

		assert_true(is_mapped_here(s.mr, s.at));
		if (proto == 0) {
			OK(ops->dereg_mr(s.mr));
			s.mr = NULL;
		} else if (proto == 1) {
			OK(ops->error_qp(ends[1].qp));
		} else {
			OK(ops->disconnect(ends[1].conn));
		}
		memset(s.at, 0x55, SIZE);
		post(&ends[0], IBV_WR_RDMA_WRITE, 8, (uintptr_t)s.at, rkey);
		if (proto == 0)
			assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		for (int i = 0; i < 100; i++)
			assert_int_equal(s.at[i], 0x55);
		assert_int_equal(mapped(), 1);
		close_shared(&s);
	}
}

static char *sink;
static unsigned faults, taken_back;

/* The sink's page is absent when the read stores into it. The region is revoked meanwhile. */
static void wait_in_fault(int signal)
{
	if (__atomic_add_fetch(&faults, 1, __ATOMIC_RELEASE) > 1)
		abort();
	while (!__atomic_load_n(&taken_back, __ATOMIC_ACQUIRE))
		;
}

static void *take_back(void *shared)
{
	struct shared *s = shared;

	for (int ms = 0; ms < 1000 * LIMIT_S && !__atomic_load_n(&faults, __ATOMIC_ACQUIRE); ms++)
		usleep(1000);
	OK(ops->dereg_mr(s->mr));
	s->mr = NULL;
	memset(s->at, 0x55, PAGE);
	OK(mprotect(sink, PAGE, PROT_READ | PROT_WRITE));
	__atomic_store_n(&taken_back, 1, __ATOMIC_RELEASE);
	return NULL;
}

UNIT_TEST(region_revoked_meanwhile_is_not_published)
{
	struct shared s = open_shared();
	struct ibv_mr *mr = ends[0].mr;
	char *buf = ends[0].buf;
	struct sigaction old, fault = { .sa_handler = wait_in_fault };
	pthread_t thread;

	assert_true(is_mapped_here(s.mr, s.at));
	sink = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(sink != MAP_FAILED);
	ends[0].buf = sink;
	ends[0].mr = registered(&ends[0], sink, PAGE, IBV_ACCESS_LOCAL_WRITE, NULL);
	OK(mprotect(sink, PAGE, PROT_NONE));
	OK(sigaction(SIGSEGV, &fault, &old));
	OK(pthread_create(&thread, NULL, take_back, &s));
	post(&ends[0], IBV_WR_RDMA_READ, 64, (uintptr_t)s.at, s.mr->rkey);
	OK(pthread_join(thread, NULL));
	OK(sigaction(SIGSEGV, &old, NULL));
	assert_int_equal(faults, 1);
	assert_int_equal(mapped(), 1);
	assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
	OK(ops->dereg_mr(ends[0].mr));
	munmap(sink, PAGE);
	ends[0].mr = mr;
	ends[0].buf = buf;
	close_shared(&s);
}

/* Returns the word in which ends[0] announces a direct access. */
static uint32_t *within(void) { return &shm_own_writer(ends[0].conn)->within; }

static bool left;

static void *leave_later(void *unused)
{
	usleep(50000);
	__atomic_store_n(&left, true, __ATOMIC_RELAXED);
	__atomic_store_n(within(), 0, __ATOMIC_RELEASE);
	return unused;
}

static bool timed_out(void) { return __atomic_load_n(&shm_own_access(ends[1].conn)->timed_out, __ATOMIC_RELAXED); }

UNIT_TEST(dereg_waits_for_a_peer_within_a_write)
{
	struct shared s = open_shared();
	pthread_t thread;

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	left = false;
	OK(pthread_create(&thread, NULL, leave_later, NULL));
	OK(ops->dereg_mr(s.mr));
	s.mr = NULL;
	assert_true(__atomic_load_n(&left, __ATOMIC_RELAXED));
	OK(pthread_join(thread, NULL));
	assert_false(timed_out());
	close_shared(&s);
}

static void *deregister_it(void *mr)
{
	OK(ops->dereg_mr(mr));
	return NULL;
}

static bool is_listed(uint32_t stag)
{
	const struct mr_dir_entry *entry = ends[1].dev->shm.process->mr_dir->entry[(stag >> 8) % MR_DIR_SETS];

	for (int i = 0; i < MR_DIR_WAYS; i++)
		if (entry[i].stag == stag && (__atomic_load_n(&entry[i].version, __ATOMIC_ACQUIRE) & 1))
			return true;
	return false;
}

/* With a lock held, the calls here would return only when the peer is given up. */
UNIT_TEST(other_calls_go_on_while_dereg_waits)
{
	struct shared s = open_shared();
	struct ibv_mr *other;
	pthread_t thread;
	uint32_t stag;

	assert_true(is_mapped_here(s.mr, s.at));
	stag = s.mr->rkey;
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	OK(pthread_create(&thread, NULL, deregister_it, s.mr));
	s.mr = NULL;
	while (is_listed(stag))
		sched_yield();
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 64, IBV_ACCESS_LOCAL_WRITE, NULL, &other));
	OK(ops->dereg_mr(other));
	post_receive(&ends[1]);
	post(&ends[1], IBV_WR_SEND, 8, 0, 0);
	post_receive(&ends[0]);
	done(&ends[0]);
	done(&ends[1]);
	assert_false(timed_out());
	__atomic_store_n(within(), 0, __ATOMIC_RELEASE);
	OK(pthread_join(thread, NULL));
	assert_false(timed_out());
	close_shared(&s);
}

static int poll_once(const struct end *e)
{
	struct ibv_wc wc;

	return ibv_poll_cq(e->cq, 1, &wc);
}

/* What is posted while the flush waits completes behind what was posted before. */
UNIT_TEST(flush_waits_for_a_peer_within_a_write_without_a_lock)
{
	struct shared s = open_shared();
	struct ibv_mr *other;

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	post_receive(&ends[1]);
	OK(ops->error_qp(ends[1].qp));
	assert_true(!poll_once(&ends[1]) || timed_out());
	post_receive(&ends[1]);
	post(&ends[1], IBV_WR_SEND, 8, 0, 0);
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 64, IBV_ACCESS_LOCAL_WRITE, NULL, &other));
	OK(ops->dereg_mr(other));
	assert_true(!poll_once(&ends[1]) || timed_out());
	__atomic_store_n(within(), 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
	assert_false(timed_out());
	close_shared(&s);
}

static void release_target(void)
{
	ops->release(ends[1].conn);
	wait_up(&ends[1], RELEASED);
	ends[1].conn = NULL;
}

/* The memory of the segment, with the peer's word in it, is still looked at. */
UNIT_TEST(flush_goes_on_when_its_connection_is_gone)
{
	struct shared s = open_shared();
	struct shm_segment *segment = shm_segment_get(ends[1].conn->shm->segment);
	struct ring_writer *writer = &segment->memory->writer[ends[0].conn->passive];

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(&writer->within, 1, __ATOMIC_RELAXED);
	post_receive(&ends[1]);
	OK(ops->error_qp(ends[1].qp));
	release_target();
	__atomic_store_n(&writer->within, 0, __ATOMIC_RELEASE);
	assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
	shm_segment_put(segment);
	close_shared(&s);
}

/* A reset and a destroy wait in the place of the service thread: no flush comes later. */
UNIT_TEST(reset_waits_for_a_peer_within_a_write)
{
	struct shared s = open_shared();
	pthread_t thread;

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	left = false;
	post_receive(&ends[1]);
	OK(pthread_create(&thread, NULL, leave_later, NULL));
	OK(ops->reset_qp(ends[1].dev, ends[1].qp));
	assert_true(__atomic_load_n(&left, __ATOMIC_RELAXED));
	OK(pthread_join(thread, NULL));
	assert_int_equal(poll_once(&ends[1]), 0);
	close_shared(&s);
}

UNIT_TEST(flush_gives_up_a_peer_that_stays_within_a_write)
{
	struct shared s = open_shared();

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	post_receive(&ends[1]);
	OK(ops->error_qp(ends[1].qp));
	assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
	assert_true(timed_out());
	close_shared(&s);
}

/* A dead process does not write. The parent is the target. */
static void child_that_dies_in_a_write(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	struct other o = ends_join(port, from);

	post(e, IBV_WR_RDMA_WRITE, 8, o.address, o.rkey);
	DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS && mapped() == 1);
	__atomic_store_n(within(), 1, __ATOMIC_RELAXED);
	DIE_UNLESS(write(to, "w", 1) == 1);
	pause();
}

/* Connects to a child that is within a write to the region. */
static struct caller child_within_a_write(struct shared *s)
{
	struct caller o = fork_initiator(child_that_dies_in_a_write);
	struct end *e = &ends[1];
	struct other where;

	*s = shared_memory(SEALS);
	s->mr = registered(e, s->at, SIZE, WRITABLE, region_name);
	where = (struct other){ (uintptr_t)s->at, s->mr->rkey };
	assert_int_equal(write(o.down[1], &where, sizeof where), sizeof where);
	expect_byte(o.up[0], 'w');
	return o;
}

enum access_state { CONNECTED, LEFT, GONE };

/* Waits for this state of the access of ends[0] to ends[1]. */
static void expect_access(enum access_state expected)
{
	struct dapl_device *dev = ends[1].dev;
	enum access_state state = CONNECTED;

	for (int ms = 0; state < expected && ms < 1000 * LIMIT_S; ms++) {
		usleep(1000);
		dapl_spin_lock(&dev->accesses.lock);
		if (LIST_EMPTY(&dev->accesses.list))
			state = GONE;
		else if (!LIST_FIRST(&dev->accesses.list)->connected)
			state = LEFT;
		dapl_spin_unlock(&dev->accesses.lock);
	}
	assert_int_equal(state, expected);
}

UNIT_TEST(access_ends_when_the_peer_leaves_its_write_after_the_connection)
{
	struct shared s = open_shared();
	struct shm_segment *segment = shm_segment_get(ends[1].conn->shm->segment);
	struct ring_writer *writer = &segment->memory->writer[ends[0].conn->passive];

	assert_true(is_mapped_here(s.mr, s.at));
	__atomic_store_n(&writer->within, 1, __ATOMIC_RELAXED);
	release_target();
	expect_access(LEFT);
	__atomic_store_n(&writer->within, 0, __ATOMIC_RELEASE);
	expect_access(GONE);
	shm_segment_put(segment);
	close_shared(&s);
}

/* The sockets of a process that is killed are closed before it counts as ended. */
UNIT_TEST(access_ends_when_the_peer_dies_after_the_connection)
{
	struct caller o;
	struct shared s;
	int status;

	if (!cma_works())
		skip();
	o = child_within_a_write(&s);
	release_target();
	expect_access(LEFT);
	OK(kill(o.pid, SIGKILL));
	assert_int_equal(waitpid(o.pid, &status, 0), o.pid);
	expect_access(GONE);
	free_shared(&s);
	end_initiator(&o);
}

UNIT_MAIN(NULL, NULL)
