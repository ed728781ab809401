/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_srq.c - shared receive queues: the consumer's limits, the counts of buffers, resizing, and the
 * watermarks of an SRQ and of the endpoints on it. */
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { BUFFERS = 10, SEGMENTS = 2 };

static struct dapl_evd *async_evd;
static struct dapl_srq *srq;
static struct dapl_ep *ep;
static struct ibv_srq_init_attr wanted;
static struct ibv_srq_attr modified;
static int modified_mask, create_error, modify_error, post_error;
static struct ibv_recv_wr posted;		/* last */
static struct ibv_sge posted_segments[SEGMENTS];
static uint64_t records[BUFFERS];		/* wr_id of each posted buffer */
static unsigned posts;

#define SRQ ((DAT_SRQ_HANDLE)srq)

static int note_create(const struct ibv_srq_init_attr *attr)
{
	wanted = *attr;
	return create_error;
}

static int note_modify(const struct ibv_srq_attr *attr, int mask)
{
	modified = *attr;
	modified_mask = mask;
	return modify_error;
}

static int note_post(const struct ibv_recv_wr *wr)
{
	if (post_error)
		return post_error;
	posted = *wr;
	for (int i = 0; i < wr->num_sge; i++)
		posted_segments[i] = wr->sg_list[i];
	records[posts++ % BUFFERS] = wr->wr_id;
	return 0;
}

static DAT_RETURN create(DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low_watermark)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos, .max_recv_iov = iov, .low_watermark = low_watermark };
	DAT_SRQ_HANDLE handle;
	DAT_RETURN ret = dapl_srq_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, &attr, &handle);

	if (ret == DAT_SUCCESS)
		srq = (struct dapl_srq *)handle;
	return ret;
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.create_srq = note_create;
	core_device.modify_srq = note_modify;
	core_device.post_srq_recv = note_post;
	create_error = modify_error = post_error = modified_mask = 0;
	posts = 0;
	async_evd = core_async_evd_new(core_ia);
	srq = NULL;
	ep = NULL;
}

UNIT_FIXTURE(set_up_srq)
{
	assert_int_equal(set_up(state), 0);
	assert_int_equal(create(BUFFERS, SEGMENTS, DAT_SRQ_LW_DEFAULT), DAT_SUCCESS);
	ep = core_objects_ep(srq, NULL);
}

static int tear_down(void **state)
{
	if (ep)
		assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	if (srq)
		assert_int_equal(dapl_srq_free(SRQ), DAT_SUCCESS);
	dapl_service_flush();
	core_ia->async_evd = NULL;
	core_evd_free(async_evd);
	return core_objects_close(state);
}

static DAT_RETURN post(DAT_COUNT n, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET iov[SEGMENTS + 1] = { { .virtual_address = 0x1000, .segment_length = 64, .lmr_context = 7 },
					      { .virtual_address = 0x2000, .segment_length = 32, .lmr_context = 8 } };

	return dapl_srq_post_recv(SRQ, n, iov, (DAT_DTO_COOKIE){ .as_64 = cookie });
}

static void post_buffers(unsigned n)
{
	while (n--)
		assert_int_equal(post(1, posts), DAT_SUCCESS);
}

/* A message for `ep` has arrived in the i-th buffer. */
static void arrive(unsigned i)
{
	core_complete(core_dto_evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV,
		      .wr_id = records[i], .qp_num = ep->qpn, .byte_len = 64 });
}

static DAT_SRQ_PARAM query(void)
{
	DAT_SRQ_PARAM param;

	assert_int_equal(dapl_srq_query(SRQ, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
	return param;
}

/* Takes an asynchronous event about `about`. 0: there is none. */
static int next_async(const void *about)
{
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;

	if (!core_async_error(async_evd, &error, &number))
		return 0;
	assert_ptr_equal(error.dat_handle, about);
	return error.reason;
}

#define WITH_SRQ(name) UNIT_TEST_WITH(name, set_up_srq, tear_down)

/* --- making and freeing -------------------------------------------------------------------------------- */

/* SRQ-2, 3, 4 */
UNIT_CASE(arguments_of_create_are_checked)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 1, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE handle;

	assert_int_equal(create(BUFFERS, SEGMENTS, 5), BAD_PARAM(3));
	assert_int_equal(create(0, SEGMENTS, DAT_SRQ_LW_DEFAULT), BAD_PARAM(3));
	assert_int_equal(create(1001, SEGMENTS, DAT_SRQ_LW_DEFAULT), BAD_PARAM(3));
	assert_int_equal(create(BUFFERS, 0, DAT_SRQ_LW_DEFAULT), BAD_PARAM(3));
	assert_int_equal(create(BUFFERS, 5, DAT_SRQ_LW_DEFAULT), BAD_PARAM(3));
	assert_int_equal(dapl_srq_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, NULL, &handle), BAD_PARAM(3));
	assert_int_equal(dapl_srq_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, &attr, NULL), BAD_PARAM(4));
	assert_int_equal(dapl_srq_create((DAT_IA_HANDLE)core_ia, DAT_HANDLE_NULL, &attr, &handle), BAD_HANDLE(PZ));
	assert_int_equal(dapl_srq_create((DAT_IA_HANDLE)core_pz, (DAT_PZ_HANDLE)core_pz, &attr, &handle),
			 BAD_HANDLE(IA));
	assert_int_equal(core_device.srqs, 0);
}

