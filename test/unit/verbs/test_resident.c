/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_resident.c - librdmacm stays loaded once it was in use (resident.c). The program is linked without it. */
#include <dlfcn.h>
#include "dapl/verbs/resident.h"
#include "test/unit/unit.h"

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
