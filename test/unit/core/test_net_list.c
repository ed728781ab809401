/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_net_list.c - the list of watched IAs: each is found, and removed without the others. */
#include "dapl/core/ia/net_events.h"
#include "test/unit/unit.h"

enum { IAS = 3 };
static struct dapl_ia ias[IAS];
static struct dapl_net_watch watches[IAS];

static int set_up(void **state)
{
	dapl_mutex_lock(&dapl_net_lock);
	assert_null(dapl_net_first());
	for (int i = 0; i < IAS; i++) {
		watches[i] = (struct dapl_net_watch){ .ia = &ias[i] };
		dapl_net_add(&watches[i]);
	}
	return 0;
}

static int tear_down(void **state)
{
	dapl_net_clear();
	assert_null(dapl_net_first());
	dapl_mutex_unlock(&dapl_net_lock);
	return 0;
}

static unsigned listed(void)
{
	unsigned n = 0;

	for (const struct dapl_net_watch *w = dapl_net_first(); w; w = w->next)
		n++;
	return n;
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, tear_down)

CASE(each_ia_has_its_own_watch)
{
	static struct dapl_ia other;

	assert_int_equal(listed(), IAS);
	for (int i = 0; i < IAS; i++)
		assert_ptr_equal(dapl_net_find(&ias[i]), &watches[i]);
	assert_null(dapl_net_find(&other));
}

/* `first` is removed first, then the other two: each place in the list comes first once. */
static void remove_all(int first)
{
	for (int i = 0; i < IAS; i++) {
		int at = (first + i) % IAS;

		assert_ptr_equal(dapl_net_remove(&ias[at]), &watches[at]);
		assert_null(dapl_net_find(&ias[at]));
		assert_null(dapl_net_remove(&ias[at]));
		assert_int_equal(listed(), IAS - 1 - i);
	}
	for (int i = 0; i < IAS; i++)
		dapl_net_add(&watches[i]);
}

CASE(removed_watch_leaves_the_others)
{
	for (int first = 0; first < IAS; first++)
		remove_all(first);
}

UNIT_MAIN(NULL, NULL)
