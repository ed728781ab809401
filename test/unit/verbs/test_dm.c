/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_dm.c - memory of a device: what the device must have for it, what new memory holds, and what is left when a step
 * fails. The driver is replaced here: its memory is an array. */
#include "dapl/verbs/dm.h"
#include "dapl/verbs/hw.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { MEMORY = 3 * 4096 };		/* bytes; clearing takes more than one copy */

static struct verbs_context verbs;
static struct dapl_device dev;
static struct ibv_pd pd = { .context = &verbs.context };
static struct ibv_dm dm;
static struct ibv_mr mr;

/* The driver, and the arguments of its last call. */
static char memory[MEMORY];
static int alive;			/* allocations */
static int refusal;			/* of the step that fails; 0 sets no errno */
static uint64_t max_dm_size;
static struct ibv_alloc_dm_attr asked;
static uint64_t asked_offset, asked_length;
static unsigned asked_access;

static int copy_to(struct ibv_dm *to, uint64_t offset, const void *from, size_t length)
{
	assert_ptr_equal(to, &dm);
	assert_true(offset <= MEMORY && length <= MEMORY - offset);
	memcpy(memory + offset, from, length);
	return step("write") ? refusal : 0;
}

static int copy_from(void *to, struct ibv_dm *from, uint64_t offset, size_t length)
{
	assert_ptr_equal(from, &dm);
	assert_true(offset <= MEMORY && length <= MEMORY - offset);
	memcpy(to, memory + offset, length);
	return step("read") ? refusal : 0;
}

static struct ibv_dm *alloc_dm(struct ibv_context *of, struct ibv_alloc_dm_attr *attr)
{
	assert_ptr_equal(of, &verbs.context);
	asked = *attr;
	if (step("alloc")) {
		errno = refusal;
		return NULL;
	}
	alive++;
	return &dm;
}

static int free_dm(struct ibv_dm *of)
{
	assert_ptr_equal(of, &dm);
	if (step("free"))
		return refusal;
	alive--;
	return 0;
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *in, struct ibv_dm *of, uint64_t offset, size_t length, unsigned access)
{
	assert_ptr_equal(in, &pd);
	assert_ptr_equal(of, &dm);
	asked_offset = offset;
	asked_length = length;
	asked_access = access;
	if (step("reg")) {
		errno = refusal;
		return NULL;
	}
	return &mr;
}

static int query_device(struct ibv_context *of, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	assert_null(input);
	memset(attr, 0, size);
	attr->max_dm_size = max_dm_size;
	return step("query") ? refusal : 0;
}

UNIT_FIXTURE(begin)
{
	verbs = (struct verbs_context){ .sz = sizeof verbs, .alloc_dm = alloc_dm, .free_dm = free_dm,
		.reg_dm_mr = reg_dm_mr, .query_device_ex = query_device,
		.context = { .abi_compat = __VERBS_ABI_IS_EXTENDED } };
	dm = (struct ibv_dm){ .context = &verbs.context, .memcpy_to_dm = copy_to, .memcpy_from_dm = copy_from };
	dev = (struct dapl_device){ .verbs = &verbs.context };
	memset(memory, 0xee, sizeof memory);
	memset(&asked, 0, sizeof asked);
	alive = 0;
	refusal = ENOBUFS;
	max_dm_size = MEMORY;
	errno = 0;
	forget_steps();
}

/* --- what the device has ------------------------------------------------------------------------------ */

static void device_has(uint64_t size)
{
	dev.attr.dm_size = dev.attr.dm_unit = 0;
	hw_dm_probe(&dev);
	assert_int_equal(dev.attr.dm_size, size);
	assert_int_equal(dev.attr.dm_unit, size ? 4 : 0);
	assert_int_equal(alive, 0);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(size_is_in_whole_units)
{
	static const struct { uint64_t driver, device; } cases[] = {
		{ 0, 0 }, { 3, 0 }, { 4, 4 }, { 7, 4 }, { 4096, 4096 },
		{ (UINT64_C(1) << 40) + 5, (UINT64_C(1) << 40) + 4 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		max_dm_size = cases[i].driver;
		device_has(cases[i].device);
	}
}

TEST(driver_that_tells_nothing_has_none)
{
	failing = "query";
	device_has(0);
	steps_are("query");
}

TEST(probe_gives_its_memory_back)
{
	device_has(MEMORY);		/* and nothing is left of it */
	assert_int_equal(asked.length, 4);
}

TEST(driver_that_cannot_copy_has_none)
{
	dm.memcpy_to_dm = NULL;
	device_has(0);
	dm.memcpy_to_dm = copy_to;
	dm.memcpy_from_dm = NULL;
	device_has(0);
}

TEST(memory_that_is_in_use_is_memory)
{
	static const struct { int err; bool usable; } cases[] = {
		{ ENOMEM, true }, { ENOSPC, true }, { EOPNOTSUPP, false }, { EPERM, false }, { EINVAL, false },
	};

	failing = "alloc";
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		refusal = cases[i].err;
		device_has(cases[i].usable ? MEMORY : 0);
	}
}

/* --- allocation --------------------------------------------------------------------------------------- */

static void is_clear(size_t length)
{
	for (size_t i = 0; i < MEMORY; i++)
		assert_int_equal((unsigned char)memory[i], i < length ? 0 : 0xee);
}

TEST(new_memory_is_zeroed_to_its_end)
{
	static const struct { uint64_t length, allocated; } cases[] = {
		{ 1, 4 }, { 4, 4 }, { 5, 8 }, { 4096, 4096 }, { 4097, 4100 }, { 8190, 8192 }, { MEMORY, MEMORY },
	};
	struct ibv_dm *made;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(state);
		assert_int_equal(hw_dm_alloc(&dev, cases[i].length, 0, &made), 0);
		assert_ptr_equal(made, &dm);
		assert_int_equal(asked.length, cases[i].allocated);
		is_clear(cases[i].allocated);
		assert_int_equal(hw_dm_free(made), 0);
		assert_int_equal(alive, 0);
	}
}

