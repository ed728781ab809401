/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hw.c - the ways in which calls of libibverbs and librdmacm return errors; librdmacm stays loaded once it was in
 * use. The program is linked without it. */
#include <dlfcn.h>
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

UNIT_TEST(result_or_errno_is_the_error)
{
	static const struct { const char *what; int result, errno_then, error; } rows[] = {
		{ "success, whatever errno says", 0, EINVAL, 0 },
		{ "a positive result", ENOMEM, EINVAL, ENOMEM },
		{ "a negative result", -ENOMEM, EINVAL, ENOMEM },
		{ "a positive result that looks like -1", EPERM, EINVAL, EPERM },
		{ "-1, with the error in errno", -1, ENOMEM, ENOMEM },
		{ "-1 without errno", -1, 0, EIO },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		errno = rows[i].errno_then;
		if (hw_errno(rows[i].result) != rows[i].error)
			fail_msg("%s", rows[i].what);
	}
}

UNIT_TEST(null_has_the_error_in_errno)
{
	errno = ENOMEM;
	assert_int_equal(hw_null_errno(), ENOMEM);
	errno = 0;
	assert_int_equal(hw_null_errno(), EIO);
}

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
