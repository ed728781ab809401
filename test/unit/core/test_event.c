/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_event.c - what completions of the extensions, of datagrams, of raw Ethernet endpoints and of SRQ buffers
 * become, and what is noted on the way (event.c). Plain completions are in test_dequeue.c. */
#include "dapl/core/base/qp_table.h"
#include "dapl/core/base/srq_records.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static unsigned broken;
static struct dapl_ep *last_broken;
static struct dapl_eth eth;
static struct dapl_eth_frame frames[4];
static struct dapl_srq srq;

static void note_broken(struct dapl_ep *of, enum dapl_code_kind kind, unsigned code, const char *text)
{
	assert_int_equal(kind, DAPL_CODE_COMPLETION);
	last_broken = of;
	broken++;
}

UNIT_FIXTURE(set_up)
{
	broken = 0;
	dapl_conn_hooks = (struct dapl_conn_hooks){ .broken = note_broken };
	core_endpoint_open(64, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, 64);
}

static int tear_down(void **state)
{
	assert_int_equal(ep->obj.refs, 1);	/* each report has given its reference back */
	return core_endpoint_close(state);
}

/* Completes the request or the receive `dto` with `wc`. Takes the event. */
static DAT_RETURN complete(struct dapl_dto *dto, struct ibv_wc wc, DAT_EVENT *event)
{
	DAT_RETURN ret;

	wc.wr_id = (uintptr_t)dto;
	core_complete(evd, &wc);
	memset(event, 0x5a, sizeof *event);
	ret = dapl_evd_dequeue((DAT_EVD_HANDLE)evd, event);
	if (ret == DAT_SUCCESS)
		assert_ptr_equal(event->evd_handle, evd);
	return ret;
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	return (const void *)event->event_extension_data;
}

static const DAT_ETH_FRAME *frame_of(const DAT_EVENT *event) { return (const void *)event->event_extension_data; }

UNIT_CASE(extension_requests_tell_their_type_and_status)
{
	static const struct { int op; DAT_IB_EXT_TYPE type; } rows[] = {
		{ DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD }, { DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP },
		{ DAT_IB_DTO_SEND_UD, DAT_IB_UD_SEND }, { DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED },
	};
	DAT_EVENT event;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int ok = 0; ok < 2; ok++) {
			struct dapl_dto *dto = core_post(ep, rows[i].op, REQ_EXTENSION, i);

			assert_int_equal(complete(dto, (struct ibv_wc){
				.status = ok ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR }, &event), DAT_SUCCESS);
			assert_int_equal(event.event_number, DAT_IB_DTO_EVENT);
			assert_int_equal(event.event_data.dto_completion_event_data.operation, rows[i].op);
			assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, ok ? 64 : 0);
			assert_int_equal(extension(&event)->type, rows[i].type);
			assert_int_equal(extension(&event)->status, ok ? DAT_OP_SUCCESS : DAT_IB_OP_ERR);
		}
}

/* Then unsignaled requests behind it count as flushed (flush.c). */
UNIT_CASE(only_a_failed_request_marks_its_queue)
{
	DAT_EVENT event;

	complete(core_post(ep, DAT_DTO_SEND, REQ_SUPPRESS, 1), (struct ibv_wc){ .status = IBV_WC_SUCCESS }, &event);
	complete(core_post(ep, DAT_DTO_RECEIVE, 0, 2), (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR }, &event);
	assert_false(ep->sq.failed);
	complete(core_post(ep, DAT_DTO_SEND, 0, 3), (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR }, &event);
	assert_true(ep->sq.failed);
}

/* The marker makes no event: the report must not wait for the next one. */
UNIT_CASE(failed_marker_is_reported_before_the_next_event)
{
	DAT_EVENT event;

	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_REM_ACCESS_ERR,
		.wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, REQ_MARKER, 1) });
	assert_int_equal(complete(core_post(ep, DAT_DTO_SEND, 0, 2), (struct ibv_wc){ .status = IBV_WC_SUCCESS },
				  &event), DAT_SUCCESS);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
	assert_int_equal(broken, 1);
	assert_int_equal(complete(core_post(ep, DAT_DTO_SEND, REQ_MARKER, 3),
				  (struct ibv_wc){ .status = IBV_WC_RETRY_EXC_ERR }, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(broken, 2);
	assert_ptr_equal(last_broken, ep);
}

/* One dequeue finds both. */
UNIT_CASE(failures_of_two_endpoints_are_both_reported)
{
	struct dapl_ep *other = core_ep_new(ia, evd, 4);
	DAT_EVENT event;

	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_REM_ACCESS_ERR,
		.wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, REQ_MARKER, 1) });
	assert_int_equal(complete(core_post(other, DAT_DTO_SEND, REQ_MARKER, 2),
				  (struct ibv_wc){ .status = IBV_WC_REM_ACCESS_ERR }, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(broken, 2);
	assert_ptr_equal(last_broken, other);
	core_ep_free(other);
}

/* Only success proves that the peer has accepted. */
UNIT_CASE(failed_receive_does_not_wait_for_established)
{
	DAT_EVENT event;

	ep->up = false;
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	assert_int_equal(complete(core_post(ep, DAT_DTO_RECEIVE, 0, 1),
				  (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR }, &event), DAT_SUCCESS);
	assert_false(evd->awaits_established);
}

/* As `queued` is set all dequeues take the slow path. */
UNIT_CASE(empty_ring_opens_the_fast_path)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	assert_int_equal(dapl_evd_post_se((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(dapl_evd_post_se((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_ptr_equal(event.evd_handle, evd);
		assert_true(evd->queued);
	}
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_QUEUE_EMPTY);
	assert_false(evd->queued);
}

UNIT_CASE(dequeued_completions_are_no_notices)
{
	DAT_EVENT event;

	dapl_evd_inspect(evd);
	core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, 0, 1) });
	core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)core_post(ep, DAT_DTO_RECEIVE, 0, 2),
		.opcode = IBV_WC_RECV });
	core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, REQ_NO_NOTIFY, 3) });
	for (int left = 2; left; left--) {
		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_int_equal(evd->notices, left - 1);
	}
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(evd->notices, 0);
	assert_int_equal(evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND], 1);
}

