/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing IAs: REG-1 to REG-26, REG-40 to REG-48. */
#include "test/registry/scenario.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct outcome outcome;

#define UNTOUCHED ((DAT_IA_HANDLE)(uintptr_t)0x5a5a5a5a)
#define NUMBER(ia) ((uintptr_t)(ia))

static DAT_RETURN openv(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = UNTOUCHED;
	DAT_RETURN ret = dat_ia_openv((DAT_NAME_PTR)name, 8, &evd, &ia, major, minor, safe);

	if (ret)
		CHECK(ia == UNTOUCHED);
	else
		OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	return ret;
}

/* --- arguments, and what is not found ---------------------------------------------- */

static void wrong_arguments(void)
{
	char name[257];
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	memset(name, 'n', 256);
	name[256] = '\0';
	RETURNS(openv(NULL, 2, 0, 0), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(openv(name, 2, 0, 0), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(openv("", 2, 0, 0), NOT_FOUND);
	RETURNS(dat_ia_open("good", 8, &evd, NULL), BAD_IA);
	RETURNS(dat_ia_open("good", 8, NULL, &ia),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
}

static void REG_1_to_5_wrong_arguments(void **state)
{
	(void)state;
	silent_but_unknown("good.conf", wrong_arguments, 1);
}

static void other_keys(void)
{
	RETURNS(openv("unknown", 2, 0, 0), NOT_FOUND);
	RETURNS(openv("Good", 2, 0, 0), NOT_FOUND);
	RETURNS(openv("good", 1, 0, 0), FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND));
	RETURNS(openv("good", 3, 0, 0), FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND));
	RETURNS(openv("good", 2, 7, 0), FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND));
	RETURNS(openv("good", 2, 0, 1),
		FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND));
	OK(openv("good", 2, 0, 0));
}

static void REG_6_to_8_keys_match_exactly(void **state)
{
	(void)state;
	silent_but_unknown("good.conf", other_keys, 2);
}

static void safe_for_all(void)
{
	OK(openv("x", 2, 0, 1));
	OK(openv("x", 2, 0, 0));
}

static void REG_8_a_threadsafe_entry_serves_all(void **state)
{
	(void)state;
	silent("threadsafe-only.conf", safe_for_all);
}

/* --- open ---------------------------------------------------------------------------- */

