/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attr.c - attributes of an IA on devices of many kinds: limits at their edges, and what a device lacks. */
#include <limits.h>
#include "dapl/core/base/settings.h"
#include "dapl/core/ia/attr.h"
#include "dapl/core/ia/ia.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_entry entry = { .info = { .ia_name = "ofa-v2-test", .dapl_version_major = 2,
	.is_thread_safe = DAT_TRUE } };

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	dapl_settings.wr_max = 0;
	ia = core_ia_new();
}

UNIT_FIXTURE(tear_down)
{
	dapl_attr_free(ia);
	core_ia_free(ia);
}

static void prepare(void)
{
	dapl_attr_free(ia);
	assert_int_equal(dapl_attr_prepare(ia, &entry), DAT_SUCCESS);
}

static const char *named(const char *name)
{
	const DAT_PROVIDER_ATTR *attr = &ia->provider_attr;

	for (int i = 0; i < attr->num_provider_specific_attr; i++)
		if (!strcmp(attr->provider_specific_attr[i].name, name))
			return attr->provider_specific_attr[i].value;
	return NULL;
}

UNIT_CASE(device_without_srqs_has_no_attribute_of_one)
{
	struct ibv_device_attr *limits = &ia->attr.limits;

	limits->max_qp = 100;
	limits->max_srq_wr = 50;
	prepare();
	assert_int_equal(ia->ia_attr.max_srqs, 0);
	assert_int_equal(ia->ia_attr.max_ep_per_srq, 0);
	assert_int_equal(ia->ia_attr.max_recv_per_srq, 0);
	assert_int_equal(ia->provider_attr.srq_supported, DAT_FALSE);
	assert_int_equal(ia->provider_attr.srq_watermarks_supported, 0);
	assert_int_equal(ia->provider_attr.srq_info_supported, 0);
	limits->max_srq = 3;
	prepare();
	assert_int_equal(ia->ia_attr.max_srqs, 3);
	assert_int_equal(ia->ia_attr.max_ep_per_srq, 100);
	assert_int_equal(ia->ia_attr.max_recv_per_srq, 50);
	assert_int_equal(ia->provider_attr.srq_supported, DAT_TRUE);
}

UNIT_CASE(limits_fit_a_count)
{
	struct ibv_device_attr *limits = &ia->attr.limits;

	limits->max_qp = INT_MAX;
	limits->max_qp_init_rd_atom = 2;
	limits->max_cqe = INT_MAX;
	limits->max_sge = 256;
	ia->attr.max_read_sge = 300;
	prepare();
	assert_int_equal(ia->ia_attr.max_eps, INT_MAX);
	assert_int_equal(ia->ia_attr.max_rdma_read_out, INT_MAX);	/* the product does not fit */
	assert_int_equal(ia->ia_attr.max_evd_qlen, DAPL_EVD_MAX);
	assert_int_equal(ia->ia_attr.max_iov_segments_per_dto, 255);
	assert_int_equal(ia->ia_attr.max_iov_segments_per_rdma_read, 255);
	limits->max_qp = -1;
	limits->max_sge = 4;
	ia->attr.max_read_sge = 1;
	prepare();
	assert_int_equal(ia->ia_attr.max_eps, 0);
	assert_int_equal(ia->ia_attr.max_iov_segments_per_rdma_read, 1);
	assert_int_equal(ia->ia_attr.max_iov_segments_per_rdma_write, 4);
}

/* Two of the device's work requests are the provider's markers. */
UNIT_CASE(work_requests_leave_room_for_markers)
{
	static const struct {
		int device;
		unsigned wanted;	/* DAPL_WR_MAX */
		int told;
	} cases[] = {
		{ 100, 0, 98 }, { 3, 0, 1 }, { 2, 0, 1 }, { 0, 0, 1 }, { INT_MAX, 0, INT_MAX - 2 },
		{ 100, 98, 98 }, { 100, 97, 97 }, { 100, 99, 98 }, { 100, 1, 1 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ia->attr.limits.max_qp_wr = cases[i].device;
		dapl_settings.wr_max = cases[i].wanted;
		prepare();
		if (ia->ia_attr.max_dto_per_ep != cases[i].told)
			fail_msg("case %zu: %d", i, ia->ia_attr.max_dto_per_ep);
	}
}

UNIT_CASE(windows_decide_scope_and_number_of_rmrs)
{
	static const struct { bool windows_1, windows_2; int rmrs, scope; } cases[] = {
		{ false, false, 0, DAT_RMR_SCOPE_PZ }, { true, false, 7, DAT_RMR_SCOPE_PZ },
		{ false, true, 7, DAT_RMR_SCOPE_EP }, { true, true, 7, DAT_RMR_SCOPE_ANY },
	};

	ia->attr.limits.max_mw = 7;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ia->attr.windows_1 = cases[i].windows_1;
		ia->attr.windows_2 = cases[i].windows_2;
		prepare();
		assert_int_equal(ia->ia_attr.max_rmrs, cases[i].rmrs);
		assert_int_equal(ia->provider_attr.rmr_scope_supported, cases[i].scope);
	}
}

UNIT_CASE(what_a_device_lacks_is_not_listed)
{
	struct dapl_device_attr *d = &ia->attr;
	const struct {
		bool *has;
		const char *name;
	} cases[] = {
		{ &d->atomics, DAT_IB_ATTR_FETCH_AND_ADD }, { &d->atomics, DAT_IB_ATTR_CMP_AND_SWAP },
		{ &d->write_immediate, DAT_IB_ATTR_IMMED_DATA }, { &d->ud, DAT_IB_ATTR_UD },
		{ &d->flush_global, "DAT_IB_DEVICE_FLUSH" }, { &d->atomic_write, "DAT_IB_DEVICE_ATOMIC_WRITE" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int has = 0; has < 2; has++) {
			*cases[i].has = has;
			prepare();
			if ((named(cases[i].name) != NULL) != has)
				fail_msg("%s, %d", cases[i].name, has);
		}
}

UNIT_CASE(kinds_of_flush_are_named)
{
	static const char *const names[] = { NULL, "GLOBAL", "PERSISTENT", "GLOBAL PERSISTENT" };

	for (unsigned i = 0; i < 4; i++) {
		const char *name;

		ia->attr.flush_global = i & 1;
		ia->attr.flush_persistent = i & 2;
		prepare();
		name = named("DAT_IB_DEVICE_FLUSH");
		if (names[i])
			assert_string_equal(name, names[i]);
		else
			assert_null(name);
	}
}

UNIT_CASE(versions_of_the_firmware_are_read_as_far_as_they_go)
{
	static const struct {
		const char *text;
		int major, minor;
	} cases[] = { { "12.34.56", 12, 34 }, { "7", 7, 0 }, { "", 0, 0 }, { "v1.2", 0, 0 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(ia->attr.limits.fw_ver, sizeof ia->attr.limits.fw_ver, "%s", cases[i].text);
		prepare();
		assert_int_equal(ia->ia_attr.firmware_version_major, cases[i].major);
		assert_int_equal(ia->ia_attr.firmware_version_minor, cases[i].minor);
	}
}

UNIT_MAIN(NULL, NULL)
