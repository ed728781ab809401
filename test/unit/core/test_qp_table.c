/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qp_table.c - endpoints by QP number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/core/base/qp_table.h"
#include "test/unit/core/core_device.h"

/* The first three are of one chain: the table has 256. */
enum { SAME = 0x11, SAME_TOO = 0x0110, THIRD = 0x0213, OTHER = 0x12 };

static struct dapl_ia *ia;
static struct dapl_ep *eps[3];

static int set_up(void **state)
{
	(void)state;
	ia = core_ia_new();
	for (int i = 0; i < 3; i++)
		eps[i] = core_ep_new(ia, NULL, 4);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		core_ep_free(eps[i]);
	core_ia_free(ia);
	return 0;
}

static void add(int i, uint32_t qpn)
{
	eps[i]->qpn = qpn;
	dapl_qp_table_add(eps[i]);
}

static void each_number_finds_its_endpoint(void **state)
{
	(void)state;
	add(0, SAME);
	add(1, SAME_TOO);
	add(2, OTHER);
	assert_ptr_equal(dapl_qp_table_find(ia, SAME), eps[0]);
	assert_ptr_equal(dapl_qp_table_find(ia, SAME_TOO), eps[1]);
	assert_ptr_equal(dapl_qp_table_find(ia, OTHER), eps[2]);
}

static void unknown_numbers_find_nothing(void **state)
{
	(void)state;
	assert_null(dapl_qp_table_find(ia, SAME));
	add(0, SAME);
	assert_null(dapl_qp_table_find(ia, SAME_TOO));
	assert_null(dapl_qp_table_find(ia, OTHER));
	assert_null(dapl_qp_table_find(ia, UINT32_MAX));
}

/* The first, the middle and the last of a chain. */
static void removed_endpoint_leaves_the_others(void **state)
{
	(void)state;
	for (int gone = 0; gone < 3; gone++) {
		add(0, SAME);
		add(1, SAME_TOO);
		add(2, THIRD);
		dapl_qp_table_remove(eps[gone]);
		for (int i = 0; i < 3; i++)
			assert_ptr_equal(dapl_qp_table_find(ia, eps[i]->qpn), i == gone ? NULL : eps[i]);
		for (int i = 0; i < 3; i++)
			dapl_qp_table_remove(eps[i]);
	}
}

static void removal_of_an_absent_endpoint_does_nothing(void **state)
{
	(void)state;
	add(0, SAME);
	eps[1]->qpn = SAME;
	dapl_qp_table_remove(eps[1]);
	assert_ptr_equal(dapl_qp_table_find(ia, SAME), eps[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_number_finds_its_endpoint),
		TEST(unknown_numbers_find_nothing),
		TEST(removed_endpoint_leaves_the_others),
		TEST(removal_of_an_absent_endpoint_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