/* SRQ-16 */
UNIT_CASE(device_without_srqs_makes_none)
{
	core_ia->ia_attr.max_srqs = 0;
	assert_int_equal(create(BUFFERS, SEGMENTS, DAT_SRQ_LW_DEFAULT), NOT_SUPPORTED);
}

UNIT_CASE(refused_srq_uses_nothing)
{
	create_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(create(BUFFERS, SEGMENTS, DAT_SRQ_LW_DEFAULT)), DAT_INSUFFICIENT_RESOURCES);
	assert_false(dapl_in_use(&core_pz->obj));
	assert_int_equal(dapl_object_count(core_ia, DAPL_SRQ), 0);
}

/* --- posting ------------------------------------------------------------------------------------------- */

WITH_SRQ(buffer_keeps_its_segments_and_cookie)
{
	DAT_EVENT event;

	assert_int_equal(post(2, 5), DAT_SUCCESS);
	assert_int_equal(posted.num_sge, 2);
	assert_int_equal(posted_segments[0].addr, 0x1000);
	assert_int_equal(posted_segments[0].length, 64);
	assert_int_equal(posted_segments[1].lkey, 8);
	arrive(0);
	assert_int_equal(core_next_event(core_dto_evd, &event), DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 5);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, ep);	/* SRQ-14 */
}

WITH_SRQ(arguments_of_a_post_are_checked)
{
	assert_int_equal(post(-1, 1), BAD_PARAM(2));
	assert_int_equal(post(SEGMENTS + 1, 1), BAD_PARAM(2));
	assert_int_equal(dapl_srq_post_recv(SRQ, 1, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }), BAD_PARAM(3));
	assert_int_equal(posts, 0);
	assert_int_equal(dapl_srq_post_recv(SRQ, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }), DAT_SUCCESS);
	assert_int_equal(posted.num_sge, 0);
}

WITH_SRQ(empty_buffer_has_a_segment_where_the_device_needs_one)
{
	core_ia->attr.no_empty_receive = true;
	assert_int_equal(post(0, 1), DAT_SUCCESS);
	assert_int_equal(posted.num_sge, 1);
	assert_int_equal(posted_segments[0].length, 0);
}

/* The device has more room than the consumer requested. */
WITH_SRQ(no_more_buffers_than_the_limit_are_posted)
{
	DAT_EVENT event;

	post_buffers(BUFFERS);
	assert_int_equal(post(1, 1), NO_RESOURCE(MEMORY));
	arrive(0);
	assert_int_equal(post(1, 1), NO_RESOURCE(MEMORY));	/* its completion is not dequeued */
	assert_int_equal(core_next_event(core_dto_evd, &event), DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(post(1, 1), DAT_SUCCESS);
}

WITH_SRQ(refused_post_takes_no_buffer)
{
	post_error = ENOMEM;
	for (int i = 0; i <= BUFFERS; i++)
		assert_int_equal(DAT_GET_TYPE(post(1, 1)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(query().outstanding_dto_count, 0);
	post_error = 0;
	post_buffers(BUFFERS);
}

/* --- counting ------------------------------------------------------------------------------------------- */

/* Two endpoints complete to one EVD, which is looked into once. */
WITH_SRQ(arrived_buffers_of_two_endpoints_count_once)
{
	struct dapl_ep *other = core_objects_ep(srq, NULL);

	post_buffers(3);
	arrive(0);
	assert_int_equal(query().available_dto_count, 2);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)other), DAT_SUCCESS);
}

WITH_SRQ(receives_of_another_queue_do_not_count)
{
	struct dapl_ep *other = core_objects_ep(NULL, NULL);
	const struct dapl_dto *receive = core_post(other, DAT_DTO_RECEIVE, 0, 1);

	post_buffers(3);
	core_complete(core_dto_evd, &(struct ibv_wc){ .wr_id = (uintptr_t)receive, .qp_num = other->qpn });
	assert_int_equal(query().available_dto_count, 3);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)other), DAT_SUCCESS);
}

