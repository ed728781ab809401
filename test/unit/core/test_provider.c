/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_provider.c - the library as the registry sees it: entries from dat_provider_init to dat_provider_fini, the
 * table of calls, and the calls that take any handle (ia/provider.c). */
#include "dapl/core/ia/ia.h"
#include "dapl/core/ia/provider.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

#define BAD_FIRST DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);
DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

static const DAT_PROVIDER_INFO first = { .ia_name = "ofa-v2-first", .dapl_version_major = 2 };
static const DAT_PROVIDER_INFO second = { .ia_name = "ofa-v2-second", .dapl_version_major = 2 };
static const DAT_PROVIDER *added, *removed;	/* the last one */
static unsigned adds, removes;
static bool no_memory;

/* The registry. */
REPLACE(dat_registry_add_provider)
DAT_RETURN __wrap_dat_registry_add_provider(const DAT_PROVIDER *table, const DAT_PROVIDER_INFO *info)
{
	assert_string_equal(table->device_name, info->ia_name);
	added = table;
	adds++;
	return DAT_SUCCESS;
}

REPLACE(dat_registry_remove_provider)
DAT_RETURN __wrap_dat_registry_remove_provider(const DAT_PROVIDER *table, const DAT_PROVIDER_INFO *info)
{
	assert_string_equal(table->device_name, info->ia_name);
	removed = table;
	removes++;
	return DAT_SUCCESS;
}

__attribute__((visibility("default"))) void *__wrap_calloc(size_t n, size_t size);	/* for libdat2, too */
UNIT_FAIL_CALLOC(no_memory)

UNIT_FIXTURE(set_up)
{
	added = removed = NULL;
	adds = removes = 0;
	core_endpoint_open(16, DAT_EVD_DTO_FLAG, 4);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close_unused)

/* --- entries --------------------------------------------------------------------------- */

CASE(entry_is_known_from_init_to_fini)
{
	struct dapl_entry *entry;

	assert_null(dapl_entry_find("ofa-v2-first"));
	dat_provider_init(&first, "eth1 0");
	assert_int_equal(adds, 1);
	entry = dapl_entry_find("ofa-v2-first");
	assert_non_null(entry);
	assert_ptr_equal(&entry->table, added);
	assert_string_equal(entry->params, "eth1 0");
	assert_int_equal(entry->info.dapl_version_major, 2);
	assert_null(dapl_entry_find("ofa-v2-second"));
	dat_provider_fini(&first);
	assert_int_equal(removes, 1);
	assert_ptr_equal(removed, &entry->table);
	assert_null(dapl_entry_find("ofa-v2-first"));
	assert_ptr_equal(entry->table.ia_open_func, dapl_ia_open);	/* stale handles point at the table */
}

/* Two entries of dat.conf may have one name, for two versions of DAT. A thread may be opening a device when the other
 * is initialised. */
CASE(params_of_an_earlier_init_stay)
{
	const char *earlier;
	struct dapl_entry *entry;

	dat_provider_init(&first, "eth1 0");
	entry = dapl_entry_find("ofa-v2-first");
	earlier = entry->params;
	dat_provider_init(&first, "eth2 0");
	assert_string_equal(entry->params, "eth2 0");
	assert_string_equal(earlier, "eth1 0");
	dat_provider_init(&first, "eth1 0");
	assert_ptr_equal(entry->params, earlier);	/* each text is kept once */
	for (int i = 0; i < 3; i++)
		dat_provider_fini(&first);
	assert_null(dapl_entry_find("ofa-v2-first"));
}

CASE(each_name_has_an_entry)
{
	struct dapl_entry *entry;

	dat_provider_init(&first, "eth1 0");
	entry = dapl_entry_find("ofa-v2-first");
	dat_provider_init(&second, "eth2 0");
	assert_ptr_not_equal(dapl_entry_find("ofa-v2-second"), entry);
	assert_string_equal(dapl_entry_find("ofa-v2-second")->params, "eth2 0");
	assert_string_equal(entry->params, "eth1 0");
	dat_provider_fini(&first);
	assert_null(dapl_entry_find("ofa-v2-first"));
	assert_non_null(dapl_entry_find("ofa-v2-second"));
	dat_provider_fini(&second);
}

