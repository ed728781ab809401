/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_dequeue.c - what each kind of completion becomes, by the fast path (dequeue.c) and by the slow one
 * (event.c): the event, the record that is given back, and the report to connection management. */
#include "dapl/core/event/event.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static unsigned broken, completed, established;

static void note_broken(struct dapl_ep *of, enum dapl_code_kind kind, unsigned code,
			const char *text)
{
	assert_ptr_equal(of, ep);
	assert_int_equal(kind, DAPL_CODE_COMPLETION);
	assert_int_equal(code, IBV_WC_REM_ACCESS_ERR);
	broken++;
}

static bool note_established(struct dapl_ep *of)
{
	assert_ptr_equal(of, ep);
	established++;
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->up = true;
	return true;
}

static void note_completed(struct dapl_ep *of)
{
	assert_ptr_equal(of, ep);
	completed++;
}

UNIT_FIXTURE(set_up)
{
	broken = completed = established = 0;
	dapl_conn_hooks = (struct dapl_conn_hooks){ .broken = note_broken,
		.comm_established = note_established, .completed = note_completed };
	core_endpoint_open(64, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, 64);
}

static DAT_RETURN dequeue(DAT_EVENT *event) { return dapl_evd_dequeue((DAT_EVD_HANDLE)evd, event); }

static const struct {
	const char *what;
	int op;
	unsigned flags;			/* of the record */
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned wc_flags;
	bool event;			/* it makes one */
	int number, operation;		/* of the event */
	DAT_DTO_COMPLETION_STATUS told;
	unsigned length;
	unsigned broken;
} cases[] = {
	{ "send", DAT_DTO_SEND, 0, IBV_WC_SUCCESS, IBV_WC_SEND, 0, true,
	  DAT_DTO_COMPLETION_EVENT, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64, 0 },
	{ "receive", DAT_DTO_RECEIVE, 0, IBV_WC_SUCCESS, IBV_WC_RECV, 0, true,
	  DAT_DTO_COMPLETION_EVENT, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 48, 0 },
	{ "RDMA write that does not notify", DAT_DTO_RDMA_WRITE, REQ_NO_NOTIFY, IBV_WC_SUCCESS,
	  IBV_WC_RDMA_WRITE, 0, true, DAT_DTO_COMPLETION_EVENT, DAT_DTO_RDMA_WRITE,
	  DAT_DTO_SUCCESS, 64, 0 },
	{ "suppressed send", DAT_DTO_SEND, REQ_SUPPRESS, IBV_WC_SUCCESS, IBV_WC_SEND, 0, false,
	  0, 0, DAT_DTO_SUCCESS, 0, 0 },
	{ "suppressed send that failed", DAT_DTO_SEND, REQ_SUPPRESS, IBV_WC_REM_ACCESS_ERR,
	  IBV_WC_SEND, 0, true, DAT_DTO_COMPLETION_EVENT, DAT_DTO_SEND, DAT_DTO_ERR_REMOTE_ACCESS,
	  0, 1 },
	{ "marker", DAT_DTO_SEND, REQ_MARKER, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, 0, false, 0, 0,
	  DAT_DTO_SUCCESS, 0, 0 },
	{ "bind", DAT_DTO_BIND_MW, REQ_BIND, IBV_WC_SUCCESS, IBV_WC_BIND_MW, 0, true,
	  DAT_RMR_BIND_COMPLETION_EVENT, -1, DAT_DTO_SUCCESS, 0, 0 },
	{ "flushed send", DAT_DTO_SEND, 0, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND, 0, true,
	  DAT_DTO_COMPLETION_EVENT, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0, 0 },
	{ "flushed receive", DAT_DTO_RECEIVE, 0, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, true,
	  DAT_DTO_COMPLETION_EVENT, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0, 0 },
	{ "receive that invalidated", DAT_DTO_RECEIVE, 0, IBV_WC_SUCCESS, IBV_WC_RECV,
	  IBV_WC_WITH_INV, true, DAT_DTO_COMPLETION_EVENT, DAT_DTO_RECEIVE_WITH_INVALIDATE,
	  DAT_DTO_SUCCESS, 48, 0 },
	{ "receive of immediate data", DAT_DTO_RECEIVE, 0, IBV_WC_SUCCESS,
	  IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, true, DAT_IB_DTO_EVENT,
	  DAT_IB_DTO_RECV_IMMED, DAT_DTO_SUCCESS, 48, 0 },
	{ "receive of a message with immediate data", DAT_DTO_RECEIVE, 0, IBV_WC_SUCCESS, IBV_WC_RECV,
	  IBV_WC_WITH_IMM, true, DAT_IB_DTO_EVENT, DAT_IB_DTO_RECV_MSG_IMMED, DAT_DTO_SUCCESS, 48, 0 },
	{ "failed receive", DAT_DTO_RECEIVE, 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_RECV_RDMA_WITH_IMM,
	  IBV_WC_WITH_IMM, true, DAT_DTO_COMPLETION_EVENT, DAT_DTO_RECEIVE, DAT_DTO_ERR_REMOTE_ACCESS, 0, 1 },
};

