/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rmr.c - memory windows: which type is made, errors of the device, and the range that a binding holds. */
#include "dapl/core/mem/rmr.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_pz *pz;

static void make_pz(void)
{
	pz = dapl_object_new(DAPL_PZ, sizeof *pz, ia, NULL);
	dapl_object_publish(&pz->obj);
}

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	ia->attr.windows_1 = ia->attr.windows_2 = true;
	make_pz();
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.windows, 0);
	assert_false(dapl_in_use(&pz->obj));
	if (dapl_object_kill(&pz->obj))
		dapl_object_bury(&pz->obj);
	core_ia_free(ia);
}

UNIT_CASE(type_is_what_was_asked_for_or_what_there_is)
{
	static const struct { bool windows_1, windows_2, for_ep; int type, scope; } cases[] = {
		{ true, true, false, IBV_MW_TYPE_1, DAT_RMR_SCOPE_PZ },
		{ true, true, true, IBV_MW_TYPE_2, DAT_RMR_SCOPE_EP },
		{ true, false, false, IBV_MW_TYPE_1, DAT_RMR_SCOPE_PZ },
		{ true, false, true, IBV_MW_TYPE_1, DAT_RMR_SCOPE_PZ },
		{ false, true, false, IBV_MW_TYPE_2, DAT_RMR_SCOPE_EP },
		{ false, true, true, IBV_MW_TYPE_2, DAT_RMR_SCOPE_EP },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		DAT_RMR_PARAM param;
		DAT_RMR_HANDLE rmr;

		ia->attr.windows_1 = cases[i].windows_1;
		ia->attr.windows_2 = cases[i].windows_2;
		assert_int_equal(cases[i].for_ep ? dapl_rmr_create_for_ep((DAT_PZ_HANDLE)pz, &rmr) :
				 dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr), DAT_SUCCESS);
		assert_int_equal(((struct dapl_rmr *)rmr)->mw->type, cases[i].type);
		assert_int_equal(dapl_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), DAT_SUCCESS);
		assert_int_equal(param.rmr_scope, cases[i].scope);
		assert_ptr_equal(param.pz_handle, pz);
		assert_true(dapl_in_use(&pz->obj));
		assert_int_equal(dapl_rmr_free(rmr), DAT_SUCCESS);
		assert_int_equal(DAT_GET_TYPE(dapl_rmr_free(rmr)), DAT_INVALID_HANDLE);
		assert_false(dapl_in_use(&pz->obj));
	}
}

UNIT_CASE(device_without_windows_has_no_rmrs)
{
	DAT_RMR_HANDLE rmr;

	ia->attr.windows_1 = ia->attr.windows_2 = false;
	assert_int_equal(DAT_GET_TYPE(dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr)), DAT_MODEL_NOT_SUPPORTED);
	assert_int_equal(DAT_GET_TYPE(dapl_rmr_create_for_ep((DAT_PZ_HANDLE)pz, &rmr)),
			 DAT_MODEL_NOT_SUPPORTED);
}

UNIT_CASE(error_of_the_device_leaves_nothing)
{
	DAT_RMR_HANDLE rmr;

	core_device.alloc_mw_error = ENOMEM;
	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr), NO_RESOURCE(MEMORY_REGION));
	core_device.alloc_mw_error = EPERM;
	assert_int_equal(DAT_GET_TYPE(dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr)), DAT_PRIVILEGES_VIOLATION);
	assert_null(ia->objects[DAPL_RMR]);
}

UNIT_CASE(pz_that_is_freed_meanwhile_gets_no_rmr)
{
	DAT_RMR_HANDLE rmr;

	core_device.killed_by_alloc_mw = &pz->obj;
	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr), BAD_HANDLE(PZ));
	assert_int_equal(core_device.windows, 0);
	assert_null(ia->objects[DAPL_RMR]);
	dapl_object_bury(&pz->obj);
	make_pz();
}

