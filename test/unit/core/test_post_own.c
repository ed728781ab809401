/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_own.c - requests of the provider's own: markers, which take no room of the consumer's, and the work
 * requests that bind windows of both types (post_slow.c). The checks of a bind are in test_rmr_bind.c. */
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/core/core_queues.h"
#include "test/unit/unit.h"

enum { PLACES = 16, KEY = 0x700 };

static const DAT_RMR_COOKIE cookie = { .as_64 = 77 };
static char window_handle;		/* its address is one */
static struct ibv_mr region;
static struct ibv_send_wr posted;	/* the last one */
static struct ibv_mw_bind bound;	/* the last window of type 1 */
static struct ibv_mw mw;
static struct dapl_dto *record;
static int posts, binds, error;

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	assert_null(wr->next);
	posted = *wr;
	record = (struct dapl_dto *)(uintptr_t)wr->wr_id;
	posts++;
	return error;
}

static int note_bind(struct ibv_qp *qp, struct ibv_mw *window, struct ibv_mw_bind *bind)
{
	assert_ptr_equal(qp, core_qp());
	assert_ptr_equal(window, &mw);
	bound = *bind;
	record = (struct dapl_dto *)(uintptr_t)bind->wr_id;
	binds++;
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = binds = error = 0;
	core_endpoint_open(64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, PLACES);
	core_device.post_send = note_post;
	core_context()->ops.bind_mw = note_bind;
	mw = (struct ibv_mw){ .context = core_context(), .type = IBV_MW_TYPE_2, .rkey = KEY };
	ep->qp = core_qp();
}

static DAT_RETURN dequeue(DAT_EVENT *event) { return dapl_evd_dequeue((DAT_EVD_HANDLE)evd, event); }

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close_unused)

CASE(marker_is_signaled_and_silent)
{
	DAT_EVENT event;

	core_post(ep, DAT_DTO_SEND, REQ_SUPPRESS | REQ_UNSIGNALED, 1);
	assert_int_equal(dapl_ep_post_marker(ep, false), 0);
	assert_int_equal(posted.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(posted.num_sge, 0);
	core_complete(evd, &(struct ibv_wc){ .wr_id = posted.wr_id });
	assert_int_equal(dequeue(&event), DAT_QUEUE_EMPTY);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);	/* with the request before it */
	for (int i = 0; i < DCNT_EP_ALL_COUNTERS; i++)
		assert_int_equal(ep->counters[i], 0);
}

CASE(marker_of_a_flush_is_a_send)
{
	assert_int_equal(dapl_ep_post_marker(ep, true), 0);
	assert_int_equal(posted.opcode, IBV_WR_SEND);
}

CASE(marker_takes_no_room_of_the_consumer)
{
	ep->sq.limit = ep->sq.room = 4;
	assert_int_equal(dapl_ep_post_marker(ep, false), 0);
	assert_int_equal(ep->sq.limit, 5);
	assert_int_equal(ep->sq.room, 5);
	assert_int_equal(ep->sq.markers, 1);
	ep->sq.room = 0;	/* posts take the slow path, and must go on taking it */
	assert_int_equal(dapl_ep_post_marker(ep, false), 0);
	assert_int_equal(ep->sq.limit, 6);
	assert_int_equal(ep->sq.room, 0);
	assert_int_equal(ep->sq.markers, 2);
}

/* Behind the consumer's limit the ring has places for markers, and no more than it has. */
CASE(marker_fits_beyond_the_limit_but_not_beyond_the_ring)
{
	ep->sq.limit = PLACES - 1;
	for (int i = 0; i < PLACES - 1; i++)
		core_post(ep, DAT_DTO_SEND, 0, 1);
	assert_int_equal(dapl_ep_post_marker(ep, false), 0);
	assert_int_equal(dapl_ep_post_marker(ep, false), ENOSPC);
	assert_int_equal(posts, 1);
	assert_int_equal(ep->sq.markers, 1);
}

CASE(refused_marker_changes_nothing)
{
	for (int i = 0; i < 2; i++) {
		error = i ? -1 : ENOMEM;
		assert_int_equal(dapl_ep_post_marker(ep, false), error);
	}
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(ep->sq.limit, PLACES);
	assert_int_equal(ep->sq.markers, 0);
	ia->attr.no_late_flush = true;	/* such a device says -1 of a request that it has queued */
	assert_int_equal(dapl_ep_post_marker(ep, false), 0);
	assert_int_equal(dapl_queue_count(&ep->sq), 1);
}

