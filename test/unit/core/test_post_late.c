/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_late.c - posts to a queue pair in ERR of a device that would never complete them: which are
 * completed by core, and that the others are refused and leave no lock behind. */
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, 16);
	ia->attr.no_late_flush = true;
	ep->qp = core_qp();
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->up = false;
	ep->sq.in_error = ep->rq.in_error = true;
}

static int tear_down(void **state)
{
	assert_int_equal(ep->obj.calls, 0);
	return core_endpoint_close(state);
}

static DAT_RETURN request(uint64_t cookie, unsigned dto_flags, DAT_COMPLETION_FLAGS flags)
{
	const struct dapl_post_kind kind = { DAT_DTO_SEND, dto_flags, DCNT_EP_POST_SEND };

	return dapl_post_late(ep, 64, (DAT_DTO_COOKIE){ .as_64 = cookie }, flags, &kind, NULL);
}

static DAT_RETURN receive(uint64_t cookie)
{
	return dapl_post_late_receive(ep, 64, (DAT_DTO_COOKIE){ .as_64 = cookie }, 0);
}

static void expect_flushed(int op, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	dto = &event.event_data.dto_completion_event_data;
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(dto->operation, op);
	assert_int_equal(dto->user_cookie.as_64, cookie);
}

/* It failed: it has an event, although its success would have none. */
UNIT_CASE(suppressed_late_post_has_an_event)
{
	assert_int_equal(request(1, 0, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	expect_flushed(DAT_DTO_SEND, 1);
}

UNIT_CASE(queues_hold_what_was_asked_for)
{
	ep->sq.limit = ep->rq.limit = 2;
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(request(i, 0, 0), DAT_SUCCESS);
		assert_int_equal(receive(10 + i), DAT_SUCCESS);
	}
	assert_int_equal(request(2, 0, 0), NO_RESOURCE(MEMORY));
	assert_int_equal(receive(12), NO_RESOURCE(MEMORY));
	expect_flushed(DAT_DTO_SEND, 0);
	expect_flushed(DAT_DTO_RECEIVE, 10);
	assert_int_equal(request(3, 0, 0), DAT_SUCCESS);
	assert_int_equal(receive(13), DAT_SUCCESS);
	expect_flushed(DAT_DTO_SEND, 1);
	expect_flushed(DAT_DTO_RECEIVE, 11);
	expect_flushed(DAT_DTO_SEND, 3);
	expect_flushed(DAT_DTO_RECEIVE, 13);
}

static void expect_refusal(DAT_RETURN type)
{
	assert_int_equal(DAT_GET_TYPE(request(1, 0, 0)), type);
	assert_int_equal(DAT_GET_TYPE(receive(1)), type);
	assert_int_equal(dapl_queue_count(&ep->sq) + dapl_queue_count(&ep->rq), 0);
}

/* Each is refused twice: the first time leaves no lock. */
UNIT_CASE(other_posts_are_refused)
{
	for (int i = 0; i < 2; i++) {
		ia->attr.no_late_flush = false;
		expect_refusal(DAT_INVALID_STATE);
		ia->attr.no_late_flush = true;
		ep->is_ud = true;
		expect_refusal(DAT_INVALID_STATE);
		ep->is_ud = false;
		ep->state = DAT_EP_STATE_UNCONNECTED;
		expect_refusal(DAT_INVALID_STATE);
		ep->state = DAT_EP_STATE_DISCONNECTED;
		ep->qp = NULL;
		expect_refusal(DAT_INVALID_STATE);
		ep->qp = core_qp();
		ep->sq.in_error = ep->rq.in_error = false;
		expect_refusal(DAT_INVALID_STATE);
		ep->sq.in_error = ep->rq.in_error = true;
	}
	assert_int_equal(request(1, 0, 0), DAT_SUCCESS);
	expect_flushed(DAT_DTO_SEND, 1);
}

UNIT_CASE(post_to_a_freed_endpoint_is_refused)
{
	assert_true(dapl_object_kill(&ep->obj));
	assert_int_equal(request(1, 0, 0), BAD_HANDLE(EP));
	assert_int_equal(receive(1), BAD_HANDLE(EP));
	dapl_object_bury(&ep->obj);
	ep = core_ep_new(ia, evd, 16);
}

/* The endpoint has no EVD for it, so nothing dequeues the completion: its record is given back. */
UNIT_CASE(completion_for_a_missing_evd_is_discarded)
{
	struct dapl_evd *discard;

	assert_int_equal(dapl_service_get(), 0);	/* it watches the channel of a discard EVD */
	assert_int_equal(dapl_evd_make(ia, 8, DAT_EVD_DTO_FLAG, NULL, true, &discard), DAT_SUCCESS);
	dapl_object_publish(&discard->obj);
	ep->request_evd = NULL;
	ep->request_discard = discard;
	for (uint64_t i = 0; i < 40; i++)	/* more than the queue has records */
		assert_int_equal(request(i, 0, 0), DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(evd->wc_tail, evd->wc_head);
	ep->request_evd = evd;
	ep->request_discard = NULL;
	core_evd_free(discard);
	dapl_service_put();
}

UNIT_MAIN(NULL, NULL)
