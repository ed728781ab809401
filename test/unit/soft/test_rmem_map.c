/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rmem_map.c - memory regions that a peer maps: which memory can be mapped; writes,
 * reads and atomics are executed at the post; a hostile target does no harm. test_revoke.c is about
 * revocation, test_cma.c and test_large.c are about what goes through the ring or by CMA. */
#include "test/unit/soft/mapped.h"
#include "dapl/soft/shm/peer.h"
#include "test/unit/unit.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* --- requests on mapped memory ------------------------------------------------------------ */

static const uint32_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 24, 63, 64, 96, 97, 105, 4096, 5001, 100000 };
enum { KINDS_OF_SIZES = sizeof sizes / sizeof *sizes };

/* No byte beside the region changes, the completion is there at once, and no thread was woken. */
UNIT_TEST(mapped_write_is_executed_at_the_post)
{
	struct shared s = open_shared();
	uint32_t sleep_count = wait_asleep(&ends[0]);
	struct ibv_wc wc;

	for (unsigned i = 0; i < KINDS_OF_SIZES * 8; i++) {
		uint32_t length = sizes[i / 8], offset = 100 + i % 8;

		memset(s.at, 0x77, SIZE);
		pattern(ends[0].buf, length, i);
		write_there(&s, length, offset);
		assert_true(has_pattern(s.at + offset, length, i));
		assert_int_equal(s.at[offset - 1], 0x77);
		assert_int_equal(s.at[offset + length], 0x77);
		assert_int_equal(mapped(), i + 1);
		assert_int_equal(ibv_poll_cq(ends[0].cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	}
	assert_int_equal(sleeps_of_peer(&ends[0]), sleep_count);
	close_shared(&s);
}

static void expect_done(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ends[0].cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
}

UNIT_TEST(mapped_read_is_executed_at_the_post)
{
	struct shared s = open_shared();
	uint32_t sleep_count = wait_asleep(&ends[0]);

	for (unsigned i = 0; i < KINDS_OF_SIZES; i++) {
		memset(ends[0].buf, 0x77, sizes[i] + 1);
		pattern(s.at + 100 + i, sizes[i], i);
		post(&ends[0], IBV_WR_RDMA_READ, sizes[i], (uintptr_t)s.at + 100 + i, s.mr->rkey);
		assert_true(has_pattern(ends[0].buf, sizes[i], i));
		assert_int_equal(ends[0].buf[sizes[i]], 0x77);
		assert_int_equal(mapped(), i + 1);
		expect_done(IBV_WC_RDMA_READ);
	}
	assert_int_equal(sleeps_of_peer(&ends[0]), sleep_count);
	close_shared(&s);
}

static uint64_t swap(const struct shared *s, uint64_t compare, uint64_t with)
{
	struct ibv_sge sge = { (uintptr_t)ends[0].buf, 8, ends[0].mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = { .remote_addr = (uintptr_t)s->at + 8, .compare_add = compare,
			       .swap = with, .rkey = s->mr->rkey },
	};

	OK(ibv_post_send(ends[0].qp, &wr, &bad));
	expect_done(IBV_WC_COMP_SWAP);
	return *(uint64_t *)ends[0].buf;
}

UNIT_TEST(mapped_atomic_is_executed_at_the_post)
{
	struct shared s = open_shared();
	uint32_t sleep_count = wait_asleep(&ends[0]);
	uint64_t *at = (uint64_t *)s.at + 1;

	*at = 7;
	post(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 8, (uintptr_t)at, s.mr->rkey);
	assert_int_equal(*at, 12);				/* post adds 5 */
	expect_done(IBV_WC_FETCH_ADD);
	assert_int_equal(*(uint64_t *)ends[0].buf, 7);
	assert_int_equal(swap(&s, 11, 3), 12);
	assert_int_equal(*at, 12);
	assert_int_equal(swap(&s, 12, 3), 12);
	assert_int_equal(*at, 3);
	assert_int_equal(mapped(), 3);
	assert_int_equal(sleeps_of_peer(&ends[0]), sleep_count);
	post(&ends[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 8, (uintptr_t)at + 4, s.mr->rkey);
	assert_int_not_equal(next_status(&ends[0]), IBV_WC_SUCCESS);	/* not aligned */
	assert_int_equal(mapped(), 3);
	close_shared(&s);
}

/* The region begins within a page, and its addresses from zero. */
UNIT_TEST(zero_based_region_within_a_page_is_mapped)
{
	struct shared s = open_shared();
	struct ibv_mr *part = registered(&ends[1], s.at + PAGE + 24, PAGE,
					 WRITABLE | IBV_ACCESS_ZERO_BASED, region_name);

	pattern(ends[0].buf, 100, 3);
	post(&ends[0], IBV_WR_RDMA_WRITE, 100, 16, part->rkey);
	assert_true(has_pattern(s.at + PAGE + 24 + 16, 100, 3));
	assert_int_equal(mapped(), 1);
	done(&ends[0]);
	OK(ops->dereg_mr(part));
	close_shared(&s);
}

/* Requests posted before are executed before. */
UNIT_TEST(write_behind_queued_requests_keeps_their_order)
{
	struct shared s = open_shared();

	post(&ends[0], IBV_WR_SEND, 8, 0, 0);		/* has no receive yet */
	write_there(&s, 8, 0);
	assert_int_equal(mapped(), 0);
	post_receive(&ends[1]);
	done(&ends[0]);
	done(&ends[0]);
	done(&ends[1]);
	write_there(&s, 8, 0);
	assert_int_equal(mapped(), 1);
	done(&ends[0]);
	close_shared(&s);
}

/* --- across processes ---------------------------------------------------------------------------- */

static struct shared of_child;		/* mapped before the fork */

static void child_with_shared_memory(int to)
{
	open_end(&ends[1]);
	of_child.mr = registered(&ends[1], of_child.at, SIZE, WRITABLE, region_name);
	be_target(to, of_child.at, of_child.mr);
}

static struct target a_target_with(void (*part)(int to))
{
	of_child = shared_memory(SEALS);
	return fork_target(part);
}

static void end_target(const struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	wait_up(&ends[0], BROKEN);
	close_end(&ends[0]);
	free_shared(&of_child);
}

static void write_to_child(const struct target *is, uint32_t length, uint32_t offset, unsigned seed)
{
	pattern(ends[0].buf, length, seed);
	post(&ends[0], IBV_WR_RDMA_WRITE, length, is->memory.address + offset, is->memory.rkey);
	done(&ends[0]);
}

/* The target publishes its region when the connection is established. */
static void wait_until_mapped(const struct target *is)
{
	time_t end = now() + LIMIT_S;

	while (!mapped()) {
		write_to_child(is, 8, 0, 0);
		assert_true(now() <= end);
	}
}

UNIT_TEST(stopped_process_is_written_to)
{
	struct target is;

	if (!cma_works())
		skip();
	is = a_target_with(child_with_shared_memory);
	wait_until_mapped(&is);
	kill(is.pid, SIGSTOP);
	waitpid(is.pid, NULL, WUNTRACED);
	for (unsigned i = 0; i < KINDS_OF_SIZES; i++) {
		unsigned before = mapped();

		write_to_child(&is, sizes[i], 4091, i);
		assert_int_equal(mapped(), before + 1);
		assert_true(has_pattern(of_child.at + 4091, sizes[i], i));
	}
	end_target(&is);
}

/* Called once the region is published (wait_until_mapped). */
UNIT_TEST(consumer_maps_a_remote_region)
{
	struct dapl_mapping mapping;
	struct target is;

	if (!cma_works())
		skip();
	is = a_target_with(child_with_shared_memory);
	wait_until_mapped(&is);
	OK(ops->map_remote(ends[0].qp, is.memory.rkey, is.memory.address + 100, SIZE - 100, &mapping));
	assert_true(mapping.at != of_child.at + 100);
	pattern(mapping.at, SIZE - 100, 5);
	assert_true(has_pattern(of_child.at + 100, SIZE - 100, 5));
	assert_int_equal(ops->map_remote(ends[0].qp, is.memory.rkey, is.memory.address + 1, SIZE,
					 &mapping), EACCES);
	ends[0].dev->want_map = false;
	assert_int_equal(ops->map_remote(ends[0].qp, is.memory.rkey, is.memory.address, 8, &mapping),
			 EOPNOTSUPP);
	end_target(&is);
	memset(mapping.at, 1, SIZE - 100);
	OK(munmap(mapping.pages, mapping.size));
}

/* Polls the last 8 bytes. When they are new, checks all others; the child exits if they are
 * not. */
enum { ROUNDS = 20000, ROUND = 1000, ROUNDS_S = LIMIT_S / 2 };

/* Yields: the process that is waited for may need this processor. */
static bool is_there(const void *at, uint64_t round)
{
	for (int i = 0; i < 1000; i++)
		if (__atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) == round)
			return true;
	sched_yield();
	return false;
}

static void child_that_polls(int to)
{
	const uint64_t *tail;

	child_with_shared_memory(to);
	tail = (uint64_t *)(of_child.at + ROUND - 8);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		while (!is_there(tail, round))
			;
		for (const uint64_t *p = (uint64_t *)of_child.at; p < tail; p++)
			if (*p != round)
				abort();
		__atomic_store_n((uint64_t *)(of_child.at + PAGE), round, __ATOMIC_RELEASE);
	}
}

UNIT_TEST(last_word_of_a_mapped_write_is_stored_last)
{
	time_t stop = now() + ROUNDS_S;
	struct target is;

	if (!cma_works())
		skip();
	is = a_target_with(child_that_polls);
	for (uint64_t round = 1; round <= ROUNDS && now() <= stop; round++) {
		time_t end = now() + LIMIT_S;

		for (int i = 0; i < ROUND / 8; i++)
			((uint64_t *)ends[0].buf)[i] = round;
		post(&ends[0], IBV_WR_RDMA_WRITE, ROUND, is.memory.address, is.memory.rkey);
		done(&ends[0]);
		while (!is_there(of_child.at + PAGE, round))
			assert_true(now() <= end);	/* it has died */
	}
	assert_true(mapped() > 0);
	end_target(&is);
}

/* --- memory that can be mapped ------------------------------------------------------------ */

static bool would_be_mapped(char *at, size_t length, const void *as)
{
	struct ibv_mr *mr = registered(&ends[1], at, length, WRITABLE, as);
	bool is = is_mapped_here(mr, at);

	OK(ops->dereg_mr(mr));
	return is;
}

/* Maps page `from` of the file as page `to` of the memory. */
static void place_page(const struct shared *s, int to, int from)
{
	char *at = s->at + to * PAGE;

	assert_ptr_equal(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s->fd,
			      from * PAGE), at);
}

