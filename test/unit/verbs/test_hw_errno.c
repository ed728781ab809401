/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hw_errno.c - the ways in which calls of libibverbs and librdmacm return errors. */
#include "dapl/verbs/hw_errno.h"
#include "test/unit/unit.h"

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

UNIT_MAIN(NULL, NULL)