static void expect_event(size_t i)
{
	DAT_EVENT event;
	DAT_RETURN ret = dequeue(&event);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	if (DAT_GET_TYPE(ret) != (cases[i].event ? DAT_SUCCESS : DAT_QUEUE_EMPTY))
		fail_msg("%s: 0x%x", cases[i].what, ret);
	if (!cases[i].event)
		return;
	if ((int)event.event_number != cases[i].number)
		fail_msg("%s: event 0x%x", cases[i].what, event.event_number);
	assert_ptr_equal(event.evd_handle, evd);
	if (cases[i].operation < 0)
		return;
	if (dto->status != cases[i].told || (int)dto->operation != cases[i].operation ||
	    dto->transfered_length != cases[i].length || dto->user_cookie.as_64 != 900 + i)
		fail_msg("%s: status %d, operation %d, length %llu", cases[i].what, dto->status,
			 dto->operation, (unsigned long long)dto->transfered_length);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

CASE(each_completion_makes_its_event)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_dto *dto = core_post(ep, cases[i].op, cases[i].flags, 900 + i);

		broken = 0;
		core_complete(evd, &(struct ibv_wc){ .status = cases[i].status,
			.opcode = cases[i].opcode, .wc_flags = cases[i].wc_flags, .byte_len = 48,
			.wr_id = (uintptr_t)dto });
		expect_event(i);
		assert_int_equal(dapl_queue_count(&ep->sq), 0);
		assert_int_equal(dapl_queue_count(&ep->rq), 0);
		assert_int_equal(broken, cases[i].broken);
	}
}

static void complete(int op, uint64_t cookie)
{
	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .byte_len = 48,
		.opcode = op == DAT_DTO_RECEIVE ? IBV_WC_RECV : IBV_WC_SEND,
		.wr_id = (uintptr_t)core_post(ep, op, 0, cookie) });
}

CASE(an_event_of_the_ring_comes_before_completions)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	complete(DAT_DTO_SEND, 1);
	assert_int_equal(dapl_evd_post_se((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
}

CASE(an_early_receive_establishes_the_connection)
{
	DAT_EVENT event;

	ep->up = false;
	ep->state = DAT_EP_STATE_COMPLETION_PENDING;
	complete(DAT_DTO_RECEIVE, 5);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(established, 1);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 5);
}

CASE(a_receive_waits_for_an_initiator_to_be_established)
{
	DAT_EVENT event;

	ep->up = false;
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	complete(DAT_DTO_RECEIVE, 5);
	assert_int_equal(DAT_GET_TYPE(dequeue(&event)), DAT_QUEUE_EMPTY);
	assert_true(evd->awaits_established);
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->up = true;
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
}

CASE(completions_of_an_ending_connection_are_reported)
{
	DAT_EVENT event;

	ep->deferred = true;
	ep->up = false;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	complete(DAT_DTO_SEND, 1);
	complete(DAT_DTO_SEND, 2);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(dequeue(&event), DAT_SUCCESS);
	assert_int_equal(completed, 2);
}

UNIT_MAIN(NULL, NULL)
