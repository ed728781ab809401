/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mem.c - which memory an STag of a peer names: keys that are guessed, nearly right, stale, of another
 * PD, and ranges outside their region are all refused; keys of many regions are found. With DAPL_SOFT_GUARD, memory
 * that was unmapped or protected is refused. DAPL_TEST_KEYS sets the number of guesses, DAPL_TEST_SEED repeats them. */
#include "test/unit/printed.h"
#include "test/unit/soft/ends.h"
#include "common/log.h"
#include "dapl/soft/obj/mem.h"
#include "test/random.h"
#include "test/unit/unit.h"
#include "test/variables.h"

enum { ALL = IBV_ACCESS_LOCAL_WRITE | SOFT_REMOTE_ACCESS };
enum { TABLE = 256 * sizeof(void *) };	/* bytes of the first larger STag table; a region needs less */
enum { REGIONS = 700 };			/* make the table grow twice */

static bool no_tables;			/* there is no memory for one */
static int entries_left = -1;		/* of the next table, until there is no memory; -1: no end */
static bool filling;			/* the last calloc() was of a table: the next blocks are its entries */
static struct ibv_mr *regions[REGIONS];

EXTEND(calloc)

UNIT_FAIL_MALLOC(filling && entries_left >= 0 && !entries_left--)

void *__wrap_calloc(size_t n, size_t size)
{
	filling = n * size >= TABLE;
	return filling && no_tables ? NULL : __real_calloc(n, size);
}

static enum soft_check look(uint32_t stag, uint64_t addr, uint64_t length, int access)
{
	struct dapl_device *dev = ends[1].dev;
	struct soft_region *held;
	enum soft_check found;
	struct soft_qp *qp;
	char *at;

	dapl_mutex_lock(&dev->qps_lock);
	qp = soft_qp_by_number(dev, ends[1].qp->qp_num);
	dapl_mutex_unlock(&dev->qps_lock);
	dapl_mutex_lock(&qp->lock);
	found = soft_mem_remote(qp, stag, addr, length, access, &at, &held);
	if (found == SOFT_FINE)
		soft_mem_done(held);
	dapl_mutex_unlock(&qp->lock);
	return found;
}

UNIT_FIXTURE(begin) { open_two(0); }

UNIT_FIXTURE(end)
{
	no_tables = filling = false;
	entries_left = -1;
	close_two();
}

#define T(name) UNIT_TEST_WITH(name, begin, end)
#define GUARDED(name) UNIT_TEST_WITH(name, begin_guarded, end_guarded)

T(guessed_keys_name_nothing)
{
	uint64_t seed = variable_seed("DAPL_TEST_SEED"), random = seed * 2 + 1;
	uint64_t guesses = variable_number("DAPL_TEST_KEYS", 10000000);

	for (uint64_t i = 0; i < guesses; i++) {
		uint32_t stag = (uint32_t)(random_next(&random) >> 16);

		if (look(stag, (uintptr_t)ends[1].buf, 8, IBV_ACCESS_REMOTE_READ) == SOFT_FINE &&
		    stag != ends[1].mr->rkey)
			fail_msg("seed %llu: the key 0x%x names memory; the only one is 0x%x",
				 (unsigned long long)seed, stag, ends[1].mr->rkey);
	}
}

T(nearly_right_keys_name_nothing)
{
	uint32_t real = ends[1].mr->rkey;

	for (int bit = 0; bit < 32; bit++)
		assert_int_equal(
			look(real ^ 1u << bit, (uintptr_t)ends[1].buf, 8, IBV_ACCESS_REMOTE_READ),
			SOFT_BAD_STAG);
	for (uint32_t low = 1; low < 256; low++)
		assert_int_equal(
			look(real ^ low, (uintptr_t)ends[1].buf, 8, IBV_ACCESS_REMOTE_READ),
			SOFT_BAD_STAG);
}

