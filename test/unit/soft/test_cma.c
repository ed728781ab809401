/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cma.c - requests whose data the kernel copies between the memories of two processes: without a wake-up of
 * the peer, with the rights that it gave, and only while they hold. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "dapl/soft/shm/peer.h"
#include "test/unit/soft/copies.h"
#include "test/unit/unit.h"

static const uint32_t direct_lengths[] = { 1, 7, 8, 9, 16, 63, 64, 4096, 5001, CMA_SHORT_MAX };

/* Runs in the child: writes and reads the memory of its parent, which sleeps in read(). */
static void child_with_a_blocked_parent(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	uint32_t sleep_count, expected = 0;
	struct other o = ends_join(port, from);

	sleep_count = wait_asleep(e);
	for (size_t i = 0; i < sizeof direct_lengths / sizeof *direct_lengths; i++) {
		uint32_t length = direct_lengths[i], offset = i % 3 ? 0 : 4091;

		pattern(e->buf, length, i);
		post(e, IBV_WR_RDMA_WRITE, length, o.address + offset, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		DIE_UNLESS(e->conn->shm->direct == ++expected);
		memset(e->buf, 0, length);
		post(e, IBV_WR_RDMA_READ, length, o.address + offset, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		DIE_UNLESS(e->conn->shm->direct == ++expected);
		DIE_UNLESS(has_pattern(e->buf, length, i));
	}
	DIE_UNLESS(sleep_count == sleeps_of_peer(e));
	DIE_UNLESS(write(to, "z", 1) == 1);
	pause();
}

UNIT_TEST(blocked_process_is_accessed_without_a_wake_up)
{
	enum { LAST = sizeof direct_lengths / sizeof *direct_lengths - 1 };
	struct end *e = &ends[1];
	struct caller o;

	if (!cma_works())
		skip();
	o = fork_initiator(child_with_a_blocked_parent);
	tell(o.down[1], e);
	expect_byte(o.up[0], 'z');
	assert_true(has_pattern(e->buf + (LAST % 3 ? 0 : 4091), direct_lengths[LAST], LAST));
	kill_initiator(&o);
	end_initiator(&o);
}

/* Revokes a region while a peer announces a write. */
static void revoke_during_write(void)
{
	struct ring_writer *writer = shm_own_writer(ends[0].conn);
	struct ibv_mr *mr;

	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 64, IBV_ACCESS_LOCAL_WRITE |
		       IBV_ACCESS_REMOTE_WRITE, NULL, &mr));
	WRITE_ONCE(writer->within, 1);
	OK(ops->dereg_mr(mr));
	WRITE_ONCE(writer->within, 0);
}

static void fail_qp(void)
{
	post_receive(&ends[1]);
	OK(ops->error_qp(ends[1].qp));
	while (next_status(&ends[1]) != IBV_WC_WR_FLUSH_ERR)
		;
	memset(ends[1].buf, 0x55, HALF);
}

/* The region is revoked before the kernel copies, at each copy there is: the first reads the
 * directory's id, and the first write to a window is preceded by one that announces the
 * source. No byte is stored afterwards, and a read that copied afterwards does not succeed.
 * The target waits for one second until it gives up, because the announced write is by the
 * same thread. */
UNIT_TEST(revoked_memory_is_not_accessed_by_cma)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (unsigned proto = 0; proto < 8; proto++) {
		bool first = proto & 4, dereg = proto & 2;

		open_sleeper();
		if (!first) {
			post_to_other(opcodes[proto & 1], 8, 0);
			done(&ends[0]);
		}
		assert_int_equal(ends[0].conn->shm->direct, !first);
		memset(ends[0].buf, 0x33, 100);
		meanwhile = dereg ? deregister : fail_qp;
		meanwhile_at = first ? 2 : copies + 1;
		post_to_other(opcodes[proto & 1], 100, 0);
		assert_true(copies >= meanwhile_at);
		if (dereg)
			assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(ends[1].buf[i], 0x55);
		assert_int_equal(ends[0].conn->shm->direct, !first);
		meanwhile = NULL;
		if (dereg)
			register_anew();
		close_two();
	}
}

/* Runs in the child: is connected to, and then sleeps. */
static void child_that_sleeps(int to)
{
	open_end(&ends[1]);
	be_target(to, ends[1].buf, ends[1].mr);
}

static struct target sleeper;

static void kill_sleeper(void)
{
	kill(sleeper.pid, SIGKILL);
	waitpid(sleeper.pid, NULL, 0);
}

/* The target has exited before the kernel copies. */
UNIT_TEST(target_that_is_killed_during_a_copy_fails_the_request)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct end *e = &ends[0];

	if (!cma_works())
		skip();
	for (int proto = 0; proto < 2; proto++) {
		sleeper = fork_target(child_that_sleeps);
		wait_asleep(e);
		post(e, opcodes[proto], 8, sleeper.memory.address, sleeper.memory.rkey);
		done(e);
		assert_int_equal(e->conn->shm->direct, 1);
		copies = 0;
		meanwhile = kill_sleeper;
		meanwhile_at = 1;
		post(e, opcodes[proto], 100, sleeper.memory.address, sleeper.memory.rkey);
		assert_int_equal(e->conn->shm->direct, 1);
		assert_int_not_equal(next_status(e), IBV_WC_SUCCESS);
		wait_up(e, BROKEN);
		meanwhile = NULL;
		close_end(e);
	}
}

UNIT_TEST(last_word_of_a_cma_write_is_stored_last)
{
	open_sleeper();
	pattern(ends[0].buf, 100, 7);
	post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
	done(&ends[0]);
	stores = 0;
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	assert_int_equal(stores, 2);
	assert_ptr_equal(stored[0].iov_base, ends[1].buf);
	assert_int_equal(stored[0].iov_len, 96);
	assert_ptr_equal(stored[1].iov_base, ends[1].buf + 96);
	assert_int_equal(stored[1].iov_len, 4);
	assert_true(has_pattern(ends[1].buf, 100, 7));
	close_two();
}