static DAT_RETURN post_bind(bool invalidate, int flags, bool silent)
{
	const struct dapl_bind what = { .mw = &mw, .invalidate = invalidate, .info = { .mr = &region,
		.addr = 0x1000, .length = 8, .mw_access_flags = IBV_ACCESS_REMOTE_READ } };

	return dapl_ep_post_bind(ep, &what, (DAT_RMR_HANDLE)&window_handle, cookie, (DAT_COMPLETION_FLAGS)flags,
				 silent);
}

CASE(window_of_type_2_is_bound_by_a_request)
{
	assert_int_equal(post_bind(false, DAT_COMPLETION_BARRIER_FENCE_FLAG, false), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_BIND_MW);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_ptr_equal(posted.bind_mw.mw, &mw);
	assert_int_equal(posted.bind_mw.rkey, KEY + 1);
	assert_ptr_equal(posted.bind_mw.bind_info.mr, &region);
	assert_int_equal(posted.bind_mw.bind_info.addr, 0x1000);
	assert_int_equal(mw.rkey, KEY + 1);
	assert_int_equal(binds, 0);
}

CASE(window_of_type_1_is_bound_by_its_own_verb)
{
	mw.type = IBV_MW_TYPE_1;
	assert_int_equal(post_bind(false, DAT_COMPLETION_SUPPRESS_FLAG, false), DAT_SUCCESS);
	assert_int_equal(binds, 1);
	assert_int_equal(bound.send_flags, 0);
	assert_ptr_equal(bound.bind_info.mr, &region);
	assert_int_equal(bound.bind_info.length, 8);
	assert_int_equal(record->flags, REQ_BIND | REQ_SUPPRESS | REQ_UNSIGNALED);
	assert_int_equal(dapl_queue_count(&ep->sq), 1);
	assert_int_equal(posts, 0);
}

CASE(invalidation_names_the_present_key)
{
	assert_int_equal(post_bind(true, 0, true), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_LOCAL_INV);
	assert_int_equal(posted.invalidate_rkey, KEY);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(mw.rkey, KEY);
}

CASE(bind_tells_its_window_and_cookie)
{
	DAT_EVENT event;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *told = &event.event_data.rmr_completion_event_data;

	assert_int_equal(post_bind(false, 0, false), DAT_SUCCESS);
	core_complete(evd, &(struct ibv_wc){ .wr_id = posted.wr_id });
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_ptr_equal(told->rmr_handle, &window_handle);
	assert_int_equal(told->user_cookie.as_64, 77);
	assert_int_equal(post_bind(true, 0, true), DAT_SUCCESS);	/* silent */
	core_complete(evd, &(struct ibv_wc){ .wr_id = posted.wr_id });
	assert_int_equal(dequeue(&event), DAT_QUEUE_EMPTY);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

CASE(refused_bind_leaves_no_record_and_the_key)
{
	error = ENOMEM;
	assert_int_equal(post_bind(false, 0, false), NO_RESOURCE(MEMORY));
	assert_int_equal(mw.rkey, KEY);
	mw.type = IBV_MW_TYPE_1;
	assert_int_equal(post_bind(false, 0, false), NO_RESOURCE(MEMORY));
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

CASE(full_queue_refuses_a_bind)
{
	for (int i = 0; i < PLACES; i++)
		core_post(ep, DAT_DTO_SEND, 0, 1);
	assert_int_equal(post_bind(false, 0, false), NO_RESOURCE(MEMORY));
	assert_int_equal(posts, 0);
	assert_int_equal(mw.rkey, KEY);
}

CASE(endpoint_that_cannot_bind_refuses)
{
	assert_int_equal(post_bind(false, 0x80, false), BAD_PARAM(8));
	ep->request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	assert_int_equal(post_bind(false, DAT_COMPLETION_UNSIGNALLED_FLAG, false), BAD_PARAM(8));
	ep->state = DAT_EP_STATE_UNCONNECTED;
	assert_int_equal(post_bind(false, 0, false), BAD_STATE(EP_UNCONNECTED));
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->is_raw = true;
	assert_int_equal(post_bind(false, 0, false), NOT_SUPPORTED);
	assert_int_equal(posts, 0);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

CASE(late_bind_is_flushed_with_its_window)
{
	DAT_EVENT event;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *told = &event.event_data.rmr_completion_event_data;

	ia->attr.no_late_flush = true;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->up = false;
	ep->sq.in_error = true;
	assert_int_equal(post_bind(false, 0, false), DAT_SUCCESS);
	assert_int_equal(posts, 0);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_ptr_equal(told->rmr_handle, &window_handle);
	assert_int_equal(told->status, DAT_DTO_ERR_FLUSHED);
}

UNIT_MAIN(NULL, NULL)
