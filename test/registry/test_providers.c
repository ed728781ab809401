/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The calls for providers, the list, and queries without an open: REG-27 to REG-39,
 * EXT-1, 2, 10, 11, 12. */
#include "test/registry/scenario.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia);
static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask,
			   DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK mask,
			   DAT_PROVIDER_ATTR *attr);
static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);

static const DAT_PROVIDER table = {
	.device_name = "dynamic",
	.ia_open_func = ia_open,
	.ia_query_func = ia_query,
	.ia_close_func = ia_close,
};
static const DAT_PROVIDER *the_ia = &table;
static const DAT_PROVIDER_INFO info = { "dynamic", 2, 0, DAT_FALSE };

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	(void)name, (void)qlen, (void)evd;
	*ia = &the_ia;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask,
			   DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK mask,
			   DAT_PROVIDER_ATTR *attr)
{
	(void)ia, (void)evd, (void)ia_mask, (void)ia_attr;
	if (mask)
		attr->dapl_version_major = 2;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	(void)ia, (void)flags;
	return DAT_SUCCESS;
}

/* --- add and remove -------------------------------------------------------------------- */

static void add_and_remove(void)
{
	DAT_PROVIDER_INFO other = info;
	DAT_IA_HANDLE ia;

	RETURNS(dat_registry_add_provider(NULL, &info),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(dat_registry_add_provider(&table, NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	memset(other.ia_name, 'n', sizeof(other.ia_name));
	RETURNS(dat_registry_add_provider(&table, &other),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dat_registry_remove_provider(&table, &info), NOT_FOUND);

	OK(dat_registry_add_provider(&table, &info));
	RETURNS(dat_registry_add_provider(&table, &info),
		FAILURE(DAT_PROVIDER_ALREADY_REGISTERED, 0));
	other = info;
	other.dapl_version_minor = 1;
	OK(dat_registry_add_provider(&table, &other));
	OK(dat_registry_remove_provider(&table, &other));

	OK(open_ia("dynamic", &ia));
	RETURNS(dat_registry_remove_provider(&table, &info), FAILURE(DAT_PROVIDER_IN_USE, 0));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	OK(dat_registry_remove_provider(&table, &info));
	RETURNS(dat_registry_remove_provider(&table, &info), NOT_FOUND);
	RETURNS(open_ia("dynamic", &ia), NOT_FOUND);
}

static void REG_27_to_33_programs_add_and_remove_providers(void **state)
{
	(void)state;
	silent_but_unknown("/dev/null", add_and_remove, 1);
}

static void open_nothing(void)
{
	static const DAT_PROVIDER empty;
	DAT_IA_HANDLE ia;

	OK(dat_registry_add_provider(&empty, &info));
	RETURNS(open_ia("dynamic", &ia), FAILURE(DAT_NOT_IMPLEMENTED, 0));
	OK(dat_registry_remove_provider(&empty, &info));
}

static void an_empty_table_cannot_be_opened(void **state)
{
	(void)state;
	silent("/dev/null", open_nothing);
}

/* A provider registered by code comes before an entry of the same key. */
static void shadow_an_entry(void)
{
	DAT_PROVIDER_INFO good = { "good", 2, 0, DAT_FALSE };
	DAT_IA_HANDLE ia;

	OK(dat_registry_add_provider(&table, &good));
	CHECK(!strcmp(listed(), "good "));
	OK(open_ia("good", &ia));
	CHECK(noted("init good 2.0 nonthreadsafe []") == 0);
	RETURNS(dat_ia_close(ia, DAT_CLOSE_DEFAULT), NOT_FOUND);	/* device_name differs */
	OK(dat_registry_remove_provider(&table, &good));
	OK(open_ia("good", &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	CHECK(noted("init good 2.0 nonthreadsafe []") == 1);
}

static void the_dynamic_registry_comes_first(void **state)
{
	(void)state;
	silent("good.conf", shadow_an_entry);
}

/* --- the list ----------------------------------------------------------------------------- */

static void list_rules(void)
{
	DAT_PROVIDER_INFO infos[8], *list[8];
	DAT_COUNT count = 77;

	for (int i = 0; i < 8; i++)
		list[i] = &infos[i];
	memset(infos, 'z', sizeof(infos));
	RETURNS(dat_registry_list_providers(8, NULL, list),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dat_registry_list_providers(8, &count, NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	CHECK(count == 77);
	RETURNS(dat_registry_list_providers(0, &count, NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	CHECK(count == 3);
	OK(dat_registry_list_providers(8, &count, list));
	CHECK(count == 3 && !strcmp(infos[0].ia_name, "x") && !strcmp(infos[2].ia_name, "x"));
	CHECK(!infos[0].is_thread_safe && infos[2].is_thread_safe);
	CHECK(infos[0].dapl_version_major == 2 && infos[0].dapl_version_minor == 0);
	CHECK(infos[3].ia_name[0] == 'z');
	memset(infos, 'z', sizeof(infos));
	OK(dat_registry_list_providers(2, &count, list));
	CHECK(count == 2 && infos[2].ia_name[0] == 'z');
	OK(dat_registry_list_providers(-1, &count, list));
	CHECK(count == 0);
	CHECK(noted("init x 2.0 nonthreadsafe []") == 0);
	OK(dat_registry_add_provider(&table, &info));
	CHECK(!strcmp(listed(), "x y x dynamic "));
	OK(dat_registry_remove_provider(&table, &info));
}

static void REG_34_to_39_the_list_names_providers_of_both_kinds(void **state)
{
	(void)state;
	silent("duplicates.conf", list_rules);
}

static void related(void)
{
	DAT_HA_RELATIONSHIP answer = DAT_HA_TRUE;

	OK(dat_registry_providers_related("x", "y", &answer));
	CHECK(answer == DAT_HA_UNKNOWN);
	RETURNS(dat_registry_providers_related("x", "z", &answer), NOT_FOUND);
	RETURNS(dat_registry_providers_related(NULL, "y", &answer),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(dat_registry_providers_related("x", NULL, &answer),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dat_registry_providers_related("x", "y", NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
}

static void whether_ias_are_related_is_unknown(void **state)
{
	(void)state;
	silent("duplicates.conf", related);
}

/* --- extensions ------------------------------------------------------------------------------ */

static void extension_ops(void)
{
	DAT_IA_HANDLE plain, extended, own;

	RETURNS(dat_extension_op(DAT_HANDLE_NULL, 0),
		FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));	/* EXT-2 */
	OK(open_ia("good", &plain));
	RETURNS(dat_extension_op(plain, 1, 5), FAILURE(DAT_NOT_IMPLEMENTED, 0));	/* EXT-1 */
	CHECK(noted("extended good op 1 5") == 0);
	OK(open_ia("extensions", &extended));
	OK(dat_extension_op(extended, 1, 5));
	CHECK(noted("extended extensions op 1 5") == 1);
	OK(dats_get_ia_handle(extended, &own));
	OK(dat_extension_op(own, 1, 6));
	CHECK(noted("extended extensions op 1 6") == 1);
	RETURNS(dat_extension_op(extended, 999, 0), FAILURE(DAT_NOT_IMPLEMENTED, 0));	/* EXT-12 */
	OK(dat_ia_close(extended, DAT_CLOSE_DEFAULT));
	RETURNS(dat_extension_op(extended, 1, 5),
		FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	OK(dat_ia_close(plain, DAT_CLOSE_DEFAULT));
}

static void EXT_1_2_12_extended_operations(void **state)
{
	(void)state;
	silent("behaviours.conf", extension_ops);
}

static DAT_RETURN query_open(const char *name, DAT_HANDLE *handle, DAT_IA_ATTR *attr)
{
	static DAT_PROVIDER_ATTR provider_attr;

	return dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, name, handle,
				DAT_IA_FIELD_ALL, attr, DAT_PROVIDER_FIELD_ALL, &provider_attr);
}

static DAT_RETURN query_close(DAT_HANDLE handle)
{
	return dat_extension_op(handle, DAT_CLOSE_EXTENSION_BASE);
}

static void queries(void)
{
	DAT_HANDLE one, two;
	DAT_IA_ATTR attr;
	DAT_IA_HANDLE ia;

	OK(query_open("good", &one, &attr));
	CHECK(attr.max_eps == 77);
	CHECK(noted("open-query good ia all provider all") == 1 && noted("open good 8") == 0);
	CHECK((*(DAT_PROVIDER **)one)->device_name != NULL);
	OK(query_open("good", &two, &attr));
	CHECK(one != two);
	OK(query_close(one));
	RETURNS(query_close(one), BAD_IA);
	CHECK(noted("fini good") == 0);
	OK(open_ia("good", &ia));
	OK(query_close(two));
	CHECK(noted("fini good") == 0);
	RETURNS(query_close(ia), BAD_IA);
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini good") == 1);
}

static void EXT_10_queries_without_an_open(void **state)
{
	(void)state;
	silent("behaviours.conf", queries);
}

static void wrong_queries(void)
{
	DAT_HANDLE handle;
	DAT_IA_ATTR attr;

	RETURNS(query_open("unknown", &handle, &attr), NOT_FOUND);	/* EXT-11 */
	RETURNS(query_open(NULL, &handle, &attr),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	RETURNS(query_open("good", NULL, &attr),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
	CHECK(noted("fini good") == 1);
	RETURNS(query_close(DAT_HANDLE_NULL), BAD_IA);
	RETURNS(query_close(&attr), BAD_IA);
	RETURNS(query_open("open-query-fails", &handle, &attr), FAILURE(DAT_INTERNAL_ERROR, 0));
	CHECK(noted("fini open-query-fails") == 1);
	OK(query_open("close-query-fails", &handle, &attr));
	RETURNS(query_close(handle), FAILURE(DAT_INTERNAL_ERROR, 0));
	OK(query_close(handle));
}

static void EXT_11_queries_that_fail(void **state)
{
	(void)state;
	silent("behaviours.conf", wrong_queries);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(REG_27_to_33_programs_add_and_remove_providers),
		cmocka_unit_test(an_empty_table_cannot_be_opened),
		cmocka_unit_test(the_dynamic_registry_comes_first),
		cmocka_unit_test(REG_34_to_39_the_list_names_providers_of_both_kinds),
		cmocka_unit_test(whether_ias_are_related_is_unknown),
		cmocka_unit_test(EXT_1_2_12_extended_operations),
		cmocka_unit_test(EXT_10_queries_without_an_open),
		cmocka_unit_test(EXT_11_queries_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