T(stale_key_names_nothing)
{
	struct ibv_mr *mr;
	uint32_t stag;

	for (int i = 0; i < 1000; i++) {
		OK(ops->reg_mr(ends[1].pd, ends[1].buf, 4096, ALL, NULL, &mr));
		stag = mr->rkey;
		assert_int_equal(look(stag, (uintptr_t)ends[1].buf, 4096, IBV_ACCESS_REMOTE_READ),
				 SOFT_FINE);
		OK(ops->dereg_mr(mr));
		assert_int_equal(look(stag, (uintptr_t)ends[1].buf, 4096, IBV_ACCESS_REMOTE_READ),
				 SOFT_BAD_STAG);
	}
}

/* Registers them all and finds each. After they are freed, finds none. */
static void assert_many_are_found(void)
{
	uint64_t at = (uintptr_t)ends[1].buf;
	uint32_t stags[REGIONS];

	for (int i = 0; i < REGIONS; i++)
		OK(ops->reg_mr(ends[1].pd, ends[1].buf + i, 8, ALL, NULL, &regions[i]));
	for (int i = 0; i < REGIONS; i++) {
		stags[i] = regions[i]->rkey;
		assert_int_equal(look(stags[i], at + i, 8, IBV_ACCESS_REMOTE_READ), SOFT_FINE);
		assert_int_equal(look(stags[i], at + i + 1, 8, IBV_ACCESS_REMOTE_READ), SOFT_BOUNDS);
	}
	for (int i = 0; i < REGIONS; i++)
		OK(ops->dereg_mr(regions[i]));
	for (int i = 0; i < REGIONS; i++)
		assert_int_equal(look(stags[i], at + i, 8, IBV_ACCESS_REMOTE_READ), SOFT_BAD_STAG);
}

T(keys_are_found_though_their_table_cannot_grow)
{
	no_tables = true;
	assert_many_are_found();
}

T(keys_are_found_though_a_copy_of_their_table_fails)
{
	entries_left = 50;
	assert_many_are_found();
	assert_int_equal(entries_left, -1);
}

T(key_of_another_pd_is_refused)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	OK(ops->alloc_pd(ends[1].dev, &pd));
	OK(ops->reg_mr(pd, ends[1].buf, 4096, ALL, NULL, &mr));
	assert_int_not_equal(look(mr->rkey, (uintptr_t)ends[1].buf, 8, IBV_ACCESS_REMOTE_READ),
			     SOFT_FINE);
	OK(ops->dereg_mr(mr));
	OK(ops->dealloc_pd(pd));
}

T(ranges_outside_the_region_are_refused)
{
	uint64_t first = (uintptr_t)ends[1].buf + 4096, length = 4096;
	struct ibv_mr *mr;
	const struct {
		uint64_t addr, length;
	} outside[] = {
		{ first - 1, 1 },
		{ first - 1, 2 },
		{ first + length, 1 },
		{ first, length + 1 },
		{ first + length - 1, 2 },
		{ first, UINT64_MAX },
		{ first + 8, UINT64_MAX - 4 },
		{ 0, 1 },
		{ UINT64_MAX, 1 },
		{ UINT64_MAX, 2 },
		{ UINT64_MAX - first, first + 8 },
	};

	OK(ops->reg_mr(ends[1].pd, (void *)(uintptr_t)first, length, ALL, NULL, &mr));
	assert_int_equal(look(mr->rkey, first, length, IBV_ACCESS_REMOTE_READ), SOFT_FINE);
	assert_int_equal(look(mr->rkey, first + length - 1, 1, IBV_ACCESS_REMOTE_READ), SOFT_FINE);
	for (unsigned i = 0; i < sizeof outside / sizeof *outside; i++)
		assert_int_not_equal(
			look(mr->rkey, outside[i].addr, outside[i].length, IBV_ACCESS_REMOTE_READ),
			SOFT_FINE);
	OK(ops->dereg_mr(mr));
}

T(rights_that_the_region_lacks_are_refused)
{
	static const int rights[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
				      IBV_ACCESS_REMOTE_ATOMIC };

	for (int has = 0; has < 8; has++) {
		int access = IBV_ACCESS_LOCAL_WRITE;
		struct ibv_mr *mr;

		for (int i = 0; i < 3; i++)
			access |= has >> i & 1 ? rights[i] : 0;
		OK(ops->reg_mr(ends[1].pd, ends[1].buf, 4096, access, NULL, &mr));
		for (int i = 0; i < 3; i++)
			assert_int_equal(look(mr->rkey, (uintptr_t)ends[1].buf, 8, rights[i]) ==
						 SOFT_FINE,
					 has >> i & 1);
		OK(ops->dereg_mr(mr));
	}
}

