/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ERR-1 to ERR-14: return codes and dat_strerror. */
#include <dat/udat.h>
#include "test/unit/unit.h"

static const char *major, *minor;

static DAT_RETURN words(DAT_RETURN value)
{
	major = minor = "untouched";
	return dat_strerror(value, &major, &minor);
}

static void says(DAT_RETURN value, const char *type, const char *subtype)
{
	assert_int_equal(words(value), DAT_SUCCESS);
	assert_string_equal(major, type);
	assert_string_equal(minor, subtype);
}

UNIT_TEST(ERR_1_2_parts_of_a_code)
{
	assert_int_equal(DAT_GET_TYPE(0x800A0064), DAT_PROVIDER_NOT_FOUND);
	assert_int_equal(DAT_GET_SUBTYPE(0x800A0064), DAT_NAME_NOT_REGISTERED);
}

UNIT_TEST(ERR_4_5_7_8_14_names)
{
	says(DAT_SUCCESS, "DAT_SUCCESS", "");
	says(0x80060025, "DAT_INVALID_PARAMETER", "DAT_INVALID_ARG1");
	says(0x80140000, "DAT_CONN_QUAL_UNAVAILABLE", "");
	says(0x80150000, "DAT_RESERVED_LMR", "");
	says(0x80160000, "DAT_PORT_IN_USE", "");
	says(0x80170000, "DAT_COMM_NOT_SUPPORTED", "");
	says(0x80070055, "DAT_INVALID_STATE", "DAT_INVALID_STATE_SRQ_OPERATIONAL");
	says(0x80070058, "DAT_INVALID_STATE", "DAT_INVALID_STATE_SRQ_SHUTDOWN");
	says(0x8007003D, "DAT_INVALID_STATE", "DAT_INVALID_STATE_EP_EVD_RECV");
	says(0xBFFF0000, "DAT_NOT_IMPLEMENTED", "");
	says(0x90000000, "DAT_EXTENSION_BASE", "");
}

UNIT_TEST(ERR_6_every_type_has_text_with_every_subtype)
{
	for (DAT_RETURN type = 0; type <= 0x17; type++)
		for (DAT_RETURN subtype = 0; subtype <= 103; subtype++) {
			assert_int_equal(words(0x80000000 | type << 16 | subtype), DAT_SUCCESS);
			assert_memory_equal(major, "DAT_", 4);
			if (subtype)
				assert_memory_equal(minor, "DAT_", 4);
		}
}

UNIT_TEST(ERR_9_10_what_has_no_name)
{
	assert_int_equal(DAT_GET_TYPE(words(0x003E0000)), DAT_INVALID_PARAMETER);
	assert_string_equal(major, "unknown error");
	assert_string_equal(minor, "");
	assert_int_equal(DAT_GET_TYPE(words(0x80180000)), DAT_INVALID_PARAMETER);
	assert_int_equal(DAT_GET_TYPE(words(0x80060000 | 104)), DAT_INVALID_PARAMETER);
	assert_string_equal(major, "DAT_INVALID_PARAMETER");
	assert_string_equal(minor, "unknown minor error");
	assert_int_equal(DAT_GET_TYPE(words(0xFFFFFFFF)), DAT_INVALID_PARAMETER);
}

UNIT_TEST(ERR_11_12_NULL_pointers)
{
	major = minor = NULL;
	assert_int_equal(dat_strerror(0x80060025, &major, NULL), DAT_SUCCESS);
	assert_string_equal(major, "DAT_INVALID_PARAMETER");
	assert_int_equal(dat_strerror(0x80060025, NULL, &minor), DAT_SUCCESS);
	assert_string_equal(minor, "DAT_INVALID_ARG1");
	assert_int_equal(dat_strerror(0x80060025, NULL, NULL), DAT_SUCCESS);
}

UNIT_TEST(ERR_13_class_bits_do_not_matter)
{
	says(0x00060025, "DAT_INVALID_PARAMETER", "DAT_INVALID_ARG1");
	says(0x40060025, "DAT_INVALID_PARAMETER", "DAT_INVALID_ARG1");
	says(0xC0060025, "DAT_INVALID_PARAMETER", "DAT_INVALID_ARG1");
}

UNIT_MAIN(NULL, NULL)
