/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qp_table.c - endpoints by QP number. */
#include "dapl/core/base/qp_table.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

/* The first three are of one chain: the table has 256. */
enum { SAME = 0x11, SAME_TOO = 0x0110, THIRD = 0x0213, OTHER = 0x12 };

static struct dapl_ia *ia;
static struct dapl_ep *eps[3];

UNIT_FIXTURE(set_up)
{
	ia = core_ia_new();
	for (int i = 0; i < 3; i++)
		eps[i] = core_ep_new(ia, NULL, 4);
}

UNIT_FIXTURE(tear_down)
{
	for (int i = 0; i < 3; i++)
		core_ep_free(eps[i]);
	core_ia_free(ia);
}

static void add(int i, uint32_t qpn)
{
	eps[i]->qpn = qpn;
	dapl_qp_table_add(eps[i]);
}

UNIT_CASE(unknown_numbers_find_nothing)
{
	assert_null(dapl_qp_table_find(ia, SAME));
	add(0, SAME);
	assert_null(dapl_qp_table_find(ia, SAME_TOO));
	assert_null(dapl_qp_table_find(ia, OTHER));
	assert_null(dapl_qp_table_find(ia, UINT32_MAX));
}

/* The first, the middle and the last of a chain. */
UNIT_CASE(removed_endpoint_leaves_the_others)
{
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

UNIT_CASE(removal_of_an_absent_endpoint_does_nothing)
{
	add(0, SAME);
	eps[1]->qpn = SAME;
	dapl_qp_table_remove(eps[1]);
	assert_ptr_equal(dapl_qp_table_find(ia, SAME), eps[0]);
}

UNIT_MAIN(NULL, NULL)
