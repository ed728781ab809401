/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lmr.c - memory regions: what is registered with the device, what is refused before, and how a region is found
 * by its contexts (lmr.c). */
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/pz.h"
#include "dapl/core/mem/rmr.h"
#include "dapl/core/mem/zero_based.h"
#include "test/unit/core/core_device.h"
#include "test/unit/core/core_queues.h"
#include "test/unit/unit.h"

enum { SIZE = 256, LOCAL = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
	READ = DAT_MEM_PRIV_REMOTE_READ_FLAG, WRITE = DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
	ATOMIC = DAT_IB_MEM_PRIV_REMOTE_ATOMIC };

static struct dapl_ia *ia, *other_ia;
static struct dapl_pz *pz, *other_pz;
static char memory[SIZE];
static DAT_LMR_HANDLE handle;
static DAT_LMR_CONTEXT local;
static DAT_RMR_CONTEXT remote;
static DAT_VLEN size;
static DAT_VADDR address;
/* The arguments of the last call of the device. */
static const void *asked_addr, *asked_name;
static size_t asked_length;
static int asked_access, registrations, error;

static int note_registration(const void *addr, size_t length, int access, const void *name)
{
	asked_addr = addr;
	asked_length = length;
	asked_access = access;
	asked_name = name;
	registrations++;
	return error;
}

static struct dapl_pz *pz_new(void)
{
	DAT_PZ_HANDLE new;

	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &new), DAT_SUCCESS);
	return (struct dapl_pz *)new;
}

UNIT_FIXTURE(set_up)
{
	registrations = error = 0;
	core_device = (struct core_device){ .reg_mr = note_registration };
	ia = core_ia_new();
	other_ia = core_ia_new();
	ia->ia_attr.max_lmr_block_size = 1 << 20;
	pz = pz_new();
	other_pz = pz_new();
}

/* No call leaves a region behind, or an object entered or in use. */
UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.mrs, 0);
	assert_null(ia->objects[DAPL_LMR]);
	assert_int_equal(pz->obj.calls, 0);
	assert_int_equal(dapl_pz_free((DAT_PZ_HANDLE)other_pz), DAT_SUCCESS);
	assert_int_equal(dapl_pz_free((DAT_PZ_HANDLE)pz), DAT_SUCCESS);
	assert_int_equal(ia->obj.calls, 0);
	core_ia_free(other_ia);
	core_ia_free(ia);
}

static DAT_RETURN create(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, int priv, DAT_VA_TYPE va)
{
	return dapl_lmr_create((DAT_IA_HANDLE)ia, type, region, length, (DAT_PZ_HANDLE)pz, (DAT_MEM_PRIV_FLAGS)priv,
			       va, &handle, &local, &remote, &size, &address);
}

static DAT_RETURN create_at(void *start, DAT_VLEN length, int priv)
{
	return create(DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){ .for_va = start }, length, priv, DAT_VA_TYPE_VA);
}

static DAT_RETURN create_shared(void *start, DAT_VLEN length, const char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { .virtual_address = start,
		.shared_memory_id = (DAT_LMR_COOKIE)name } };

	return create(DAT_MEM_TYPE_SHARED_VIRTUAL, region, length, LOCAL, DAT_VA_TYPE_VA);
}

static void free_lmr(DAT_LMR_HANDLE lmr) { assert_int_equal(dapl_lmr_free(lmr), DAT_SUCCESS); }

UNIT_CASE(privileges_become_access_rights)
{
	static const struct { int priv, access; } rows[] = {
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG, 0 },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG, IBV_ACCESS_LOCAL_WRITE },
		{ READ, IBV_ACCESS_REMOTE_READ },
		{ WRITE, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE },	/* as verbs require */
		{ ATOMIC, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		ia->attr.bind_access = false;
		assert_int_equal(dapl_lmr_access(ia, (DAT_MEM_PRIV_FLAGS)rows[i].priv), rows[i].access);
		ia->attr.bind_access = true;
		assert_int_equal(dapl_lmr_access(ia, (DAT_MEM_PRIV_FLAGS)rows[i].priv),
				 rows[i].access | IBV_ACCESS_MW_BIND);
	}
	ia->attr.flush_global = true;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)	/* peers may flush what they may write */
		assert_int_equal(dapl_lmr_access(ia, (DAT_MEM_PRIV_FLAGS)rows[i].priv),
				 rows[i].access | IBV_ACCESS_MW_BIND | (rows[i].priv == WRITE ? 1 << 8 : 0));
}