/* --- raw Ethernet --------------------------------------------------------------------------- */

static void make_raw(void)
{
	for (int i = 0; i < 4; i++)
		frames[i] = (struct dapl_eth_frame){ .length = 60 + i };
	eth = (struct dapl_eth){ .frames = frames, .frame_mask = 3 };
	ep->eth = &eth;
	ep->is_raw = ep->is_ud = true;
	ep->up = false;
}

UNIT_CASE(frame_comes_with_its_receive)
{
	DAT_EVENT event;

	make_raw();
	assert_int_equal(complete(core_post(ep, DAT_DTO_RECEIVE, 0, 1),
				  (struct ibv_wc){ .opcode = IBV_WC_RECV, .byte_len = 62, .src_qp = 6 }, &event),
			 DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_ETH_DTO_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
	assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, 62);
	assert_int_equal(frame_of(&event)->length, 62);	/* 6 & mask is 2 */
	assert_int_equal(complete(core_post(ep, DAT_DTO_RECEIVE, 0, 2),
				  (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR, .byte_len = 62, .src_qp = 6 },
				  &event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_ETH_DTO_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, 0);
	assert_int_equal(frame_of(&event)->length, 0);
}

UNIT_CASE(ready_record_makes_a_ready_event)
{
	DAT_EVENT event;

	make_raw();
	eth.ready = (struct dapl_dto){ .ep = ep, .op = DAT_DTO_RECEIVE, .cookie = { .as_64 = 9 } };
	assert_int_equal(complete(&eth.ready, (struct ibv_wc){ .opcode = IBV_WC_RECV, .src_qp = 1 }, &event),
			 DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_ETH_READY_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 9);
	assert_int_equal(frame_of(&event)->length, 0);	/* it is of no frame */
}

UNIT_CASE(stamped_send_tells_when_the_frame_left)
{
	DAT_EVENT event;

	make_raw();
	assert_int_equal(complete(core_post(ep, DAT_DTO_SEND, REQ_EXTENSION, 1),
				  (struct ibv_wc){ .src_qp = 0x12, .imm_data = 0x89abcdef }, &event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_ETH_DTO_EVENT);
	assert_true(frame_of(&event)->time == 0x1289abcdefull);
	assert_int_equal(complete(core_post(ep, DAT_DTO_SEND, REQ_EXTENSION, 2),
				  (struct ibv_wc){ .src_qp = 0x12, .imm_data = 3, .status = IBV_WC_WR_FLUSH_ERR },
				  &event), DAT_SUCCESS);
	assert_true(frame_of(&event)->time == 0);
}

/* --- shared receive queues ------------------------------------------------------------------ */

static struct dapl_dto *post_to_srq(uint64_t cookie)
{
	struct dapl_dto *dto;

	dapl_post_lock(&srq.lock);
	dto = dapl_srq_take(&srq);
	dapl_post_unlock(&srq.lock);
	assert_non_null(dto);
	*dto = (struct dapl_dto){ .srq = &srq, .op = DAT_DTO_RECEIVE, .flags = REQ_SRQ,
		.cookie = { .as_64 = cookie } };
	return dto;
}

static void make_srq(void)
{
	srq = (struct dapl_srq){ .max = 4 };
	dapl_post_lock_init(&srq.lock, RANK_SRQ, true);
	assert_int_equal(dapl_srq_add_records(&srq, 4), 0);
	dapl_qp_table_add(ep);
}

static void free_srq(void)
{
	assert_int_equal(srq.posted, 0);
	dapl_qp_table_remove(ep);
	dapl_srq_free_records(&srq);
}

UNIT_CASE(buffer_of_an_srq_is_its_endpoints)
{
	DAT_EVENT event;

	make_srq();
	dapl_evd_inspect(evd);	/* buffers are counted only then */
	for (uint64_t i = 1; i <= 2; i++)
		core_complete(evd, &(struct ibv_wc){ .opcode = IBV_WC_RECV, .byte_len = 7, .qp_num = ep->qpn,
			.wr_id = (uintptr_t)post_to_srq(i) });
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, ep);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, 7);
		assert_int_equal(srq.posted, 2 - i);
		assert_int_equal(ep->srq_polled, 2 - i);
	}
	assert_int_equal(ep->counters[DCNT_EP_RECV], 2);
	free_srq();
}

UNIT_CASE(buffer_of_a_freed_endpoint_makes_no_event)
{
	DAT_EVENT event;

	make_srq();
	assert_int_equal(complete(post_to_srq(1), (struct ibv_wc){ .opcode = IBV_WC_RECV, .qp_num = ep->qpn + 1 },
				  &event), DAT_QUEUE_EMPTY);
	assert_int_equal(srq.posted, 0);
	free_srq();
}

UNIT_MAIN(NULL, NULL)
