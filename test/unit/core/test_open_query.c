/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_open_query.c - attributes without an open IA: what a query tells, which arguments it refuses, and that the
 * device is closed and the handle left alone whatever fails (ia/ext.c). */
#include "dapl/core/ia/ext.h"
#include "dapl/core/ia/ia.h"
#include "dapl/core/ia/provider.h"
#include "test/unit/core/core_device.h"
#include "test/unit/descriptors.h"
#include "test/unit/unit.h"

static struct dapl_entry entry = { .info = { .ia_name = "ofa-v2-test", .dapl_version_major = 2, .dapl_version_minor = 1,
	.is_thread_safe = DAT_TRUE }, .params = (char *)"eth7 0" };
static char untouched;	/* its address is a handle that a failed call leaves */
static unsigned descriptors;
static DAT_HANDLE handle;
static DAT_IA_ATTR ia_attr;
static DAT_PROVIDER_ATTR provider_attr;

/* The registry has initialised one entry. */
REPLACE(dapl_entry_find)
struct dapl_entry *__wrap_dapl_entry_find(const char *name) { return strcmp(name, entry.info.ia_name) ? NULL : &entry; }

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .attr = { .mtu = 1500, .limits = { .max_qp = 33 } } };
	handle = (DAT_HANDLE)&untouched;
	ia_attr.max_eps = provider_attr.dapl_version_minor = 99;
	descriptors = open_descriptors();
}

/* The device is closed, and the service thread has ended with its descriptors. */
UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.opens, 0);
	assert_int_equal(open_descriptors(), descriptors);
}

/* dat_extension_op() as the registry hands it to the provider. */
static DAT_RETURN call(const void *of, int op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = dapl_extension_op((DAT_HANDLE)(uintptr_t)of, (DAT_EXTENDED_OP)op, args);
	va_end(args);
	return ret;
}

static DAT_RETURN open_query(const char *name, DAT_HANDLE *to, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia,
			     DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider)
{
	return call(name, DAT_IB_OPEN_QUERY_OP, to, ia_mask, ia, provider_mask, provider);
}

static DAT_RETURN open_all(void)
{
	return open_query("ofa-v2-test", &handle, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL, &provider_attr);
}

static DAT_RETURN close_query(const void *of) { return call(of, DAT_IB_CLOSE_QUERY_OP); }

UNIT_CASE(queries_are_independent)
{
	DAT_HANDLE first;

	assert_int_equal(open_all(), DAT_SUCCESS);
	first = handle;
	assert_int_equal(open_all(), DAT_SUCCESS);
	assert_ptr_not_equal(handle, first);
	assert_int_equal(close_query(first), DAT_SUCCESS);
	assert_non_null(provider_attr.provider_specific_attr[0].name);	/* those of the second one */
	assert_int_not_equal(strlen(provider_attr.provider_specific_attr[0].name), 0);
	assert_int_equal(close_query(handle), DAT_SUCCESS);
}

static void check_refused(DAT_RETURN ret, DAT_RETURN_TYPE type)
{
	assert_int_equal(DAT_GET_TYPE(ret), type);
	assert_ptr_equal(handle, &untouched);
	assert_int_equal(ia_attr.max_eps, 99);
	assert_int_equal(provider_attr.dapl_version_minor, 99);
}

UNIT_CASE(arguments_are_checked)
{
	const DAT_IA_ATTR_MASK all_ia = DAT_IA_FIELD_ALL;
	const DAT_PROVIDER_ATTR_MASK all = DAT_PROVIDER_FIELD_ALL;

	assert_int_equal(open_query("ofa-v2-other", &handle, all_ia, &ia_attr, all, &provider_attr),
			 DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	assert_null(core_device.opened);
	check_refused(open_query("ofa-v2-test", NULL, all_ia, &ia_attr, all, &provider_attr), DAT_INVALID_PARAMETER);
	assert_int_equal(open_query("ofa-v2-test", NULL, all_ia, &ia_attr, all, &provider_attr), BAD_PARAM(2));
	check_refused(open_query("ofa-v2-test", &handle, ~all_ia, &ia_attr, all, &provider_attr),
		      DAT_INVALID_PARAMETER);
	check_refused(open_query("ofa-v2-test", &handle, all_ia, NULL, all, &provider_attr), DAT_INVALID_PARAMETER);
	check_refused(open_query("ofa-v2-test", &handle, all_ia, &ia_attr, ~all, &provider_attr),
		      DAT_INVALID_PARAMETER);
	check_refused(open_query("ofa-v2-test", &handle, all_ia, &ia_attr, all, NULL), DAT_INVALID_PARAMETER);
}

UNIT_CASE(failed_device_changes_nothing)
{
	core_device.open_error = ENODEV;
	check_refused(open_all(), DAT_PROVIDER_NOT_FOUND);
	core_device.open_error = EINVAL;	/* as of dat_ia_open: the entry is no good */
	check_refused(open_all(), DAT_INVALID_PARAMETER);
	core_device.open_error = EMFILE;
	check_refused(open_all(), DAT_INSUFFICIENT_RESOURCES);
	core_device.open_error = 0;
	core_device.query_error = ENOMEM;
	check_refused(open_all(), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(core_device.opens, 0);
	assert_int_equal(open_descriptors(), descriptors);
	core_device.query_error = 0;
	assert_int_equal(open_all(), DAT_SUCCESS);
	assert_int_equal(close_query(handle), DAT_SUCCESS);
}

UNIT_CASE(only_a_query_is_closed_and_once)
{
	struct dapl_ia *ia = core_ia_new();

	assert_int_equal(close_query(NULL), BAD_HANDLE(IA));
	assert_int_equal(close_query(ia), BAD_HANDLE(IA));
	assert_int_equal(open_all(), DAT_SUCCESS);
	assert_int_equal(close_query(handle), DAT_SUCCESS);
	assert_int_equal(close_query(handle), BAD_HANDLE(IA));
	core_ia_free(ia);
}

UNIT_MAIN(NULL, NULL)