UNIT_TEST(requests_without_the_right_are_refused)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	for (int proto = 0; proto < 6; proto++) {
		uint64_t address;
		bool read = proto == 1;

		open_sleeper();
		OK(ops->alloc_pd(ends[1].dev, &pd));
		OK(ops->reg_mr(proto == 4 ? pd : ends[1].pd, ends[1].buf, 4096,
			       IBV_ACCESS_LOCAL_WRITE |
			       (proto == 0 ? IBV_ACCESS_REMOTE_READ : proto == 1
				? IBV_ACCESS_REMOTE_WRITE
				: IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE), NULL, &mr));
		address = (uintptr_t)ends[1].buf;
		address += proto == 2 ? 4089 : proto == 3 ? -1 : 0;
		post(&ends[0], read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 8, address,
		     mr->rkey ^ (proto == 5));
		assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ends[0].conn->shm->direct, 0);
		wait_up(&ends[1], BROKEN);
		OK(ops->dereg_mr(mr));
		OK(ops->dealloc_pd(pd));
		close_two();
	}
}

/* Limits the size of files of this process. Exceeding the limit ends the process. */
static void limit_files(rlim_t size)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = size;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
}

/* CMA is refused by the system, by one side's setting, or not allowed in this order: the ring
 * carries the request. */
UNIT_TEST(requests_without_cma_use_the_ring)
{
	for (int proto = 0; proto < 6; proto++) {
		if (proto < 2)
			setenv("DAPL_SOFT_DIRECT", "0", 1);
		open_sleeper();
		unsetenv("DAPL_SOFT_DIRECT");
		ends[proto == 0].dev->want_direct = true;	/* the other end's 0 is enough */
		copies_refused = proto == 2;
		pattern(ends[0].buf, 20000, proto);
		if (proto == 3)
			post(&ends[0], IBV_WR_SEND, 8, 0, 0);	/* has no receive */
		if (proto == 4)
			post(&ends[0], IBV_WR_RDMA_WRITE, 0, 0, 0);
		post_to_other(IBV_WR_RDMA_WRITE, proto == 5 ? CMA_SHORT_MAX + 1 : 100, 0);
		if (proto == 3)
			post_receive(&ends[1]);
		if (proto == 3 || proto == 4)
			done(&ends[0]);
		done(&ends[0]);
		settle(&ends[1]);
		assert_true(has_pattern(ends[1].buf, 100, proto));
		assert_int_equal(ends[0].conn->shm->direct, 0);
		copies_refused = false;
		close_two();
	}
}

/* Part of the memory of the target can be missing. The errno that is left says nothing about the peer. */
UNIT_TEST(short_copy_does_not_end_cma)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (int i = 0; i < 2; i++) {
		open_sleeper();
		post_to_other(opcodes[i], 8, 0);
		done(&ends[0]);
		assert_int_equal(ends[0].conn->shm->direct, 1);
		copies_cut = true;
		errno = EPERM;
		post_to_other(opcodes[i], 100, 0);
		copies_cut = false;
		done(&ends[0]);
		assert_int_equal(ends[0].conn->shm->direct, 1);
		assert_int_equal(ends[0].conn->shm->peer->reach, SOFT_REACH_YES);
		close_two();
	}
}

/* The size limit bounds the grant file, and may shrink afterwards. */
UNIT_TEST(file_size_limit_leaves_cma)
{
	limit_files(1 << 20);
	open_sleeper();
	limit_files(1 << 19);		/* the output of this test may be a file, too */
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	meanwhile = deregister;
	meanwhile_at = copies + 1;
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
	meanwhile = NULL;
	limit_files(RLIM_INFINITY);
	register_anew();
	close_two();
}

/* The source of a copy by the kernel is not in the shared file, so no other process can change
 * it. */
UNIT_TEST(other_processes_cannot_choose_the_source_of_a_copy)
{
	static const char nothing[64];
	const struct shm_process *target;
	char words[sizeof nothing];

	open_sleeper();
	post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
	done(&ends[0]);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	target = ends[1].dev->shm.process;
	assert_int_equal(pread(target->window_file, words, sizeof words, target->mr_dir->window),
			 sizeof words);
	assert_memory_equal(words, nothing, sizeof words);
	close_two();
}

/* Each window is used until it is closed, the last one too. After that the ring carries
 * requests. */
UNIT_TEST(full_grant_file_leaves_the_ring)
{
	uint64_t window;

	limit_files(3 * 65536 - 1);		/* one open window, and the data below it */
	open_sleeper();
	limit_files(RLIM_INFINITY);
	window = ends[1].dev->shm.process->mr_dir->window;
	assert_int_equal(window, 65536);
	for (int proto = 0; proto < 2; proto++) {
		post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
		done(&ends[0]);
		assert_int_equal(ends[0].conn->shm->direct, 1);
		if (proto == 0)
			revoke_during_write();
	}
	assert_int_equal(ends[1].dev->shm.process->mr_dir->window, 0);
	close_two();
}

/* The MR directory does not fit either: there is no shared memory then, and no SIGXFSZ. */
UNIT_TEST(small_file_size_limit_leaves_tcp)
{
	limit_files(60000);
	open_two(0);
	limit_files(RLIM_INFINITY);
	assert_null(ends[0].conn->shm);
	pattern(ends[0].buf, 100, 7);
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	settle(&ends[1]);
	assert_true(has_pattern(ends[1].buf, 100, 7));
	close_two();
}

UNIT_MAIN(use_shared_memory, NULL)
