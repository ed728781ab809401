/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When a thread that polls yields. */
#include "sock/polls.h"
#include "test/unit/unit.h"

/* Returns the number of the empty read, from 1 on, that asks for a yield. */
static unsigned reads_until_yield(struct polls *p)
{
	unsigned count = 1;

	while (!polls_note(p, false))
		count++;
	return count;
}

UNIT_TEST(reads_that_find_bytes_never_yield)
{
	struct polls p = { 0 };

	for (int i = 0; i < 10 * POLLS_MOST; i++)
		assert_false(polls_note(&p, true));
}

UNIT_TEST(bytes_begin_the_count_anew)
{
	struct polls p = { 0 };

	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < POLLS_FIRST - 1; j++)
			assert_false(polls_note(&p, false));
		assert_false(polls_note(&p, true));
	}
}

UNIT_TEST(yields_get_rarer_while_nothing_comes)
{
	struct polls p = { 0 };

	for (unsigned expected = POLLS_FIRST; expected < POLLS_MOST; expected *= 2)
		assert_int_equal(reads_until_yield(&p), expected);
	for (int i = 0; i < 10; i++)
		assert_int_equal(reads_until_yield(&p), POLLS_MOST);
	polls_note(&p, true);
	assert_int_equal(reads_until_yield(&p), POLLS_FIRST);
}

UNIT_MAIN(NULL, NULL)
