/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_dm.c - device memory as an object (mem/dm.c): which calls are refused, what the device is asked, what a failure
 * leaves, and what a child of fork() has. What the memory holds is the device's matter. */
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/pz.h"
#include "dapl/core/mem/zero_based.h"
#include "test/unit/core/core_device.h"
#include "test/unit/core/core_dm.h"
#include "test/unit/core/core_queues.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

#define BAD_DM DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)
#define BAD_PRIVILEGE DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE)

enum { DM_SIZE = 4096, UNIT = 4, LENGTH = 64, LOCAL = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
	READ = DAT_MEM_PRIV_REMOTE_READ_FLAG, ATOMIC = DAT_IB_MEM_PRIV_REMOTE_ATOMIC };

static struct dapl_ia *ia, *other_ia;
static struct dapl_pz *pz;
static DAT_DM_HANDLE dm;	/* of LENGTH bytes, made by set_up */
static char host[LENGTH];
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT local;
static DAT_RMR_CONTEXT remote;
static bool no_memory;		/* for objects */
static struct dapl_object *last_object;	/* that was made */
static int zero_based_error;

extern const struct dapl_device_ops __real_dapl_device_ops;
extern struct dapl_device_ops __wrap_dapl_device_ops;
struct dapl_device_ops __wrap_dapl_device_ops;

EXTEND(dapl_object_new)
void *__wrap_dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *of, void (*end)(struct dapl_object *))
{
	return no_memory ? NULL : (last_object = __real_dapl_object_new(kind, size, of, end));
}

EXTEND(dapl_zero_based_set)
int __wrap_dapl_zero_based_set(struct dapl_pz *of)
{
	return zero_based_error ? zero_based_error : __real_dapl_zero_based_set(of);
}

/* --- set-up ---------------------------------------------------------------------------------------------- */

static DAT_RETURN alloc(DAT_VLEN length, DAT_UINT32 log2_alignment, DAT_DM_HANDLE *made)
{
	return dapl_dm_alloc((DAT_HANDLE)ia, length, log2_alignment, made);
}

UNIT_FIXTURE(set_up)
{
	DAT_PZ_HANDLE handle;

	core_device = (struct core_device){ .polling = NULL };
	__wrap_dapl_device_ops = __real_dapl_device_ops;
	core_dm_start(&__wrap_dapl_device_ops);
	no_memory = false;
	zero_based_error = 0;
	ia = core_ia_new();
	other_ia = core_ia_new();
	ia->attr.dm_size = other_ia->attr.dm_size = DM_SIZE;
	ia->attr.dm_unit = other_ia->attr.dm_unit = UNIT;
	ia->ia_attr.adapter_name[0] = 'X';
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &handle), DAT_SUCCESS);
	pz = (struct dapl_pz *)handle;
	assert_int_equal(alloc(LENGTH, 0, &dm), DAT_SUCCESS);
	core_dm.calls = 0;
}

/* No case leaves a region or another memory behind, or an object entered or in use. `dm` NULL: it was freed. */
UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.mrs, 0);
	assert_null(ia->objects[DAPL_LMR]);
	if (dm)
		assert_int_equal(dapl_dm_free(dm), DAT_SUCCESS);
	assert_int_equal(core_dm.dms, 0);
	assert_null(ia->objects[DAPL_DM]);
	if (pz)
		assert_int_equal(dapl_pz_free((DAT_PZ_HANDLE)pz), DAT_SUCCESS);
	assert_int_equal(ia->obj.calls, 0);
	assert_int_equal(ia->ending, 0);
	core_ia_free(other_ia);
	core_ia_free(ia);
}

static struct dapl_object *object(void) { return (struct dapl_object *)dm; }

/* No call is inside the memory or the PZ, and nothing uses them. */
static void assert_unused(void)
{
	assert_int_equal(object()->calls, 0);
	assert_int_equal(object()->refs, 1);
	assert_false(dapl_in_use(object()));
	assert_int_equal(pz->obj.calls, 0);
	assert_false(dapl_in_use(&pz->obj));
}

static DAT_RETURN create(void *of, DAT_VLEN offset, DAT_VLEN length, void *in, int priv)
{
	return dapl_dm_lmr_create((DAT_HANDLE)of, offset, length, (DAT_PZ_HANDLE)in, (DAT_MEM_PRIV_FLAGS)priv, &lmr,
				  &local, &remote);
}

static void free_lmr(void) { assert_int_equal(dapl_lmr_free(lmr), DAT_SUCCESS); }

/* --- allocation ------------------------------------------------------------------------------------------ */

