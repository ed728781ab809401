/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of IA handles. */
#include "dat/ia_handle.h"
#include "test/unit/unit.h"

static char ias[IA_HANDLE_LIMIT];
#define PROVIDER ((struct provider *)ias)
#define NUMBER(handle) ((uintptr_t)(handle))
#define HANDLE(number) ((DAT_IA_HANDLE)(uintptr_t)(number))

static DAT_IA_HANDLE open_handle(void *ia)
{
	DAT_IA_HANDLE handle = ia_handle_reserve();

	if (handle)
		ia_handle_publish(handle, ia, PROVIDER);
	return handle;
}

UNIT_FIXTURE(fini) { ia_handle_fini(); }

#define TEST(name) UNIT_TEST_WITH(name, NULL, fini)

TEST(a_reserved_handle_is_not_open)
{
	DAT_IA_HANDLE handle = ia_handle_reserve();
	struct provider *provider;
	DAT_IA_HANDLE ia;

	assert_int_equal(NUMBER(handle), 1);
	assert_null(ia_from(handle));
	assert_false(ia_handle_close(handle, &ia, &provider));
	ia_handle_publish(handle, &ias[0], PROVIDER);
	assert_ptr_equal(ia_from(handle), &ias[0]);
	assert_ptr_equal(ia_handle_of(&ias[0]), handle);
}

TEST(every_number_can_be_used)
{
	for (unsigned i = 1; i < IA_HANDLE_LIMIT; i++)
		assert_non_null(open_handle(&ias[i]));
	assert_null(ia_handle_reserve());
	assert_ptr_equal(ia_from(HANDLE(65535)), &ias[65535]);
	ia_handle_release(HANDLE(65535));
	assert_int_equal(NUMBER(open_handle(&ias[1])), 65535);
}

TEST(invalid_handle_has_no_ia)
{
	open_handle(&ias[0]);
	assert_null(ia_from(NULL));
	assert_null(ia_from(HANDLE(2)));
	assert_null(ia_from(HANDLE(65535)));
	assert_null(ia_from(&ias[0]));
	assert_null(ia_handle_of(NULL));
	assert_null(ia_handle_of(&ias[1]));
}

TEST(one_thread_closes_at_a_time)
{
	DAT_IA_HANDLE handle = open_handle(&ias[0]), ia;
	struct provider *provider;

	assert_true(ia_handle_close(handle, &ia, &provider));
	assert_ptr_equal(ia, &ias[0]);
	assert_ptr_equal(provider, PROVIDER);
	assert_false(ia_handle_close(handle, &ia, &provider));
	assert_ptr_equal(ia_from(handle), &ias[0]);	/* until the close ends */
	assert_ptr_equal(ia_handle_of(&ias[0]), handle);
	ia_handle_keep(handle);
	assert_true(ia_handle_close(handle, &ia, &provider));
	ia_handle_release(handle);
	assert_null(ia_from(handle));
	assert_null(ia_handle_of(&ias[0]));
	assert_false(ia_handle_close(handle, &ia, &provider));
}

/* The provider frees an IA in its close; the next open may get the same address. */
TEST(an_address_belongs_to_the_ia_that_is_not_closing)
{
	DAT_IA_HANDLE old = open_handle(&ias[0]), new, ia;
	struct provider *provider;

	assert_true(ia_handle_close(old, &ia, &provider));
	new = open_handle(&ias[0]);
	assert_ptr_equal(ia_handle_of(&ias[0]), new);
	ia_handle_release(old);
	assert_ptr_equal(ia_handle_of(&ias[0]), new);
}

UNIT_MAIN(NULL, NULL)