TEST(driver_is_asked_for_the_alignment)
{
	struct ibv_dm *made;

	assert_int_equal(hw_dm_alloc(&dev, 64, 12, &made), 0);
	assert_int_equal(asked.log_align_req, 12);
	assert_int_equal(asked.comp_mask, 0);
}

TEST(refused_memory_gives_the_reason)
{
	struct ibv_dm *made;

	failing = "alloc";
	assert_int_equal(hw_dm_alloc(&dev, 64, 0, &made), ENOBUFS);
	steps_are("alloc");
	refusal = 0;
	assert_int_equal(hw_dm_alloc(&dev, 64, 0, &made), EIO);
	verbs.alloc_dm = NULL;
	assert_int_equal(hw_dm_alloc(&dev, 64, 0, &made), EOPNOTSUPP);
}

TEST(memory_that_cannot_be_copied_is_freed)
{
	struct ibv_dm *made;

	dm.memcpy_to_dm = NULL;
	assert_int_equal(hw_dm_alloc(&dev, 64, 0, &made), EOPNOTSUPP);
	assert_int_equal(alive, 0);
	dm.memcpy_to_dm = copy_to;
	dm.memcpy_from_dm = NULL;
	assert_int_equal(hw_dm_alloc(&dev, 64, 0, &made), EOPNOTSUPP);
	assert_int_equal(alive, 0);
}

TEST(memory_that_cannot_be_cleared_is_freed)
{
	struct ibv_dm *made;

	failing = "write";
	assert_int_equal(hw_dm_alloc(&dev, MEMORY, 0, &made), ENOBUFS);
	assert_int_equal(alive, 0);
	refusal = -ENOSPC;
	assert_int_equal(hw_dm_alloc(&dev, MEMORY, 0, &made), ENOSPC);
	assert_int_equal(alive, 0);
}

TEST(free_that_fails_gives_an_errno)
{
	static const struct { int driver, err; } cases[] = { { ENOBUFS, ENOBUFS }, { -EBUSY, EBUSY }, { -1, ENOBUFS } };

	failing = "free";
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		refusal = cases[i].driver;
		assert_int_equal(hw_dm_free(&dm), cases[i].err);
	}
}

/* --- regions and copies ------------------------------------------------------------------------------- */

TEST(region_counts_from_zero)
{
	struct ibv_mr *made;

	assert_int_equal(hw_dm_reg(&pd, &dm, 128, 64, IBV_ACCESS_REMOTE_READ, &made), 0);
	assert_ptr_equal(made, &mr);
	assert_int_equal(asked_offset, 128);
	assert_int_equal(asked_length, 64);
	assert_int_equal(asked_access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
}

TEST(refused_region_gives_the_reason)
{
	struct ibv_mr *made;

	failing = "reg";
	assert_int_equal(hw_dm_reg(&pd, &dm, 0, 64, 0, &made), ENOBUFS);
	assert_null(made);
	refusal = 0;
	assert_int_equal(hw_dm_reg(&pd, &dm, 0, 64, 0, &made), EIO);
}

TEST(copies_go_both_ways)
{
	char to[8] = "abcdefg", from[8] = "";

	assert_int_equal(hw_dm_copy(&dm, 16, to, sizeof to, true), 0);
	steps_are("write");
	assert_memory_equal(memory + 16, to, sizeof to);
	assert_int_equal((unsigned char)memory[15], 0xee);
	assert_int_equal((unsigned char)memory[24], 0xee);
	assert_int_equal(hw_dm_copy(&dm, 16, from, sizeof from, false), 0);
	steps_are("read");
	assert_string_equal(from, "abcdefg");
}

/* A driver may refuse a length of 0. */
TEST(driver_is_not_asked_to_copy_nothing)
{
	assert_int_equal(hw_dm_copy(&dm, 0, NULL, 0, true), 0);
	assert_int_equal(hw_dm_copy(&dm, 0, NULL, 0, false), 0);
	steps_are("");
}

TEST(copy_that_fails_gives_an_errno)
{
	char host[8] = "";

	failing = "write";
	assert_int_equal(hw_dm_copy(&dm, 0, host, sizeof host, true), ENOBUFS);
	failing = "read";
	refusal = -EINVAL;
	assert_int_equal(hw_dm_copy(&dm, 0, host, sizeof host, false), EINVAL);
}

UNIT_MAIN(NULL, NULL)