UNIT_TEST(only_sealed_shared_memory_is_mapped)
{
	struct shared s = open_shared(), loose = shared_memory(0), grows = shared_memory(F_SEAL_SHRINK);
	char *private = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.fd, 0);
	char *anonymous = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(would_be_mapped(s.at, SIZE, region_name));
	assert_true(would_be_mapped(s.at + 24, 100, region_name));
	assert_true(would_be_mapped(grows.at, SIZE, region_name));
	assert_false(would_be_mapped(s.at, SIZE, NULL));
	assert_false(would_be_mapped(loose.at, SIZE, region_name));	/* the file may shrink */
	assert_false(would_be_mapped(private, SIZE, region_name));
	assert_false(would_be_mapped(anonymous, SIZE, region_name));
	place_page(&s, 1, 3);
	assert_false(would_be_mapped(s.at, SIZE, region_name));	/* several mappings */
	place_page(&s, 1, 1);
	close(grows.fd);
	assert_false(would_be_mapped(grows.at, SIZE, region_name));	/* no descriptor is left */
	munmap(private, SIZE);
	munmap(anonymous, SIZE);
	munmap(grows.at, SIZE);
	free_shared(&loose);
	close_shared(&s);
}

/* By the target or by the initiator. CMA stays on. */
UNIT_TEST(mapping_can_be_off_with_cma_on)
{
	struct shared s;

	setenv("DAPL_SOFT_MAP", "0", 1);
	s = open_shared();
	unsetenv("DAPL_SOFT_MAP");
	assert_true(ends[0].dev->want_direct);
	ends[0].dev->want_map = true;
	assert_false(is_mapped_here(s.mr, s.at));
	close_shared(&s);
	s = open_shared();
	ends[0].dev->want_map = false;
	assert_false(is_mapped_here(s.mr, s.at));
	ends[0].dev->want_map = true;
	ends[0].conn->shm->proto.unmapped = 0;	/* the first write has noted it */
	assert_true(is_mapped_here(s.mr, s.at));
	close_shared(&s);
}

