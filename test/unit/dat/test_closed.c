/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_closed.c - objects that a provider left behind: their calls return an error, and the oldest are freed. */
#include "dat/closed.h"
#include <dat/dat_registry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dat/error.h"

enum { KEPT = 256 };

static void *freed[2 * KEPT];
static unsigned freed_count;

/* closed.c is linked with it instead of free(). */
void __real_free(void *at);
void __wrap_free(void *at);
void __wrap_free(void *at)
{
	if (at && freed_count < 2 * KEPT)
		freed[freed_count++] = at;
	__real_free(at);
}

static const DAT_PROVIDER **object_new(void)
{
	const DAT_PROVIDER **object = malloc(64);

	assert_non_null(object);
	*object = NULL;
	return object;
}

static int tear_down(void **state)
{
	(void)state;
	closed_fini();
	freed_count = 0;
	return 0;
}

static void calls_of_a_kept_object_return_invalid_handle(void **state)
{
	const DAT_PROVIDER **object = object_new();

	(void)state;
	dats_keep_closed((void *)object);
	assert_int_equal((*object)->lmr_free_func((DAT_LMR_HANDLE)object), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_int_equal((*object)->ia_open_func(NULL, 0, NULL, NULL), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_int_equal((*object)->evd_free_func((DAT_EVD_HANDLE)object), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_non_null((*object)->device_name);
	assert_null((*object)->extension);
}

static void oldest_object_makes_room(void **state)
{
	void *first = object_new(), *second = object_new();

	(void)state;
	freed_count = 0;
	dats_keep_closed(first);
	dats_keep_closed(second);
	for (int i = 2; i < KEPT; i++)
		dats_keep_closed(object_new());
	assert_int_equal(freed_count, 0);
	dats_keep_closed(object_new());
	assert_int_equal(freed_count, 1);
	assert_ptr_equal(freed[0], first);
	dats_keep_closed(object_new());
	assert_int_equal(freed_count, 2);
	assert_ptr_equal(freed[1], second);
}

static void end_frees_what_is_kept_once(void **state)
{
	(void)state;
	freed_count = 0;
	dats_keep_closed(object_new());
	dats_keep_closed(object_new());
	closed_fini();
	assert_int_equal(freed_count, 2);
	closed_fini();
	assert_int_equal(freed_count, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(calls_of_a_kept_object_return_invalid_handle),
		TEST(oldest_object_makes_room),
		TEST(end_frees_what_is_kept_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
