/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_zero_based.c - which endpoints stop sending inline data when a protection domain gets memory whose
 * addresses count from 0. */
#include "dapl/core/mem/zero_based.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_pz *pz, *other_pz;
static struct dapl_ep *eps[3];		/* two of pz, one of other_pz */

static struct dapl_pz *pz_new(void)
{
	struct dapl_pz *new = dapl_object_new(DAPL_PZ, sizeof *new, ia, NULL);

	dapl_object_publish(&new->obj);
	return new;
}

static void pz_free(struct dapl_pz *old)
{
	if (dapl_object_kill(&old->obj))
		dapl_object_bury(&old->obj);
}

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	pz = pz_new();
	other_pz = pz_new();
	for (int i = 0; i < 3; i++) {
		eps[i] = core_ep_new(ia, NULL, 16);
		eps[i]->pz = i < 2 ? pz : other_pz;
		eps[i]->max_inline = 64;
	}
}

UNIT_FIXTURE(tear_down)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(eps[i]->obj.calls, 0);
		core_ep_free(eps[i]);
	}
	pz_free(other_pz);
	pz_free(pz);
	core_ia_free(ia);
}

UNIT_CASE(endpoints_of_the_pz_stop_sending_inline_data)
{
	assert_false(dapl_pz_is_zero_based(pz));
	assert_int_equal(dapl_zero_based_set(pz), 0);
	assert_true(dapl_pz_is_zero_based(pz));
	assert_false(dapl_pz_is_zero_based(other_pz));
	assert_int_equal(eps[0]->max_inline, 0);
	assert_int_equal(eps[1]->max_inline, 0);
	assert_int_equal(eps[2]->max_inline, 64);
	assert_int_equal(dapl_zero_based_set(pz), 0);
	assert_int_equal(eps[2]->max_inline, 64);
}

/* Another thread registers such memory, and has not come to these endpoints yet. */
UNIT_CASE(registration_beside_another_visits_all_endpoints)
{
	dapl_flag_set(&pz->zero_based, true);
	assert_int_equal(dapl_zero_based_set(pz), 0);
	assert_int_equal(eps[0]->max_inline, 0);
	assert_int_equal(eps[1]->max_inline, 0);
	assert_int_equal(eps[2]->max_inline, 64);
}

/* An endpoint sees to itself once the others are done. */
UNIT_CASE(next_registration_visits_no_endpoint)
{
	assert_int_equal(dapl_zero_based_set(pz), 0);
	eps[0]->max_inline = 64;
	assert_int_equal(dapl_zero_based_set(pz), 0);
	assert_int_equal(eps[0]->max_inline, 64);
}

/* Such a device finds the bytes by the context of the segment. */
UNIT_CASE(device_that_looks_regions_up_goes_on)
{
	ia->attr.inline_by_lkey = true;
	assert_int_equal(dapl_zero_based_set(pz), 0);
	assert_false(dapl_pz_is_zero_based(pz));
	assert_int_equal(eps[0]->max_inline, 64);
}

UNIT_CASE(endpoint_that_is_made_later_follows)
{
	struct dapl_ep *late;

	assert_int_equal(dapl_zero_based_set(pz), 0);
	late = core_ep_new(ia, NULL, 16);
	late->max_inline = 64;
	dapl_zero_based_follow(late);	/* it has no PZ */
	assert_int_equal(late->max_inline, 64);
	late->pz = other_pz;
	dapl_zero_based_follow(late);
	assert_int_equal(late->max_inline, 64);
	late->pz = pz;
	dapl_zero_based_follow(late);
	assert_int_equal(late->max_inline, 0);
	core_ep_free(late);
}

UNIT_CASE(pz_without_endpoints_is_marked)
{
	struct dapl_pz *empty = pz_new();

	assert_int_equal(dapl_zero_based_set(empty), 0);
	assert_true(dapl_pz_is_zero_based(empty));
	pz_free(empty);
}

UNIT_MAIN(NULL, NULL)
