/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pz.c - protection zones: one protection domain of the device for each, and when they may be freed (pz.c). */
#include "dapl/core/base/service.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static char untouched;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
}

/* No call leaves a domain behind, or an object entered. */
UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.pds, 0);
	assert_int_equal(ia->obj.calls, 0);
	assert_null(ia->objects[DAPL_PZ]);
	core_ia_free(ia);
}

static DAT_PZ_HANDLE create(void)
{
	DAT_PZ_HANDLE pz;

	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &pz), DAT_SUCCESS);
	return pz;
}

UNIT_CASE(zone_has_a_domain_of_its_own)
{
	DAT_PZ_HANDLE pz = create(), other = create();

	assert_int_equal(core_device.pds, 2);
	assert_non_null(((struct dapl_pz *)pz)->pd);
	assert_ptr_not_equal(((struct dapl_pz *)pz)->pd, ((struct dapl_pz *)other)->pd);
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
	assert_int_equal(core_device.pds, 1);
	assert_int_equal(dapl_pz_free(other), DAT_SUCCESS);
	assert_int_equal(ia->counters[DCNT_IA_PZ_CREATE], 2);
	assert_int_equal(ia->counters[DCNT_IA_PZ_FREE], 2);
}

UNIT_CASE(refused_create_makes_no_zone)
{
	DAT_PZ_HANDLE pz = (DAT_PZ_HANDLE)&untouched;

	core_device.alloc_pd_error = ENOMEM;
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &pz), NO_RESOURCE(PROTECTION_DOMAIN));
	core_device.alloc_pd_error = 0;
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, NULL), BAD_PARAM(2));
	assert_ptr_equal(pz, &untouched);
	assert_int_equal(ia->counters[DCNT_IA_PZ_CREATE], 0);
	pz = create();
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)pz, &pz), BAD_HANDLE(IA));
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
}

static bool handle_is_left;	/* an address handle, which a task of the service thread destroys */

static bool pd_busy(void) { return __atomic_load_n(&handle_is_left, __ATOMIC_ACQUIRE); }

static void destroy_handle(struct dapl_task *task)
{
	usleep(20000);
	__atomic_store_n(&handle_is_left, false, __ATOMIC_RELEASE);
}

UNIT_CASE(domain_outlives_what_the_service_thread_destroys)
{
	struct dapl_task task = { .queued = false };
	DAT_PZ_HANDLE pz = create();

	assert_int_equal(dapl_service_get(), 0);
	core_device.pd_busy = pd_busy;
	handle_is_left = true;
	dapl_task_queue(&task, destroy_handle);
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
	assert_int_equal(core_device.pds, 0);
	dapl_service_put();
}

UNIT_MAIN(NULL, NULL)