UNIT_CASE(refused_allocation_does_not_reach_the_device)
{
	DAT_DM_HANDLE made = NULL;

	assert_int_equal(dapl_dm_alloc((DAT_HANDLE)pz, LENGTH, 0, &made), BAD_HANDLE(IA));
	assert_int_equal(dapl_dm_alloc(DAT_HANDLE_NULL, LENGTH, 0, &made), BAD_HANDLE(IA));
	assert_int_equal(alloc(0, 0, &made), BAD_PARAM(3));
	assert_int_equal(alloc(DM_SIZE + 1, 0, &made), BAD_PARAM(3));
	assert_int_equal(alloc(LENGTH, 13, &made), BAD_PARAM(4));
	assert_int_equal(alloc(LENGTH, 0, NULL), BAD_PARAM(5));
	ia->attr.dm_size = 0;
	assert_int_equal(alloc(LENGTH, 0, &made), NOT_SUPPORTED);
	ia->attr.dm_size = DM_SIZE;
	no_memory = true;
	assert_int_equal(alloc(LENGTH, 0, &made), NO_RESOURCE(MEMORY));
	assert_int_equal(core_dm.calls, 0);
	assert_null(made);
	assert_int_equal(dapl_object_count(ia, DAPL_DM), 1);
}

static void alloc_too_much(void *expected)
{
	DAT_DM_HANDLE made = NULL;

	assert_int_equal(alloc(DM_SIZE - 1, 0, &made), *(DAT_RETURN *)expected);
	assert_null(made);
	assert_int_equal(last_object->refs, 0);
}

/* The line names the memory of all allocations of the process. */
UNIT_CASE(exhausted_memory_is_reported)
{
	DAT_RETURN expected = NO_RESOURCE(MEMORY);
	DAT_DM_HANDLE second;
	const char *text;

	assert_int_equal(alloc(100, 0, &second), DAT_SUCCESS);
	core_dm.error = ENOMEM;
	text = printed_by(alloc_too_much, &expected);
	assert_int_equal(times_in(text, "X: cannot allocate 4095 bytes of device memory: this process uses 164 bytes, "
				  "the device gives out 4096"), 1);
	core_dm.error = EPERM;
	expected = BAD_PRIVILEGE;
	assert_int_equal(times_in(printed_by(alloc_too_much, &expected), "allocate"), 0);
	assert_int_equal(dapl_object_count(ia, DAPL_DM), 2);
	assert_int_equal(dapl_dm_free(second), DAT_SUCCESS);
}

static void assert_no_memory(void *handle)
{
	DAT_PVOID at;

	assert_int_equal(create(handle, 0, UNIT, pz, LOCAL), BAD_DM);
	assert_int_equal(dapl_dm_copy((DAT_HANDLE)handle, 0, host, UNIT, true), BAD_DM);
	assert_int_equal(dapl_dm_copy((DAT_HANDLE)handle, 0, host, UNIT, false), BAD_DM);
	assert_int_equal(dapl_dm_map((DAT_HANDLE)handle, &at), BAD_DM);
	assert_int_equal(dapl_dm_free((DAT_HANDLE)handle), BAD_DM);
	assert_int_equal(core_dm.calls, 0);
}

UNIT_CASE(freed_memory_cannot_be_used)
{
	assert_int_equal(dapl_dm_free(dm), DAT_SUCCESS);
	assert_int_equal(core_dm.dms, 0);
	assert_no_memory(dm);
	assert_int_equal(object()->calls, 0);
	assert_int_equal(object()->refs, 0);
	dm = NULL;
}

/* --- regions --------------------------------------------------------------------------------------------- */

