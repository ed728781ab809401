/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_wait_spin.c - how many waits block at once after waits that looked, and found something or nothing. */
#include "dapl/core/event/wait_spin.h"
#include "test/unit/unit.h"

/* Returns the number of waits that do not look before one looks, which then finds something or nothing. */
static unsigned skipped_until(struct dapl_wait_spin *spin, bool found)
{
	unsigned n = 0;

	while (!dapl_wait_spin_begin(spin))
		n++;
	dapl_wait_spin_end(spin, found);
	return n;
}

UNIT_TEST(new_one_looks)
{
	struct dapl_wait_spin spin = { 0 };

	assert_true(dapl_wait_spin_begin(&spin));
}

UNIT_TEST(each_that_finds_nothing_doubles_the_skips)
{
	static const unsigned skips[] = { 0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023, 1023 };
	struct dapl_wait_spin spin = { 0 };

	for (size_t i = 0; i < sizeof skips / sizeof *skips; i++)
		assert_int_equal(skipped_until(&spin, false), skips[i]);
}

UNIT_TEST(one_that_finds_something_lets_the_next_look)
{
	struct dapl_wait_spin spin = { 0 };

	for (int i = 0; i < 5; i++)
		skipped_until(&spin, false);
	assert_int_equal(skipped_until(&spin, true), 31);
	for (int i = 0; i < 10; i++)
		assert_int_equal(skipped_until(&spin, true), 0);
}

/* So that as many that find nothing as something cost no more than a few skips. */
UNIT_TEST(one_that_finds_something_halves_the_skips)
{
	struct dapl_wait_spin spin = { 0 };

	for (int i = 0; i < 5; i++)
		skipped_until(&spin, false);
	skipped_until(&spin, true);
	assert_int_equal(skipped_until(&spin, false), 0);
	assert_int_equal(skipped_until(&spin, false), 31);
}

UNIT_MAIN(NULL, NULL)