static void two_opens(void)
{
	DAT_IA_HANDLE one, two, three;

	OK(open_ia("good", &one));
	OK(open_ia("good", &two));
	CHECK(NUMBER(one) == 1 && NUMBER(two) == 2);
	CHECK(noted("init good 2.0 nonthreadsafe []") == 1);
	CHECK(noted("open good 8") == 2);
	OK(dat_ia_close(one, DAT_CLOSE_DEFAULT));
	OK(open_ia("good", &three));
	CHECK(three == one);
	OK(dat_ia_close(two, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini good") == 0);
	OK(dat_ia_close(three, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini good") == 1);
	CHECK(noted("unloaded") == 1);
	OK(open_ia("good", &one));
	CHECK(noted("init good 2.0 nonthreadsafe []") == 2);
	OK(dat_ia_close(one, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini good") == 2);
}

static void REG_10_11_12_16_19_20_numbers_and_lifetime(void **state)
{
	(void)state;
	silent("good.conf", two_opens);
}

static void many_opens(void)
{
	enum { MANY = 5000 };
	static DAT_IA_HANDLE ia[MANY];
	DAT_IA_HANDLE own, back;

	for (int i = 0; i < MANY; i++) {
		OK(open_ia("good", &ia[i]));
		CHECK(NUMBER(ia[i]) == i + 1u);
	}
	OK(dats_get_ia_handle(ia[MANY - 1], &own));
	OK(dats_get_ia_handle(own, &back));
	CHECK(back == ia[MANY - 1]);
	for (int i = MANY - 1; i >= 0; i--)
		OK(dat_ia_close(ia[i], DAT_CLOSE_DEFAULT));
	CHECK(noted("fini good") == 1);
}

static void REG_13_thousands_of_opens(void **state)
{
	(void)state;
	silent("good.conf", many_opens);
}

static void failing_open(void)
{
	RETURNS(openv("open-fails", 2, 0, 0),
		FAILURE(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP));
	CHECK(noted("fini open-fails") == 1 && noted("unloaded") == 1);
	RETURNS(openv("open-gives-nothing", 2, 0, 0), FAILURE(DAT_INTERNAL_ERROR, 0));
	CHECK(noted("fini open-gives-nothing") == 1 && noted("unloaded") == 2);
}

static void REG_9_a_failed_open_unloads(void **state)
{
	(void)state;
	silent("behaviours.conf", failing_open);
}

static void registers_nothing(void)
{
	RETURNS(openv("registers-nothing", 2, 0, 0), NOT_FOUND);
	RETURNS(openv("registers-nothing", 2, 0, 0), NOT_FOUND);
	CHECK(noted("init registers-nothing 2.0 nonthreadsafe [registers-nothing]") == 1);
	RETURNS(openv("registers-other-name", 2, 0, 0), NOT_FOUND);
	OK(openv("registers-other-name-other", 2, 0, 0));
}

static void REG_14_an_init_that_registers_nothing(void **state)
{
	(void)state;
	scenario(&outcome, "behaviours.conf", registers_nothing);
	assert_int_equal(outcome.status, 0);
	assert_non_null(strstr(outcome.err, "behaviours.conf:9: dat_provider_init of ./mock.so "
			"registered no \"registers-nothing\" u2.0 nonthreadsafe\n"));
}

static void registers_two(void)
{
	DAT_IA_HANDLE one, other;

	OK(open_ia("registers-two", &one));
	OK(open_ia("registers-two-other", &other));
	OK(dat_ia_close(one, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini registers-two") == 0);
	OK(dat_ia_close(other, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini registers-two") == 1);
	RETURNS(openv("registers-two-other", 2, 0, 0), NOT_FOUND);
}

static void a_library_stays_for_the_other_names_it_registered(void **state)
{
	(void)state;
	silent_but_unknown("behaviours.conf", registers_two, 1);
}

static void unusual_inits(void)
{
	OK(openv("registers-in-thread", 2, 0, 0));
	CHECK(noted("fini registers-in-thread") == 1);
	OK(openv("forgets-to-remove", 2, 0, 0));
	OK(openv("forgets-to-remove", 2, 0, 0));
	CHECK(noted("fini forgets-to-remove") == 2 && noted("add refused") == 0);
	OK(openv("opens-itself", 2, 0, 0));
	CHECK(noted("open in init: 0x800a0064") == 1);
}

static void unusual_inits_do_no_harm(void **state)
{
	(void)state;
	silent("behaviours.conf", unusual_inits);
}

static void query_in_open(void)
{
	OK(openv("good", 2, 0, 0));
	CHECK(noted("query good evd no ia all yes provider none no") == 1);
	OK(openv("query-fails-in-open", 2, 0, 0));
}

static void REG_17_18_open_queries_the_ia(void **state)
{
	(void)state;
	silent("behaviours.conf", query_in_open);
}

/* --- close --------------------------------------------------------------------------- */

static void close_twice(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("good", &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	RETURNS(dat_ia_close(ia, DAT_CLOSE_DEFAULT), BAD_IA);
	RETURNS(dat_ia_close((DAT_IA_HANDLE)(uintptr_t)77, DAT_CLOSE_DEFAULT), BAD_IA);
	RETURNS(dat_ia_close((DAT_IA_HANDLE)(uintptr_t)65535, DAT_CLOSE_DEFAULT), BAD_IA);
	RETURNS(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_DEFAULT), BAD_IA);
}

static void REG_21_22_closed_handles(void **state)
{
	(void)state;
	silent("good.conf", close_twice);
}

static void close_fails_first(const char *name, DAT_RETURN expected)
{
	DAT_HANDLE_TYPE type;
	DAT_IA_HANDLE ia;

	OK(open_ia(name, &ia));
	RETURNS(dat_ia_close(ia, DAT_CLOSE_DEFAULT), expected);
	OK(dat_get_handle_type(ia, &type));
	OK(dat_ia_query(ia, NULL, 0, NULL, 0, NULL));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
}

static void closes_that_fail(void)
{
	close_fails_first("close-fails", FAILURE(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE));
	close_fails_first("query-fails-in-close", FAILURE(DAT_INTERNAL_ERROR, 0));
	CHECK(noted("close query-fails-in-close 0") == 1);
}

static void REG_23_24_a_failed_close_leaves_the_handle(void **state)
{
	(void)state;
	silent("behaviours.conf", closes_that_fail);
}

static void reports_other(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("reports-other-version", &ia));
	RETURNS(dat_ia_close(ia, DAT_CLOSE_DEFAULT), NOT_FOUND);
	RETURNS(dat_ia_close(ia, DAT_CLOSE_DEFAULT), BAD_IA);
	CHECK(noted("fini reports-other-version") == 1);
}

static void REG_25_a_provider_that_reports_another_version(void **state)
{
	(void)state;
	silent("behaviours.conf", reports_other);
}

static void close_with_flags(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("good", &ia));
	OK(dat_ia_close(ia, 5));
	CHECK(noted("close good 5") == 1);
	CHECK(noted("query good evd no ia none no provider all yes") == 1);
}

static void REG_47_close_flags_go_through(void **state)
{
	(void)state;
	silent("good.conf", close_with_flags);
}

static void leave_open(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("good", &ia));
	OK(open_ia("slow", &ia));
}

static void REG_26_exit_with_open_ias(void **state)
{
	(void)state;
	scenario(&outcome, "behaviours.conf", leave_open);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err, "");
	assert_int_equal(noted_in(&outcome, "fini good"), 0);
	assert_int_equal(noted_in(&outcome, "fini slow"), 0);
	assert_int_equal(noted_in(&outcome, "unloaded"), 1);
}

/* --- handles ------------------------------------------------------------------------- */

static void both_ways(void)
{
	DAT_IA_HANDLE ia, own, back;

	OK(open_ia("looks-itself-up", &ia));
	OK(dats_get_ia_handle(ia, &own));
	CHECK(!strcmp((*(DAT_PROVIDER **)own)->device_name, "looks-itself-up"));
	OK(dats_get_ia_handle(own, &back));
	CHECK(back == ia);
	RETURNS(dats_get_ia_handle(DAT_HANDLE_NULL, &back), BAD_IA);
	RETURNS(dats_get_ia_handle((DAT_IA_HANDLE)(uintptr_t)2, &back), BAD_IA);
	RETURNS(dats_get_ia_handle((DAT_IA_HANDLE)&back, &back), BAD_IA);
	RETURNS(dats_get_ia_handle(ia, NULL), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	CHECK(noted("close: not known any more") == 0);
	RETURNS(dats_get_ia_handle(ia, &back), BAD_IA);
	RETURNS(dats_get_ia_handle(own, &back), BAD_IA);
}

static void REG_40_to_43_dats_get_ia_handle(void **state)
{
	(void)state;
	silent("behaviours.conf", both_ways);
}

static void objects(void)
{
	DAT_IA_HANDLE ia, own;
	DAT_PZ_HANDLE pz;
	DAT_PZ_PARAM param;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT set = { .as_64 = 0x1234567890ull }, got;

	OK(open_ia("good", &ia));
	OK(dats_get_ia_handle(ia, &own));
	OK(dat_pz_create(ia, &pz));				/* REG-48 */
	OK(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	CHECK(param.ia_handle == own);				/* REG-44 */
	RETURNS(dat_pz_create(own, &pz), BAD_IA);		/* REG-45 */
	RETURNS(dat_ia_query(own, NULL, 0, NULL, 0, NULL), BAD_IA);
	RETURNS(dat_ia_close(own, DAT_CLOSE_DEFAULT), BAD_IA);
	OK(dat_get_handle_type(ia, &type));			/* HND-2 */
	CHECK(type == DAT_HANDLE_TYPE_IA);
	OK(dat_get_handle_type(pz, &type));
	CHECK(type == DAT_HANDLE_TYPE_PZ);
	OK(dat_set_consumer_context(ia, set));
	OK(dat_get_consumer_context(ia, &got));
	CHECK(got.as_64 == set.as_64);
	OK(dat_get_consumer_context(pz, &got));
	CHECK(got.as_64 == 0);
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
}

static void REG_44_45_48_handles_of_objects(void **state)
{
	(void)state;
	silent("good.conf", objects);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(REG_1_to_5_wrong_arguments),
		cmocka_unit_test(REG_6_to_8_keys_match_exactly),
		cmocka_unit_test(REG_8_a_threadsafe_entry_serves_all),
		cmocka_unit_test(REG_10_11_12_16_19_20_numbers_and_lifetime),
		cmocka_unit_test(REG_13_thousands_of_opens),
		cmocka_unit_test(REG_9_a_failed_open_unloads),
		cmocka_unit_test(REG_14_an_init_that_registers_nothing),
		cmocka_unit_test(a_library_stays_for_the_other_names_it_registered),
		cmocka_unit_test(unusual_inits_do_no_harm),
		cmocka_unit_test(REG_17_18_open_queries_the_ia),
		cmocka_unit_test(REG_21_22_closed_handles),
		cmocka_unit_test(REG_23_24_a_failed_close_leaves_the_handle),
		cmocka_unit_test(REG_25_a_provider_that_reports_another_version),
		cmocka_unit_test(REG_47_close_flags_go_through),
		cmocka_unit_test(REG_26_exit_with_open_ias),
		cmocka_unit_test(REG_40_to_43_dats_get_ia_handle),
		cmocka_unit_test(REG_44_45_48_handles_of_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
