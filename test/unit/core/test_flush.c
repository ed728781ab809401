/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_flush.c - the completions that core makes of posts which the device leaves when its queue pair fails:
 * which posts, in what order, with which status. */
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd_feed.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/flush.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

enum { POSTS = 256 };

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(8, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, POSTS);
	ep->sq.in_error = ep->rq.in_error = true;
}

static struct dapl_dto *post(unsigned flags, uint64_t cookie) { return core_post(ep, DAT_DTO_SEND, flags, cookie); }

static void complete(const struct dapl_dto *dto, enum ibv_wc_status status)
{
	core_complete(evd, &(struct ibv_wc){ .status = status, .wr_id = (uintptr_t)dto, .qp_num = 17,
		.opcode = dto->op == DAT_DTO_RECEIVE ? IBV_WC_RECV : IBV_WC_SEND });
}

static void flush(void) { dapl_evd_flush_posts(evd, ep, &ep->sq, true); }
static unsigned polled(void) { return evd->wc_tail - evd->wc_head; }

/* The i-th polled completion is that of this request. */
static void expect(unsigned i, const struct dapl_dto *dto, enum ibv_wc_status status)
{
	assert_in_range(i, 0, polled() - 1);
	assert_ptr_equal(evd->wc[evd->wc_head + i].wr_id, (uintptr_t)dto);
	assert_int_equal(evd->wc[evd->wc_head + i].status, status);
	assert_int_equal(evd->wc[evd->wc_head + i].qp_num, 17);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

CASE(posts_that_the_device_left_follow_those_it_completed)
{
	const struct dapl_dto *dto[5];
	DAT_EVENT event;

	for (unsigned i = 0; i < 5; i++)
		dto[i] = post(0, i);
	complete(dto[0], IBV_WC_SUCCESS);
	complete(dto[1], IBV_WC_SUCCESS);
	flush();
	assert_int_equal(polled(), 5);
	for (unsigned i = 0; i < 5; i++)
		expect(i, dto[i], i < 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
	}
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

CASE(unsignaled_requests_before_the_first_failure_succeeded)
{
	const struct dapl_dto *dto[] = { post(REQ_UNSIGNALED, 0), post(REQ_UNSIGNALED, 1), post(0, 2),
		post(REQ_UNSIGNALED, 3) };

	flush();
	assert_int_equal(polled(), 4);
	expect(0, dto[0], IBV_WC_SUCCESS);
	expect(1, dto[1], IBV_WC_SUCCESS);
	expect(2, dto[2], IBV_WC_WR_FLUSH_ERR);
	expect(3, dto[3], IBV_WC_WR_FLUSH_ERR);
}

CASE(unsignaled_requests_after_a_polled_failure_are_flushed)
{
	const struct dapl_dto *failed = post(0, 0), *dto = post(REQ_UNSIGNALED, 1);

	complete(failed, IBV_WC_REM_ACCESS_ERR);
	flush();
	expect(1, dto, IBV_WC_WR_FLUSH_ERR);
}

CASE(unsignaled_requests_after_a_dequeued_failure_are_flushed)
{
	const struct dapl_dto *dto = post(REQ_UNSIGNALED, 1);

	ep->sq.failed = true;
	flush();
	expect(0, dto, IBV_WC_WR_FLUSH_ERR);
}

/* Completions of another endpoint, of an SRQ and of the other queue do not show how far this queue is. */
CASE(completions_of_other_queues_do_not_count)
{
	struct dapl_ep *other = core_ep_new(ia, evd, 16);
	struct dapl_dto *dto = post(0, 0), of_srq = { .ep = ep, .end = 1, .op = DAT_DTO_SEND,
		.flags = REQ_SRQ };

	complete(core_post(other, DAT_DTO_SEND, 0, 7), IBV_WC_SUCCESS);
	complete(core_post(ep, DAT_DTO_RECEIVE, 0, 8), IBV_WC_SUCCESS);
	complete(&of_srq, IBV_WC_SUCCESS);
	flush();
	assert_int_equal(polled(), 4);
	expect(3, dto, IBV_WC_WR_FLUSH_ERR);
	dapl_evd_flush_posts(evd, ep, &ep->rq, true);
	assert_int_equal(polled(), 4);	/* the receive is complete */
	evd->wc_head = evd->wc_tail;
	core_ep_free(other);
}

/* The device has completed the first of the posts. */
static void posts_are_flushed(unsigned posts, unsigned completed)
{
	const struct dapl_dto *dto[POSTS];

	for (unsigned i = 0; i < posts; i++)
		dto[i] = post(0, i);
	for (unsigned i = 0; i < completed; i++)
		complete(dto[i], IBV_WC_SUCCESS);
	flush();
	assert_int_equal(polled(), posts);
	for (unsigned i = 0; i < posts; i++)
		expect(i, dto[i], i < completed ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
}

CASE(array_grows_for_more_posts_than_it_holds)
{
	uint32_t size = evd->wc_size;

	assert_in_range(size, 1, POSTS - 1);
	posts_are_flushed(POSTS, 0);
	assert_true(evd->wc_size > size);
}

/* The device's own completions fill the array exactly: they are moved first, however many there are. */
CASE(completions_in_the_device_come_first_when_the_array_is_full)
{
	posts_are_flushed(POSTS, evd->wc_size + 1);
}

CASE(positions_wrap)
{
	ep->sq.head = ep->sq.tail = UINT32_MAX - 1;
	posts_are_flushed(4, 1);
	assert_int_equal(ep->sq.flushed_to, 2);
}

CASE(queue_that_works_is_left_alone)
{
	ep->sq.in_error = false;
	post(0, 0);
	evd->waiting = true;
	flush();
	assert_int_equal(polled(), 0);
	assert_false(evd->notified);
	evd->waiting = false;
}

CASE(later_posts_are_flushed_once)
{
	const struct dapl_dto *dto[2];

	post(0, 0);
	flush();
	dto[0] = post(REQ_UNSIGNALED, 1);
	dto[1] = post(0, 2);
	dapl_evd_flush_posts(evd, ep, &ep->sq, false);
	dapl_evd_flush_posts(evd, ep, &ep->sq, false);
	assert_int_equal(polled(), 3);
	expect(1, dto[0], IBV_WC_WR_FLUSH_ERR);	/* a failure came before it */
	expect(2, dto[1], IBV_WC_WR_FLUSH_ERR);
}

/* Flushed requests notify, whatever their flags say of a success; a marker never does. */
CASE(flushed_requests_count_as_notices_of_an_inspected_evd)
{
	dapl_evd_inspect(evd);
	post(0, 0);
	post(REQ_NO_NOTIFY, 1);
	post(REQ_MARKER, 2);
	flush();
	assert_int_equal(evd->notices, 2);
}

UNIT_MAIN(NULL, NULL)