UNIT_CASE(arguments_are_checked)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)ia, &rmr), BAD_HANDLE(PZ));
	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)pz, NULL), BAD_PARAM(2));
	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)pz, &rmr), DAT_SUCCESS);
	assert_int_equal(dapl_rmr_query((DAT_RMR_HANDLE)pz, DAT_RMR_FIELD_ALL, &param), BAD_HANDLE(RMR));
	assert_int_equal(dapl_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL + 1), &param), BAD_PARAM(2));
	assert_int_equal(dapl_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL), BAD_PARAM(3));
	assert_int_equal(dapl_rmr_free(rmr), DAT_SUCCESS);
}

/* --- the range of a binding ------------------------------------------------------------------- */

static struct dapl_lmr *lmr_new(void)
{
	struct dapl_lmr *lmr = dapl_object_new(DAPL_LMR, sizeof *lmr, ia, NULL);

	dapl_object_publish(&lmr->obj);
	return lmr;
}

/* As rmr_bind.c leaves it after a bind. */
static struct dapl_rmr *bound(struct dapl_lmr *lmr, DAT_VADDR address, DAT_VLEN length, int privileges,
			      DAT_RMR_CONTEXT context)
{
	struct dapl_rmr *rmr;
	DAT_RMR_HANDLE handle;

	assert_int_equal(dapl_rmr_create((DAT_PZ_HANDLE)pz, &handle), DAT_SUCCESS);
	rmr = (struct dapl_rmr *)handle;
	assert_true(dapl_use(&lmr->obj));
	rmr->lmr = lmr;
	rmr->param.lmr_triplet.virtual_address = address;
	rmr->param.lmr_triplet.segment_length = length;
	rmr->param.mem_priv = (DAT_MEM_PRIV_FLAGS)privileges;
	rmr->param.rmr_context = context;
	return rmr;
}

static struct dapl_lmr *target(DAT_RMR_CONTEXT context, DAT_VADDR address, DAT_VLEN length)
{
	DAT_RMR_TRIPLET range = { .rmr_context = context, .virtual_address = address,
		.segment_length = length };
	struct dapl_lmr *lmr = dapl_rmr_target(ia, &range);

	if (lmr)
		dapl_object_leave(&lmr->obj);
	return lmr;
}

static void free_lmr(struct dapl_lmr *lmr)
{
	assert_false(dapl_in_use(&lmr->obj));
	assert_int_equal(lmr->obj.calls, 0);
	assert_true(dapl_object_kill(&lmr->obj));
	dapl_object_bury(&lmr->obj);
}

UNIT_CASE(binding_at_the_end_of_the_address_space_does_not_wrap)
{
	struct dapl_lmr *lmr = lmr_new();
	struct dapl_rmr *rmr = bound(lmr, UINT64_MAX - 0xff, 0x100, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 5);

	assert_ptr_equal(target(5, UINT64_MAX - 0xff, 0x100), lmr);
	assert_ptr_equal(target(5, UINT64_MAX, 1), lmr);
	assert_null(target(5, UINT64_MAX, 2));
	assert_null(target(5, 1, 1));
	dapl_rmr_free((DAT_RMR_HANDLE)rmr);
	free_lmr(lmr);
}

UNIT_CASE(target_needs_the_context_and_the_right_to_write)
{
	struct dapl_lmr *readable = lmr_new(), *writable = lmr_new();
	struct dapl_rmr *rmr[] = {
		bound(readable, 0x1000, 0x100, DAT_MEM_PRIV_REMOTE_READ_FLAG, 1),
		bound(writable, 0x1000, 0x100, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 2),
	};

	assert_null(target(1, 0x1000, 1));
	assert_ptr_equal(target(2, 0x1000, 1), writable);
	assert_null(target(3, 0x1000, 1));
	dapl_rmr_unbound(rmr[1]);
	assert_null(target(2, 0x1000, 1));
	dapl_rmr_free((DAT_RMR_HANDLE)rmr[0]);
	dapl_rmr_free((DAT_RMR_HANDLE)rmr[1]);
	free_lmr(readable);
	free_lmr(writable);
}

UNIT_MAIN(NULL, NULL)