CASE(entry_lasts_for_as_many_finis_as_inits)
{
	struct dapl_entry *entry;

	dat_provider_init(&first, "eth1 0");
	entry = dapl_entry_find("ofa-v2-first");
	dat_provider_init(&first, "eth3 0");
	assert_ptr_equal(dapl_entry_find("ofa-v2-first"), entry);
	assert_string_equal(entry->params, "eth3 0");	/* those of the present row */
	dat_provider_fini(&first);
	assert_non_null(dapl_entry_find("ofa-v2-first"));
	dat_provider_fini(&first);
	assert_null(dapl_entry_find("ofa-v2-first"));
	dat_provider_fini(&first);	/* one too many */
	dat_provider_init(&first, NULL);
	assert_ptr_equal(dapl_entry_find("ofa-v2-first"), entry);
	assert_string_equal(entry->params, "");
	dat_provider_fini(&first);
	assert_null(dapl_entry_find("ofa-v2-first"));
}

CASE(unknown_entries_are_ignored)
{
	const DAT_PROVIDER_INFO unknown = { .ia_name = "ofa-v2-unknown" };

	dat_provider_init(NULL, "eth1 0");
	dat_provider_fini(NULL);
	dat_provider_fini(&unknown);
	assert_int_equal(adds + removes, 0);
}

CASE(entry_without_memory_is_not_registered)
{
	const DAT_PROVIDER_INFO third = { .ia_name = "ofa-v2-third" };

	no_memory = true;
	dat_provider_init(&third, "eth1 0");
	no_memory = false;
	assert_int_equal(adds, 0);
	assert_null(dapl_entry_find("ofa-v2-third"));
	dat_provider_init(&third, "eth1 0");
	assert_non_null(dapl_entry_find("ofa-v2-third"));
	dat_provider_fini(&third);
}

CASE(ia_of_an_unknown_name_is_not_opened)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE handle = NULL;

	dat_provider_init(&first, "eth1 0");
	assert_int_equal(added->ia_open_func((DAT_NAME_PTR)"ofa-v2-other", 8, &async, &handle),
			 DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	dat_provider_fini(&first);
	assert_int_equal(added->ia_open_func((DAT_NAME_PTR)"ofa-v2-first", 8, &async, &handle),
			 DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	assert_null(handle);
	assert_null(core_device.opened);
}

static const DAT_PROVIDER *table(void)
{
	if (!added) {
		dat_provider_init(&first, "");
		dat_provider_fini(&first);
	}
	return added;
}

CASE(calls_for_any_handle_check_their_arguments)
{
	struct dapl_ep *freed = core_ep_new(ia, evd, 4);
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_HANDLE_TYPE type;

	core_ep_free(freed);
	for (int i = 0; i < 2; i++) {
		DAT_HANDLE handle = i ? (DAT_HANDLE)freed : NULL;

		assert_int_equal(table()->set_consumer_context_func(handle, context), BAD_FIRST);
		assert_int_equal(table()->get_consumer_context_func(handle, &context), BAD_FIRST);
		assert_int_equal(table()->get_handle_type_func(handle, &type), BAD_FIRST);
	}
	assert_int_equal(context.as_64, 5);
	assert_int_equal(table()->get_consumer_context_func((DAT_HANDLE)ep, NULL), BAD_PARAM(2));
	assert_int_equal(table()->get_handle_type_func((DAT_HANDLE)ep, NULL), BAD_PARAM(2));
	assert_int_equal(ep->obj.calls + freed->obj.calls, 0);
}

CASE(no_provider_takes_over_from_another)
{
	DAT_BOOLEAN related = DAT_TRUE;
	char name[] = "ofa-v2-second";

	assert_int_equal(table()->ia_ha_related_func((DAT_IA_HANDLE)ia, name, &related), DAT_SUCCESS);
	assert_int_equal(related, DAT_FALSE);
	assert_int_equal(table()->ia_ha_related_func(NULL, name, &related), BAD_HANDLE(IA));
	assert_int_equal(table()->ia_ha_related_func((DAT_IA_HANDLE)ep, name, &related), BAD_HANDLE(IA));
	assert_int_equal(table()->ia_ha_related_func((DAT_IA_HANDLE)ia, NULL, &related), BAD_PARAM(2));
	assert_int_equal(table()->ia_ha_related_func((DAT_IA_HANDLE)ia, name, NULL), BAD_PARAM(3));
	assert_int_equal(ia->obj.calls, 0);
}

static DAT_RETURN extension(void *handle, int op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = dapl_extensions((DAT_HANDLE)handle, (DAT_EXTENDED_OP)op, args);
	va_end(args);
	return ret;
}

CASE(extensions_are_reached_by_their_old_name)
{
	DAT_UINT64 value = 0;

	ep->counters[DCNT_EP_POST_SEND] = 3;
	assert_int_equal(extension(ep, DAT_IB_QUERY_COUNTERS_OP, DCNT_EP_POST_SEND, &value, 0), DAT_SUCCESS);
	assert_int_equal(value, 3);
}

UNIT_MAIN(NULL, NULL)
