/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_closed.c - objects that a provider left behind: their calls return an error, and the oldest are freed. */
#include "dat/closed.h"
#include <dat/dat_registry.h>
#include "dat/error.h"
#include "test/unit/unit.h"

enum { KEPT = 256 };

static void *freed[2 * KEPT];
static unsigned freed_count;

/* closed.c is linked with it instead of free(). */
EXTEND(free)
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

UNIT_FIXTURE(tear_down)
{
	closed_fini();
	freed_count = 0;
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, tear_down)

TEST(calls_of_a_kept_object_return_invalid_handle)
{
	const DAT_PROVIDER **object = object_new();

	dats_keep_closed((void *)object);
	assert_int_equal((*object)->lmr_free_func((DAT_LMR_HANDLE)object), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_int_equal((*object)->ia_open_func(NULL, 0, NULL, NULL), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_int_equal((*object)->evd_free_func((DAT_EVD_HANDLE)object), DAT_ERROR(DAT_INVALID_HANDLE, 0));
	assert_non_null((*object)->device_name);
	assert_null((*object)->extension);
}

TEST(oldest_object_makes_room)
{
	void *first = object_new(), *second = object_new();

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

TEST(end_frees_what_is_kept_once)
{
	freed_count = 0;
	dats_keep_closed(object_new());
	dats_keep_closed(object_new());
	closed_fini();
	assert_int_equal(freed_count, 2);
	closed_fini();
	assert_int_equal(freed_count, 2);
}

UNIT_MAIN(NULL, NULL)