UNIT_CASE(region_is_registered_as_asked_for)
{
	assert_int_equal(create_at(memory, 100, LOCAL | READ), DAT_SUCCESS);
	assert_ptr_equal(asked_addr, memory);
	assert_int_equal(asked_length, 100);
	assert_int_equal(asked_access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_null(asked_name);
	assert_ptr_equal(((struct dapl_lmr *)handle)->mr->pd, pz->pd);
	assert_int_equal(remote, local | CORE_REMOTE);
	assert_int_equal(size, 100);
	assert_int_equal(address, (uintptr_t)memory);
	assert_true(dapl_in_use(&pz->obj));
	free_lmr(handle);
	assert_false(dapl_in_use(&pz->obj));
	assert_int_equal(ia->counters[DCNT_IA_LMR_CREATE], 1);
	assert_int_equal(ia->counters[DCNT_IA_LMR_FREE], 1);
}

/* So that a peer that guesses the context gets nothing, and programs that pass on 0 notice. */
UNIT_CASE(region_without_remote_rights_has_no_remote_context)
{
	static const int rights[] = { READ, WRITE, ATOMIC };

	assert_int_equal(create_at(memory, SIZE, LOCAL), DAT_SUCCESS);
	assert_int_equal(remote, 0);
	free_lmr(handle);
	ia->attr.atomics = true;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(create_at(memory, SIZE, rights[i]), DAT_SUCCESS);
		assert_int_not_equal(remote, 0);
		free_lmr(handle);
	}
}

UNIT_CASE(outputs_are_optional_but_for_the_handle)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = memory };
#define CREATE(ia, pz, priv, va, handle) \
	dapl_lmr_create((DAT_IA_HANDLE)(ia), DAT_MEM_TYPE_VIRTUAL, region, SIZE, (DAT_PZ_HANDLE)(pz), \
			(DAT_MEM_PRIV_FLAGS)(priv), (DAT_VA_TYPE)(va), handle, NULL, NULL, NULL, NULL)

	assert_int_equal(CREATE(pz, pz, LOCAL, DAT_VA_TYPE_VA, &handle), BAD_HANDLE(IA));
	assert_int_equal(CREATE(ia, ia, LOCAL, DAT_VA_TYPE_VA, &handle), BAD_HANDLE(PZ));
	assert_int_equal(CREATE(other_ia, pz, LOCAL, DAT_VA_TYPE_VA, &handle), BAD_HANDLE(PZ));
	assert_int_equal(CREATE(ia, pz, 0x4000, DAT_VA_TYPE_VA, &handle), BAD_PARAM(6));
	assert_int_equal(CREATE(ia, pz, LOCAL, 7, &handle), BAD_PARAM(7));
	assert_int_equal(CREATE(ia, pz, LOCAL, DAT_VA_TYPE_VA, NULL), BAD_PARAM(8));
	assert_int_equal(CREATE(ia, pz, ATOMIC, DAT_VA_TYPE_VA, &handle), NOT_SUPPORTED);
	assert_int_equal(CREATE(ia, pz, LOCAL, DAT_VA_TYPE_ZB, &handle), NOT_SUPPORTED);
	assert_int_equal(registrations, 0);
	assert_int_equal(CREATE(ia, pz, LOCAL, DAT_VA_TYPE_VA, &handle), DAT_SUCCESS);
	free_lmr(handle);
}

UNIT_CASE(region_of_a_foreign_region_is_refused)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = (DAT_LMR_HANDLE)pz };
	struct dapl_lmr *lmr;

	assert_int_equal(create(DAT_MEM_TYPE_LMR, region, 1, LOCAL, DAT_VA_TYPE_VA), BAD_HANDLE(LMR));
	assert_int_equal(create_at(memory, SIZE, LOCAL), DAT_SUCCESS);
	region.for_lmr_handle = handle;
	lmr = (struct dapl_lmr *)handle;
	lmr->obj.ia = other_ia;
	assert_int_equal(create(DAT_MEM_TYPE_LMR, region, 1, LOCAL, DAT_VA_TYPE_VA), BAD_HANDLE(LMR));
	lmr->obj.ia = ia;
	lmr->param.mem_type = (DAT_MEM_TYPE)DAT_DM_MEM_TYPE;	/* device memory */
	assert_int_equal(create(DAT_MEM_TYPE_LMR, region, 1, LOCAL, DAT_VA_TYPE_VA), BAD_PARAM(3));
	assert_int_equal(lmr->obj.calls, 0);
	free_lmr((DAT_LMR_HANDLE)lmr);
}

