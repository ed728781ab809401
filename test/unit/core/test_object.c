/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_object.c - life of objects: handles, kills, uses, references, and memory that is used again. */
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

enum { DEAD_KEPT = 33 };	/* of a kind, from which on the oldest is used again */

static struct dapl_ia *ia;
static unsigned ended;

static void count_end(struct dapl_object *obj) { ended++; }

/* What waits for calls yields; a call inside leaves at the third time. */
static struct dapl_object *has_call;
static unsigned yields;

REPLACE(sched_yield)
int __wrap_sched_yield(void)
{
	if (++yields == 3 && has_call)
		dapl_object_leave(has_call);
	return 0;
}

UNIT_FIXTURE(set_up)
{
	ia = core_ia_new();
	ended = 0;
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(ia->ending, 0);
	core_ia_free(ia);
}

static struct dapl_pz *pz_new(void) { return dapl_object_new(DAPL_PZ, sizeof(struct dapl_pz), ia, count_end); }

static struct dapl_pz *pz_published(void)
{
	struct dapl_pz *pz = pz_new();

	dapl_object_publish(&pz->obj);
	return pz;
}

static void kill(struct dapl_pz *pz)
{
	assert_true(dapl_object_kill(&pz->obj));
	dapl_object_bury(&pz->obj);
}

static void handle_is_good_from_publish_to_kill(void **state)
{
	struct dapl_pz *pz = pz_new();

	assert_null(dapl_pz_enter((DAT_HANDLE)pz));
	dapl_object_publish(&pz->obj);
	assert_ptr_equal(dapl_pz_enter((DAT_HANDLE)pz), pz);
	assert_int_equal(pz->obj.calls, 1);
	dapl_object_leave(&pz->obj);
	kill(pz);
	assert_null(dapl_pz_enter((DAT_HANDLE)pz));
	assert_int_equal(pz->obj.calls, 0);
}

static void handle_of_another_kind_is_bad(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_null(dapl_lmr_enter((DAT_HANDLE)pz));
	assert_null(dapl_pz_enter(DAT_HANDLE_NULL));
	assert_ptr_equal(dapl_object_enter_any((DAT_HANDLE)pz), &pz->obj);
	dapl_object_leave(&pz->obj);
	assert_null(dapl_object_enter_any(DAT_HANDLE_NULL));
	kill(pz);
	assert_null(dapl_object_enter_any((DAT_HANDLE)pz));
}

static void second_kill_loses(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_true(dapl_object_kill(&pz->obj));
	assert_false(dapl_object_kill(&pz->obj));
	assert_int_equal(dapl_object_kill_unused(&pz->obj), KILL_LOST);
	dapl_object_bury(&pz->obj);
}

static void object_in_use_is_not_killed(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_true(dapl_use(&pz->obj));
	dapl_use_again(&pz->obj);
	assert_int_equal(dapl_object_kill_unused(&pz->obj), KILL_IN_USE);
	dapl_unuse(&pz->obj);
	assert_int_equal(dapl_object_kill_unused(&pz->obj), KILL_IN_USE);
	assert_true(dapl_object_is_live(&pz->obj));
	dapl_unuse(&pz->obj);
	assert_int_equal(dapl_object_kill_unused(&pz->obj), KILL_DONE);
	assert_false(dapl_use(&pz->obj));
	dapl_object_bury(&pz->obj);
}

/* A user of an object that dat_ia_close kills may let another use it, too. */
static void users_of_a_killed_object_can_grow(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_true(dapl_use(&pz->obj));
	assert_true(dapl_object_kill(&pz->obj));
	assert_true(dapl_in_use(&pz->obj));
	assert_true(dapl_use(&pz->obj));
	dapl_unuse(&pz->obj);
	dapl_unuse(&pz->obj);
	assert_false(dapl_in_use(&pz->obj));
	dapl_object_bury(&pz->obj);
}

static void last_reference_ends_the_object(void **state)
{
	struct dapl_pz *pz = pz_published();

	dapl_object_get(&pz->obj);
	kill(pz);
	assert_int_equal(ended, 0);
	dapl_object_put(&pz->obj);
	assert_int_equal(ended, 1);
}

static void ia_lists_what_is_alive(void **state)
{
	struct dapl_object **entered;
	struct dapl_pz *pz[3];
	size_t count;

	for (int i = 0; i < 3; i++)
		pz[i] = pz_published();
	assert_int_equal(dapl_object_count(ia, DAPL_PZ), 3);
	assert_int_equal(dapl_object_count(ia, DAPL_LMR), 0);
	kill(pz[1]);
	assert_int_equal(dapl_object_count(ia, DAPL_PZ), 2);
	assert_true(dapl_object_enter_all(ia, DAPL_PZ, &entered, &count));
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(entered[i]->calls, 1);
		dapl_object_leave(entered[i]);
	}
	free(entered);
	kill(pz[0]);
	kill(pz[2]);
	assert_null(ia->objects[DAPL_PZ]);
}

