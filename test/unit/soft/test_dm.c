/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_dm.c - device memory of the software device: how much there is, that no data passes from
 * one owner to the next, and that peers of this host reach it while its owner is stopped. */
#include "test/unit/soft/ends.h"
#include "dapl/soft/obj/mem.h"
#include "test/unit/unit.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	PAGE = 4096, SIZE = 16 * PAGE,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC,
};

static struct ibv_dm *some_dm(const struct end *e, uint64_t length)
{
	struct ibv_dm *dm;

	OK(ops->alloc_dm(e->dev, length, 12, &dm));
	return dm;
}

static char *address(struct ibv_dm *dm)
{
	void *at;

	OK(ops->map_dm(dm, &at));
	return at;
}

static struct ibv_mr *region(const struct end *e, struct ibv_dm *dm, uint64_t offset, uint64_t length)
{
	struct ibv_mr *mr;

	OK(ops->reg_dm(e->pd, dm, offset, length, ALL, &mr));
	return mr;
}

static int file_of(const struct ibv_mr *mr) { return ((const struct soft_mr *)mr)->region.file; }

/* --- how much there is ---------------------------------------------------------------------- */

static void open_with(const char *kib)
{
	if (kib)
		setenv("DAPL_SOFT_DM", kib, 1);
	open_end(&ends[0]);
	unsetenv("DAPL_SOFT_DM");
}

static uint64_t told_size(void)
{
	struct dapl_device_attr attr;

	OK(ops->query(ends[0].dev, &attr));
	assert_int_equal(attr.dm_unit, 1);
	return attr.dm_size;
}

UNIT_TEST(default_size_is_sixteen_mib)
{
	open_with(NULL);
	assert_int_equal(told_size(), 16 << 20);
	close_end(&ends[0]);
}

UNIT_TEST(dapl_soft_dm_0_is_none)
{
	struct ibv_dm *dm;

	open_with("0");
	assert_int_equal(told_size(), 0);
	assert_int_equal(ops->alloc_dm(ends[0].dev, 1, 0, &dm), ENOMEM);
	close_end(&ends[0]);
}

/* Each allocation takes whole pages, and gives them back. */
UNIT_TEST(exhausted_memory_can_be_had_again)
{
	struct ibv_dm *dm[4], *more;

	open_with("16");
	assert_int_equal(told_size(), 4 * PAGE);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 4; i++)
			dm[i] = some_dm(&ends[0], i + 1);
		assert_int_equal(ops->alloc_dm(ends[0].dev, 1, 0, &more), ENOMEM);
		for (int i = 0; i < 4; i++)
			OK(ops->free_dm(dm[i]));
	}
	dm[0] = some_dm(&ends[0], 4 * PAGE);
	OK(ops->free_dm(dm[0]));
	close_end(&ends[0]);
}

/* --- files --------------------------------------------------------------------------------- */

UNIT_TEST(memory_is_a_sealed_file_of_its_own)
{
	struct ibv_dm *dm[2];
	struct ibv_mr *mr[2];
	struct stat st[2];

	open_with(NULL);
	for (int i = 0; i < 2; i++) {
		dm[i] = some_dm(&ends[0], SIZE);
		mr[i] = region(&ends[0], dm[i], 0, SIZE);
		OK(fstat(file_of(mr[i]), &st[i]));
		assert_int_equal(st[i].st_size, SIZE);
		assert_int_equal(ftruncate(file_of(mr[i]), 0), -1);
		assert_int_equal(ftruncate(file_of(mr[i]), 2 * SIZE), -1);
		assert_int_equal((uintptr_t)address(dm[i]) % PAGE, 0);
	}
	assert_int_not_equal(st[0].st_ino, st[1].st_ino);
	for (int i = 0; i < 2; i++) {
		OK(ops->dereg_mr(mr[i]));
		OK(ops->free_dm(dm[i]));
	}
	close_end(&ends[0]);
}

/* A peer keeps its mapping after the owner freed the memory, and the next owner is given memory. */
UNIT_TEST(old_mapping_does_not_show_new_data)
{
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	char *old;

	open_with("64");
	dm = some_dm(&ends[0], SIZE);
	mr = region(&ends[0], dm, 0, SIZE);
	old = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file_of(mr), 0);
	assert_true(old != MAP_FAILED);
	memset(address(dm), 1, SIZE);
	assert_int_equal(old[SIZE - 1], 1);
	OK(ops->dereg_mr(mr));
	OK(ops->free_dm(dm));
	dm = some_dm(&ends[0], SIZE);
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(address(dm)[i], 0);
	memset(address(dm), 2, SIZE);
	assert_int_equal(old[0], 1);
	memset(old, 3, SIZE);
	assert_int_equal(address(dm)[0], 2);
	munmap(old, SIZE);
	OK(ops->free_dm(dm));
	close_end(&ends[0]);
}

/* --- peers ----------------------------------------------------------------------------------- */

static unsigned mapped(void) { return ends[0].conn->shm->mapped; }

static void child_with_device_memory(int to)
{
	struct ibv_dm *dm;

	open_end(&ends[1]);
	DIE_UNLESS(!ops->alloc_dm(ends[1].dev, SIZE, 0, &dm));
	DIE_UNLESS(!ops->reg_dm(ends[1].pd, dm, PAGE, SIZE - PAGE, ALL, &ends[1].mr));
	be_target(to, NULL, ends[1].mr);
}

static void transfer(enum ibv_wr_opcode opcode, uint32_t length, const struct target *is)
{
	post(&ends[0], opcode, length, is->memory.address + 64, is->memory.rkey);
	done(&ends[0]);
}

/* Until the target has published its region, requests take another way. */
static void wait_until_mapped(const struct target *is)
{
	time_t end = now() + LIMIT_S;

	while (!mapped()) {
		transfer(IBV_WR_RDMA_WRITE, 8, is);
		assert_true(now() <= end);
	}
}

/* Written, counted and read while the process that owns the memory cannot run. */
UNIT_TEST(stopped_owner_is_not_needed)
{
	static const uint32_t sizes[] = { 1, 8, 64, 97, 4096, SIZE - PAGE - 64 };
	struct target is;

	if (!cma_works())
		skip();
	is = fork_target(child_with_device_memory);
	wait_until_mapped(&is);
	kill(is.pid, SIGSTOP);
	waitpid(is.pid, NULL, WUNTRACED);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned before = mapped();

		pattern(ends[0].buf, sizes[i], i);
		transfer(IBV_WR_RDMA_WRITE, sizes[i], &is);
		memset(ends[0].buf, 0, sizes[i]);
		transfer(IBV_WR_RDMA_READ, sizes[i], &is);
		assert_true(has_pattern(ends[0].buf, sizes[i], i));
		assert_int_equal(mapped(), before + 2);
	}
	memset(ends[0].buf, 0, 8);
	transfer(IBV_WR_RDMA_WRITE, 8, &is);
	for (uint64_t i = 0; i < 10; i++) {
		transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, &is);
		assert_int_equal(*(uint64_t *)ends[0].buf, 5 * i);	/* post adds 5 */
	}
	kill(is.pid, SIGKILL);
	waitpid(is.pid, NULL, 0);
	wait_up(&ends[0], BROKEN);
	close_end(&ends[0]);
}

UNIT_MAIN(NULL, NULL)