UNIT_CASE(region_is_registered_as_asked_for)
{
	assert_int_equal(create(dm, 8, 16, pz, LOCAL | READ), DAT_SUCCESS);
	assert_ptr_equal(core_dm.last.dm, ((struct dapl_dm *)dm)->dm);
	assert_int_equal(core_dm.last.offset, 8);
	assert_int_equal(core_dm.last.length, 16);
	assert_ptr_equal(core_dm.last.pd, pz->pd);
	assert_int_equal(core_dm.last.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(remote, local | CORE_REMOTE);
	free_lmr();
	assert_unused();
}

static int access_where(bool windows, bool windows_of_dm)
{
	ia->attr.bind_access = windows;
	ia->attr.dm_windows = windows_of_dm;
	assert_int_equal(create(dm, 0, LENGTH, pz, LOCAL), DAT_SUCCESS);
	free_lmr();
	return core_dm.last.access;
}

UNIT_CASE(windows_are_bound_where_the_device_can)
{
	assert_int_equal(access_where(true, true), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_int_equal(access_where(true, false), IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(access_where(false, true), IBV_ACCESS_LOCAL_WRITE);
}

UNIT_CASE(range_of_a_region_is_within_the_memory)
{
	static const struct { DAT_VLEN offset, length; DAT_RETURN told; } rows[] = {
		{ LENGTH + UNIT, UNIT, BAD_PARAM(3) }, { UINT64_MAX - 3, UNIT, BAD_PARAM(3) },
		{ 2, UNIT, BAD_PARAM(3) },
		{ 0, 0, BAD_PARAM(4) }, { 0, 6, BAD_PARAM(4) }, { 0, LENGTH + UNIT, BAD_PARAM(4) },
		{ UNIT, LENGTH, BAD_PARAM(4) }, { LENGTH, UNIT, BAD_PARAM(4) }, { 8, UINT64_MAX - 3, BAD_PARAM(4) },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (create(dm, rows[i].offset, rows[i].length, pz, LOCAL) != rows[i].told)
			fail_msg("row %zu", i);
	assert_int_equal(core_dm.calls, 0);
	assert_int_equal(create(dm, LENGTH - UNIT, UNIT, pz, LOCAL), DAT_SUCCESS);
	free_lmr();
	assert_unused();
}

static void assert_not_created(DAT_RETURN expected)
{
	lmr = NULL;
	last_object = NULL;
	assert_int_equal(create(dm, 0, LENGTH, pz, LOCAL), expected);
	assert_null(lmr);
	assert_int_equal(last_object ? last_object->refs : 0, 0);
	assert_int_equal(core_device.mrs, 0);
	assert_null(ia->objects[DAPL_LMR]);
}

UNIT_CASE(refused_region_leaves_nothing)
{
	zero_based_error = ENOMEM;
	assert_not_created(NO_RESOURCE(MEMORY));
	zero_based_error = 0;
	no_memory = true;
	assert_not_created(NO_RESOURCE(MEMORY));
	no_memory = false;
	assert_int_equal(core_dm.calls, 0);
	core_dm.error = ENOMEM;
	assert_not_created(NO_RESOURCE(MEMORY_REGION));
	core_dm.error = EFAULT;
	assert_not_created(BAD_PRIVILEGE);
	assert_unused();
}

static void kill_memory(void) { assert_int_equal(dapl_object_kill_unused(object()), KILL_DONE); }
static void kill_pz(void) { assert_int_equal(dapl_object_kill_unused(&pz->obj), KILL_DONE); }

/* By another thread, whose free waits for the registration. */
UNIT_CASE(region_of_memory_that_is_freed_meanwhile_is_undone)
{
	core_dm.in_call = kill_memory;
	assert_not_created(BAD_DM);
	assert_int_equal(object()->calls, 0);
	assert_int_equal(object()->refs, 1);
	assert_false(dapl_in_use(&pz->obj));
	dapl_object_bury(object());
	dm = NULL;
}

UNIT_CASE(region_in_a_pz_that_is_freed_meanwhile_is_undone)
{
	core_dm.in_call = kill_pz;
	assert_not_created(BAD_HANDLE(PZ));
	assert_unused();
	dapl_object_bury(&pz->obj);
	pz = NULL;
}

UNIT_CASE(copy_is_the_devices)
{
	for (int to_device = 0; to_device < 2; to_device++) {
		assert_int_equal(dapl_dm_copy(dm, 8, host + 1, 12, to_device), DAT_SUCCESS);
		assert_ptr_equal(core_dm.last.dm, ((struct dapl_dm *)dm)->dm);
		assert_int_equal(core_dm.last.offset, 8);
		assert_ptr_equal(core_dm.last.host, host + 1);
		assert_int_equal(core_dm.last.length, 12);
		assert_int_equal(core_dm.last.to_device, to_device);
	}
	assert_int_equal(dapl_dm_copy(dm, 0, host, LENGTH, true), DAT_SUCCESS);
	assert_int_equal(dapl_dm_copy(dm, LENGTH, host, 0, true), DAT_SUCCESS);	/* of nothing */
	core_dm.error = ENOMEM;
	assert_int_equal(dapl_dm_copy(dm, 0, host, UNIT, false), NO_RESOURCE(MEMORY));
	assert_unused();
}

UNIT_CASE(memory_is_mapped_where_the_device_can)
{
	DAT_PVOID at = NULL;

	assert_int_equal(dapl_dm_map(dm, NULL), BAD_PARAM(3));
	assert_int_equal(core_dm.calls, 0);
	core_dm.error = EPERM;
	assert_int_equal(dapl_dm_map(dm, &at), BAD_PRIVILEGE);
	assert_null(at);
	core_dm.error = 0;
	assert_int_equal(dapl_dm_map(dm, &at), DAT_SUCCESS);
	assert_ptr_equal(core_dm.last.dm, ((struct dapl_dm *)dm)->dm);
	assert_ptr_equal(at, &core_dm.mapped);
	__wrap_dapl_device_ops.map_dm = NULL;
	assert_int_equal(dapl_dm_map(dm, &at), NOT_SUPPORTED);
	assert_unused();
}

UNIT_MAIN(NULL, NULL)