/* All requests succeed, few regions are mapped, and another region takes the slot of a freed one. */
UNIT_TEST(regions_beyond_the_limit_are_not_mapped)
{
	struct shared s = open_shared();
	struct ibv_mr *mr[10];
	int mapped_ones = 0, again = 0;

	for (int i = 0; i < 10; i++) {
		mr[i] = registered(&ends[1], s.at + i * PAGE, PAGE, WRITABLE, region_name);
		mapped_ones += is_mapped_here(mr[i], s.at + i * PAGE);
	}
	assert_in_range(mapped_ones, 2, 9);
	for (int i = 0; i < 10; i++)
		again += is_mapped_here(mr[i], s.at + i * PAGE);
	assert_int_equal(again, mapped_ones);
	OK(ops->dereg_mr(mr[0]));
	assert_true(is_mapped_here(mr[8], s.at + 8 * PAGE));	/* 9 was the last that could not be mapped */
	for (int i = 1; i < 10; i++)
		OK(ops->dereg_mr(mr[i]));
	close_shared(&s);
}

/* --- protection --------------------------------------------------------------------------- */

UNIT_TEST(no_byte_is_stored_beyond_a_region)
{
	static const struct { int64_t offset; uint32_t length; } beyond[] = {
		{ -1, 1 }, { -8, 16 }, { 2 * PAGE - 7, 8 }, { 2 * PAGE, 1 }, { 0, 2 * PAGE + 1 },
		{ INT64_MIN, 8 },
	};

	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		struct shared s = open_shared();
		struct ibv_mr *mr = registered(&ends[1], s.at + PAGE, 2 * PAGE, WRITABLE, region_name);

		assert_true(is_mapped_here(mr, s.at + PAGE));
		memset(s.at, 0x77, SIZE);
		post(&ends[0], IBV_WR_RDMA_WRITE, beyond[i].length,
		     (uintptr_t)s.at + PAGE + beyond[i].offset, mr->rkey);
		assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(mapped(), 1);
		for (int k = 0; k < SIZE; k++)
			assert_int_equal(s.at[k], 0x77);
		OK(ops->dereg_mr(mr));
		close_shared(&s);
	}
}