UNIT_CASE(only_memory_that_processes_can_share_is_shared)
{
	static const char name[DAT_LMR_COOKIE_SIZE] = "name", other_name[DAT_LMR_COOKIE_SIZE] = "other";
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	DAT_LMR_HANDLE first;

	assert_ptr_not_equal(map, MAP_FAILED);
	/* the second page is private */
	assert_ptr_equal(mmap(map, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), map);
	assert_int_equal(create_shared(map, page, NULL), BAD_PARAM(3));
	assert_int_equal(create_shared(map + page, 1, name), BAD_STATE(LMR_FREE));
	assert_int_equal(create_shared(map, page + 1, name), BAD_STATE(LMR_FREE));
	assert_int_equal(registrations, 0);
	assert_int_equal(create_shared(map, page, name), DAT_SUCCESS);
	assert_ptr_equal(asked_name, name);
	first = handle;
	/* one length for each name */
	assert_int_equal(create_shared(map, page - 1, name), BAD_PARAM(4));
	assert_int_equal(create_shared(map, page - 1, other_name), DAT_SUCCESS);
	free_lmr(handle);
	assert_int_equal(create_shared(map, page, name), DAT_SUCCESS);
	free_lmr(handle);
	free_lmr(first);
	munmap(map, 2 * page);
}

/* A limit on locked memory is reported as what it is, whichever error the kernel gives for it. */
UNIT_CASE(refused_registration_leaves_nothing)
{
	static const struct { int error; DAT_RETURN told; } rows[] = {
		{ ENOMEM, NO_RESOURCE(MEMORY_REGION) }, { EPERM, NO_RESOURCE(MEMORY_REGION) },
		{ EFAULT, DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE) },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		error = rows[i].error;
		handle = (DAT_LMR_HANDLE)memory;
		assert_int_equal(create_at(memory, SIZE, LOCAL), rows[i].told);
		assert_ptr_equal(handle, memory);
		assert_false(dapl_in_use(&pz->obj));
	}
	assert_int_equal(ia->counters[DCNT_IA_LMR_CREATE], 0);
}

UNIT_CASE(range_is_held_if_all_of_it_is)
{
	static const struct { DAT_VADDR at; uint64_t length; bool held; } rows[] = {
		{ 100, 50, true }, { 149, 1, true }, { 150, 0, true }, { 99, 1, false }, { 100, 51, false },
		{ 150, 1, false }, { 101, UINT64_MAX, false }, { UINT64_MAX, 2, false },
	};
	const struct dapl_lmr lmr = { .param = { .registered_address = 100, .registered_size = 50 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (dapl_lmr_holds(&lmr, rows[i].at, rows[i].length) != rows[i].held)
			fail_msg("row %zu", i);
}

UNIT_CASE(sync_wants_segments_of_regions)
{
	DAT_LMR_TRIPLET list[2] = { { .virtual_address = 1, .segment_length = 0 } };
	DAT_RETURN (*const sync[])(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN) = { dapl_lmr_sync_rdma_read,
		dapl_lmr_sync_rdma_write };

	assert_int_equal(create_at(memory, SIZE, LOCAL), DAT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		list[1] = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)memory, .segment_length = SIZE,
			.lmr_context = local };
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, list, 2), DAT_SUCCESS);
		list[1].segment_length++;
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, list, 2), BAD_PARAM(2));
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, list, 1), DAT_SUCCESS);	/* it is empty */
		list[1].segment_length = 1;
		list[1].lmr_context++;
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, list, 2), BAD_PARAM(2));
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, NULL, 1), BAD_PARAM(2));
		assert_int_equal(sync[i]((DAT_IA_HANDLE)ia, NULL, 0), DAT_SUCCESS);
		assert_int_equal(sync[i]((DAT_IA_HANDLE)pz, list, 0), BAD_HANDLE(IA));
	}
	assert_int_equal(((struct dapl_lmr *)handle)->obj.calls, 0);
	free_lmr(handle);
}

UNIT_MAIN(NULL, NULL)
