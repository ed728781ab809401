/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_connect.c - what a device is told of an endpoint that connects or accepts, and which argument of a connect is
 * wrong. */
#include "dapl/core/conn/connect.h"
#include "dapl/core/conn/ready.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(0, 0, 16);
	ep->qp = core_qp();
}

static struct dapl_conn_params params(const void *pdata, int length)
{
	struct dapl_conn_params is;

	dapl_mutex_lock(&ep->lock);
	dapl_ep_conn_params(ep, &is, pdata, length);
	dapl_mutex_unlock(&ep->lock);
	return is;
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

/* Each property alone, so that none stands for another. */
CASE(each_property_is_told)
{
	struct dapl_srq srq = { .max = 1 };
	struct dapl_conn_params is = params(NULL, 0);

	assert_false(is.srq || is.ud || is.delayed_ack);
	ep->srq = &srq;
	is = params(NULL, 0);
	assert_true(is.srq && !is.ud && !is.delayed_ack);
	ep->srq = NULL;
	ep->is_ud = true;
	is = params(NULL, 0);
	assert_true(!is.srq && is.ud && !is.delayed_ack);
	ep->is_ud = false;
	ep->delayed_ack = true;
	is = params(NULL, 0);
	assert_true(!is.srq && !is.ud && is.delayed_ack);
}

CASE(limits_of_reads_keep_their_direction)
{
	struct dapl_conn_params is;

	ep->attr.max_rdma_read_out = 3;
	ep->attr.max_rdma_read_in = 5;
	ep->tuning.ack_retry = 8;
	is = params(NULL, 0);
	assert_int_equal(is.reads_out, 3);
	assert_int_equal(is.reads_in, 5);
	assert_int_equal(is.tuning.ack_retry, 8);
}

/* A consumer may ask for several: the strictest counts. */
CASE(strictest_quality_of_service_counts)
{
	static const struct { int asked; enum dapl_qos told; } cases[] = {
		{ DAT_QOS_BEST_EFFORT, DAPL_QOS_DEFAULT }, { DAT_QOS_ECONOMY, DAPL_QOS_ECONOMY },
		{ DAT_QOS_HIGH_THROUGHPUT, DAPL_QOS_THROUGHPUT }, { DAT_QOS_LOW_LATENCY, DAPL_QOS_LATENCY },
		{ DAT_QOS_PREMIUM, DAPL_QOS_PREMIUM },
		{ DAT_QOS_ECONOMY | DAT_QOS_HIGH_THROUGHPUT, DAPL_QOS_THROUGHPUT },
		{ DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY, DAPL_QOS_LATENCY },
		{ DAT_QOS_PREMIUM | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY, DAPL_QOS_PREMIUM },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ep->attr.qos = (DAT_QOS)cases[i].asked;
		assert_int_equal(params(NULL, 0).qos, cases[i].told);
	}
}

/* --- arguments that are refused ---------------------------------------------------------------- */

enum { TIMEOUT = 1000 };	/* us */

static struct sockaddr_in6 somewhere = { .sin6_family = AF_INET6, .sin6_port = 1 };

static DAT_RETURN common_connect(void *handle, void *address, DAT_TIMEOUT timeout, int len, const void *data)
{
	return dapl_ep_common_connect((DAT_EP_HANDLE)handle, (DAT_IA_ADDRESS_PTR)address, timeout, len,
				      (DAT_PVOID)data);
}

static DAT_RETURN dup_connect(void *handle, void *of, DAT_TIMEOUT timeout, int len, const void *data, int qos)
{
	return dapl_ep_dup_connect((DAT_EP_HANDLE)handle, (DAT_EP_HANDLE)of, timeout, len, (DAT_PVOID)data,
				   (DAT_QOS)qos);
}

CASE(wrong_argument_of_common_connect_is_named)
{
	const int most = ep->obj.ia->provider_attr.max_private_data_size = 4;

	assert_int_equal(common_connect(NULL, &somewhere, TIMEOUT, 0, NULL), BAD_HANDLE(EP));
	assert_int_equal(common_connect(ia, &somewhere, TIMEOUT, 0, NULL), BAD_HANDLE(EP));
	assert_int_equal(common_connect(ep, NULL, TIMEOUT, 0, NULL), BAD_PARAM(2));
	assert_int_equal(common_connect(ep, &somewhere, 0, 0, NULL), BAD_PARAM(3));
	assert_int_equal(common_connect(ep, &somewhere, TIMEOUT, most + 1, "12345"), BAD_PARAM(4));
	assert_int_equal(common_connect(ep, &somewhere, TIMEOUT, -1, "1"), BAD_PARAM(4));
	assert_int_equal(common_connect(ep, &somewhere, TIMEOUT, most, NULL), BAD_PARAM(5));
}

CASE(wrong_argument_of_dup_connect_is_named)
{
	const int most = ep->obj.ia->provider_attr.max_private_data_size = 4;

	ep->obj.ia->provider_attr.dat_qos_supported = DAT_QOS_ECONOMY;
	assert_int_equal(dup_connect(NULL, ep, TIMEOUT, 0, NULL, 0), BAD_HANDLE(EP));
	assert_int_equal(dup_connect(ep, NULL, TIMEOUT, 0, NULL, 0), BAD_HANDLE(EP));
	assert_int_equal(dup_connect(ep, ep, 0, 0, NULL, 0), BAD_PARAM(3));
	assert_int_equal(dup_connect(ep, ep, TIMEOUT, most + 1, "12345", 0), BAD_PARAM(4));
	assert_int_equal(dup_connect(ep, ep, TIMEOUT, -1, "1", 0), BAD_PARAM(4));
	assert_int_equal(dup_connect(ep, ep, TIMEOUT, most, NULL, 0), BAD_PARAM(5));
	assert_int_equal(dup_connect(ep, ep, TIMEOUT, 0, NULL, DAT_QOS_PREMIUM), BAD_PARAM(6));
	assert_int_equal(DAT_GET_TYPE(dup_connect(ep, ep, TIMEOUT, most, "1234", DAT_QOS_ECONOMY)), DAT_INVALID_STATE);
}

UNIT_MAIN(NULL, NULL)
