/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_zero_based.c - which endpoints stop sending inline data when a protection domain gets memory whose
 * addresses count from 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/core/mem/zero_based.h"
#include "test/unit/core/core_device.h"

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

static int set_up(void **state)
{
	(void)state;
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	pz = pz_new();
	other_pz = pz_new();
	for (int i = 0; i < 3; i++) {
		eps[i] = core_ep_new(ia, NULL, 16);
		eps[i]->pz = i < 2 ? pz : other_pz;
		eps[i]->max_inline = 64;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(eps[i]->obj.calls, 0);
		core_ep_free(eps[i]);
	}
	pz_free(other_pz);
	pz_free(pz);
	core_ia_free(ia);
	return 0;
}

static void endpoints_of_the_pz_stop_sending_inline_data(void **state)
{
	(void)state;
	assert_false(dapl_pz_is_zero_based(pz));
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	assert_true(dapl_pz_is_zero_based(pz));
	assert_false(dapl_pz_is_zero_based(other_pz));
	assert_int_equal(eps[0]->max_inline, 0);
	assert_int_equal(eps[1]->max_inline, 0);
	assert_int_equal(eps[2]->max_inline, 64);
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	assert_int_equal(eps[2]->max_inline, 64);
}

/* Another thread registers such memory, and has not come to these endpoints yet. */
static void registration_beside_another_visits_all_endpoints(void **state)
{
	(void)state;
	dapl_flag_set(&pz->zero_based, true);
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	assert_int_equal(eps[0]->max_inline, 0);
	assert_int_equal(eps[1]->max_inline, 0);
	assert_int_equal(eps[2]->max_inline, 64);
}

/* An endpoint sees to itself once the others are done. */
static void next_registration_visits_no_endpoint(void **state)
{
	(void)state;
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	eps[0]->max_inline = 64;
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	assert_int_equal(eps[0]->max_inline, 64);
}

/* Such a device finds the bytes by the context of the segment. */
static void device_that_looks_regions_up_goes_on(void **state)
{
	(void)state;
	ia->attr.inline_by_lkey = true;
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	assert_false(dapl_pz_is_zero_based(pz));
	assert_int_equal(eps[0]->max_inline, 64);
}

static void endpoint_that_is_made_later_follows(void **state)
{
	struct dapl_ep *late;

	(void)state;
	assert_int_equal(dapl_pz_set_zero_based(pz), 0);
	late = core_ep_new(ia, NULL, 16);
	late->max_inline = 64;
	dapl_ep_follow_zero_based(late);	/* it has no PZ */
	assert_int_equal(late->max_inline, 64);
	late->pz = other_pz;
	dapl_ep_follow_zero_based(late);
	assert_int_equal(late->max_inline, 64);
	late->pz = pz;
	dapl_ep_follow_zero_based(late);
	assert_int_equal(late->max_inline, 0);
	core_ep_free(late);
}

static void pz_without_endpoints_is_marked(void **state)
{
	struct dapl_pz *empty = pz_new();

	(void)state;
	assert_int_equal(dapl_pz_set_zero_based(empty), 0);
	assert_true(dapl_pz_is_zero_based(empty));
	pz_free(empty);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(endpoints_of_the_pz_stop_sending_inline_data),
		CASE(registration_beside_another_visits_all_endpoints),
		CASE(next_registration_visits_no_endpoint),
		CASE(device_that_looks_regions_up_goes_on),
		CASE(endpoint_that_is_made_later_follows),
		CASE(pz_without_endpoints_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