/* Each right is checked, also in a region that is mapped for another right. */
UNIT_TEST(each_access_right_is_checked)
{
	static const struct { enum ibv_wr_opcode opcode; int right; } accesses[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	};

	for (int i = 0; i < 9; i++) {
		struct shared s = open_shared();
		struct ibv_mr *mr = registered(&ends[1], s.at, SIZE, IBV_ACCESS_LOCAL_WRITE |
					       accesses[i / 3].right, region_name);

		memset(s.at, 0x77, 16);
		memset(ends[0].buf, 0x55, 16);
		post(&ends[0], accesses[i / 3].opcode, 8, (uintptr_t)s.at, mr->rkey);
		done(&ends[0]);
		assert_int_equal(mapped(), 1);
		memset(s.at, 0x77, 16);
		memset(ends[0].buf, 0x55, 16);
		post(&ends[0], accesses[i % 3].opcode, 8, (uintptr_t)s.at, mr->rkey);
		assert_int_equal(next_status(&ends[0]),
				 i / 3 == i % 3 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(mapped(), i / 3 == i % 3 ? 2 : 1);
		if (i / 3 != i % 3) {
			assert_int_equal(s.at[0], 0x77);
			assert_int_equal(ends[0].buf[0], 0x55);
		}
		OK(ops->dereg_mr(mr));
		close_shared(&s);
	}
}

/* A read needs local write access to its sink. */
UNIT_TEST(read_into_a_sink_without_write_access_fails)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (int proto = 0; proto < 2; proto++) {
		struct shared s = open_shared();
		struct ibv_mr *mr = ends[0].mr;

		assert_true(is_mapped_here(s.mr, s.at));
		ends[0].mr = registered(&ends[0], ends[0].buf, HALF, 0, NULL);
		memset(ends[0].buf, 0x55, 8);
		post(&ends[0], opcodes[proto], 8, (uintptr_t)s.at, s.mr->rkey);
		assert_int_equal(next_status(&ends[0]), IBV_WC_LOC_PROT_ERR);
		assert_int_equal(ends[0].buf[0], 0x55);
		assert_int_equal(mapped(), 1);
		OK(ops->dereg_mr(ends[0].mr));
		ends[0].mr = mr;
		close_shared(&s);
	}
}

