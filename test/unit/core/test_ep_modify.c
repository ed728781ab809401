/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_modify.c - dat_ep_modify: which changes are refused, and that a change is made whole or not at
 * all. The endpoint has no queue pair, since it has no receive EVD. */
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia, *again;	/* again: another open of the adapter of ia */
static struct dapl_evd *dto, *connection, *of_again;
static struct dapl_ep *ep;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	again = core_ia_new();
	ia->ia_attr.max_dto_per_ep = 64;
	ia->ia_attr.max_iov_segments_per_dto = ia->ia_attr.max_iov_segments_per_rdma_write = 4;
	ia->ia_attr.max_message_size = 4096;
	dto = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	connection = core_evd_new(ia, 8, DAT_EVD_CONNECTION_FLAG);
	of_again = core_evd_new(again, 8, DAT_EVD_CONNECTION_FLAG);
	assert_int_equal(dapl_ep_make(ia, NULL, NULL, dto, of_again, NULL, NULL, 7, &ep), DAT_SUCCESS);
	dapl_object_publish(&ep->obj);
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_false(dapl_in_use(&dto->obj) || dapl_in_use(&connection->obj));
	core_evd_free(of_again);
	core_evd_free(connection);
	core_evd_free(dto);
	core_ia_free(again);
	core_ia_free(ia);
}

static DAT_RETURN modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	return dapl_ep_modify((DAT_EP_HANDLE)ep, mask, param);
}

static DAT_RETURN modify_message_size(DAT_VLEN size)
{
	return modify(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE,
		      &(DAT_EP_PARAM){ .ep_attr.max_message_size = size });
}

UNIT_CASE(fields_that_are_fixed_are_refused)
{
	const DAT_EP_PARAM param = { .ep_state = DAT_EP_STATE_CONNECTED };

	assert_int_equal(modify(DAT_EP_FIELD_EP_STATE, &param), BAD_PARAM(2));
	assert_int_equal(modify(DAT_EP_FIELD_SRQ_HANDLE, &param), BAD_PARAM(2));
	assert_int_equal(modify(DAT_EP_FIELD_ALL, &param), BAD_PARAM(2));
	assert_int_equal(modify(DAT_EP_FIELD_COMM, NULL), BAD_PARAM(3));
}

UNIT_CASE(values_above_the_limits_are_refused)
{
	assert_int_equal(modify_message_size(100), DAT_SUCCESS);
	assert_int_equal(modify_message_size(4097), BAD_PARAM(3));
	assert_int_equal(ep->attr.max_message_size, 100);
}

