/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hw_errno.c - the ways in which calls of libibverbs and librdmacm return errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "dapl/verbs/hw_errno.h"

static void success_is_no_error_whatever_errno_says(void **state)
{
	(void)state;
	errno = EINVAL;
	assert_int_equal(hw_errno(0), 0);
}

static void positive_result_is_the_error(void **state)
{
	(void)state;
	errno = EINVAL;
	assert_int_equal(hw_errno(ENOMEM), ENOMEM);
	assert_int_equal(hw_errno(EPERM), EPERM);
}

static void negative_result_is_the_error(void **state)
{
	(void)state;
	errno = EINVAL;
	assert_int_equal(hw_errno(-ENOMEM), ENOMEM);
	assert_int_equal(hw_errno(-ENOENT), ENOENT);
}

static void minus_one_has_the_error_in_errno(void **state)
{
	(void)state;
	errno = ENOMEM;
	assert_int_equal(hw_errno(-1), ENOMEM);
}

static void minus_one_without_errno_is_an_error(void **state)
{
	(void)state;
	errno = 0;
	assert_int_equal(hw_errno(-1), EIO);
}

static void null_has_the_error_in_errno(void **state)
{
	(void)state;
	errno = ENOMEM;
	assert_int_equal(hw_null_errno(), ENOMEM);
	errno = 0;
	assert_int_equal(hw_null_errno(), EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_is_no_error_whatever_errno_says),
		cmocka_unit_test(positive_result_is_the_error),
		cmocka_unit_test(negative_result_is_the_error),
		cmocka_unit_test(minus_one_has_the_error_in_errno),
		cmocka_unit_test(minus_one_without_errno_is_an_error),
		cmocka_unit_test(null_has_the_error_in_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