/* --- DAPL_SOFT_GUARD -------------------------------------------------------------------------- */

enum { MAPPED = 2 * 4096 };

static struct ibv_mr *mapped_mr;
static char *mapped;

static int begin_guarded(void **state)
{
	setenv("DAPL_SOFT_GUARD", "1", 1);
	begin(state);
	unsetenv("DAPL_SOFT_GUARD");
	log_mask = 3;
	mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mapped == MAP_FAILED || ops->reg_mr(ends[1].pd, mapped, MAPPED, ALL, NULL, &mapped_mr);
}

static int end_guarded(void **state)
{
	OK(ops->dereg_mr(mapped_mr));
	munmap(mapped, MAPPED);
	return end(state);
}

struct outcome {
	enum soft_check read, write;	/* of a peer */
	int send, receive;		/* pieces of the segment, or -1 */
	bool place;			/* a peer may write what it has sent in pieces */
};

static void try_all(void *arg)
{
	struct ibv_sge sge = { (uintptr_t)mapped, MAPPED, mapped_mr->lkey };
	uint64_t at = (uintptr_t)mapped;
	struct outcome *is = arg;
	struct iovec iov[2];

	is->read = look(mapped_mr->rkey, at, MAPPED, IBV_ACCESS_REMOTE_READ);
	is->write = look(mapped_mr->rkey, at, MAPPED, IBV_ACCESS_REMOTE_WRITE);
	is->send = soft_mem_slice(ends[1].dev, ends[1].pd, &sge, 1, 100, 200, 0, iov, 2);
	is->receive = soft_mem_slice(ends[1].dev, ends[1].pd, &sge, 1, 100, 200, IBV_ACCESS_LOCAL_WRITE, iov, 2);
	is->place = soft_mem_guard(ends[1].dev, mapped_mr->rkey, mapped, MAPPED);
}

/* A line for each refusal: of reads and of writes. */
static void expect_lines(const char *text, unsigned read, unsigned written)
{
	char lmr[64];

	snprintf(lmr, sizeof lmr, ", of the LMR with context 0x%x, can no longer be ", mapped_mr->rkey);
	assert_int_equal(times_in(text, lmr), read + written);
	assert_int_equal(times_in(text, " can no longer be read: unmapped or protected"), read);
	assert_int_equal(times_in(text, " can no longer be written: unmapped or protected"), written);
}

/* What a peer may do by `read` and `write`, the program's own requests may do, too. */
static void expect_outcome(const struct outcome *is, enum soft_check read, enum soft_check write)
{
	assert_int_equal(is->read, read);
	assert_int_equal(is->write, write);
	assert_int_equal(is->send, read == SOFT_FINE ? 1 : -1);
	assert_int_equal(is->receive, write == SOFT_FINE ? 1 : -1);
	assert_int_equal(is->place, write == SOFT_FINE);
}

GUARDED(guarded_memory_is_as_it_is_mapped)
{
	struct outcome is;

	assert_string_equal(printed_by(try_all, &is), "");
	expect_outcome(&is, SOFT_FINE, SOFT_FINE);
	OK(mprotect(mapped, MAPPED, PROT_READ));
	expect_lines(printed_by(try_all, &is), 0, 3);
	expect_outcome(&is, SOFT_FINE, SOFT_ACCESS);
	munmap(mapped, MAPPED);
	expect_lines(printed_by(try_all, &is), 2, 3);
	expect_outcome(&is, SOFT_ACCESS, SOFT_ACCESS);
}

/* Without the guard an access costs no system call. */
GUARDED(memory_is_not_checked_without_the_guard)
{
	struct outcome is;

	ends[1].dev->detours = 0;
	munmap(mapped, MAPPED);
	assert_string_equal(printed_by(try_all, &is), "");
	expect_outcome(&is, SOFT_FINE, SOFT_FINE);
}

UNIT_MAIN(NULL, NULL)