/* EP-20 */
UNIT_CASE(posted_receives_pin_their_evd)
{
	const DAT_EP_PARAM param = { .recv_evd_handle = (DAT_EVD_HANDLE)dto };

	ep->rq.head++;
	assert_int_equal(DAT_GET_TYPE(modify(DAT_EP_FIELD_RECV_EVD_HANDLE, &param)), DAT_INVALID_STATE);
	assert_int_equal(modify_message_size(100), DAT_SUCCESS);
	ep->rq.head--;
	assert_int_equal(modify(DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_SUCCESS);
	assert_ptr_equal(ep->recv_evd, dto);
	assert_int_equal(dto->feeds.all, 2);
}

/* An EVD cannot notify of all requests, and of solicited receives only: nothing changes, not the connect EVD
 * either. EP-17. */
UNIT_CASE(refused_change_leaves_everything)
{
	const DAT_EP_PARAM param = { .recv_evd_handle = (DAT_EVD_HANDLE)dto,
		.connect_evd_handle = (DAT_EVD_HANDLE)connection,
		.ep_attr = { .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG,
			     .request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG } };
	const int mask = DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			 DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS | DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS;

	assert_int_not_equal(modify((DAT_EP_PARAM_MASK)mask, &param), DAT_SUCCESS);
	assert_null(ep->recv_evd);
	assert_ptr_equal(ep->connect_evd, of_again);
	assert_int_equal(ep->attr.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	assert_int_equal(dto->feeds.all, 1);
	assert_int_equal(dto->feeds.solicited, 0);
	assert_int_equal(of_again->pins, 1);
	assert_false(dapl_in_use(&connection->obj));
}

/* dat_ia_close of the other open ends the connect EVD; the endpoint keeps its memory. */
UNIT_CASE(connect_evd_of_a_closed_ia_hinders_no_change)
{
	core_evd_free(of_again);
	assert_int_equal(modify_message_size(100), DAT_SUCCESS);
	assert_ptr_equal(ep->connect_evd, of_again);
	assert_int_equal(of_again->pins, 1);
	assert_int_equal(modify(DAT_EP_FIELD_CONNECT_EVD_HANDLE,
				&(DAT_EP_PARAM){ .connect_evd_handle = (DAT_EVD_HANDLE)connection }),
			 DAT_SUCCESS);
	assert_ptr_equal(ep->connect_evd, connection);
}

/* --- receives that are posted meanwhile ----------------------------------------------------- */

enum { LONG_ENOUGH_US = 50000 };	/* for a thread that posts, unless it waits */

static void (*in_feed)(void);		/* inside a change; NULL: nothing happens */

EXTEND(dapl_ep_feed_evds)
DAT_RETURN __wrap_dapl_ep_feed_evds(const struct dapl_ep *of, struct dapl_evd *recv, struct dapl_evd *request,
				    const DAT_EP_ATTR *attr)
{
	if (in_feed)
		in_feed();
	return __real_dapl_ep_feed_evds(of, recv, request, attr);
}

static pthread_t poster;

static void *post_receive(void *unused)
{
	DAT_LMR_TRIPLET segment = { .segment_length = 64 };

	return (void *)(uintptr_t)dapl_receive_any(ep, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = 1 },
						   DAT_COMPLETION_DEFAULT_FLAG);
}

static void post_in_thread(void)
{
	in_feed = NULL;
	assert_int_equal(pthread_create(&poster, NULL, post_receive, NULL), 0);
	usleep(LONG_ENOUGH_US);
}

static DAT_RETURN modify_delayed_ack(const char *value)
{
	DAT_NAMED_ATTR named = { "delayed_ack", value };

	return modify(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR,
		      &(DAT_EP_PARAM){ .ep_attr = { .ep_provider_specific_count = 1,
		      .ep_provider_specific = &named } });
}

/* EXT-42: the queue pair is of another kind. */
UNIT_CASE(delayed_acknowledgement_takes_another_queue_pair)
{
	DAT_PZ_HANDLE pz;

	ia->attr.delayed_ack = true;
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &pz), DAT_SUCCESS);
	assert_int_equal(modify(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE,
				&(DAT_EP_PARAM){ .pz_handle = pz, .recv_evd_handle = (DAT_EVD_HANDLE)dto }),
				DAT_SUCCESS);
	assert_int_equal(core_device.delayed_qps, 0);
	assert_int_equal(modify_delayed_ack("true"), DAT_SUCCESS);
	assert_int_equal(core_device.delayed_qps, 1);
	assert_non_null(ep->qp);
	assert_int_equal(modify_delayed_ack("true"), DAT_SUCCESS);
	assert_int_equal(core_device.delayed_qps, 1);
	assert_int_equal(modify_delayed_ack("false"), DAT_SUCCESS);
	assert_int_equal(core_device.delayed_qps, 1);
	assert_int_equal(core_device.qps, 1);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
	assert_int_equal(dapl_ep_make(ia, NULL, NULL, dto, of_again, NULL, NULL, 7, &ep), DAT_SUCCESS);
	dapl_object_publish(&ep->obj);
}

UNIT_CASE(receive_posted_beside_a_change_is_not_lost)
{
	DAT_PZ_HANDLE pz;
	void *ret;

	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &pz), DAT_SUCCESS);
	assert_int_equal(modify(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE,
				&(DAT_EP_PARAM){ .pz_handle = pz, .recv_evd_handle = (DAT_EVD_HANDLE)dto }),
				DAT_SUCCESS);
	assert_non_null(ep->qp);
	in_feed = post_in_thread;
	assert_int_equal(modify(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
				&(DAT_EP_PARAM){ .ep_attr.max_recv_dtos = 32 }), DAT_SUCCESS);
	assert_int_equal(pthread_join(poster, &ret), 0);
	assert_int_equal((uintptr_t)ret, DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->rq), 1);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
	assert_int_equal(dapl_ep_make(ia, NULL, NULL, dto, of_again, NULL, NULL, 7, &ep), DAT_SUCCESS);
	dapl_object_publish(&ep->obj);
}

UNIT_MAIN(NULL, NULL)
