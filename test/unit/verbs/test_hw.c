/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hw.c - the ways in which calls of libibverbs and librdmacm return errors; librdmacm stays loaded once it was in
 * use. The program is linked without it. */
#include <dlfcn.h>
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

/* --- errors --------------------------------------------------------------------------------------- */

UNIT_TEST(success_is_no_error_whatever_errno_says)
{
	errno = EINVAL;
	assert_int_equal(hw_errno(0), 0);
}

UNIT_TEST(positive_result_is_the_error)
{
	errno = EINVAL;
	assert_int_equal(hw_errno(ENOMEM), ENOMEM);
	assert_int_equal(hw_errno(EPERM), EPERM);
}

UNIT_TEST(negative_result_is_the_error)
{
	errno = EINVAL;
	assert_int_equal(hw_errno(-ENOMEM), ENOMEM);
	assert_int_equal(hw_errno(-ENOENT), ENOENT);
}

UNIT_TEST(minus_one_has_the_error_in_errno)
{
	errno = ENOMEM;
	assert_int_equal(hw_errno(-1), ENOMEM);
}

UNIT_TEST(minus_one_without_errno_is_an_error)
{
	errno = 0;
	assert_int_equal(hw_errno(-1), EIO);
}

UNIT_TEST(null_has_the_error_in_errno)
{
	errno = ENOMEM;
	assert_int_equal(hw_null_errno(), ENOMEM);
	errno = 0;
	assert_int_equal(hw_null_errno(), EIO);
}

/* --- librdmacm ------------------------------------------------------------------------------------ */

#define LIBRARY "librdmacm.so.1"

static bool is_loaded(void)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

	return library && !dlclose(library);
}

UNIT_TEST(library_that_is_not_loaded_is_left_alone)
{
	hw_keep_librdmacm();
	assert_false(is_loaded());
}

/* Twice, as each device that is opened calls it. */
UNIT_TEST(loaded_library_stays_loaded)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY);

	if (!library)
		skip();		/* linked statically */
	dlclose(library);
	assert_false(is_loaded());
	library = dlopen(LIBRARY, RTLD_LAZY);
	assert_non_null(library);
	hw_keep_librdmacm();
	hw_keep_librdmacm();
	dlclose(library);
	assert_true(is_loaded());
}

UNIT_MAIN(NULL, NULL)
