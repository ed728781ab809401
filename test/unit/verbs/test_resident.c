/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_resident.c - librdmacm stays loaded once it was in use (resident.c). The program is linked without it. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "dapl/verbs/resident.h"

#define LIBRARY "librdmacm.so.1"

static bool is_loaded(void)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

	return library && !dlclose(library);
}

static void library_that_is_not_loaded_is_left_alone(void **state)
{
	(void)state;
	hw_keep_librdmacm();
	assert_false(is_loaded());
}

/* Twice, as each device that is opened calls it. */
static void loaded_library_stays_loaded(void **state)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY);

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_that_is_not_loaded_is_left_alone),
		cmocka_unit_test(loaded_library_stays_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
