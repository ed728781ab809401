/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_recv.c - receives of any list of segments: which arguments are refused, what the device gets, and
 * what is recorded. */
#include "dapl/core/ep/calls.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

enum { UNSIGNALLED = DAT_COMPLETION_UNSIGNALLED_FLAG };

static int posts, error, segments;
static struct ibv_sge first;

static int note_post(struct ibv_recv_wr *wr)
{
	posts++;
	segments = wr->num_sge;
	if (segments)
		first = wr->sg_list[0];
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = error = segments = 0;
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, 4);
	core_device.post_recv = note_post;
	ep->qp = core_qp();
	ep->max_recv_iov = 3;
	ep->recv_flags = UNSIGNALLED;	/* what a post may not carry */
}

static DAT_RETURN receive(int n, const DAT_LMR_TRIPLET *iov, int flags)
{
	return dapl_receive_any(ep, n, iov, (DAT_DTO_COOKIE){ .as_64 = 5 }, (DAT_COMPLETION_FLAGS)flags);
}

static DAT_LMR_TRIPLET segment(DAT_VADDR address, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = address, .segment_length = length, .lmr_context = 9 };
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

/* The flag of one post is allowed where the endpoint was created for it. */
CASE(unsignaled_receives_need_an_endpoint_for_them)
{
	const DAT_LMR_TRIPLET iov[2] = { segment(1, 1), segment(2, 1) };

	assert_int_equal(receive(2, iov, UNSIGNALLED), BAD_PARAM(5));
	ep->recv_flags = 0;
	assert_int_equal(receive(2, iov, UNSIGNALLED), DAT_SUCCESS);
	assert_true(ep->rq.ring[0].flags & REQ_NO_NOTIFY);
	assert_int_equal(receive(2, iov, 0), DAT_SUCCESS);
	assert_false(ep->rq.ring[1].flags & REQ_NO_NOTIFY);
	assert_int_equal(receive(2, iov, UNSIGNALLED | DAT_COMPLETION_SUPPRESS_FLAG), BAD_PARAM(5));
}

/* The device refuses a receive without segments: it gets an empty one. */
CASE(device_that_needs_a_segment_gets_one)
{
	assert_int_equal(receive(0, NULL, 0), DAT_SUCCESS);
	assert_int_equal(segments, 0);
	ia->attr.no_empty_receive = true;
	assert_int_equal(receive(0, NULL, 0), DAT_SUCCESS);
	assert_int_equal(segments, 1);
	assert_int_equal(first.length, 0);
}

CASE(refused_post_leaves_no_record)
{
	error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(receive(0, NULL, 0)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(dapl_queue_count(&ep->rq), 0);
	error = 0;
	assert_int_equal(receive(0, NULL, 0), DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->rq), 1);
	assert_int_equal(ep->counters[DCNT_EP_POST_RECV], 1);
}

UNIT_MAIN(NULL, NULL)
