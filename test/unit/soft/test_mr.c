/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mr.c - which registrations are refused, and which memory peers may map, too. The pages, the file and the table
 * of STags are replaced here. */
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/verbs/mr.h"
#include "test/unit/unit.h"

enum { LENGTH = 2 * HUGE_PAGE, FILE_NUMBER = 33, OFFSET = 8192 };

static struct dapl_device dev;
static struct ibv_pd pd = { .context = &dev.verbs };
static char memory[LENGTH];
static struct ibv_mr mr;		/* what a registration returns */
static int populate_err, add_err;
static int populated;			/* -1: not; else whether for writing */
static bool advised;			/* huge pages, before the region was populated */
static bool added;
static int file;			/* of the region that was added */
static uint64_t offset;

REPLACE(soft_populate, madvise, rmem_map_file, soft_mr_add)

int __wrap_soft_populate(const void *at, size_t length, bool writable)
{
	assert_ptr_equal(at, memory);
	assert_int_equal(length, LENGTH);
	populated = writable;
	return populate_err;
}

int __wrap_madvise(void *at, size_t length, int advice)
{
	assert_true((char *)at >= memory && (char *)at + length <= memory + LENGTH);
	assert_int_equal(advice, MADV_HUGEPAGE);
	assert_int_equal(populated, -1);
	advised = true;
	return 0;
}

int __wrap_rmem_map_file(const void *at, size_t length, uint64_t *in_file)
{
	assert_ptr_equal(at, memory);
	assert_int_equal(length, LENGTH);
	*in_file = OFFSET;
	return FILE_NUMBER;
}

int __wrap_soft_mr_add(struct ibv_pd *in, const struct soft_memory *is, int access, struct ibv_mr **made)
{
	assert_ptr_equal(in, &pd);
	assert_ptr_equal(is->at, memory);
	assert_int_equal(is->length, LENGTH);
	added = true;
	file = is->file;
	offset = is->offset;
	*made = &mr;
	return add_err;
}

UNIT_FIXTURE(set_up)
{
	dev.want_map = true;
	populate_err = add_err = 0;
	populated = -1;
	added = advised = false;
}

static int reg(int access, const void *name)
{
	struct ibv_mr *made = NULL;
	int err;

	populated = -1;
	err = soft_mr_reg(&pd, memory, LENGTH, access, name, &made);

	if (!err)
		assert_ptr_equal(made, &mr);
	return err;
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

CASE(peers_write_only_where_the_consumer_may)
{
	static const int rights[] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(reg(rights[i], NULL), EINVAL);
		assert_int_equal(reg(rights[i] | IBV_ACCESS_REMOTE_READ, NULL), EINVAL);
		assert_int_equal(populated, -1);
		assert_false(added);
		assert_int_equal(reg(rights[i] | IBV_ACCESS_LOCAL_WRITE, NULL), 0);
		set_up(state);
	}
	assert_int_equal(reg(IBV_ACCESS_REMOTE_READ, NULL), 0);
}

CASE(pages_are_there_before_the_region)
{
	assert_int_equal(reg(IBV_ACCESS_LOCAL_WRITE, NULL), 0);
	assert_int_equal(populated, true);
	assert_int_equal(reg(IBV_ACCESS_REMOTE_READ, NULL), 0);
	assert_int_equal(populated, false);	/* the memory may be constant */
	added = false;
	populate_err = EFAULT;
	assert_int_equal(reg(IBV_ACCESS_LOCAL_WRITE, NULL), EFAULT);
	assert_false(added);
}

CASE(private_memory_gets_huge_pages)
{
	assert_int_equal(reg(IBV_ACCESS_LOCAL_WRITE, NULL), 0);
	assert_true(advised);
	set_up(state);
	assert_int_equal(reg(IBV_ACCESS_LOCAL_WRITE, "name"), 0);
	assert_false(advised);
}

CASE(region_that_cannot_be_added_fails)
{
	add_err = ENOMEM;
	assert_int_equal(reg(0, NULL), ENOMEM);
}

CASE(named_memory_is_a_file_for_peers)
{
	static const int rights[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE,
				      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE };

	for (int i = 0; i < 3; i++) {
		file = -1;
		assert_int_equal(reg(rights[i], "name"), 0);
		assert_int_equal(file, FILE_NUMBER);
		assert_int_equal(offset, OFFSET);
	}
}

CASE(other_memory_is_no_file)
{
	assert_int_equal(reg(IBV_ACCESS_REMOTE_READ, NULL), 0);
	assert_int_equal(file, -1);
	assert_int_equal(reg(IBV_ACCESS_LOCAL_WRITE, "name"), 0);
	assert_int_equal(file, -1);
	dev.want_map = false;
	assert_int_equal(reg(IBV_ACCESS_REMOTE_READ, "name"), 0);
	assert_int_equal(file, -1);
}

UNIT_MAIN(NULL, NULL)
