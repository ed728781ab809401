/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_attr.c - attributes of endpoints: defaults, what an IA can grant, limits of posts. */
#include "dapl/core/ep/ep_attr.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

/* Limits that all differ, so that none stands for another. */
UNIT_FIXTURE(set_up)
{
	core_endpoint_open(0, 0, 4);
	ia->ia_attr = (DAT_IA_ATTR){ .max_message_size = 5000, .max_rdma_size = 6000, .max_dto_per_ep = 100,
		.max_iov_segments_per_dto = 20, .max_rdma_read_per_ep_in = 30, .max_rdma_read_per_ep_out = 40,
		.max_iov_segments_per_rdma_read = 50, .max_iov_segments_per_rdma_write = 60 };
	ia->provider_attr.dat_qos_supported = DAT_QOS_BEST_EFFORT | DAT_QOS_LOW_LATENCY;
}

static DAT_EP_ATTR defaults(void)
{
	DAT_EP_ATTR attr;

	dapl_ep_default_attr(ia, &attr);
	return attr;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

#define COUNT(field, max) { #field, offsetof(DAT_EP_ATTR, field), max }
static const struct { const char *name; size_t offset; DAT_COUNT max; } counts[] = {
	COUNT(max_recv_dtos, 100), COUNT(max_request_dtos, 100), COUNT(max_recv_iov, 20),
	COUNT(max_request_iov, 20), COUNT(max_rdma_read_in, 30), COUNT(max_rdma_read_out, 40),
	COUNT(max_rdma_read_iov, 50), COUNT(max_rdma_write_iov, 60),
};

TEST(each_count_has_its_own_limit)
{
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		DAT_EP_ATTR attr = defaults();
		DAT_COUNT *count = (DAT_COUNT *)(void *)((char *)&attr + counts[i].offset);

		*count = counts[i].max;
		assert_null(dapl_ep_bad_attr(ia, &attr));
		*count = counts[i].max + 1;
		assert_string_equal(dapl_ep_bad_attr(ia, &attr), counts[i].name);
		*count = -1;
		assert_string_equal(dapl_ep_bad_attr(ia, &attr), counts[i].name);
	}
}

TEST(sizes_have_their_limits)
{
	DAT_EP_ATTR attr = defaults();

	attr.max_message_size = 5001;
	assert_string_equal(dapl_ep_bad_attr(ia, &attr), "max_message_size");
	attr = defaults();
	attr.max_rdma_size = 6001;
	assert_string_equal(dapl_ep_bad_attr(ia, &attr), "max_rdma_size");
}

TEST(quality_of_service_must_be_supported)
{
	DAT_EP_ATTR attr = defaults();

	attr.qos = DAT_QOS_LOW_LATENCY;
	assert_null(dapl_ep_bad_attr(ia, &attr));
	attr.qos = (DAT_QOS)(DAT_QOS_LOW_LATENCY | DAT_QOS_PREMIUM);
	assert_string_equal(dapl_ep_bad_attr(ia, &attr), "qos");
}

TEST(datagrams_need_a_device_that_has_them)
{
	DAT_EP_ATTR attr = defaults();

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	assert_string_equal(dapl_ep_bad_attr(ia, &attr), "service_type");
	ia->attr.ud = true;
	assert_null(dapl_ep_bad_attr(ia, &attr));
	attr.service_type = DAT_ETH_SERVICE_TYPE_RAW;	/* the test's device has no frames */
	assert_string_equal(dapl_ep_bad_attr(ia, &attr), "service_type");
}

TEST(completion_flags_are_one_of_a_list)
{
	static const struct { int recv, request; bool good; } rows[] = {
		{ DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, true },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG, true },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, true },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		  DAT_COMPLETION_DEFAULT_FLAG, false },
		{ DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_DEFAULT_FLAG, false },
		/* Of requests these mean nothing. */
		{ DAT_COMPLETION_DEFAULT_FLAG, DAPL_PER_POST_FLAGS, true },
		{ DAT_COMPLETION_DEFAULT_FLAG, DAPL_PER_POST_FLAGS | DAT_COMPLETION_UNSIGNALLED_FLAG, true },
		{ DAT_COMPLETION_DEFAULT_FLAG,
		  DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		DAT_EP_ATTR attr = defaults();
		const char *bad;

		attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)rows[i].recv;
		attr.request_completion_flags = (DAT_COMPLETION_FLAGS)rows[i].request;
		bad = dapl_ep_bad_attr(ia, &attr);
		if (!bad != rows[i].good)
			fail_msg("row %zu: %s", i, bad ? bad : "granted");
	}
}

/* The return code of one named attribute; *delayed is what it sets. */
static DAT_RETURN named(const char *name, const char *value, bool *delayed)
{
	DAT_NAMED_ATTR list[] = { { (char *)name, (char *)value } };
	DAT_EP_ATTR attr = { .ep_provider_specific_count = 1, .ep_provider_specific = list };
	struct dapl_conn_tuning tuning = { 0 };

	return dapl_ep_named_attrs(ia, &attr, delayed, &tuning, BAD_PARAM(3));
}

TEST(delayed_ack_is_true_or_false)
{
	bool delayed = false;

	ia->attr.delayed_ack = true;
	assert_int_equal(named("delayed_ack", "true", &delayed), DAT_SUCCESS);
	assert_true(delayed);
	assert_int_equal(named("delayed_ack", "false", &delayed), DAT_SUCCESS);
	assert_false(delayed);
	assert_int_equal(named("delayed_ack", "yes", &delayed), BAD_PARAM(3));
	assert_int_equal(named("delayed_ack", NULL, &delayed), BAD_PARAM(3));
	assert_int_equal(named(NULL, "true", &delayed), BAD_PARAM(3));
	assert_int_equal(named("delayed_acks", "true", &delayed), BAD_PARAM(3));
	assert_false(delayed);
}

TEST(delayed_ack_needs_a_device_that_has_it)
{
	bool delayed = true;

	assert_int_equal(named("delayed_ack", "true", &delayed), NOT_SUPPORTED);
	assert_int_equal(named("delayed_ack", "false", &delayed), DAT_SUCCESS);
	assert_false(delayed);
}

/* A count without a list, or a list without a count, is empty. */
TEST(empty_lists_of_names_are_good)
{
	DAT_NAMED_ATTR list[] = { { "no such attribute", "" } };
	DAT_EP_ATTR attr = { .ep_provider_specific = list };
	bool delayed = false;

	assert_int_equal(dapl_ep_named_attrs(ia, &attr, &delayed, NULL, BAD_PARAM(3)), DAT_SUCCESS);
	attr = (DAT_EP_ATTR){ .ep_provider_specific_count = 1 };
	assert_int_equal(dapl_ep_named_attrs(ia, &attr, &delayed, NULL, BAD_PARAM(3)), DAT_SUCCESS);
}

TEST(service_type_says_what_messages_are)
{
	ep->attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	dapl_ep_set_post_limits(ep);
	assert_true(ep->is_ud && !ep->is_raw);
	ep->attr.service_type = DAT_ETH_SERVICE_TYPE_RAW;
	dapl_ep_set_post_limits(ep);
	assert_true(ep->is_ud && ep->is_raw);
}

UNIT_MAIN(NULL, NULL)