/* Memory lives on: a stale handle can be looked at. It is used again when 32 newer ones are dead. */
static void oldest_dead_object_is_used_again(void **state)
{
	struct dapl_pz *pz[DEAD_KEPT], *again;

	for (int i = 0; i < DEAD_KEPT; i++)
		pz[i] = pz_published();
	for (int i = 0; i < DEAD_KEPT; i++)
		kill(pz[i]);
	again = NULL;
	for (int i = 0; again != pz[0] && i < DEAD_KEPT; i++) {	/* older ones are of the tests before */
		again = pz_published();
		kill(again);
	}
	again = pz_published();
	assert_ptr_equal(again, pz[1]);
	kill(again);
}

static void memory_that_is_used_again_is_zeroed(void **state)
{
	struct dapl_pz *pz;

	for (int i = 0; i <= 2 * DEAD_KEPT; i++) {
		pz = pz_published();
		assert_null(pz->pd);
		assert_false(pz->zero_based);
		assert_int_equal(pz->obj.users, 0);
		assert_int_equal(pz->obj.context.as_64, 0);
		pz->pd = (struct ibv_pd *)pz;
		pz->zero_based = true;
		pz->obj.context.as_64 = 7;
		kill(pz);
	}
}

static void free_waits_for_the_calls_of_others(void **state)
{
	struct dapl_pz *pz = pz_published();

	dapl_object_enter_own(&pz->obj);	/* by the free itself */
	dapl_object_enter_own(&pz->obj);
	assert_true(dapl_object_kill(&pz->obj));
	has_call = &pz->obj;
	yields = 0;
	dapl_object_wait_calls(&pz->obj, 1);
	assert_int_equal(yields, 3);
	dapl_object_wait_calls(&pz->obj, 1);
	assert_int_equal(yields, 3);
	has_call = NULL;
	dapl_object_leave(&pz->obj);
	dapl_object_bury(&pz->obj);
}

/* A late call with the handle of a freed object does not change the object that has its memory now. */
static void calls_of_a_stale_handle_survive_a_reuse(void **state)
{
	struct dapl_pz *stale = pz_published(), *pz = NULL;
	int reuses;

	dapl_object_enter_own(&stale->obj);
	kill(stale);
	for (reuses = 0; pz != stale && reuses <= 2 * DEAD_KEPT; reuses++) {
		pz = pz_published();
		kill(pz);
	}
	assert_ptr_equal(pz, stale);
	assert_true(reuses >= DEAD_KEPT);	/* of others, before */
	assert_int_equal(stale->obj.calls, 1);
	dapl_object_leave(&stale->obj);
}

static void close_looks_again_while_a_call_is_inside(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_ptr_equal(dapl_pz_enter((DAT_HANDLE)pz), pz);
	assert_false(dapl_object_condemn_all(ia));	/* killed just now */
	assert_false(dapl_object_is_live(&pz->obj));
	assert_false(dapl_object_condemn_all(ia));	/* the call is inside */
	dapl_object_leave(&pz->obj);
	assert_true(dapl_object_condemn_all(ia));
	assert_ptr_equal(dapl_object_next_to_end(ia, DAPL_PZ), &pz->obj);
	assert_null(dapl_object_next_to_end(ia, DAPL_PZ));
	dapl_object_bury(&pz->obj);
}

static void close_waits_for_a_free_in_progress(void **state)
{
	struct dapl_pz *pz = pz_published();

	assert_true(dapl_object_kill(&pz->obj));	/* a free of the consumer's has begun */
	assert_false(dapl_object_condemn_all(ia));
	dapl_object_bury(&pz->obj);
	assert_true(dapl_object_condemn_all(ia));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(handle_is_good_from_publish_to_kill),
		TEST(handle_of_another_kind_is_bad),
		TEST(second_kill_loses),
		TEST(object_in_use_is_not_killed),
		TEST(users_of_a_killed_object_can_grow),
		TEST(last_reference_ends_the_object),
		TEST(ia_lists_what_is_alive),
		TEST(calls_of_a_stale_handle_survive_a_reuse),	/* before one that leaves more dead objects */
		TEST(oldest_dead_object_is_used_again),
		TEST(memory_that_is_used_again_is_zeroed),
		TEST(free_waits_for_the_calls_of_others),
		TEST(close_looks_again_while_a_call_is_inside),
		TEST(close_waits_for_a_free_in_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