WITH_SRQ(arguments_of_query_are_checked)
{
	DAT_SRQ_PARAM param;

	assert_int_equal(dapl_srq_query((DAT_SRQ_HANDLE)ep, DAT_SRQ_FIELD_ALL, &param), BAD_HANDLE(SRQ));
	assert_int_equal(dapl_srq_query(SRQ, (DAT_SRQ_PARAM_MASK)(DAT_SRQ_FIELD_ALL + 1), &param), BAD_PARAM(2));
	assert_int_equal(dapl_srq_query(SRQ, DAT_SRQ_FIELD_ALL, NULL), BAD_PARAM(3));
}

/* --- resizing -------------------------------------------------------------------------------------------- */

WITH_SRQ(resize_within_the_room_does_not_ask_the_device)
{
	modify_error = EOPNOTSUPP;	/* a device that cannot resize got a larger queue at once */
	assert_int_equal(dapl_srq_resize(SRQ, 2 * BUFFERS), DAT_SUCCESS);
	assert_int_equal(modified_mask, 0);
	assert_int_equal(query().max_recv_dtos, 2 * BUFFERS);
	post_buffers(2 * BUFFERS);
	assert_int_equal(post(1, 1), NO_RESOURCE(MEMORY));
}

WITH_SRQ(device_that_resizes_grows_with_the_limit)
{
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	ep = NULL;
	assert_int_equal(dapl_srq_free(SRQ), DAT_SUCCESS);
	core_ia->attr.limits.device_cap_flags = IBV_DEVICE_SRQ_RESIZE;
	assert_int_equal(create(BUFFERS, SEGMENTS, DAT_SRQ_LW_DEFAULT), DAT_SUCCESS);
	assert_int_equal(wanted.attr.max_wr, BUFFERS);
	assert_int_equal(dapl_srq_resize(SRQ, 2 * BUFFERS), DAT_SUCCESS);
	assert_int_equal(modified_mask, IBV_SRQ_MAX_WR);
	assert_int_equal(modified.max_wr, 2 * BUFFERS);
	modified_mask = 0;
	assert_int_equal(dapl_srq_resize(SRQ, BUFFERS), DAT_SUCCESS);
	assert_int_equal(dapl_srq_resize(SRQ, 2 * BUFFERS), DAT_SUCCESS);
	assert_int_equal(modified_mask, 0);	/* the device's queue has not shrunk */
	assert_int_equal(((struct dapl_srq *)SRQ)->records, 2 * BUFFERS);	/* nor has the number of records */
	modify_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(dapl_srq_resize(SRQ, 3 * BUFFERS)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(query().max_recv_dtos, 2 * BUFFERS);
}

WITH_SRQ(queue_does_not_shrink_below_its_watermark)
{
	DAT_EVENT event;

	post_buffers(5);
	assert_int_equal(dapl_srq_set_lw(SRQ, 5), DAT_SUCCESS);
	arrive(0);
	assert_int_equal(core_next_event(core_dto_evd, &event), DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(query().outstanding_dto_count, 4);
	assert_int_equal(dapl_srq_resize(SRQ, 4), BAD_STATE(SRQ_IN_USE));
	assert_int_equal(dapl_srq_resize(SRQ, 5), DAT_SUCCESS);
}

/* --- the watermark of an SRQ -------------------------------------------------------------------------------- */

/* SRQ-12 */
WITH_SRQ(watermark_is_told_once)
{
	post_buffers(5);
	assert_int_equal(dapl_srq_set_lw(SRQ, 4), DAT_SUCCESS);
	assert_int_equal(modified_mask, IBV_SRQ_LIMIT);
	assert_int_equal(modified.srq_limit, 4);
	assert_int_equal(query().low_watermark, 4);
	assert_int_equal(next_async(srq), 0);
	dapl_srq_limit(srq);
	assert_int_equal(next_async(srq), DAT_SRQ_LOW_WATERMARK_EVENT);
	assert_int_equal(query().low_watermark, 0);
	dapl_srq_limit(srq);	/* the device reports it late */
	assert_int_equal(next_async(srq), 0);
}

/* Buffers that a message has arrived in are not left, whether dequeued or not. */
WITH_SRQ(watermark_that_is_passed_already_is_told_at_once)
{
	post_buffers(5);
	arrive(0);
	assert_int_equal(dapl_srq_set_lw(SRQ, 5), DAT_SUCCESS);
	assert_int_equal(modified_mask, 0);
	assert_int_equal(next_async(srq), DAT_SRQ_LOW_WATERMARK_EVENT);
	assert_int_equal(dapl_srq_set_lw(SRQ, 4), DAT_SUCCESS);
	assert_int_equal(next_async(srq), 0);
}

/* SRQ-11 */
WITH_SRQ(watermark_is_at_most_the_limit)
{
	assert_int_equal(dapl_srq_set_lw(SRQ, BUFFERS + 1), BAD_PARAM(2));
	assert_int_equal(dapl_srq_set_lw(SRQ, -1), BAD_PARAM(2));
	assert_int_equal(dapl_srq_set_lw(SRQ, 0), DAT_SUCCESS);	/* off */
	assert_int_equal(next_async(srq), 0);
}

WITH_SRQ(watermark_stays_if_the_device_refuses_another)
{
	post_buffers(5);
	assert_int_equal(dapl_srq_set_lw(SRQ, 2), DAT_SUCCESS);
	modify_error = EINVAL;
	assert_int_equal(DAT_GET_TYPE(dapl_srq_set_lw(SRQ, 4)), DAT_INTERNAL_ERROR);
	assert_int_equal(query().low_watermark, 2);
}

WITH_SRQ(failed_srq_is_in_the_error_state)
{
	dapl_srq_failed(srq);
	assert_int_equal(query().srq_state, DAT_SRQ_STATE_ERROR);
	assert_int_equal(next_async(srq), DAT_SRQ_TRANSFER_TO_ERROR);
}

/* --- the watermarks of an endpoint --------------------------------------------------------------------------- */

static DAT_RETURN set_watermarks(DAT_COUNT soft, DAT_COUNT hard)
{
	return dapl_ep_set_watermark((DAT_EP_HANDLE)ep, soft, hard);
}

/* SRQ-17 */
WITH_SRQ(soft_watermark_of_an_endpoint_is_told)
{
	DAT_EVENT event;

	post_buffers(3);
	assert_int_equal(set_watermarks(1, DAT_WATERMARK_INFINITE), DAT_SUCCESS);
	assert_true(core_dto_evd->watched);	/* the service thread looks at completions as they come */
	arrive(0);
	assert_int_equal(query().available_dto_count, 2);	/* polls */
	dapl_service_flush();
	assert_int_equal(next_async(ep), 0);
	arrive(1);
	assert_int_equal(query().available_dto_count, 1);
	dapl_service_flush();
	assert_int_equal(next_async(ep), DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	while (core_next_event(core_dto_evd, &event))
		;
}

WITH_SRQ(endpoint_beyond_the_hard_watermark_keeps_the_old_ones)
{
	post_buffers(3);
	assert_int_equal(set_watermarks(DAT_WATERMARK_INFINITE, 8), DAT_SUCCESS);
	arrive(0);
	arrive(1);
	assert_int_equal(query().available_dto_count, 1);	/* polls */
	assert_int_equal(set_watermarks(DAT_WATERMARK_INFINITE, 1), BAD_STATE(EP_RECV_WATERMARK));
	assert_int_equal(ep->hard_hw, 8);
}

WITH_SRQ(watermark_outlives_the_cno_of_the_evd)
{
	DAT_CNO_HANDLE cno;

	assert_int_equal(dapl_cno_create((DAT_IA_HANDLE)core_ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	assert_int_equal(dapl_evd_modify_cno((DAT_EVD_HANDLE)core_dto_evd, cno), DAT_SUCCESS);
	assert_int_equal(set_watermarks(1, DAT_WATERMARK_INFINITE), DAT_SUCCESS);
	assert_int_equal(dapl_evd_modify_cno((DAT_EVD_HANDLE)core_dto_evd, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_true(core_dto_evd->watched);
	assert_int_equal(dapl_cno_free(cno), DAT_SUCCESS);
}

WITH_SRQ(arguments_of_watermarks_are_checked)
{
	struct dapl_ep *plain = core_objects_ep(NULL, NULL);

	assert_int_equal(set_watermarks(-2, 1), BAD_PARAM(2));
	assert_int_equal(set_watermarks(1001, 1), BAD_PARAM(2));
	assert_int_equal(set_watermarks(1, -2), BAD_PARAM(3));
	assert_int_equal(set_watermarks(1, 1001), BAD_PARAM(3));
	assert_int_equal(dapl_ep_set_watermark((DAT_EP_HANDLE)srq, 1, 1), BAD_HANDLE(EP));
	assert_int_equal(dapl_ep_set_watermark((DAT_EP_HANDLE)plain, 1, 1), NOT_SUPPORTED);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)plain), DAT_SUCCESS);
	assert_false(core_dto_evd->watched);
}

UNIT_MAIN(NULL, NULL)
