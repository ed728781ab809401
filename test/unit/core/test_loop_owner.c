/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_loop_owner.c - when a blocked thread becomes the owner of the service loop, and when it no longer is. */
#include "dapl/core/base/loop_owner.h"
#include "test/unit/unit.h"

enum { NOW = 1000000000 };

static void wake(struct loop_owner *owner, int times, uint64_t first, uint64_t apart)
{
	for (int i = 0; i < times; i++)
		loop_owner_woke(owner, first + i * apart);
}

/* The only blocked thread owns the loop, and watches it. */
static struct loop_owner blocked_owner(void)
{
	struct loop_owner owner = { 0 };

	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_true(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	return owner;
}

UNIT_TEST(thread_that_is_woken_often_becomes_the_owner)
{
	struct loop_owner owner = blocked_owner();

	assert_true(owner.blocked_thread);
	assert_true(owner.watched);
}

UNIT_TEST(thread_that_is_woken_less_often_does_not)
{
	struct loop_owner owner = { 0 };

	wake(&owner, LOOP_WAKEUPS - 1, NOW, 1);
	assert_false(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	loop_owner_awake(&owner, false);
	assert_false(owner.blocked_thread);
	assert_int_equal(owner.blocked, 0);
}

UNIT_TEST(wakeups_that_are_far_apart_do_not_count)
{
	struct loop_owner owner = { 0 };

	wake(&owner, 10 * LOOP_WAKEUPS, NOW, LOOP_WINDOW_NS / (LOOP_WAKEUPS - 2));
	assert_false(loop_owner_block(&owner, NOW + 10 * (uint64_t)LOOP_WINDOW_NS));
}

UNIT_TEST(wakeups_of_long_ago_do_not_count)
{
	struct loop_owner owner = { 0 };

	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_false(loop_owner_block(&owner, NOW + LOOP_WINDOW_NS + 1));
}

UNIT_TEST(second_blocked_thread_does_not_watch)
{
	struct loop_owner owner = blocked_owner();

	assert_false(loop_owner_block(&owner, NOW));
	loop_owner_awake(&owner, false);
	assert_true(owner.blocked_thread);
	assert_true(owner.watched);
}

UNIT_TEST(thread_among_other_blocked_ones_does_not_become_the_owner)
{
	struct loop_owner owner = { 0 };

	assert_false(loop_owner_block(&owner, NOW));
	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_false(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	assert_false(owner.blocked_thread);
}

UNIT_TEST(owner_stays_between_its_waits)
{
	struct loop_owner owner = blocked_owner();

	loop_owner_awake(&owner, true);
	assert_true(owner.blocked_thread);
	assert_false(owner.watched);
	assert_true(loop_owner_block(&owner, NOW));
}

UNIT_TEST(owner_that_leaves_blocked_threads_gives_the_loop_back)
{
	struct loop_owner owner = blocked_owner();

	loop_owner_block(&owner, NOW);
	loop_owner_awake(&owner, true);
	assert_false(owner.blocked_thread);
	assert_false(loop_owner_block(&owner, NOW));
}

/* The service thread has taken the loop back, and the thread that was the owner has not noticed. */
UNIT_TEST(thread_that_still_watches_is_enough)
{
	struct loop_owner owner = blocked_owner();

	owner.blocked_thread = false;
	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_false(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	loop_owner_awake(&owner, true);
	assert_false(owner.blocked_thread);
}

UNIT_TEST(owner_that_finds_nothing_is_relieved)
{
	struct loop_owner owner = blocked_owner();
	uint64_t end = owner.lease_ns;

	loop_owner_check(&owner, end - 1);
	assert_true(owner.blocked_thread);
	owner.rounds++;
	loop_owner_check(&owner, end);
	assert_true(owner.blocked_thread);
	assert_int_equal(owner.lease_ns, end + LOOP_LEASE_NS);
	loop_owner_check(&owner, owner.lease_ns);
	assert_false(owner.blocked_thread);
}

UNIT_TEST(rounds_of_an_earlier_owner_do_not_count)
{
	struct loop_owner owner = blocked_owner();

	owner.rounds++;
	owner.blocked_thread = false;
	loop_owner_awake(&owner, true);
	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_true(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	loop_owner_check(&owner, owner.lease_ns);
	assert_false(owner.blocked_thread);
}

UNIT_TEST(loop_can_be_fixed_to_the_service_thread)
{
	struct loop_owner owner = { .fixed = true };

	wake(&owner, LOOP_WAKEUPS, NOW, 1);
	assert_false(loop_owner_block(&owner, NOW + LOOP_WAKEUPS));
	assert_false(owner.blocked_thread);
}

UNIT_MAIN(NULL, NULL)