/* --- a hostile target --------------------------------------------------------------------- */

enum lie { A_PIPE, NO_FILE, MAY_SHRINK, TOO_SHORT, BEYOND, LIES };

static enum lie lie;

static struct mr_dir_entry *entry_of(const struct end *e, uint32_t stag)
{
	struct mr_dir_entry *entry = e->dev->shm.process->mr_dir->entry[(stag >> 8) % MR_DIR_SETS];

	while (entry->stag != stag)
		entry++;
	return entry;
}

/* Changes its directory once the connection is established. */
static void child_with_an_invalid_directory(int to)
{
	struct mr_dir_entry *entry;
	struct shared loose;
	int fds[2];

	child_with_shared_memory(to);
	entry = entry_of(&ends[1], of_child.mr->rkey);
	OK(pipe(fds));
	loose = shared_memory(0);
	switch (lie) {
	case A_PIPE:
		entry->file = fds[1];
		break;
	case NO_FILE:
		entry->file = 1 << 20;
		break;
	case MAY_SHRINK:
		entry->file = loose.fd;
		break;
	case TOO_SHORT:
		entry->offset = SIZE - PAGE;
		break;
	default:
		entry->offset = -(uint64_t)PAGE;
	}
	of_child.at[SIZE - 1] = 1;		/* the directory has changed */
}

UNIT_TEST(requests_to_an_invalid_directory_use_the_ring)
{
	struct target is;

	if (!cma_works())
		skip();
	for (lie = 0; lie < LIES; lie++) {
		time_t end = now() + LIMIT_S;

		is = a_target_with(child_with_an_invalid_directory);
		while (!__atomic_load_n(&of_child.at[SIZE - 1], __ATOMIC_ACQUIRE))
			assert_true(now() <= end);
		write_to_child(&is, 100, 0, lie);
		assert_true(has_pattern(of_child.at, 100, lie));
		assert_int_equal(mapped(), 0);
		end_target(&is);
	}
}

UNIT_MAIN(NULL, NULL)
